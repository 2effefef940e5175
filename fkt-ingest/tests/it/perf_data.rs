//! Recordings by perf itself, in every mode, compared with perf's output.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fkt_ingest::{PerfData, TraceFile};
use sigmund_model::{ClockDomain, Cpu, Effect, Event, EventStream, EventType, Loss, LossKind, Lwp};

use crate::fixture;
use crate::perf_script::{self, compare, perf};
use crate::{live::tool_exists, skipped::skipped};

/// Processes that communicate, sleep, fork and exit; a shell if there is no hackbench.
fn load() -> [&'static str; 3] {
    let load = "for i in 1 2 3; do sleep 0.01; done; exec hackbench -g 1 -f 3 -l 20";
    let poor = "for i in $(seq 40); do /bin/true; done; sleep 0.02";
    ["sh", "-c", if tool_exists("hackbench") { load } else { poor }]
}

/// Records the load; `None`, with a message, if that is not possible.
fn record(dir: &tempfile::TempDir, options: &str) -> Option<PathBuf> {
    record_load(dir, options, &load())
}

/// Records the load until perf reports no lost events; it loses some when other programs keep all CPUs busy.
fn record_all(dir: &tempfile::TempDir, options: &str) -> Option<PathBuf> {
    let mut path = record(dir, options)?;
    for _ in 0..5 {
        if !perf(&["script", "-f", "--show-lost-events"], &path).contains("PERF_RECORD_LOST") {
            break;
        }
        path = record(dir, options)?;
    }
    Some(path)
}

fn record_load(dir: &tempfile::TempDir, options: &str, load: &[&str]) -> Option<PathBuf> {
    if !tool_exists("perf") {
        skipped("perf is not installed");
        return None;
    }
    let path = dir.path().join("perf.data");
    let mut command = Command::new("perf");
    command.args(["record", "-q", "-N", "-B"]).args(options.split_whitespace());
    match options.contains("-o -") {
        true => command.stdout(File::create(&path).unwrap()),
        false => command.arg("-o").arg(&path).stdout(Stdio::null()),
    };
    let status = command.arg("--").args(load).stderr(Stdio::null()).status().unwrap();
    if !status.success() {
        skipped(&format!("perf record {options} is not allowed here"));
        return None;
    }
    Some(path)
}

/// All events of each CPU, and all losses.
fn read(data: &PerfData) -> (BTreeMap<Option<Cpu>, Vec<Event>>, Vec<Loss>) {
    let mut events: BTreeMap<Option<Cpu>, Vec<Event>> = BTreeMap::new();
    let mut losses = data.losses().to_vec();
    for mut stream in data.streams(None) {
        let of_cpu = fixture::drain(&mut stream);
        assert!(of_cpu.is_sorted_by_key(|event| event.tick), "{:?}", stream.cpu());
        losses.extend(stream.take_losses());
        events.entry(stream.cpu()).or_default().extend(of_cpu);
    }
    // A directory may have events of a CPU in two files.
    events.values_mut().for_each(|of_cpu| of_cpu.sort_by_key(|event| event.tick));
    (events, losses)
}

fn name<'a>(data: &'a PerfData, event: &Event) -> &'a str {
    &data.event_types()[event.kind as usize].name
}

/// The number of files of which perf itself may have left out the end: if the last compressed record is full, `perf record`
/// does not write what its compressor still has, and `perf script` says nothing of it.
fn files_without_their_end(path: &Path) -> usize {
    let of_directory = |at: usize| fs::read(path.join(format!("data.{at}"))).ok();
    let last_is_full = |bytes: &Vec<u8>| {
        let u16_at = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().unwrap()));
        // A single file has its data where its header says (`perf_file_header.data.offset`).
        let mut at = if bytes.starts_with(b"PERFILE2") { usize::from(u16_at(40).unwrap()) } else { 0 };
        let mut last = 0;
        while let (Some(kind), Some(size)) = (u16_at(at), u16_at(at + 6)) {
            last = if kind == PERF_RECORD_COMPRESSED { size } else { last };
            at += usize::from(size.max(8));
        }
        last == u16::MAX
    };
    let single = path.is_file().then(|| fs::read(path).unwrap());
    single.into_iter().chain((0..).map_while(of_directory)).filter(last_is_full).count()
}

