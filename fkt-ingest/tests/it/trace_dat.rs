//! Every event of every fixture, compared with the output of `trace-cmd report`.

use fkt_ingest::{ErrorKind, TraceDat};
use sigmund_model::{ClockDomain, Context, Effect, Event, EventStream, LossKind, Lwp, TaskState};

use crate::fixture;
use crate::generated::{printed, reported};
use crate::report::{self, Line};
use crate::{live::tool_exists, skipped::skipped};

/// Opens a fixture and compares it with its report: same events, in the same order on each CPU, and of each line the
/// time, the CPU, the pid, the name and every field.
///
/// Normalised are: blanks at the ends of lines; and the lines of `sched_switch` and `sched_wakeup`, for which trace-cmd
/// has a plugin, are composed from the fields in the plugin's format.
fn compare(name: &str) -> (TraceDat, Vec<Vec<Event>>) {
    let dir = tempfile::tempdir().unwrap();
    let trace = TraceDat::open(&fixture::file(&dir, name, &fixture::bytes(&format!("{name}.dat")))).unwrap();
    let report = String::from_utf8(fixture::bytes(&format!("{name}.report.txt"))).unwrap();
    let (lines, dropped) = report::parse(&report);
    let (streams, losses) = fixture::drain_trace(&trace);
    let nanos = trace.clock() != Some(ClockDomain::Tsc);

    assert_eq!(lines.len(), streams.iter().map(Vec::len).sum::<usize>());
    let sentences = printed(&trace, "");
    let mut compared = 0;
    for (cpu, events) in streams.iter().enumerate() {
        let lines: Vec<&Line> = lines.iter().filter(|l| l.cpu as usize == cpu).collect();
        assert_eq!(lines.len(), events.len(), "cpu {cpu}");
        for ((line, event), (_, _, sentence)) in lines.iter().zip(events).zip(&sentences[cpu]) {
            let ty = &trace.event_types()[event.kind as usize];
            assert_eq!(line.time, printed_time(event.tick.0, nanos), "{line:?}");
            assert_eq!((line.name.as_str(), Some(Lwp(line.pid))), (ty.name.as_str(), event.lwp), "{line:?}");
            compared += report::compare_params(line, event, ty);
            let plugin = matches!(line.name.as_str(), "sched_switch" | "sched_wakeup" | "sched_wakeup_new");
            assert!(plugin || sentence.trim() == line.rest, "{line:?} is {sentence}");
        }
        let ours: Vec<Option<u64>> =
            losses.iter().filter(|l| l.cpu.is_some_and(|c| c.0 as usize == cpu)).map(|l| l.count).collect();
        let theirs: Vec<Option<u64>> =
            dropped.iter().filter(|(c, _)| *c as usize == cpu).map(|(_, count)| *count).collect();
        assert_eq!(ours, theirs, "events dropped on cpu {cpu}");
    }
    assert!(compared > lines.len(), "only {compared} fields compared");
    assert!(losses.iter().all(|l| l.kind == LossKind::Dropped), "{losses:?}");
    (trace, streams)
}

