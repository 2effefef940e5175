//! Inputs on different clocks: aligned by snapshots, directly or through a third clock, or by an estimate if there are
//! none. Also the alignment of the counters of single CPUs by LWPs that ran on two CPUs.

mod drawn;

use sigmund_merge::{Error, KernelSide, Manifest, ManifestSnapshot, MergeOptions, Summary, UserSide};
use sigmund_model::{ClockDomain, Hertz, LossKind, Nanos, Severity, Snapshot, Ticks};

use self::drawn::{BOOTTIME, MONOTONIC, REALTIME, Switch, perf_data};
use crate::supertrace::{
    Inputs, Merged,
    user_file::{Message, lwp_end, user_trace},
};

const SECOND: u64 = 1_000_000_000;
/// Ticks per nanosecond of the machine in these tests.
const RATE: u64 = 2;

/// The manifest of a run whose kernel side is `kernel.perf`.
fn manifest(snapshots: impl IntoIterator<Item = ManifestSnapshot>) -> Manifest {
    let kernel_side = KernelSide { file: Some("kernel.perf".into()), ..KernelSide::default() };
    Manifest { kernel_side, snapshots: snapshots.into_iter().collect(), ..Manifest::default() }
}

fn ticks(merged: &Merged) -> Vec<u64> {
    merged.read("events").numbers("ts_tick").into_iter().map(|tick| tick.unwrap() as u64).collect()
}

fn with_hz() -> MergeOptions {
    MergeOptions { tick_hz: Hertz::new(RATE as f64 * 1e9), ..MergeOptions::default() }
}

/// Snapshots of a clock that is `ahead` nanoseconds ahead, one per second.
fn snapshots(domain: ClockDomain, ahead: u64) -> impl Iterator<Item = ManifestSnapshot> {
    (1..8).map(move |second| {
        let tick = second * SECOND * RATE;
        let (before, after) = (Ticks(tick - 30), Ticks(tick + 30));
        ManifestSnapshot::new(domain, Snapshot { before, after, ns: Nanos(second * SECOND + ahead) })
    })
}

// monotonic   run/kernel.perf  ──snapshots── TSC ──snapshots── boottime   other.perf
//             no input is on the TSC; the switches of the two inputs alternate
#[test]
fn two_clocks_without_a_tsc_are_aligned_by_the_snapshots_of_both() {
    let slept = 500 * SECOND;
    let at = |tenths: u64, ahead: u64| tenths * SECOND / 10 + ahead;
    let monotonic = [(at(20, 7), 0, 0, 70), (at(40, 7), 0, 70, 0)];
    let boottime = [(at(30, slept), 1, 0, 71), (at(50, slept), 1, 71, 0)];
    let all = snapshots(ClockDomain::Monotonic, 7).chain(snapshots(ClockDomain::Boottime, slept));
    let merged = Inputs::new()
        .run(&[("kernel.perf", &perf_data(Some(MONOTONIC), &monotonic))], Some(&manifest(all)))
        .file("other.perf", perf_data(Some(BOOTTIME), &boottime))
        .merge();
    assert_eq!(ticks(&merged), [20, 30, 40, 50].map(|tenths| at(tenths, 7)));
    assert_eq!(merged.summary.tick_hz, Hertz::new(1e9));
    let clocks = merged.table("clocks", &["domain", "against", "kind", "used", "residual_ns"]);
    assert_eq!(clocks.len(), 14);
    assert_eq!(clocks[0], "monotonic tsc snapshot true ?", "the first snapshot has no residual");
    assert_eq!(clocks[1], "monotonic tsc snapshot true 0.0");
}