/// Every event of every CPU is the one that perf prints, in the same order, with all fields. Returns the number of
/// events of each kind.
fn check(path: &Path) -> BTreeMap<String, usize> {
    let data = PerfData::open(path).unwrap();
    let (ours, losses) = read(&data);
    let is_said =
        |loss: &&Loss| loss.kind == LossKind::Truncated && loss.detail.contains("full compressed record");
    let without_end = losses.iter().filter(is_said).count();
    // A record may end where perf has cut.
    assert!(without_end <= files_without_their_end(path), "{losses:#?}");
    let of_ours = losses.iter().filter(|loss| loss.kind != LossKind::NotRecorded).count() - without_end;
    assert_eq!(of_ours, 0, "{losses:#?}");
    let mut theirs: BTreeMap<Option<Cpu>, Vec<perf_script::Line>> = BTreeMap::new();
    for line in perf_script::script(path) {
        theirs.entry(Some(line.cpu)).or_default().push(line);
    }
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    let mut kinds = BTreeMap::new();
    for (cpu, events) in &ours {
        let lines = theirs.get_mut(cpu).unwrap();
        // perf prints a record too late if its rounds did not sort it, and reports it as "out of order".
        lines.sort_by_key(|line| line.time);
        for (event, line) in events.iter().zip(lines.iter()) {
            let ty: &EventType = &data.event_types()[event.kind as usize];
            if let Err(why) = compare(line, event, ty) {
                panic!("{why}\n{line:?}\n{} {event:?}", ty.name);
            }
            assert_eq!(event.cpu, *cpu);
            *kinds.entry(ty.name.clone()).or_insert(0) += 1;
        }
        assert_eq!(events.len(), lines.len(), "{cpu:?}");
    }
    kinds
}

const PERF_RECORD_COMPRESSED: u16 = 81;
const SCHEDULER: &str = "-e sched:*,irq:*,raw_syscalls:* -a -m 1024";

fn check_mode(options: &str, format: &str, kinds: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let Some(path) = record_all(&dir, options) else { return };
    let traces = fkt_ingest::open(&path).unwrap();
    assert_eq!(traces.iter().map(|trace| trace.format()).collect::<Vec<_>>(), [format]);
    let found = check(&path);
    for kind in kinds {
        assert!(found.contains_key(*kind), "no {kind} among {found:?}");
    }
}

const ALWAYS: [&str; 8] = [
    "sched_switch",
    "sched_waking",
    "softirq_entry",
    "sys_enter",
    "sys_exit",
    "perf_comm",
    "perf_fork",
    "perf_mmap",
];

#[test]
fn a_file_holds_what_perf_prints() {
    check_mode(&format!("{SCHEDULER} -k CLOCK_MONOTONIC_RAW"), "perf.data", &ALWAYS);
}

#[test]
fn a_compressed_file_holds_what_perf_prints() {
    check_mode(&format!("{SCHEDULER} -z"), "perf.data, zstd", &ALWAYS);
}

#[test]
fn a_pipe_holds_what_perf_prints() {
    check_mode(&format!("{SCHEDULER} -o -"), "perf.data, pipe", &ALWAYS);
}

#[test]
fn a_compressed_pipe_holds_what_perf_prints() {
    check_mode(&format!("{SCHEDULER} -z -o -"), "perf.data, pipe, zstd", &ALWAYS);
}

#[test]
fn a_directory_holds_what_perf_prints() {
    check_mode(&format!("{SCHEDULER} --threads"), "perf.data, directory", &ALWAYS);
}

#[test]
fn a_compressed_directory_holds_what_perf_prints() {
    check_mode(&format!("{SCHEDULER} --threads -z"), "perf.data, directory, zstd", &ALWAYS);
}

#[test]
fn records_of_switches_are_those_that_perf_prints() {
    let switches = ["perf_switch_in", "perf_switch_out", "perf_exit"];
    check_mode("-e dummy -a --switch-events -k CLOCK_MONOTONIC", "perf.data", &switches);
    check_mode("-e sched:sched_wakeup --switch-events", "perf.data", &switches);
    check_mode("-e sched:sched_switch -a --switch-events -z", "perf.data, zstd", &switches);
}

