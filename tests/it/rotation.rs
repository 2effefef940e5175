//! `record --max-size` and `--max-time`: a long recording keeps its end, whole, in no more memory and on no more disk.
//!
//! `SIGMUND_SOAK_SECONDS=600 cargo test --test it rotation` records half a million events a second for ten minutes.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    failures::Disk,
    kernel,
    sigmund::{Reported, Running, Sigmund},
    soak::{Sample, stays_flat},
};

/// Says in the environment for how many milliseconds this test binary is to be the program.
const PROGRAM_MS: &str = "SIGMUND_TEST_ROTATION";
/// Threads that record.
const LWPS: u64 = 2;
/// Events of each thread in a millisecond: half a million a second of all.
const EVENTS_A_MS: u64 = 250;

fut::events! {
    /// The next number of a thread, which is not called `thread`: that is a column of every event.
    fn counted(counter: u64, number: u64);
}

/// The program: threads that count, each at its rate. It prints how far they came.
#[test]
#[ignore = "a program for another test"]
fn counts() {
    let Some(ms) = std::env::var(PROGRAM_MS).ok().and_then(|ms| ms.parse().ok()) else { return };
    let _ = fut::init();
    let end = Instant::now() + Duration::from_millis(ms);
    let count = move |thread: u64| {
        let (start, mut number) = (Instant::now(), 0);
        while Instant::now() < end {
            let due = start.elapsed().as_micros() as u64 * EVENTS_A_MS / 1000;
            // Not faster than the buffer is emptied on a busy machine, whatever was missed.
            for _ in 0..due.saturating_sub(number).min(10 * EVENTS_A_MS) {
                counted(thread, number);
                number += 1;
            }
            thread::sleep(Duration::from_millis(1));
        }
        number
    };
    let threads: Vec<_> = (0..LWPS).map(|thread| thread::spawn(move || count(thread))).collect();
    let numbers: Vec<u64> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    println!("\ncame to {numbers:?}");
}

/// The other program: user threads that are older than all that is kept. One waits for a mutex all the time, one has a
/// span open all the time; the others come and go.
#[test]
#[ignore = "a program for another test"]
fn lives_long() {
    let Some(ms) = std::env::var(PROGRAM_MS).ok().and_then(|ms| ms.parse().ok()) else { return };
    let _ = fut::init();
    let end = Instant::now() + Duration::from_millis(ms);
    let runtime = fut::Runtime::builder().lwps(1).build().unwrap();
    runtime.run(move || {
        let mutex: &'static fut::sync::Mutex<()> = Box::leak(Box::default());
        let held = mutex.lock();
        let named = |name: &'static str| fut::Builder::new().name(name);
        let waits = named("waits").spawn(|| drop(mutex.lock()));
        let spans = named("has a span").spawn(move || {
            let _throughout = fut::span!("throughout");
            while Instant::now() < end {
                let _now_and_then = fut::span!("now and then");
                fut::sleep(Duration::from_millis(1));
            }
        });
        while Instant::now() < end {
            let short = named("short").spawn(fut::yield_now);
            let _ = short.join();
            fut::sleep(Duration::from_millis(1));
        }
        drop(held);
        let _ = (waits.join(), spans.join());
    });
}

/// The recorder of the program into the folder RUN, with these options.
fn recorder(sigmund: &Sigmund, ms: u64, options: &[&str]) -> Command {
    recorder_into(sigmund, "RUN", ms, options)
}

fn recorder_into(sigmund: &Sigmund, run: &str, ms: u64, options: &[&str]) -> Command {
    let mut command = sigmund.command();
    command.args(["record", "--no-merge", "-o", run]).args(options).arg("--");
    command.arg(std::env::current_exe().unwrap());
    program(&mut command, "rotation::counts", ms);
    command
}