#[test]
fn losses_that_the_recorder_reports_of_a_process_are_rows_with_their_cause() {
    let at = |second: u64| second * SECOND * RATE;
    let kernel = perf_data(Some(MONOTONIC), &[(SECOND, 0, 0, 70), (2 * SECOND, 1, 0, 71)]);
    let user = user_trace(&[(at(2), 0, 70), (at(6), 1, 70)]);
    let merged = |side: UserSide| {
        let mut manifest = manifest(snapshots(ClockDomain::Monotonic, 0));
        manifest.user_side = vec![UserSide { file: "user-60.fut".into(), pid: 60, ..side }];
        let merged =
            Inputs::new().run(&[("kernel.perf", &kernel), ("user-60.fut", &user)], Some(&manifest)).merge();
        let losses = merged.table("losses", &["kind", "level", "count", "from_tick", "detail"]);
        losses.into_iter().filter(|loss| loss.contains(" USER ")).collect::<Vec<_>>()
    };
    assert_eq!(merged(UserSide::default()), Vec::<String>::new());
    let one = |side: UserSide, begins: String, cause: &str| {
        let losses = merged(side);
        let [loss] = losses.as_slice() else { panic!("{losses:?}") };
        assert!(loss.starts_with(&begins) && loss.contains(cause), "{loss}");
    };
    let dropped = || "dropped USER 9 ".to_string();
    let lost = UserSide { lost: 9, ..UserSide::default() };
    one(lost.clone(), dropped(), "more threads at one time than buffers, or");
    one(UserSide { no_memory: true, ..lost }, dropped(), "no memory for the buffer of an LWP");
    let unwritten = UserSide { unwritten: 9, ..UserSide::default() };
    one(unwritten, dropped(), "could not be written to its end");
    let cut = UserSide { cut: true, ..UserSide::default() };
    let begins = format!("not-recorded USER ? {} ", at(6));
    one(cut, begins, "process 60 lived on when the recording ended");
}

#[test]
fn losses_of_threads_without_a_buffer_are_counted_once_by_the_trace_and_the_recorder() {
    let kernel = perf_data(Some(MONOTONIC), &[(SECOND, 0, 0, 70)]);
    let user = [user_trace(&[(SECOND * RATE, 0, 70)]), lwp_end(0, 9)].concat();
    let losses = |lost: u64| {
        let mut manifest = manifest(snapshots(ClockDomain::Monotonic, 0));
        let file = "user-60.fut".into();
        manifest.user_side = vec![UserSide { file, pid: 60, lost, ..UserSide::default() }];
        let merged =
            Inputs::new().run(&[("kernel.perf", &kernel), ("user-60.fut", &user)], Some(&manifest)).merge();
        let losses = merged.table("losses", &["kind", "level", "count", "lwp"]);
        losses.into_iter().filter(|loss| loss.contains(" USER ")).collect::<Vec<_>>()
    };
    assert_eq!(losses(9), ["dropped USER 9 ?"]);
    assert_eq!(losses(11), ["dropped USER 9 ?", "dropped USER 2 ?"]);
}

// second      1        2          3        4          5              6          7
// CPU 0       |==70==================================| ? kernel side has stopped
// LWP 70               user CPU 0                                    user CPU 1
#[test]
fn events_recorded_after_the_kernel_side_has_stopped_have_no_known_cpu() {
    let at = |second: u64| second * SECOND * RATE;
    let kernel = perf_data(Some(MONOTONIC), &[(SECOND, 0, 0, 70), (2 * SECOND, 1, 0, 71)]);
    let user = user_trace(&[(at(2), 0, 70), (at(6), 1, 70)]);
    let merged = |stopped_tick| {
        let mut manifest = manifest(snapshots(ClockDomain::Monotonic, 0));
        let file = "user-60.fut".into();
        manifest.user_side = vec![UserSide { file, pid: 60, ..UserSide::default() }];
        manifest.kernel_side.stopped_tick = stopped_tick;
        let merged =
            Inputs::new().run(&[("kernel.perf", &kernel), ("user-60.fut", &user)], Some(&manifest)).merge();
        let on_cpu = merged.table("lwps", &["lwp", "on_cpu_tick"]);
        let losses = merged.table("losses", &["kind", "severity", "cpu", "from_tick"]);
        (merged.summary.witness_disagree, on_cpu.into_iter().find(|line| line.starts_with("70 ")), losses)
    };
    let (disagree, on_cpu, losses) = merged(Some(at(5)));
    assert_eq!((disagree, on_cpu), (0, Some(format!("70 {}", at(4)))), "{losses:?}");
    let stops = |cpu| format!("not-recorded note {cpu} {}", at(5));
    assert!(losses.contains(&stops(0)) && losses.contains(&stops(1)), "{losses:?}");
    // Without a time at which it stopped, it stopped at its last event. If the user side ends earlier, no events are
    // missing.
    let (disagree, _, losses) = merged(None);
    assert!(disagree == 0 && losses.contains(&format!("not-recorded note 0 {}", at(2))), "{losses:?}");
    assert_eq!(
        merged(Some(at(7))).2.iter().filter(|loss| loss.starts_with("not-recorded note 0")).count(),
        0
    );
}

