//! Clock snapshots are taken throughout a recording, and convert between the clocks.

use std::{thread, time::Duration};

use fut::{
    Recording,
    clock::SNAPSHOT_DOMAINS,
    model::{ClockDomain, Conversion, Knot, Snapshot},
    shm::Geometry,
    trace::UserTrace,
};

/// From nanoseconds of a clock to ticks, through the snapshots of it that are in a trace.
fn conversion(snapshots: &[(ClockDomain, Snapshot)], of: ClockDomain) -> Conversion {
    let of_clock = snapshots.iter().filter(|(domain, _)| *domain == of).map(|(_, snapshot)| snapshot);
    let knot = |s: &Snapshot| Knot { from: s.ns.0, to: s.tick().0, within: s.bracket() as f64 / 2.0 };
    Conversion::through(&of_clock.map(knot).collect::<Vec<_>>()).expect("clocks that advance")
}

#[test]
fn the_clocks_are_read_at_the_start_once_a_second_and_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("user.fut");
    let recording = Recording::start(&path, Geometry::default()).unwrap();
    thread::sleep(Duration::from_millis(2300));
    recording.finish().unwrap();
    let trace = UserTrace::open(&path).unwrap();
    assert_eq!(trace.losses(), []);
    let raw = conversion(trace.snapshots(), ClockDomain::MonotonicRaw);
    // The wall clock may be set back meanwhile.
    for domain in SNAPSHOT_DOMAINS.into_iter().filter(|domain| *domain != ClockDomain::Realtime) {
        let clock = conversion(trace.snapshots(), domain);
        assert!(clock.knots().len() >= 4, "{domain:?}: {:?}", clock.knots());
        // NTP changes the rate of a clock by 500 ppm at most.
        let slewed = (clock.rate() / raw.rate() - 1.0).abs();
        assert!(slewed < 1e-3, "{domain:?}: {slewed}");
    }
    // Idle machines: well below 100 ns. On a busy host, the process may be descheduled within all eight reads of a
    // snapshot.
    let worst = raw.residuals().iter().flatten().map(|ticks| ticks / raw.rate()).fold(0.0, f64::max);
    let widest = raw.knots().iter().map(|knot| knot.within).fold(0.0, f64::max);
    println!(
        "TSC: {:.6} MHz, residuals up to {:.1} ns, brackets to ±{widest} ticks",
        raw.rate() * 1e3,
        worst
    );
    assert!(worst < 20_000.0 + widest, "{:?}", raw.residuals());
}