// Streams of a compressed file share one pass over it. Read one after the other, records of the later ones are queued,
// or dropped if there are too many; read side by side, in time order, they are not. Both ways give the same.
#[test]
fn streams_of_a_compressed_file_can_be_read_in_any_order() {
    let dir = tempfile::tempdir().unwrap();
    let dd = "dd if=/dev/zero of=/dev/null bs=64 count=30000 status=none";
    let load = ["sh", "-c", &format!("{dd} & {dd}; wait")];
    let Some(path) = record_load(&dir, "-e raw_syscalls:* -a -m 8192 -z", &load) else { return };
    assert!(check(&path)["sys_enter"] > 60_000);
    let data = PerfData::open(&path).unwrap();
    let side_by_side = side_by_side(&data);
    let (after_each_other, _) = read(&data);
    assert_eq!(side_by_side.len(), after_each_other.len());
    for (cpu, events) in after_each_other {
        assert!(events.iter().map(|event| (event.tick.0, event.kind)).eq(side_by_side[&cpu].iter().copied()));
    }
}

/// Tick and kind of the events of each CPU, its streams read side by side in time order.
fn side_by_side(data: &PerfData) -> BTreeMap<Option<Cpu>, Vec<(u64, u32)>> {
    let mut heads: Vec<_> = data.streams(None).into_iter().map(|stream| (stream, Event::default())).collect();
    heads.retain_mut(|(stream, event)| stream.next_into(event).unwrap());
    let mut side_by_side: BTreeMap<Option<Cpu>, Vec<(u64, u32)>> = BTreeMap::new();
    while let Some(at) = (0..heads.len()).min_by_key(|at| heads[*at].1.tick) {
        let (stream, event) = &mut heads[at];
        side_by_side.entry(stream.cpu()).or_default().push((event.tick.0, event.kind));
        if !stream.next_into(event).unwrap() {
            heads.remove(at);
        }
    }
    side_by_side
}

// | 42 MiB of cpu 0 | 42 MiB of cpu 1 | 42 MiB of cpu 2 |, one zstd stream, of the same time: 0, 3, 6, … | 1, 4, … | 2, 5, …
//
// Each holds more than the limit for all queues, so some are dropped, whichever is read first.
#[test]
fn a_stream_dropped_from_the_shared_pass_reads_each_record_once() {
    const EACH: u64 = 1300;
    let mut records = Vec::new();
    for cpu in 0..3 {
        (0..EACH).for_each(|turn| records.extend(long_comm(cpu, 1 + 3 * turn + u64::from(cpu))));
    }
    let dir = tempfile::tempdir().unwrap();
    let data = PerfData::open(&fixture::file(&dir, "left.data", &compressed_pipe(&records))).unwrap();
    let times = |cpu: u32| (0..EACH).map(move |turn| 1 + 3 * turn + u64::from(cpu));
    for (cpu, events) in side_by_side(&data) {
        assert!(events.into_iter().map(|(tick, _)| tick).eq(times(cpu.unwrap().0)), "{cpu:?}");
    }
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut streams = data.streams(None);
        for cpu in order {
            assert_eq!(streams[cpu].cpu(), Some(Cpu(cpu as u32)));
            let events = fixture::drain(&mut streams[cpu]);
            assert!(events.iter().map(|event| event.tick.0).eq(times(cpu as u32)), "{cpu} of {order:?}");
        }
    }
}

/// COMM of 32 KiB: `type 3 | misc | size | pid | tid | name, zeros | pid, tid | time | cpu, 0 | identifier`
fn long_comm(cpu: u32, time: u64) -> Vec<u8> {
    let mut record = [3u32.to_le_bytes(), [0, 0, 0, 128], [7, 0, 0, 0], [7, 0, 0, 0]].concat();
    record.resize((32 << 10) - 32, 0);
    record.extend([7u32.to_le_bytes(), 7u32.to_le_bytes()].concat());
    record.extend(time.to_le_bytes());
    record.extend(u64::from(cpu).to_le_bytes());
    record.extend(ID.to_le_bytes());
    record
}

const ID: u64 = 5;

