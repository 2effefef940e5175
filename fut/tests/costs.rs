//! A recording contains the measured costs of recording.

use fut::{
    Recording,
    model::{ClockDomain, Pid},
    shm::Geometry,
    trace::ProbeCosts,
};

mod common;

fut::events! {
    fn counted(number: u64);
}

/// What recording could cost at the very most, in an unoptimised build on a busy machine.
const TEN_MICROSECONDS: f64 = 10_000.0;

fn ticks_of_ns(ns: f64) -> f64 {
    let now = || fut::clock::snapshot(ClockDomain::MonotonicRaw).unwrap();
    let before = now();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let after = now();
    ns * (after.before.0 - before.before.0) as f64 / (after.ns.0 - before.ns.0) as f64
}

/// As far as a trace keeps them.
fn in_256ths(costs: ProbeCosts) -> [f64; 3] {
    [costs.clock_read, costs.record, costs.per_word].map(|ticks| (ticks * 256.0).round() / 256.0)
}

#[test]
fn a_recording_has_plausible_costs_and_nothing_of_their_measuring_in_it() {
    assert_eq!(fut::costs(), None, "nothing is recorded yet");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("user.fut");
    let recording = Recording::start(&path, Geometry::default()).unwrap();
    counted(7);
    let costs = fut::costs().unwrap();
    recording.finish().unwrap();

    let trace = common::opened(&path);
    let [(pid, stored)] = trace.costs() else { panic!("{:?}", trace.costs()) };
    assert_eq!(*pid, Pid(std::process::id()));
    assert_eq!(in_256ths(*stored), in_256ths(costs));
    let most = ticks_of_ns(TEN_MICROSECONDS);
    for ticks in [stored.clock_read, stored.record] {
        assert!(ticks > 0.0 && ticks < most, "{stored:?}, and 10 us are {most} ticks");
    }
    assert!(stored.per_word >= 0.0 && stored.of_record(6) < most, "{stored:?}");

    let records: usize =
        trace.lwps().iter().flat_map(common::packets).map(|packet| packet.records().count()).sum();
    let of_ours = common::words(&trace, common::code(&trace, "counted"));
    assert_eq!(of_ours, [(7, 0)]);
    assert_eq!(records, 2, "LWP_ATTACH, and ours");
}
