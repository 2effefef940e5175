//! `sigmund export`: other people's programs read what it writes, and find there what SQL finds.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs::{self, File},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use arrow::{array::RecordBatch, ipc::reader::FileReader};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::Value;
use sigmund_model::WaitKind;

use crate::{
    kernel,
    sigmund::{Sigmund, figure, fixture, said},
};

const VIEWERS: [&str; 5] = ["paje", "otf2", "perfetto", "chrome", "ctf"];
const TABLES: [&str; 5] = ["csv", "tsv", "ndjson", "arrow", "parquet"];

/// The paper's run, and a recording of the kernel without user threads.
fn traces() -> Sigmund {
    let sigmund = Sigmund::with_listing("paper", &figure(2));
    fs::write(sigmund.path("waits.tsv"), waits::listing()).unwrap();
    sigmund.run(["merge", "waits.tsv", "-o", "waits.supertrace"]).found();
    let kernel = fixture("small-tsc-v7-zstd.dat");
    let kernel = kernel.to_str().unwrap();
    sigmund.run(["merge", kernel, "-o", "kernel.supertrace", "--hz", "2596.148MHz"]).found();
    sigmund
}

/// User threads that block for everything there is, and take locks.
#[path = "../../export/tests/it/waits.rs"]
mod waits;

fn export(
    sigmund: &Sigmund,
    trace: &str,
    format: &str,
    out: &str,
    more: &[&str],
) -> crate::sigmund::Reported {
    let trace = format!("{trace}.supertrace");
    sigmund.run([&["export", &trace, "--format", format, "-o", out], more].concat())
}

/// What another program prints, if it is there.
fn reads(sigmund: &Sigmund, program: &str, args: &[&str]) -> Option<String> {
    if !kernel::has_tool(program) {
        return None;
    }
    let mut command = Command::new(program);
    command.args(args).current_dir(sigmund.folder()).stdin(Stdio::null());
    Some(said(command).found())
}

/// Nanoseconds that each user thread spends in each state, and how often, by `pj_dump`'s rows
/// `State, CONTAINER, TYPE, START, END, DURATION, IMBRICATION, VALUE`.
fn states_by_pj_dump(dump: &str) -> BTreeMap<(String, String), (u64, u64)> {
    let mut sums = BTreeMap::new();
    for row in dump.lines().map(|line| line.split(", ").collect::<Vec<_>>()) {
        let ["State", who, "user thread state", _, _, seconds, _, state, ..] = row[..] else { continue };
        let thread = who.split(' ').find(|word| word.parse::<u64>().is_ok()).unwrap_or(who);
        let sum: &mut (u64, u64) = sums.entry((thread.to_string(), state.to_string())).or_default();
        sum.0 += (seconds.parse::<f64>().unwrap() * 1e9).round() as u64;
        sum.1 += 1;
    }
    sums
}

#[test]
fn pj_dump_finds_the_time_that_each_user_thread_spent_in_each_state_and_blocked_for_what() {
    let sigmund = traces();
    for trace in ["paper", "waits"] {
        export(&sigmund, trace, "paje", &format!("{trace}.trace"), &[]).found();
        let Some(dump) = reads(&sigmund, "pj_dump", &["-l", "9", &format!("{trace}.trace")]) else { return };
        let found = states_by_pj_dump(&dump);
        // A clock whose rate nobody knows: one tick is one nanosecond.
        let query = "SELECT CAST(thread AS VARCHAR), concat(CAST(state AS VARCHAR), CASE WHEN blocked_for IS NULL THEN \
                     '' ELSE concat(' (', CAST(blocked_for AS VARCHAR), ')') END) AS doing, sum(dur_tick), count(*) \
                     FROM thread_states WHERE state <> 'exited' GROUP BY thread, doing";
        let rows = sigmund.sql(&format!("{trace}.supertrace"), query);
        assert!(!rows.is_empty());
        let number = |text: &str| text.parse::<u64>().unwrap();
        let truth: BTreeMap<_, _> = rows
            .iter()
            .map(|row| ((row[0].clone(), row[1].clone()), (number(&row[2]), number(&row[3]))))
            .collect();
        assert_eq!(found, truth, "{trace}");
        let reasons: BTreeSet<_> =
            truth.keys().filter_map(|(_, doing)| doing.strip_prefix("blocked (")).collect();
        assert!(trace == "paper" || reasons.len() == WaitKind::ALL.len(), "{reasons:?}");
    }
}