/// A recording through a pipe: an attribute that requests LWP, time, CPU and identifier of every record, and these.
fn compressed_pipe(records: &[u8]) -> Vec<u8> {
    let mut attr = [0; 128];
    // A software event that counts nothing, by its size.
    (attr[0], attr[4], attr[8]) = (1, 128, 9);
    attr[24..32].copy_from_slice(&(1u64 << 1 | 1 << 2 | 1 << 7 | 1 << 16).to_le_bytes());
    attr[40..48].copy_from_slice(&(1u64 << 18).to_le_bytes());
    let mut bytes = [&b"PERFILE2"[..], &16u64.to_le_bytes()].concat();
    let mut push = |ty: u32, body: &[u8]| {
        bytes.extend(ty.to_le_bytes());
        bytes.extend([0, 0]);
        bytes.extend((8 + body.len() as u16).to_le_bytes());
        bytes.extend(body);
    };
    push(64, &[&attr[..], &ID.to_le_bytes()].concat());
    let packed = zstd::stream::encode_all(records, 1).unwrap();
    packed.chunks(60_000).for_each(|chunk| push(81, chunk));
    bytes
}

// Each LWP has a ring of its own, so a CPU's records come from many rings, and the time decreases in each round.
#[test]
fn rings_of_lwps_are_put_into_the_order_of_their_cpus() {
    check_mode("-e sched:*,raw_syscalls:* --per-thread -m 1024", "perf.data", &["sched_switch", "sys_exit"]);
}

// The kernel refuses every other clock for tracepoints: it could not read it in an NMI.
#[test]
fn the_clock_is_the_one_that_perf_was_run_with() {
    let dir = tempfile::tempdir().unwrap();
    for (option, clock, anchor) in [
        ("-k CLOCK_MONOTONIC_RAW", "monotonic_raw", true),
        ("-k CLOCK_MONOTONIC", "monotonic", true),
        ("", "local", false),
    ] {
        let Some(path) = record(&dir, &format!("-e sched:sched_switch -a {option}")) else { return };
        let data = PerfData::open(&path).unwrap();
        assert_eq!(data.clock().name(), clock);
        let facts: BTreeMap<String, String> = data.facts().into_iter().collect();
        let header = perf(&["report", "--header-only", "-f"], &path);
        let in_header = |key: &str| {
            let line = header.lines().find_map(|line| line.strip_prefix("# ")?.strip_prefix(key));
            line.unwrap_or_default().trim_start_matches([' ', ':']).trim_end().to_owned()
        };
        for (fact, key) in [("host", "hostname"), ("kernel", "os release"), ("cpus", "nrcpus avail")] {
            assert_eq!(facts[fact], in_header(key), "{header}");
        }
        assert_eq!(facts["writer"], format!("perf {}", in_header("perf version")));
        // perf prints the path of the program where it was called by a name.
        assert!(facts["command"].contains(" record -q -N -B -e sched:sched_switch"), "{facts:?}");
        assert_eq!(facts.contains_key("clock_anchor"), anchor, "{facts:?}");
        if let Some(anchor) = facts.get("clock_anchor") {
            // reference time: 2026-11-21 14:39:24.714145 = 1795271964.714145 (TOD) = 24210.365530866 (monotonic_raw)
            let in_header = in_header("reference time");
            let mut parts =
                in_header.split(" = ").skip(1).map(|part| part.split(' ').next().unwrap().replace('.', ""));
            let (wall, ns) = (parts.next().unwrap(), parts.next().unwrap());
            let ns = ns.trim_start_matches('0');
            assert!(anchor.starts_with(&format!("realtime {wall}")), "{anchor} {in_header}");
            assert!(anchor.ends_with(&format!(" = {clock} {ns} ns")), "{anchor} {in_header}");
            let [pair] = data.clock_pairs()[..] else { panic!("{:?}", data.clock_pairs()) };
            assert_eq!((pair.left.clock, pair.right.clock), (data.clock(), ClockDomain::Realtime));
            assert_eq!(pair.left.value.to_string(), ns);
            assert_eq!(pair.right.value.to_string(), format!("{wall}000"));
        }
        assert_eq!(data.clock_pairs().len(), usize::from(anchor));
    }
}

/// Run time by LWP, in nanoseconds: from one switch of a CPU to the next.
fn run_times(data: &PerfData) -> BTreeMap<u32, u64> {
    let mut sums: BTreeMap<u32, u64> = BTreeMap::new();
    for mut stream in data.streams(None) {
        let mut switched_at = None;
        for event in fixture::drain(&mut stream) {
            let Effect::KernelSwitch { prev: Some(prev), .. } = event.effect else { continue };
            if let (Some(from), true) = (switched_at, prev != Lwp::IDLE) {
                *sums.entry(prev.0).or_default() += event.tick.0 - from;
            }
            switched_at = Some(event.tick.0);
        }
    }
    sums
}

