//! The on-CPU time of each LWP by the kernel's accounting, compared with the sum of its running states.
//!
//! There are two sources of the kernel's sum. A trace may have both, one or neither:
//!
//! * The events `sched_stat_runtime` (`update_curr`, kernel/sched/fair.c, v6.12). Each has the time since the previous
//!   one. So their sum over an LWP is complete, from its first event to its last.
//! * Readings of `sum_exec_runtime` by the recorder, at its beginning and at its end (`/proc/PID/task/TID/schedstat`).
//!   The kernel updates that sum at switches and timer ticks, so a reading may be one timer tick old.
//!
//! Neither source counts the time that a hypervisor stole (`CONFIG_PARAVIRT_TIME_ACCOUNTING`) or that interrupts took
//! (`CONFIG_IRQ_TIME_ACCOUNTING`). The running states, which come from the switches, do count it. A trace does not show
//! how much it was. So an LWP that was on CPUs for longer than the kernel's sum is listed, although its states may be
//! right.
//!
//! Seen on a guest (6.18 under Firecracker, both CPUs busy, time being stolen): of 222 LWPs in 3 s, one differed, by
//! 5.8 ms. The kernel had charged 1.16 ms that one LWP had run to the next LWP, which ran for only 13 us by the
//! switches before and after it. Cause unknown. So a difference is a reason to look, and no proof that the switches are
//! wrong.

use sigmund_model::{ClockDomain, Lwp, Ticks, tables::info_keys::LWP_CPU_TIME};
use sigmund_sql::SuperTrace;

use super::{Figure, Item, Verdict, rows};
use crate::Error;

/// Accepted difference for `sched_stat_runtime`: a timer tick of most kernels (250 Hz).
const TICK_NS: f64 = 4e6;
/// Accepted difference for readings of `/proc`: a timer tick of the slowest kernels (100 Hz), which is the largest age
/// of a reading.
const READING_NS: f64 = 10e6;
/// Accepted difference as a fraction of the kernel's sum. The larger of the two limits applies.
const MOST_PART: f64 = 0.001;
/// The maximum number of readings compared.
const MOST_READINGS: usize = 10_000;
const EVENT: &str = "sched_stat_runtime";

/// One LWP's on-CPU time, by the kernel's sum and by the running states.
#[derive(Clone, Debug, PartialEq)]
pub struct LwpTime {
    /// The LWP; all LWPs that had this number, if there were several.
    pub lwp: Lwp,
    /// Its last known name.
    pub name: Option<String>,
    /// `sched_stat_runtime` or `schedstat`.
    pub source: &'static str,
    /// The start of the compared time.
    pub from: Ticks,
    /// The end of the compared time.
    pub to: Ticks,
    /// The kernel's sum, in nanoseconds.
    pub kernel_ns: f64,
    /// The sum of its running states in that time, in nanoseconds.
    pub on_cpu_ns: f64,
    /// The time in which its state is unknown, in nanoseconds.
    pub unknown_ns: f64,
}

impl LwpTime {
    /// The difference of the running states from the kernel's sum that the time with an unknown state cannot explain.
    /// Positive if the sum of the running states is larger.
    pub fn unexplained_ns(&self) -> f64 {
        let difference = self.on_cpu_ns - self.kernel_ns;
        if difference < 0.0 { (difference + self.unknown_ns).min(0.0) } else { difference }
    }

    /// The part of the difference that the unknown time explains.
    fn explained_ns(&self) -> f64 {
        (self.on_cpu_ns - self.kernel_ns - self.unexplained_ns()).abs()
    }

    fn differs(&self) -> bool {
        let tick = if self.source == EVENT { TICK_NS } else { READING_NS };
        self.unexplained_ns().abs() > tick.max(MOST_PART * self.kernel_ns)
    }
}

/// All LWPs whose on-CPU time the kernel has summed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LwpTimes {
    compared: usize,
    explained_ns: f64,
    /// The LWPs that differ, the largest difference first.
    pub(super) differ: Vec<LwpTime>,
}

/// Follows a definition of `kernel (lwp, from_tick, to_tick, ns)`. Compares it with the states in the same time.
const COMPARED: &str = "
    overlaps AS (
        SELECT kernel.lwp, CAST(state AS VARCHAR) AS state,
               least(coalesce(s.ts_tick + s.dur_tick, to_tick), to_tick) - greatest(s.ts_tick, from_tick) AS ticks
        FROM kernel JOIN raw_lwp_states s ON s.lwp = kernel.lwp
        WHERE s.ts_tick < to_tick AND coalesce(s.ts_tick + s.dur_tick, to_tick) > from_tick),
    spent AS (
        SELECT lwp, sum(ticks) FILTER (WHERE state = 'running') AS on_cpu,
               sum(ticks) FILTER (WHERE state <> 'unknown') AS known
        FROM overlaps GROUP BY lwp),
    names AS (SELECT lwp, max(name) AS name FROM raw_lwps GROUP BY lwp)
    SELECT kernel.lwp, name, from_tick, to_tick, ns, coalesce(on_cpu, 0) AS on_cpu,
           greatest(to_tick - from_tick - coalesce(known, 0), 0) AS unknown
    FROM kernel LEFT JOIN spent ON spent.lwp = kernel.lwp LEFT JOIN names ON names.lwp = kernel.lwp
    ORDER BY kernel.lwp";