#[test]
fn a_snapshot_that_was_interrupted_is_shown_and_not_used() {
    let mut all: Vec<_> = snapshots(ClockDomain::Monotonic, 0).collect();
    all[3].after += 1_000_000;
    let kernel = perf_data(Some(MONOTONIC), &[(4 * SECOND, 0, 0, 70)]);
    let merged = Inputs::new()
        .run(&[("kernel.perf", &kernel)], Some(&manifest(all)))
        .user_trace(&[(SECOND, 0, 70)])
        .merge();
    assert_eq!(ticks(&merged), [SECOND, 4 * SECOND * RATE]);
    let clocks = merged.table("clocks", &["used", "residual_ns"]);
    assert_eq!(clocks[3], "false 250000.0");
}

/// LWP 70 is on CPU 0 for 30 µs of every 100, and records three messages in each: (switches in ns, messages).
fn a_busy_lwp(ahead: u64, events_at: u64) -> (Vec<Switch>, Vec<Message>) {
    let (mut switches, mut messages) = (Vec::new(), Vec::new());
    let mut at = SECOND;
    for round in 0..400_u64 {
        // Irregular: a regular pattern would fit at many offsets.
        at += 70_000 + round * round % 1009 * 50;
        switches.push((at + ahead, 0, 0, 70));
        messages.extend([1, 15, 29].map(|us| ((at + us * 1000 + events_at) * RATE, 0, 70)));
        switches.push((at + 30_000 + ahead, 0, 70, 0));
    }
    (switches, messages)
}

#[test]
fn without_snapshots_the_offset_is_estimated_with_a_bound() {
    let ahead = 123 * SECOND + 456;
    let (switches, messages) = a_busy_lwp(ahead, 0);
    let inputs = Inputs::new().file("local.perf", perf_data(None, &switches)).user_trace(&messages);
    let merged = inputs.try_merge(&with_hz()).unwrap();
    let summary = &merged.summary;

    let clocks = merged.read("clocks");
    assert_eq!(clocks.lines(&["domain", "against", "kind", "used"]), ["local tsc estimated true"]);
    let one = |column: &str| clocks.numbers(column)[0].unwrap() as u64;
    let (before, after, bound) = (one("before_tick"), one("after_tick"), one("bound_ns"));
    let truth = (one("ns") - ahead) * RATE;
    assert!(before <= truth && truth <= after, "{before} <= {truth} <= {after}");
    assert!(bound < 2_000, "the first message is 1 µs after the switch, the last 1 µs before: {bound}");
    let notes: Vec<_> = summary.losses.iter().filter(|loss| loss.detail.contains("no snapshot")).collect();
    assert_eq!((notes.len(), notes[0].kind, notes[0].severity), (1, LossKind::NotRecorded, Severity::Note));
    // So no event was recorded off-CPU.
    assert!(summary.losses.iter().all(|l| l.kind != LossKind::Contradiction), "{:?}", summary.losses);
    assert_eq!(summary.witness_disagree, 0);
}