/// LWPs that were being released at one of their switches: perf attributes such a slice to LWP -1.
fn buried(path: &Path) -> BTreeSet<u32> {
    let lines = perf_script::script(path).into_iter().filter(|line| line.tid == -1);
    let prev = |line: perf_script::Line| line.what.split_once("prev_pid=")?.1.split(' ').next()?.parse().ok();
    lines.filter_map(prev).collect()
}

/// `comm[tid/pid]  parent  count  milliseconds …` of the summary; in microseconds.
fn timehist(path: &Path) -> BTreeMap<i64, u64> {
    let text = perf(&["sched", "timehist", "-s", "-f"], path);
    let mut sums = BTreeMap::new();
    for line in text.lines() {
        let Some((name_and_tid, rest)) = line.rsplit_once(']') else { continue };
        let Some((_, tid)) = name_and_tid.rsplit_once('[') else { continue };
        let words: Vec<&str> = rest.split_whitespace().collect();
        let (Ok(tid), Some(run_time)) = (tid.split('/').next().unwrap().parse(), words.get(2)) else {
            continue;
        };
        let Ok(micros) = run_time.replace('.', "").parse::<u64>() else { continue };
        *sums.entry(tid).or_default() += micros;
    }
    sums
}

#[test]
fn run_time_by_lwp_is_that_of_perf_sched_timehist() {
    let dir = tempfile::tempdir().unwrap();
    for options in ["", " -z", " --switch-events"] {
        let events = "sched:sched_switch,sched:sched_wakeup,sched:sched_wakeup_new,sched:sched_migrate_task";
        let Some(path) = record(&dir, &format!("-e {events} -a -m 1024{options}")) else { return };
        let ours = run_times(&PerfData::open(&path).unwrap());
        let mut theirs = timehist(&path);
        let (buried, of_buried) = (buried(&path), theirs.remove(&-1).unwrap_or(0));
        let mut missing = 0;
        for (tid, ns) in &ours {
            let micros = theirs.remove(&i64::from(*tid)).unwrap_or(0);
            match buried.contains(tid) {
                false => assert_eq!(micros, ns / 1_000, "LWP {tid}, {options}"),
                true => missing += ns / 1_000 - micros,
            }
        }
        assert!(of_buried.abs_diff(missing) <= buried.len() as u64, "{of_buried} {missing}");
        assert!(theirs.values().all(|micros| *micros == 0), "{theirs:?}");
        assert!(ours.len() > 5, "{ours:?}");
    }
}

/// What `perf report -D` prints of samples: `(time, tid, ip, period, chain)`.
fn dumped_samples(path: &Path) -> Vec<(u64, i64, u64, u64, String)> {
    let hex = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    let mut samples: Vec<(u64, i64, u64, u64, String)> = Vec::new();
    for line in perf(&["report", "-D", "-f"], path).lines() {
        if let Some((head, sample)) = line.split_once("PERF_RECORD_SAMPLE(IP, ") {
            let words: Vec<&str> = sample.split_whitespace().collect();
            let [_, name_and_tid, ip, _, period, ..] = words[..] else { panic!("{line}") };
            let time =
                head.split_whitespace().find(|word| word.len() > 6 && !word.starts_with("0x")).unwrap();
            let tid = name_and_tid.trim_end_matches(':').split('/').nth(1).unwrap().parse().unwrap();
            samples.push((time.parse().unwrap(), tid, hex(ip), period.parse().unwrap(), String::new()));
        } else if let Some((index, address)) = line.strip_prefix(".....").and_then(|l| l.split_once(':'))
            && index.trim().parse::<u32>().is_ok()
            // Marks between the parts of a chain.
            && hex(address.trim()) < -4095i64 as u64
        {
            let chain = &mut samples.last_mut().unwrap().4;
            let separator = if chain.is_empty() { "" } else { ";" };
            chain.push_str(&format!("{separator}{:x}", hex(address.trim())));
        }
    }
    samples.sort();
    samples
}