/// Adds this test binary as the program, with one of the functions above.
fn program(command: &mut Command, function: &str, ms: u64) {
    command.args(["--exact", function, "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(PROGRAM_MS, ms.to_string());
}

/// How far each thread of the program came.
fn came_to(said: &Reported) -> Vec<u64> {
    let line =
        said.stdout.lines().find_map(|line| line.strip_prefix("came to ")).expect("the program's output");
    line.trim_matches(['[', ']']).split(", ").map(|number| number.parse().unwrap()).collect()
}

fn merge(sigmund: &Sigmund, run: &str) -> Reported {
    sigmund.run(["merge", run, "-o", "RUN.supertrace", "--force"])
}

/// Of each thread: the first number, the last, and how many there are.
fn numbers(sigmund: &Sigmund) -> Vec<(u64, u64, u64)> {
    let query = "SELECT min(number), max(number), count(*) FROM counted GROUP BY counter ORDER BY counter";
    let rows = sigmund.sql("RUN.supertrace", query);
    rows.iter()
        .map(|row| (row[0].parse().unwrap(), row[1].parse().unwrap(), row[2].parse().unwrap()))
        .collect()
}

/// Rows of `losses` of one kind of severity: kind, level, count, detail.
fn losses(sigmund: &Sigmund, condition: &str) -> Vec<Vec<String>> {
    let query = format!("SELECT kind, level, count, detail FROM losses WHERE {condition} ORDER BY level");
    sigmund.sql("RUN.supertrace", &query)
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn bytes_of(run: &Path) -> u64 {
    let entries = fs::read_dir(run).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum()
}

/// Events by the kernel's and the drain's count, of the parts that are there and of those that were removed.
fn counted_in(run: &Path) -> (u64, u64) {
    let rotation = &json(&run.join("run.json"))["rotation"];
    let removed = |key: &str| rotation["removed"][key].as_u64().unwrap();
    let (mut kernel, mut user) = (removed("kernel_events"), removed("user_events"));
    for part in rotation["first"].as_u64().unwrap()..=rotation["last"].as_u64().unwrap() {
        for file in json(&run.join(format!("part-{part:05}.json")))["files"].as_array().unwrap() {
            let is_user = file["name"].as_str().unwrap().ends_with(".fut");
            *(if is_user { &mut user } else { &mut kernel }) += file["events"].as_u64().unwrap();
            let length = fs::metadata(run.join(file["name"].as_str().unwrap())).unwrap().len();
            assert_eq!(file["bytes"].as_u64(), Some(length), "{file}");
        }
    }
    (kernel, user)
}

//   part 1 … part k │ part k+1 …      part n │
//   removed, counted│ kept: no number is missing, up to the program's end
#[test]
fn the_last_seconds_are_kept_whole_and_what_was_removed_is_counted() {
    let Some(alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    let said = Running::of(recorder(&sigmund, 5000, &["--max-time", "1s"])).finish();
    drop(alone);
    assert_eq!(said.status, 0, "{said:?}");
    assert_eq!(kernel::held_by(said.pid), Vec::<String>::new());
    let last = came_to(&said);
    let run = sigmund.path("RUN");
    let merged = merge(&sigmund, "RUN");
    assert_eq!(merged.status, 0, "{merged:?}");

    for ((first, max, count), last) in numbers(&sigmund).into_iter().zip(&last) {
        assert!(first > 0 && max == last - 1, "{first} to {max} of {last}");
        assert_eq!(count, max - first + 1, "no number is missing");
        // The least that is kept, at the rate that the program had.
        assert!(count >= last / 6, "{count} of {last}");
        assert!(count <= last * 3 / 4, "{count} of {last}: too much is kept");
    }
    // Some guests leave out switches.
    let gaps = losses(&sigmund, "severity <> 'note' AND kind <> 'contradiction'");
    assert_eq!(gaps, Vec::<Vec<String>>::new());

    // The removed ones, by the counts of the recorder and by those of the reader.
    let notes = losses(&sigmund, "kind = 'overwritten'");
    let of_level = |level: &str| notes.iter().find(|row| row[1] == level).unwrap()[2].parse::<u64>().unwrap();
    let (kernel, user) = counted_in(&run);
    let count = |level| {
        let query = format!("SELECT count(*) FROM events WHERE level = '{level}'");
        sigmund.number("RUN.supertrace", &query) as u64
    };
    assert_eq!(
        (count("KERN") + of_level("KERN"), count("USER") + of_level("USER")),
        (kernel, user),
        "{notes:?}"
    );
    assert!(user >= last.iter().sum());

    let info = sigmund.run(["info", "--quick", "RUN"]).found();
    assert!(info.contains("parts") && info.contains("kept from"), "{info}");
    let checked = sigmund.run(["check", "RUN.supertrace"]);
    assert!(!checked.stdout.contains("does not hold"), "{checked:?}");
    missing_and_foreign_parts_are_named(&sigmund);
}

//   removed                         │ kept
//   waits   |--mutex----------------│-------------------------------| its end
//   spans   |("throughout" ( ) ( ) (│) ( ) ( ) ( )                  )
#[test]
fn user_threads_older_than_what_is_kept_are_known_from_its_begin_on() {
    let Some(alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    let mut command = sigmund.command();
    command.args(["record", "--no-merge", "-o", "RUN", "--max-time", "1s", "--"]);
    command.arg(std::env::current_exe().unwrap());
    program(&mut command, "rotation::lives_long", 4000);
    let said = Running::of(command).finish();
    drop(alone);
    assert_eq!(said.status, 0, "{said:?}");
    assert!(said.stderr.contains("user threads are older than what is kept"), "{said:?}");
    let merged = merge(&sigmund, "RUN");
    assert_eq!(merged.status, 0, "{merged:?}");
    let first = sigmund.number("RUN.supertrace", "SELECT min(ts_tick) FROM events") as u64;
    let rows = |query: &str| sigmund.sql("RUN.supertrace", query);

    // Both have their names, and rows from the first event on.
    let threads =
        rows("SELECT name, ts_tick FROM threads WHERE name IN ('waits', 'has a span') ORDER BY name");
    let expected = ["has a span", "waits"].map(|name| vec![name.to_owned(), first.to_string()]);
    assert_eq!(threads, expected);
    let waits = "SELECT state, s.ts_tick, blocked_for FROM thread_states s JOIN threads t ON s.thread = t.thread \
         WHERE t.name = 'waits' ORDER BY s.ts_tick LIMIT 1";
    assert_eq!(rows(waits), [["blocked".to_owned(), first.to_string(), "mutex".to_owned()]]);
    let span = "SELECT s.ts_tick, s.end_reason FROM spans s JOIN threads t ON s.thread = t.thread \
         WHERE t.name = 'has a span' AND s.name LIKE '%throughout'";
    assert_eq!(rows(span), [[first.to_string(), "returned".to_owned()]]);
    // Of those that have ended before, none is there.
    let ended = "SELECT count(*) FROM threads t WHERE t.name = 'short' AND t.dur_tick IS NULL";
    assert!(sigmund.number("RUN.supertrace", ended) <= 1);
    let gaps = losses(&sigmund, "severity <> 'note' AND kind <> 'contradiction'");
    assert_eq!(gaps, Vec::<Vec<String>>::new());
    let checked = sigmund.run(["check", "RUN.supertrace"]);
    assert!(!checked.stdout.contains("does not hold"), "{checked:?}");
    // No file of a part that was removed is left.
    let carried = |name: &std::ffi::OsString| name.to_string_lossy().ends_with(".carried");
    let names = fs::read_dir(sigmund.path("RUN")).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.filter(carried).count(), 1);
}

/// Whatever is done to the parts of a run, the others are merged, and those are named.
fn missing_and_foreign_parts_are_named(sigmund: &Sigmund) {
    let rotation = json(&sigmund.path("RUN/run.json"))["rotation"].clone();
    let (first, last) = (rotation["first"].as_u64().unwrap(), rotation["last"].as_u64().unwrap());
    // In each part, packets before its own are missing, which is no damage.
    let info = sigmund.run(["info", "RUN"]).found();
    assert!(!info.contains("damaged") && !info.contains("overwritten"), "{info}");
    // The one in the middle, and one on each side.
    assert!(last - first >= 2, "parts {first} to {last}");
    let middle = first + 1;
    let user_file = |part: u64| {
        let files = json(&sigmund.path("RUN").join(format!("part-{part:05}.json")))["files"].clone();
        let names = files.as_array().unwrap().iter().map(|file| file["name"].as_str().unwrap().to_owned());
        names.into_iter().find(|name| name.ends_with(".fut")).unwrap()
    };
    let kernel_file = |part: u64| format!("kernel.part-{part:05}.dat");
    let json_file = |part: u64| format!("part-{part:05}.json");
    type Change<'c> = (String, Box<dyn Fn(&Path) + 'c>);
    let changes: Vec<Change<'_>> = vec![
        (kernel_file(middle), Box::new(|run| fs::remove_file(run.join(kernel_file(middle))).unwrap())),
        (user_file(middle), Box::new(|run| fs::remove_file(run.join(user_file(middle))).unwrap())),
        (json_file(middle), Box::new(|run| fs::remove_file(run.join(json_file(middle))).unwrap())),
        (
            "found one of other".into(),
            Box::new(|run| {
                let path = run.join(json_file(middle));
                let mut part = json(&path);
                part["recording"] = "other".into();
                fs::write(path, part.to_string()).unwrap();
            }),
        ),
        (
            format!("{}: expected", kernel_file(middle)),
            Box::new(|run| {
                fs::copy(run.join(kernel_file(middle + 1)), run.join(kernel_file(middle))).unwrap();
            }),
        ),
        (
            user_file(middle),
            Box::new(|run| {
                let file = fs::OpenOptions::new().write(true).open(run.join(user_file(middle))).unwrap();
                file.set_len(100).unwrap();
            }),
        ),
    ];
    for (word, change) in changes {
        let run = sigmund.path("CHANGED");
        let _ = fs::remove_dir_all(&run);
        let copied = Command::new("cp").arg("-a").arg(sigmund.path("RUN")).arg(&run).status().unwrap();
        assert!(copied.success());
        change(&run);
        if (word.ends_with(".dat") || word.ends_with(".fut")) && !run.join(&word).exists() {
            let info = sigmund.run(["info", "CHANGED"]).found();
            assert!(info.contains(&word) && info.contains("missing"), "{info}");
        }
        let merged = merge(sigmund, "CHANGED");
        let rows = losses(sigmund, "severity <> 'note'");
        assert!(rows.iter().any(|row| row[3].contains(&word)), "{word}: {rows:?} {merged:?}");
        let query = "SELECT max(number) FROM counted";
        let whole = came_to_in(&sigmund.sql("RUN.supertrace", query));
        assert!(whole > 0, "{word}: the parts after it are merged");
    }
}

fn came_to_in(rows: &[Vec<String>]) -> u64 {
    rows[0][0].parse().unwrap()
}

#[test]
fn a_killed_recorder_leaves_its_closed_parts_whole() {
    let Some(alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    let running = Running::of(recorder(&sigmund, 3000, &["--max-time", "1s"]));
    thread::sleep(Duration::from_millis(2500));
    kill_process(Pid::from_raw(running.pid() as i32).unwrap(), Signal::KILL).unwrap();
    let _ = running.finish();
    drop(alone);
    let merged = merge(&sigmund, "RUN");
    assert!(merged.stdout.contains("was killed") || merged.stderr.contains("was killed"), "{merged:?}");
    for (first, max, count) in numbers(&sigmund) {
        assert!(first > 0 && count > 0, "{first} to {max}");
        assert_eq!(count, max - first + 1, "no number is missing");
    }
    // Lengths are noted of files that the merge completes, too.
    let of_lengths = losses(&sigmund, "detail LIKE '%of another recording%'");
    assert_eq!(of_lengths, Vec::<Vec<String>>::new());
    // What was in the kernel's buffers, and ends of LWPs.
    let expected = "'truncated', 'not-recorded', 'contradiction'";
    let gaps = losses(&sigmund, &format!("severity <> 'note' AND kind NOT IN ({expected})"));
    assert_eq!(gaps, Vec::<Vec<String>>::new());
}

// The limit is larger than the disk.
#[test]
fn on_a_disk_that_is_too_small_the_end_is_kept_whole() {
    let Some(_alone) = kernel::as_root() else { return };
    for options in [&["--max-size", "256M", "--user-only"][..], &["--max-time", "1m", "--user-only"]] {
        let sigmund = Sigmund::new();
        let _disk = Disk::mount(&sigmund, "48m");
        let said = Running::of(recorder_into(&sigmund, "disk", 8000, options)).finish();
        assert!(said.stderr.contains("the disk is nearly full"), "{said:?}");
        let merged = merge(&sigmund, "disk");
        assert_eq!((said.status, merged.status), (0, 0), "{said:?} {merged:?}");
        for ((first, max, count), last) in numbers(&sigmund).into_iter().zip(&came_to(&said)) {
            assert!(first > 0 && max == last - 1, "{first} to {max} of {last}");
            assert_eq!(count, max - first + 1, "no number is missing");
        }
    }
}

// 500 000 events a second are 16 MB/s of the user side alone.
#[test]
fn memory_and_disk_stay_flat_while_half_a_million_events_a_second_are_recorded() {
    const MOST: u64 = 64 << 20;
    let Some(alone) = kernel::as_root() else { return };
    let seconds = std::env::var("SIGMUND_SOAK_SECONDS").map_or(10, |seconds| seconds.parse().unwrap());
    let sigmund = Sigmund::new();
    let recorder = Running::of(recorder(&sigmund, 1000 * seconds, &["--max-size", "64M"]));
    let (pid, run) = (recorder.pid(), sigmund.path("RUN"));
    let sampling = {
        let run = run.clone();
        thread::spawn(move || {
            let (start, mut most) = (Instant::now(), 0);
            while start.elapsed() < Duration::from_secs(seconds) {
                most = most.max(bytes_of(&run));
                thread::sleep(Duration::from_millis(20));
            }
            most
        })
    };
    let samples = Sample::take_from(pid, Duration::from_secs(seconds));
    let said = recorder.finish();
    drop(alone);
    assert_eq!(said.status, 0, "{said:?}");
    let most = sampling.join().unwrap();
    let events: u64 = came_to(&said).iter().sum();
    let disk = most.max(bytes_of(&run));
    eprintln!("{events} events in {seconds} s, at most {disk} bytes on the disk; {}", said.stderr);
    assert!(disk <= MOST, "{disk} bytes");
    stays_flat(&samples);

    let merged = merge(&sigmund, "RUN");
    assert_eq!(merged.status, 0, "{merged:?}");
    let per_thread: BTreeMap<usize, _> = numbers(&sigmund).into_iter().enumerate().collect();
    for (first, max, count) in per_thread.values() {
        assert_eq!(*count, max - first + 1, "no number is missing");
    }
}