#[test]
fn babeltrace2_finds_every_event() {
    let sigmund = traces();
    for trace in ["paper", "kernel"] {
        export(&sigmund, trace, "ctf", trace, &[]).found();
        let Some(text) = reads(&sigmund, "babeltrace2", &[trace]) else { return };
        let events = sigmund.number(&format!("{trace}.supertrace"), "SELECT count(*) FROM events");
        assert_eq!(text.lines().count() as i64, events);
    }
}

#[test]
fn otf2_print_finds_no_fault_in_an_archive() {
    let sigmund = traces();
    for trace in ["paper", "kernel", "waits"] {
        export(&sigmund, trace, "otf2", trace, &[]).found();
        let Some(text) = reads(&sigmund, "otf2-print", &[&format!("{trace}/traces.otf2")]) else { return };
        assert!(!text.contains("INVALID") && text.contains("ENTER"), "{text}");
        for (record, event) in
            [("THREAD_ACQUIRE_LOCK ", "LOCK_ACQUIRE"), ("THREAD_RELEASE_LOCK ", "LOCK_RELEASE")]
        {
            let found = text.lines().filter(|line| line.starts_with(record)).count() as i64;
            let query = format!("SELECT count(*) FROM events WHERE name = '{event}'");
            let expected = sigmund.number(&format!("{trace}.supertrace"), &query);
            assert_eq!((found, expected > 0), (expected, trace == "waits"), "{record}");
        }
    }
}