#[test]
fn samples_of_a_profile_are_those_that_perf_dumps() {
    let dir = tempfile::tempdir().unwrap();
    // Without -a, samples do not have their CPU.
    for (options, on_cpus) in [("-a -g", true), ("-g", false), ("-a -g -z", true), ("-g -o -", false)] {
        let Some(path) = record(&dir, &format!("-e cpu-clock -F 9999 {options}")) else { return };
        let data = PerfData::open(&path).unwrap();
        let (events, losses) = read(&data);
        assert_eq!(losses.iter().filter(|loss| loss.kind != LossKind::NotRecorded).count(), 0, "{losses:#?}");
        let mut ours = Vec::new();
        for event in events.values().flatten().filter(|event| name(&data, event).starts_with("cpu-clock")) {
            let ty = &data.event_types()[event.kind as usize];
            let fields: Vec<&str> = ty.fields.iter().map(|field| field.name.as_str()).collect();
            assert_eq!(fields, ["mode", "ip", "period", "callchain"]);
            let param = |at: usize| event.params.get(at).unwrap();
            let ip = param(1).number.unwrap() as u64;
            let mode = if ip >= 1 << 63 { "kernel" } else { "user" };
            assert_eq!(param(0).text, Some(mode));
            let (period, chain) = (param(2).number.unwrap() as u64, param(3).text.unwrap().to_owned());
            ours.push((event.tick.0, event.lwp.map_or(-1, |lwp| i64::from(lwp.0)), ip, period, chain));
            assert_eq!(event.cpu.is_some(), on_cpus);
        }
        ours.sort();
        let theirs = dumped_samples(&path);
        // One by one, because a message with all would be long.
        ours.iter().zip(&theirs).for_each(|(our, their)| assert_eq!(our, their));
        assert_eq!(ours.len(), theirs.len());
        assert!(ours.len() > 5 && ours.iter().any(|sample| sample.4.contains(';')), "{}", ours.len());
    }
}

// Tracepoints with call chains keep their fields, and have one more.
#[test]
fn a_tracepoint_with_call_chains_has_them_as_its_last_field() {
    let dir = tempfile::tempdir().unwrap();
    let Some(path) = record(&dir, "-e sched:sched_switch -a -g") else { return };
    let data = PerfData::open(&path).unwrap();
    let ty = data.event_types().iter().find(|ty| ty.name == "sched_switch").unwrap();
    assert_eq!(ty.fields.last().unwrap().name, "callchain");
    let (events, _) = read(&data);
    let switches: Vec<&Event> =
        events.values().flatten().filter(|e| name(&data, e) == "sched_switch").collect();
    let chains: Vec<&str> = switches.iter().filter_map(|e| e.params.iter().next_back()?.text).collect();
    assert_eq!(chains.len(), switches.len());
    assert!(chains.iter().any(|chain| chain.split(';').count() > 3), "{chains:?}");
}

#[test]
fn what_perf_lost_is_counted_with_cpu_and_instants() {
    let dir = tempfile::tempdir().unwrap();
    let options = "-e sched:*,raw_syscalls:* -a -m 1 -k CLOCK_MONOTONIC_RAW";
    let load = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64", "count=60000", "status=none"];
    let Some(path) = record_load(&dir, options, &load) else { return };
    let data = PerfData::open(&path).unwrap();
    let (_, losses) = read(&data);
    let dropped: Vec<&Loss> = losses.iter().filter(|loss| loss.kind == LossKind::Dropped).collect();
    let sum = |with_instant: bool| -> u64 {
        let some = dropped.iter().filter(|loss| loss.to.is_some() || !with_instant);
        some.filter_map(|loss| loss.count).sum()
    };
    // The counters of the events at the end have the sum; LOST records have a part of it.
    let dump = perf(&["report", "-D", "-f"], &path);
    let sum_of = |kind: &str| -> u64 {
        let lines = dump.lines().filter(|line| line.contains(kind));
        lines.filter_map(|line| line.rsplit(':').next()?.trim().parse::<u64>().ok()).sum()
    };
    let (by_records, counted) = (sum_of("PERF_RECORD_LOST:"), sum_of("PERF_RECORD_LOST_SAMPLES:"));
    assert!(by_records > 0, "nothing was lost: the load is too small");
    assert_eq!((sum(true), sum(false)), (by_records, by_records.max(counted)), "{dropped:#?}");
    for loss in &dropped {
        assert!(loss.cpu.is_some(), "{loss:?}");
        assert!(loss.from.is_none_or(|from| loss.to.is_some_and(|to| from <= to)), "{loss:?}");
    }
}