#[test]
fn inputs_of_two_recordings_are_an_error() {
    let (switches, _) = a_busy_lwp(0, 0);
    // A message every 10 µs: at any offset, some were recorded off-CPU.
    let messages: Vec<_> = (0..4000).map(|n| ((SECOND + n * 10_000) * RATE, 0, 70)).collect();
    let inputs = Inputs::new().file("local.perf", perf_data(None, &switches)).user_trace(&messages);
    let error = inputs.try_merge(&with_hz()).err().unwrap();
    assert!(matches!(error, Error::ClocksContradict { .. }), "{error}");
    assert!(error.to_string().contains("local.perf"), "{error}");
}

#[test]
fn without_evidence_or_a_rate_there_is_no_common_clock() {
    let (switches, messages) = a_busy_lwp(0, 0);
    let other_lwp: Vec<_> = messages.iter().map(|(tick, cpu, _)| (*tick, *cpu, 99)).collect();
    for (messages, options) in [(other_lwp, with_hz()), (messages, MergeOptions::default())] {
        let inputs =
            Inputs::new().file("wall.perf", perf_data(Some(REALTIME), &switches)).user_trace(&messages);
        let error = inputs.try_merge(&options).err().unwrap();
        assert!(matches!(error, Error::NoCommonClock { clock: "realtime", main: "tsc", .. }), "{error}");
    }
}

/// Merges a trace in which LWP 70 migrates between three CPUs. The kernel trace is on the TSC; the counter of CPU 1 is
/// `ahead` ticks ahead.
fn a_wandering_lwp(ahead: i64, align_cpus: bool) -> Merged {
    let (mut switches, mut messages) = (Vec::new(), Vec::new());
    let mut tick = SECOND;
    for round in 0..600_u64 {
        let cpu = (round * round % 7 % 3) as u32;
        let stamp = |tick: u64| if cpu == 1 { tick.saturating_add_signed(ahead) } else { tick };
        switches.push((stamp(tick), cpu, 0, 70));
        messages.push((stamp(tick + 10_000), cpu, 70));
        switches.push((stamp(tick + 20_000), cpu, 70, 0));
        tick += 21_000;
    }
    // As in the buffers of CPUs: each CPU in the order of its own counter.
    switches.sort_by_key(|(tick, cpu, ..)| (*cpu, *tick));
    let options = MergeOptions { clock: Some(ClockDomain::Tsc), align_cpus, ..with_hz() };
    let inputs = Inputs::new().file("kernel.perf", perf_data(None, &switches)).user_trace(&messages);
    inputs.try_merge(&options).unwrap()
}

#[test]
fn a_cpu_whose_counter_is_ahead_is_corrected_on_demand_for_both_sides() {
    let uncorrected = a_wandering_lwp(5000, false);
    let contradictions = |summary: &Summary| {
        let of_state =
            |loss: &&sigmund_model::Loss| loss.kind == LossKind::Contradiction && loss.cpu.is_none();
        summary.losses.iter().filter(of_state).map(|loss| loss.advice).collect::<Vec<_>>()
    };
    let advice = contradictions(&uncorrected.summary);
    assert!(advice.iter().any(|advice| advice.contains("--align-cpus")), "{:?}", uncorrected.summary.losses);

    let corrected = a_wandering_lwp(5000, true);
    assert_eq!(contradictions(&corrected.summary), [""; 0]);
    let note =
        corrected.summary.losses.iter().find(|loss| loss.detail.contains("ticks ahead")).expect("a row");
    assert_eq!((note.cpu, note.severity), (Some(sigmund_model::Cpu(1)), Severity::Note));

    let expected = ticks(&a_wandering_lwp(0, false));
    let off =
        ticks(&corrected).into_iter().zip(expected).map(|(tick, expected)| tick.abs_diff(expected)).max();
    assert!(off < Some(1000), "the switches leave 1000 ticks between two CPUs: {off:?}");
}

#[test]
fn counters_that_agree_are_not_corrected() {
    let [aligned, not_aligned] = [true, false].map(|align_cpus| a_wandering_lwp(0, align_cpus));
    assert_eq!(ticks(&aligned), ticks(&not_aligned));
    assert_eq!(aligned.summary.losses, not_aligned.summary.losses);
}