#[test]
fn chromes_json_is_json_with_everybody_in_it() {
    let sigmund = traces();
    let said = export(&sigmund, "paper", "chrome", "-", &[]);
    let json: Value = serde_json::from_str(&said.found()).unwrap();
    let names: Vec<&str> = json["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["name"] == "thread_name")
        .map(|event| event["args"]["name"].as_str().unwrap())
        .collect();
    for thread in ["6", "7", "8", "15"] {
        assert!(names.iter().any(|name| name.split(' ').any(|word| word == thread)), "{thread}: {names:?}");
    }
}

#[test]
fn a_table_has_the_rows_that_sql_finds_in_every_format() {
    let sigmund = traces();
    let cpu = &sigmund.sql("kernel.supertrace", "SELECT max(cpu) FROM events")[0][0];
    let filter = ["--event", "sched_switch", "--cpu", cpu];
    let where_ = format!("WHERE name = 'sched_switch' AND cpu = {cpu}");
    let rows = sigmund.number("kernel.supertrace", &format!("SELECT count(*) FROM events {where_}")) as usize;
    assert!(rows > 5, "{rows}");
    for format in TABLES {
        export(&sigmund, "kernel", format, format, &filter).found();
        assert_eq!(rows_of(&sigmund, format), rows, "{format}");
    }
    // The same cells as SQL prints.
    let by_sql = sigmund.run([
        "sql",
        "kernel.supertrace",
        &format!("SELECT * FROM events {where_} ORDER BY ts_tick"),
        "--format",
        "csv",
    ]);
    assert_eq!(fs::read_to_string(sigmund.path("csv")).unwrap(), by_sql.found());
}

fn rows_of(sigmund: &Sigmund, format: &str) -> usize {
    let path = sigmund.path(format);
    let count = |batches: &mut dyn Iterator<Item = RecordBatch>| batches.map(|batch| batch.num_rows()).sum();
    match format {
        "csv" | "tsv" => fs::read_to_string(path).unwrap().lines().count() - 1,
        "ndjson" => fs::read_to_string(path)
            .unwrap()
            .lines()
            .filter(|line| serde_json::from_str::<Value>(line).unwrap()["name"] == "sched_switch")
            .count(),
        "arrow" => {
            let reader = FileReader::try_new(File::open(path).unwrap(), None).unwrap();
            count(&mut reader.map(Result::unwrap))
        }
        _ => {
            let file = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
            count(&mut file.build().unwrap().map(Result::unwrap))
        }
    }
}

#[test]
fn a_filter_that_a_table_has_no_column_for_is_refused() {
    let sigmund = traces();
    export(&sigmund, "paper", "csv", "-", &["--table", "threads", "--cpu", "1"])
        .complained(&["`threads`", "no column `cpu`"]);
    export(&sigmund, "paper", "csv", "-", &["--table", "active", "--event", "IRQ"]).complained(&["`active`"]);
    let said = export(&sigmund, "paper", "csv", "-", &["--table", "no_such"]);
    assert!(said.status == 2 && said.stderr.contains("thread_states"), "{said:?}");
}

#[test]
fn a_time_that_the_trace_does_not_cover_is_refused() {
    let sigmund = traces();
    for format in VIEWERS.into_iter().chain(TABLES) {
        export(&sigmund, "paper", format, "x", &["--to", "1"]).complained(&["the trace covers ticks"]);
        assert!(!sigmund.path("x").exists(), "{format}");
    }
}

#[test]
fn what_is_there_is_not_overwritten_unless_forced() {
    let sigmund = traces();
    for format in VIEWERS.into_iter().chain(TABLES) {
        sigmund.write("x", b"precious");
        export(&sigmund, "paper", format, "x", &[]).complained(&["exists", "--force"]);
        assert_eq!(fs::read(sigmund.path("x")).unwrap(), b"precious", "{format}");
        export(&sigmund, "paper", format, "x", &["--force"]).found();
        // And what it wrote itself, a file or a folder.
        export(&sigmund, "paper", format, "x", &["--force"]).found();
        if sigmund.path("x").is_dir() {
            fs::remove_dir_all(sigmund.path("x")).unwrap();
        }
    }
    assert_eq!(leftovers(&sigmund), Vec::<String>::new());
}

#[test]
fn an_empty_selection_is_a_valid_empty_trace_and_is_said() {
    let sigmund = traces();
    for format in VIEWERS.into_iter().chain(TABLES) {
        let nothing = ["--event", "no_such_event", "--lwp", "1"];
        let said = export(&sigmund, "paper", format, format, &nothing);
        assert!(said.stderr.contains("nothing matched"), "{said:?}");
        said.found_nothing();
    }
    let dump = reads(&sigmund, "pj_dump", &["paje"]).unwrap_or_default();
    assert!(!dump.contains("State"), "{dump}");
    let archive = reads(&sigmund, "otf2-print", &["otf2/traces.otf2"]).unwrap_or_default();
    assert!(!archive.contains("INVALID") && !archive.contains("ENTER"), "{archive}");
    assert_eq!(reads(&sigmund, "babeltrace2", &["ctf"]).unwrap_or_default(), "");
    serde_json::from_slice::<Value>(&fs::read(sigmund.path("chrome")).unwrap()).unwrap();
    assert_eq!(fs::read_to_string(sigmund.path("csv")).unwrap().lines().count(), 1);
    assert_eq!(rows_of(&sigmund, "parquet"), 0);
    assert_eq!(rows_of(&sigmund, "arrow"), 0);
}

#[test]
fn a_full_disk_is_said_and_leaves_nothing_under_any_name() {
    let sigmund = traces();
    let disk = sigmund.path("disk");
    fs::create_dir(&disk).unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=16k", "nodev"]).arg(&disk);
    if !mount.stderr(Stdio::null()).status().is_ok_and(|status| status.success()) {
        kernel::needs(false, "it takes root to make a small disk");
        return;
    }
    let mut held = Vec::new();
    for format in VIEWERS.into_iter().chain(TABLES) {
        let said = export(&sigmund, "kernel", format, "disk/x", &[]);
        held.push((format, said, fs::read_dir(&disk).unwrap().count()));
    }
    assert!(Command::new("umount").arg(&disk).status().unwrap().success());
    for (format, said, left) in held {
        assert_eq!(left, 0, "{format}");
        said.complained(&["No space left"]);
    }
}

#[test]
fn an_export_that_is_stopped_leaves_a_whole_file_or_none() {
    let sigmund = traces();
    for after_ms in [0, 20, 60, 120, 250] {
        let running =
            sigmund.start(["export", "kernel.supertrace", "--format", "chrome", "-o", "x.json", "--force"]);
        std::thread::sleep(Duration::from_millis(after_ms));
        Command::new("kill").arg(running.pid().to_string()).status().unwrap();
        running.finish();
        if let Ok(json) = fs::read(sigmund.path("x.json")) {
            serde_json::from_slice::<Value>(&json).unwrap();
        }
    }
}

#[test]
fn coarse_keeps_the_time_spent_in_each_state() {
    let sigmund = traces();
    export(&sigmund, "kernel", "paje", "exact", &["--level", "kern"]).found();
    let said = export(&sigmund, "kernel", "paje", "coarse", &["--level", "kern", "--coarse", "1ms"]);
    assert!(said.stderr.contains("coarse: merged"), "{said:?}");
    said.found();
    let size = |name: &str| fs::metadata(sigmund.path(name)).unwrap().len();
    assert!(size("coarse") * 2 < size("exact"), "{} {}", size("coarse"), size("exact"));
    let [Some(exact), Some(coarse)] =
        ["exact", "coarse"].map(|name| reads(&sigmund, "pj_dump", &["-l", "9", name]))
    else {
        return;
    };
    let sums = |dump: &str| {
        let mut sums: BTreeMap<(String, String), f64> = BTreeMap::new();
        for row in dump.lines().map(|line| line.split(", ").collect::<Vec<_>>()) {
            let ["State", who, "LWP state", _, _, seconds, _, state, ..] = row[..] else { continue };
            *sums.entry((who.into(), state.into())).or_default() += seconds.parse::<f64>().unwrap();
        }
        sums
    };
    let (exact, coarse) = (sums(&exact), sums(&coarse));
    assert!(!exact.is_empty() && exact.keys().eq(coarse.keys()), "{exact:?}\n{coarse:?}");
    for (state, seconds) in exact {
        // Each stretch is rounded to the nanosecond at both ends.
        assert!((coarse[&state] - seconds).abs() < 1e-5, "{state:?}: {seconds} {}", coarse[&state]);
    }
}

fn leftovers(sigmund: &Sigmund) -> Vec<String> {
    let names = fs::read_dir(sigmund.folder()).unwrap().flatten();
    names.map(|e| e.file_name().to_string_lossy().into_owned()).filter(|n| n.contains("partial")).collect()
}

/// Two LWPs that switch among four user threads each, so many times in all.
fn long_listing(events: u64) -> String {
    let mut listing = String::from("type\tdate_tick\tpid\tcpu\tthr\tcode\tname\tparams\n");
    let mut mounted = [1, 5];
    for at in 0..events {
        let cpu = (at % 2) as usize;
        // One of the three others.
        let first = 1 + 4 * cpu as u64;
        let next = first + (mounted[cpu] - first + 1 + at / 2 % 3) % 4;
        let (tick, lwp, thread) = (1_000_000 + 500 * at, 100 + cpu, mounted[cpu]);
        let _ = writeln!(listing, "USER\t{tick}\t{lwp}\t{cpu}\t{thread}\t1\tUSER_CONTEXT_SWITCH\t{next}");
        mounted[cpu] = next;
    }
    listing
}

/// The most memory that a process has had so far (`VmHWM`, proc_pid_status(5)), in MiB.
fn peak_mib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?;
    Some(kib.trim().parse::<u64>().ok()? >> 10)
}

