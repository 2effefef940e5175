//! Damaged recordings of perf: an error, or a part with its losses counted; never a panic, never much memory.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fkt_ingest::from_bytes;
use sigmund_model::{Event, Loss};

use crate::fixture;
use crate::{live::tool_exists, skipped::skipped};

/// A small recording in each mode: `sched_switch` of two short programs.
fn recordings() -> Vec<(&'static str, Vec<u8>)> {
    if !tool_exists("perf") {
        skipped("perf is not installed");
        return Vec::new();
    }
    let dir = tempfile::tempdir().unwrap();
    let mut recordings = Vec::new();
    for (mode, options) in [("file", "-o f"), ("zstd", "-z -o f"), ("pipe", "-o -")] {
        let mut command = Command::new("perf");
        command.args(["record", "-q", "-N", "-B", "-e", "sched:sched_switch", "--switch-events"]);
        command.args(options.split(' ')).args(["--", "sh", "-c", "sleep 0.01; /bin/true"]);
        let output = command.current_dir(dir.path()).stderr(Stdio::null()).output().unwrap();
        if !output.status.success() {
            skipped("perf record is not allowed here");
            return Vec::new();
        }
        let in_file = || fs::read(dir.path().join("f")).unwrap();
        recordings.push((mode, if mode == "pipe" { output.stdout } else { in_file() }));
    }
    recordings
}

/// Events and losses; `None` if the file is refused.
fn read(bytes: &[u8]) -> Option<(usize, Vec<Loss>)> {
    let trace = from_bytes("damaged.data", bytes.to_vec()).ok()?;
    let (mut events, mut losses) = (0, trace.losses().to_vec());
    let mut event = Event::default();
    for mut stream in trace.streams() {
        while stream.events.next_into(&mut event).unwrap() {
            events += 1;
            assert!((event.kind as usize) < trace.event_types().len());
        }
        losses.extend(stream.events.take_losses());
    }
    Some((events, losses))
}

/// xorshift64: the same numbers in every run.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Every byte of the header, of the first records and of the end, and every seventh of the repetitive part in between:
/// all bytes would take minutes, and are tried with `CUTS=all`.
fn is_worth_a_cut(whole: &[u8], cut: usize) -> bool {
    let tracing = whole.windows(10).position(|bytes| bytes == b"\x17\x08\x44tracing").unwrap();
    let declarations = (tracing + 1_000..tracing + 70_000).contains(&cut);
    let step = if declarations { 301 } else { 7 };
    cut < 3_000 || cut + 1_500 > whole.len() || cut.is_multiple_of(step) || std::env::var_os("CUTS").is_some()
}

#[test]
fn a_recording_cut_at_any_byte_keeps_what_is_readable() {
    for (mode, whole) in recordings() {
        let (all, losses) = read(&whole).unwrap();
        assert!(all > 10 && losses.iter().all(|loss| loss.count.is_some()), "{mode}: {losses:#?}");
        let mut before = 0;
        for cut in (0..whole.len()).filter(|cut| is_worth_a_cut(&whole, *cut)) {
            let Some((events, losses)) = read(&whole[..cut]) else {
                assert!(before == 0, "{mode} cut at {cut}: refused, but {before} events when cut before");
                continue;
            };
            // A pipe does not have its size: truncated between two records, it is a valid shorter one.
            assert!(
                events == all || mode == "pipe" || !losses.is_empty(),
                "{mode} cut at {cut}: {events} of {all}"
            );
            assert!(
                events >= before && events <= all,
                "{mode} cut at {cut}: {events} events, {before} before"
            );
            before = events;
        }
        assert!(before >= all - 1, "{mode}: {before} of {all}");
    }
}

#[test]
fn flipped_bits_are_an_error_or_a_loss_of_some_records() {
    let flips: usize = std::env::var("FLIPS").ok().and_then(|n| n.parse().ok()).unwrap_or(3_000);
    let mut state = 0x5167_4d75_6e64_0003;
    for (mode, whole) in recordings() {
        let (all, _) = read(&whole).unwrap();
        let mut kept = 0;
        for _ in 0..flips / 3 {
            let mut bytes = whole.clone();
            for _ in 0..1 + random(&mut state) % 3 {
                let at = random(&mut state) as usize % bytes.len();
                bytes[at] ^= 1 << (random(&mut state) % 8);
            }
            kept += read(&bytes).map_or(0, |(events, _)| events.min(all));
        }
        let share = kept as f64 / (all * (flips / 3)) as f64;
        assert!(share > if mode == "zstd" { 0.5 } else { 0.8 }, "{mode}: {share} of the events kept");
    }
}