/// trace-cmd prints the TSC unchanged, and nanoseconds as seconds, rounded to microseconds.
fn printed_time(tick: u64, nanos: bool) -> String {
    if !nanos {
        return tick.to_string();
    }
    let micros = (tick + 500) / 1000;
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

// Without plugins, every event is printed by the kernel's own format.
#[test]
fn the_kernels_own_sentences_are_those_of_trace_cmd() {
    if !tool_exists("trace-cmd") {
        return skipped("trace-cmd is not installed");
    }
    let dir = tempfile::tempdir().unwrap();
    for name in ["small-tsc-v7-zstd", "small-tsc-v6", "small-mono-v7"] {
        let path = fixture::file(&dir, name, &fixture::bytes(&format!("{name}.dat")));
        let trace = TraceDat::open(&path).unwrap();
        let (lines, _) = reported(&path);
        let mut compared = 0;
        for (cpu, sentences) in printed(&trace, "").iter().enumerate() {
            let lines: Vec<&Line> = lines.iter().filter(|l| l.cpu as usize == cpu).collect();
            assert_eq!(lines.len(), sentences.len(), "{name}, cpu {cpu}");
            for (line, (event, pid, sentence)) in lines.iter().zip(sentences) {
                assert_eq!((&line.name, line.pid, line.rest.as_str()), (event, *pid, sentence.trim()));
                assert_eq!(line.comm, comm(&trace, *pid), "{line:?}");
                compared += 1;
            }
        }
        assert!(compared > 500, "{name}: {compared} lines");
    }
}

/// The name of a task as trace-cmd shows it: the newest of the saved command lines.
fn comm(trace: &TraceDat, pid: u32) -> &str {
    let known = trace.lwp_names().iter().rev().find(|(lwp, _)| *lwp == Lwp(pid));
    known.map_or(if pid == 0 { "<idle>" } else { "<...>" }, |(_, name)| name)
}

#[test]
fn v7_compressed_reads_as_trace_cmd_reports_it() {
    let (trace, streams) = compare("small-tsc-v7-zstd");
    assert_eq!(trace.clock_name(), Some("x86-tsc"));
    assert_eq!(trace.cpu_count(), Some(2));
    assert!(trace.uname().is_some_and(|u| u.starts_with("Linux")), "{:?}", trace.uname());
    assert!(trace.lwp_names().contains(&(Lwp(26776), "hackbench".to_owned())));
    assert_eq!(trace.cpu_stats().len(), 2);

    // migration/0-18 [000] 2938712459229: sched_switch: migration/0:18 [0] S ==> trace-cmd:26773 [120]
    let switch = streams[0].iter().find(|e| e.tick.0 == 2938712459229).unwrap();
    let expected = Effect::KernelSwitch {
        prev: Some(Lwp(18)),
        prev_state: Some(TaskState::from_letters("S").into()),
        next: Lwp(26773),
    };
    assert_eq!(switch.effect, expected);

    // hackbench-26776 [001] 2938716274482: sched_process_fork: … child_pid=26777
    let fork = streams[1].iter().find(|e| e.tick.0 == 2938716274482).unwrap();
    assert_eq!(fork.effect, Effect::LwpNew(Lwp(26777)));
    assert!(streams.iter().flatten().any(|e| e.context == Context::Softirq));
    assert!(streams.iter().flatten().any(|e| e.context == Context::Task));
}

#[test]
fn v7_uncompressed_reads_as_trace_cmd_reports_it() {
    compare("small-tsc-v7-none");
}

#[test]
fn v6_reads_as_trace_cmd_reports_it() {
    let (trace, _) = compare("small-tsc-v6");
    assert_eq!(trace.clock_name(), Some("x86-tsc"));
}

#[test]
fn a_monotonic_clock_is_nanoseconds() {
    let (trace, _) = compare("small-mono-v7");
    assert_eq!(trace.clock(), Some(ClockDomain::Monotonic));
}

#[test]
fn lost_events_are_rows_between_two_instants() {
    let (trace, streams) = compare("small-tsc-lost-v7");
    let mut gaps = 0;
    for (mut stream, events) in trace.streams().into_iter().zip(&streams) {
        fixture::drain(&mut stream);
        assert_eq!(stream.events(), events.len() as u64);
        for loss in stream.take_losses() {
            let (from, to) = (loss.from.unwrap(), loss.to.unwrap());
            assert!(from < to);
            assert!(!events.iter().any(|e| from < e.tick && e.tick < to), "{loss:?}");
            gaps += 1;
        }
    }
    assert_eq!(gaps, 22);
}

#[test]
fn an_event_declares_its_fields_and_a_format_for_people() {
    let (trace, _) = compare("small-tsc-v6");
    let ty = trace.event_types().iter().find(|t| t.name == "irq_handler_entry").unwrap();
    assert_eq!(ty.format, "irq={irq} name={name}");
    let names: Vec<&str> = ty.fields.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["irq", "name"]);
    let enter = trace.event_types().iter().find(|t| t.name == "sys_enter").unwrap();
    assert_eq!(enter.fields.len(), 7);
    assert_eq!(trace.event_types().last().unwrap().name, "unknown");
}

#[test]
fn what_is_not_read_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let open = |bytes: &[u8]| TraceDat::open(&fixture::file(&dir, "t.dat", bytes)).unwrap_err();
    let head = |version: &str, endian: u8, long: u8| {
        let mut bytes = b"\x17\x08\x44tracing".to_vec();
        bytes.extend(version.bytes());
        bytes.extend([0, endian, long, 0, 0x10, 0, 0]);
        bytes
    };
    assert_eq!(open(b"perf").kind(), ErrorKind::NotThisFormat);
    assert_eq!(open(b"PERFILE2--------").kind(), ErrorKind::NotThisFormat);
    assert_eq!(open(&head("8", 0, 8)).kind(), ErrorKind::Unsupported);
    assert_eq!(open(&head("7", 2, 8)).kind(), ErrorKind::Damaged);
    assert_eq!(open(&head("6", 0, 2)).kind(), ErrorKind::Unsupported);
    let lzma = open(&[head("7", 0, 8), b"lzma\x001.2\0".to_vec()].concat());
    let said = "t.dat: at byte 18 (compression): expected none, zlib or zstd, found \"lzma\"";
    assert!(lzma.to_string().ends_with(said), "{lzma}");
    assert!(TraceDat::is_trace_dat(&head("7", 0, 8)));
    assert!(!TraceDat::is_trace_dat(b"\x17\x08\x44tracing0.6\0"));
}