/// `SIGMUND_EXPORT_EVENTS=10000000 cargo test --release --test it export::a_long` tries ten million.
#[test]
fn a_long_trace_takes_no_more_memory_than_a_short_one() {
    const SHORT: u64 = 50_000;
    let events = std::env::var("SIGMUND_EXPORT_EVENTS").map_or(200_000, |text| text.parse().unwrap());
    let [short, long] = [SHORT, events].map(|events| Sigmund::with_listing("long", &long_listing(events)));
    for format in VIEWERS {
        let (few, many) = (peak_of_export(&short, format, SHORT), peak_of_export(&long, format, events));
        // Found without optimisation: 121 to 127 MiB for 50 000 events, 128 to 140 for a million.
        let most = (few + 50 + events / 50_000).min(400);
        assert!(
            few > 0 && many < most,
            "{format}: {few} MiB, and {many} of {events} events: expected less than {most}"
        );
    }
}

/// The most memory that an export to a viewer had, in MiB.
fn peak_of_export(sigmund: &Sigmund, format: &str, events: u64) -> u64 {
    let started = Instant::now();
    let running = sigmund.start(["export", "long.supertrace", "--format", format, "-o", format]);
    let (pid, mut peak) = (running.pid(), 0);
    let watch = std::thread::spawn(move || {
        while let Some(mib) = peak_mib(pid) {
            peak = peak.max(mib);
            std::thread::sleep(Duration::from_millis(20));
        }
        peak
    });
    let said = running.finish();
    assert!(said.stderr.contains(&format!("{events} events")), "{said:?}");
    said.found();
    let peak = watch.join().unwrap();
    println!("{format}: {events} events, {:.1} s, at most {peak} MiB", started.elapsed().as_secs_f64());
    peak
}
