//! A second reader: that of fkt-ingest, which is tested with LTTng's recordings.

use std::collections::BTreeSet;
use std::path::Path;

use fkt_ingest::{CtfTrace, TraceFile};
use sigmund_export::timeline::{Actors, Change, CpuId, EventTypeId, LwpActor, LwpId, RecordedEvent, Sink};
use sigmund_model::{Cpu, Effect, Event, Lwp};

use super::{babeltrace, write};
use crate::known_timelines::RandomTimeline;

#[test]
fn fkt_ingest_reads_the_same_events() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("trace");
    let random = RandomTimeline::new(11, 20_000);
    let (emitted, _) = write(&folder, &random.actors, |sink| random.emit(sink).unwrap());
    let trace = CtfTrace::open(&folder).unwrap();
    assert_eq!(trace.tick_hz().map(|hertz| hertz.per_second()), Some(2.5e9));
    assert!(TraceFile::losses(&trace).is_empty());
    let mut event = Event::default();
    let mut read = 0;
    for mut stream in TraceFile::streams(&trace) {
        while stream.events.next_into(&mut event).unwrap() {
            let (emitted, ty) = (&emitted[read], &trace.event_types()[event.kind as usize]);
            assert_eq!((event.tick.0, &ty.name, event.lwp), (emitted.tick, &emitted.name, Some(Lwp(70))));
            for (name, _, number, text) in &emitted.fields {
                let param = ty.field(name).and_then(|at| event.params.get(at)).unwrap();
                assert_eq!((param.number, param.text), (*number, text.as_deref()), "{name}");
            }
            read += 1;
        }
        assert_eq!(stream.events.take_losses(), []);
    }
    assert_eq!(read, emitted.len());
}

/// All events of a trace, by their ticks.
fn events(trace: &dyn TraceFile) -> Vec<Event> {
    let mut events = Vec::new();
    for mut stream in trace.streams() {
        let mut event = Event::default();
        while stream.events.next_into(&mut event).unwrap() {
            events.push(event.clone());
        }
    }
    events.sort_by_key(|event| (event.tick, event.cpu.map(|cpu| cpu.0)));
    events
}

/// The actors of a recording, and the recording as events of a timeline.
fn actors_of(trace: &dyn TraceFile, events: &[Event]) -> Actors {
    let lwps: BTreeSet<Lwp> = events.iter().filter_map(|event| event.lwp).collect();
    let cpus: BTreeSet<Cpu> = events.iter().filter_map(|event| event.cpu).collect();
    let mut actors = crate::known_timelines::actors(events.last().unwrap().tick.0);
    let lwp = |lwp| LwpActor { lwp, ..actors.lwps[2].clone() };
    actors.lwps = lwps.into_iter().map(lwp).collect();
    actors.cpus = cpus.into_iter().collect();
    actors.clock.first = events[0].tick;
    actors.event_types = trace.event_types().to_vec();
    actors
}

fn emit(actors: &Actors, events: &[Event], sink: &mut dyn Sink) {
    for event in events {
        let cpu = actors.cpus.iter().position(|cpu| Some(*cpu) == event.cpu);
        let lwp = actors.lwps.iter().position(|actor| Some(actor.lwp) == event.lwp);
        let recorded = RecordedEvent {
            kind: EventTypeId(event.kind),
            cpu: cpu.map(|cpu| CpuId(cpu as u32)),
            lwp: lwp.map(|lwp| LwpId(lwp as u32)),
            thread: None,
            context: Some(event.context),
            cpu_seen: None,
            params: &event.params,
        };
        sink.change(event.tick, &Change::Event(&recorded)).unwrap();
    }
    sink.finish().unwrap();
}

/// What an event does to the scheduler; interrupts are entries and exits here, flags there.
fn scheduling(event: &Event) -> Option<Effect> {
    let is_interrupt = matches!(event.effect, Effect::InterruptEnter(_) | Effect::InterruptExit(_));
    (!is_interrupt && event.effect != Effect::None).then_some(event.effect)
}

// A kernel recording by trace-cmd, written as CTF under LTTng's names. Read as a trace of LTTng's kernel tracer, every
// event has the same tick, CPU and LWP, and the same effect on CPUs and LWPs.
#[test]
fn a_kernel_recording_has_the_same_effects_under_the_names_of_lttng() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../fkt-ingest/tests/fixtures/small-tsc-v7-zstd.dat.zst");
    let recording = zstd::decode_all(std::fs::read(path).unwrap().as_slice()).unwrap();
    let recording = fkt_ingest::from_bytes("recording", recording).unwrap();
    let recorded = events(&*recording);
    let actors = actors_of(&*recording, &recorded);
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("trace");
    let (_, summary) = write(&folder, &actors, |sink| emit(&actors, &recorded, sink));
    assert_eq!((summary.unplaced, summary.as_text, summary.names_left_out), (0, 0, 0));

    let trace = CtfTrace::open(&folder).unwrap();
    let exported = events(&trace);
    assert_eq!(exported.len(), recorded.len());
    let mut effects = 0;
    for (exported, recorded) in exported.iter().zip(&recorded) {
        let ty = &trace.event_types()[exported.kind as usize];
        assert_eq!((exported.tick, exported.cpu), (recorded.tick, recorded.cpu), "{}", ty.name);
        assert_eq!(exported.lwp, recorded.lwp, "{}", ty.name);
        assert_eq!(scheduling(exported), scheduling(recorded), "{}: {:?}", ty.name, exported.params);
        assert!(!ty.name.ends_with("_incomplete"), "{}", ty.name);
        effects += usize::from(scheduling(exported).is_some());
    }
    assert!(effects > 50, "{effects} of {}", recorded.len());
    if babeltrace::is_installed() {
        assert_eq!(babeltrace::read(&folder).len(), recorded.len());
    }
}
