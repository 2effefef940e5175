//! Common Trace Format 1.8: recordings of LTTng compared with babeltrace2's output, generated traces of known truth,
//! and damaged ones.

mod babeltrace;
mod hostile;
mod made;
mod writer;

use std::path::Path;

use fkt_ingest::{CtfTrace, ErrorKind, TraceFile, open};
use sigmund_model::{ClockDomain, Event, Level, Loss, Lwp};

use crate::fixture;
use babeltrace::Line;

/// The metadata and the streams of `tests/fixtures/ctf/NAME`.
fn parts(name: &str) -> (Vec<u8>, Vec<(String, Vec<u8>)>) {
    let part = |file: &str| fixture::bytes(&format!("ctf/{name}/{file}"));
    (part("metadata"), ["ch_0", "ch_1"].map(|file| (file.to_owned(), part(file))).to_vec())
}

/// A trace in LTTng's folder structure, three folders deep.
fn lay_out(dir: &Path, metadata: &[u8], streams: &[(String, Vec<u8>)]) {
    let folder = dir.join("ust/uid/64-bit");
    std::fs::create_dir_all(folder.join("index")).unwrap();
    std::fs::write(folder.join("metadata"), metadata).unwrap();
    std::fs::write(folder.join("index/ch_0.idx"), b"not a stream").unwrap();
    for (name, bytes) in streams {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
}

/// All events, merged by their ticks, and all losses; for the same tick, the first stream comes first.
fn drain(trace: &dyn TraceFile) -> (Vec<Event>, Vec<Loss>) {
    let (mut events, mut losses) = (Vec::new(), trace.losses().to_vec());
    for mut stream in trace.streams() {
        let mut event = Event::default();
        while stream.events.next_into(&mut event).unwrap() {
            assert_eq!(event.params.len(), trace.event_types()[event.kind as usize].fields.len());
            events.push(event.clone());
        }
        losses.extend(stream.events.take_losses());
    }
    events.sort_by_key(|event| event.tick);
    (events, losses)
}

/// Compares events: same order, time, CPU, name and fields; returns the number of fields.
fn compare(trace: &dyn TraceFile, events: &[Event], lines: &[Line], time: impl Fn(u64) -> u64) -> usize {
    assert_eq!(events.len(), lines.len());
    let mut compared = 0;
    for (event, line) in events.iter().zip(lines) {
        let ty = &trace.event_types()[event.kind as usize];
        assert_eq!((time(event.tick.0), &ty.name), (line.time, &line.name), "{line:?}");
        assert_eq!(event.cpu.map(|cpu| cpu.0), line.cpu, "{line:?}");
        compared += babeltrace::compare_fields(line, event, ty);
    }
    compared
}

#[test]
fn a_recording_of_lttng_reads_as_babeltrace_prints_it() {
    let (metadata, streams) = parts("small-ust");
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path(), &metadata, &streams);
    let mut traces = open(dir.path()).unwrap();
    let trace = traces.pop().unwrap();
    assert!(traces.is_empty());
    let text = String::from_utf8(fixture::bytes("ctf/small-ust.babeltrace2.txt")).unwrap();
    let lines = babeltrace::parse(&text);
    let (events, losses) = drain(&*trace);
    // It prints the time of day: the clock's value plus its offset to the epoch.
    let offset = 1_795_241_965_578_422_079u64;
    let fields = compare(&*trace, &events, &lines, |tick| (tick + offset) % 86_400_000_000_000);
    assert_eq!((lines.len(), fields, losses), (2000, 10_000, vec![]));

    assert_eq!(trace.format(), "CTF 1.8, little endian");
    let facts = trace.facts();
    let fact = |name: &str| facts.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    assert_eq!((fact("host"), fact("writer")), (Some("vm"), Some("lttng-ust 2.13")));
    assert_eq!((fact("env.domain"), fact("env.tracer_buffering_id")), (Some("ust"), Some("0")));
    assert_eq!(fact("clock.monotonic.offset_ns"), Some("1795241965578422079"));
    // So that a trace with time of day can be merged with it; at the first packet, just before the first event.
    let [pair] = trace.clock_pairs()[..] else { panic!("{:?}", trace.clock_pairs()) };
    assert_eq!((pair.left.clock, pair.right.clock), (ClockDomain::Monotonic, ClockDomain::Realtime));
    assert_eq!(pair.right.value - pair.left.value, offset);
    let first = events.iter().map(|event| event.tick.0).min().unwrap();
    assert!((first - 1_000_000_000..=first).contains(&pair.left.value), "{pair:?}, first event {first}");
    let streams = trace.streams();
    let shapes: Vec<_> = streams.iter().map(|s| (s.clock, s.cpu.map(|c| c.0), s.buffer.as_str())).collect();
    let (monotonic, channel) = (ClockDomain::Monotonic, "ch");
    assert_eq!(shapes, [(monotonic, Some(0), channel), (monotonic, Some(1), channel)]);
    assert!(trace.event_types().iter().all(|ty| ty.level == Level::User));
    assert_eq!((events[0].lwp, events[1].lwp), (Some(Lwp(8948)), Some(Lwp(8992))));
}

#[test]
fn enums_sequences_arrays_and_floats_of_lttng_read_as_babeltrace_prints_them() {
    let (metadata, streams) = parts("mixed-ust");
    let trace = CtfTrace::from_bytes("mixed-ust", &metadata, streams).unwrap();
    let text = String::from_utf8(fixture::bytes("ctf/mixed-ust.babeltrace2.txt")).unwrap();
    let lines = babeltrace::parse(&text);
    let (events, losses) = drain(&trace);
    let fields = compare(&trace, &events, &lines, |tick| tick);
    // 3 of the context; kind, fixed ×3, length and seq, length and text, d, x, net, atext, f.
    assert_eq!((lines.len(), fields, losses), (400, 400 * 16, vec![]));
}

#[test]
fn the_metadata_itself_opens_its_trace_and_a_folder_without_one_is_refused() {
    let (metadata, streams) = parts("small-ust");
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path(), &metadata, &streams);
    let traces = open(&dir.path().join("ust/uid/64-bit/metadata")).unwrap();
    assert_eq!(drain(&*traces[0]).0.len(), 2000);

    let second = dir.path().join("archive");
    std::fs::create_dir(&second).unwrap();
    lay_out(&second, &metadata, &streams);
    assert_eq!(open(dir.path()).unwrap().len(), 2);

    let empty = tempfile::tempdir().unwrap();
    assert_eq!(open(empty.path()).unwrap_err().kind(), ErrorKind::NotThisFormat);
}