/// Compares the two, where the trace has both.
pub(super) async fn of(trace: &SuperTrace) -> Result<LwpTimes, Error> {
    let mut times = LwpTimes::default();
    if let Some(view) = trace.event_view(EVENT).filter(|_| declares_runtime(trace)) {
        let kernel = format!(
            "WITH said AS (
                 SELECT CAST(pid AS BIGINT) AS lwp, ts_tick, CAST(runtime AS BIGINT) AS ns FROM \"{view}\"),
             ends AS (
                 SELECT lwp, min(ts_tick) AS from_tick, max(ts_tick) AS to_tick FROM said
                 WHERE lwp > 0 AND ns IS NOT NULL GROUP BY lwp),
             kernel AS (
                 SELECT ends.lwp, from_tick, to_tick, sum(ns) AS ns
                 FROM said JOIN ends ON said.lwp = ends.lwp
                 WHERE said.ts_tick > from_tick GROUP BY ends.lwp, from_tick, to_tick),"
        );
        times.add(trace, EVENT, &kernel).await?;
    }
    if let Some(readings) = readings(trace) {
        let kernel = format!("WITH kernel (lwp, from_tick, to_tick, ns) AS (VALUES {readings}),");
        times.add(trace, "schedstat", &kernel).await?;
    }
    times.differ.sort_by(|a, b| b.unexplained_ns().abs().total_cmp(&a.unexplained_ns().abs()));
    Ok(times)
}

fn declares_runtime(trace: &SuperTrace) -> bool {
    let mut declared = trace.event_types().iter().filter(|event| event.ty.name == EVENT && event.events > 0);
    declared.any(|event| event.ty.field("pid").is_some() && event.ty.field("runtime").is_some())
}

/// The recorder's readings, as rows of numbers. `None` if there are none, or if they are in ticks of another clock than
/// the trace's.
fn readings(trace: &SuperTrace) -> Option<String> {
    let info = trace.info();
    if info.get("main_clock") != Some(ClockDomain::Tsc.name()) {
        return None;
    }
    let first = trace.first_tick().map_or(0, |tick| tick.0);
    let row = |(key, value): (&str, &str)| {
        let lwp: u32 = key.strip_prefix(LWP_CPU_TIME)?.parse().ok()?;
        let mut numbers = value.split(' ').map(|number| number.parse::<i64>().ok());
        let [Some(from), Some(to), Some(ns), None] = std::array::from_fn(|_| numbers.next().flatten()) else {
            return None;
        };
        let from = from.max(i64::try_from(first).ok()?);
        (from < to).then(|| format!("({lwp}, {from}, {to}, {ns})"))
    };
    let rows: Vec<String> = info.iter().filter_map(row).take(MOST_READINGS).collect();
    (!rows.is_empty()).then(|| rows.join(", "))
}

impl LwpTimes {
    async fn add(&mut self, trace: &SuperTrace, source: &'static str, kernel: &str) -> Result<(), Error> {
        let Some(hz) = trace.tick_hz() else { return Ok(()) };
        let ns = |ticks: u64| ticks as f64 * 1e9 / hz.per_second();
        let batches = trace.sql(&format!("{kernel}{COMPARED}")).await?.collect().await?;
        for row in rows::of(&batches) {
            let time = LwpTime {
                lwp: row.lwp(0).unwrap_or(Lwp::IDLE),
                name: row.maybe_text(1),
                source,
                from: row.tick(2).unwrap_or_default(),
                to: row.tick(3).unwrap_or_default(),
                kernel_ns: row.count(4) as f64,
                on_cpu_ns: ns(row.count(5)),
                unknown_ns: ns(row.count(6)),
            };
            self.compared += 1;
            self.explained_ns += time.explained_ns();
            if time.differs() {
                self.differ.push(time);
            }
        }
        Ok(())
    }
}

/// Whether the running states and the kernel's sums agree; `None` if the trace has no sum of the kernel.
pub(super) fn check(times: &LwpTimes) -> Option<Item> {
    if times.compared == 0 {
        return None;
    }
    let sum = |more: bool| {
        let of = times.differ.iter().map(LwpTime::unexplained_ns).filter(|ns| (*ns > 0.0) == more);
        (of.sum::<f64>().abs() / 1e3).round()
    };
    let figures = vec![
        Figure::new("compared", times.compared as f64),
        Figure::new("differ", times.differ.len() as f64),
        Figure::new("us more than the kernel's accounting", sum(true)),
        Figure::new("us less", sum(false)),
        Figure::new("us explained by unknown states", (times.explained_ns / 1e3).round()),
    ];
    let (verdict, detail) = match times.differ.first() {
        None => (Verdict::Ok, String::new()),
        Some(first) => {
            let (on_cpu, kernel) = (first.on_cpu_ns / 1e3, first.kernel_ns / 1e3);
            let detail = format!(
                "LWP {}: {on_cpu:.0} us by its states, {kernel:.0} us by the kernel, which may leave out stolen time and \
                 interrupts",
                first.lwp
            );
            (Verdict::Gaps, detail)
        }
    };
    let invariant =
        "The on-CPU time of an LWP is the same by its running states and by the kernel's accounting.";
    Some(Item { name: "cpu-times", invariant, verdict, figures, detail })
}