// One record in the middle states a size of 3 bytes: the records after it are found again.
#[test]
fn a_damaged_record_costs_itself_and_one_row() {
    for (mode, whole) in recordings().into_iter().filter(|(mode, _)| *mode != "zstd") {
        let (all, losses) = read(&whole).unwrap();
        // `type 9 | misc | size` of the first sample.
        let sample = whole.windows(6).position(|bytes| bytes == [9, 0, 0, 0, 1, 0]).unwrap();
        let mut bytes = whole.clone();
        bytes[sample + 6] = 3;
        bytes[sample + 7] = 0;
        let (events, more_losses) = read(&bytes).unwrap();
        assert_eq!((events, more_losses.len()), (all - 1, losses.len() + 1), "{mode}: {more_losses:#?}");
        let row = more_losses.iter().find(|loss| !losses.contains(loss)).unwrap();
        assert!(row.detail.contains(&format!("at byte {sample} (record)")), "{}", row.detail);
    }
}

// | PERFILE2 | 104 | 144 | every place and size 2^40 or more |, and the same of a pipe whose one record claims 4 GB.
#[test]
fn absurd_sizes_are_refused_or_counted_at_once() {
    let started = Instant::now();
    for size in [1u64 << 40, u64::MAX, u64::MAX / 2, 1 << 63] {
        let mut words = vec![104u64, 144];
        words.extend([size; 6]);
        words.extend([u64::MAX; 4]);
        let mut bytes = b"PERFILE2".to_vec();
        bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        assert!(read(&bytes).is_none());
        for (place, _) in words.iter().enumerate() {
            let mut bytes = bytes.clone();
            bytes[8 + 8 * place..16 + 8 * place].fill(0);
            assert!(read(&bytes).is_none());
        }
    }
    for (ty, size) in [(66u32, u32::MAX), (71, u32::MAX), (81, 7), (83, u32::MAX), (80, 1), (69, u32::MAX)] {
        let mut bytes = [&b"PERFILE2"[..], &16u64.to_le_bytes(), &ty.to_le_bytes(), &[0, 0, 24, 0]].concat();
        bytes.extend(
            [size.to_le_bytes(), size.to_le_bytes(), size.to_le_bytes(), size.to_le_bytes()].concat(),
        );
        read(&bytes);
    }
    assert!(started.elapsed() < Duration::from_secs(5));
}

// | the records of a pipe | COMPRESSED: 256 MiB of records of 32 KiB without a time |, a few KB in all.
#[test]
fn what_unpacks_to_very_much_takes_little_memory() {
    let Some((_, mut bytes)) = recordings().into_iter().find(|(mode, _)| *mode == "pipe") else { return };
    let mut record = vec![0; 32 << 10];
    record[..8].copy_from_slice(&[1, 0, 0, 0, 0, 0, 0, 128]);
    let mut packed = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    for _ in 0..(256 << 20) / record.len() {
        packed.write_all(&record).unwrap();
    }
    for chunk in packed.finish().unwrap().chunks(60_000) {
        bytes.extend(81u32.to_le_bytes());
        bytes.extend([0, 0]);
        bytes.extend((8 + chunk.len() as u16).to_le_bytes());
        bytes.extend(chunk);
    }
    let dir = tempfile::tempdir().unwrap();
    let path = fixture::file(&dir, "bomb.data", &bytes);
    // In a separate process, because the memory of this one is that of all tests.
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "perf_damage::child_that_reads_a_bomb", "--ignored"])
        .env("BOMB", path)
        .stdout(Stdio::null())
        .status();
    assert!(status.unwrap().success());
}

#[test]
#[ignore = "started by what_unpacks_to_very_much_takes_little_memory"]
fn child_that_reads_a_bomb() {
    let bytes = fs::read(std::env::var_os("BOMB").unwrap()).unwrap();
    let (events, _) = read(&bytes).unwrap();
    assert!(events > 10);
    let peak = peak_memory();
    assert!(peak < 100 << 10, "{peak} KiB");
}

/// In KiB, of this process.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().split(' ').next().unwrap().parse().unwrap()
}
