//! How well the clocks fit each other. The snapshots in `clocks` give the comparison of each pair of clocks.

use sigmund_sql::SuperTrace;

use super::{Figure, Item, Verdict, rows};
use crate::Error;

/// The largest accepted distance of a snapshot from its clock's line; the width of its bracket is added to it. With a
/// larger distance, an event of this clock can end up on the wrong side of an event of another clock.
const MOST_NS: f64 = 10_000.0;

/// The comparison of one clock with another.
#[derive(Clone, Debug, PartialEq)]
pub struct Clock {
    /// The name of the clock.
    pub domain: String,
    /// The name of the other clock.
    pub against: String,
    /// The number of snapshots of both clocks.
    pub snapshots: u64,
    /// From the first snapshot to the last, in nanoseconds; `None` if the other counts ticks of an unknown rate.
    pub span_ns: Option<f64>,
    /// The widest bracket, in nanoseconds: how far the other clock advanced while this one was read. `None` as for
    /// `span_ns`.
    pub bracket_ns: Option<f64>,
    /// The largest distance of a snapshot from the line, in nanoseconds; `None` where there is no line, or if this clock
    /// counts ticks of an unknown rate.
    pub residual_ns: Option<f64>,
    /// The largest distance of a snapshot from the line, in ticks, if this clock counts ticks.
    pub residual_tick: Option<f64>,
}

impl Clock {
    fn fits(&self) -> bool {
        let most = MOST_NS + self.bracket_ns.unwrap_or(0.0);
        self.residual_ns.is_none_or(|residual| residual <= most)
    }
}

const BY_CLOCKS: &str = "
    SELECT CAST(domain AS VARCHAR) AS domain, CAST(against AS VARCHAR) AS against, count(*) AS snapshots,
           max(after_tick) - min(before_tick) AS span_tick, max(after_ns) - min(before_ns) AS span_ns,
           max(after_tick - before_tick) AS bracket_tick, max(after_ns - before_ns) AS bracket_ns,
           max(abs(residual_ns)) AS residual_ns, max(abs(residual_tick)) AS residual_tick
    FROM raw_clocks GROUP BY domain, against ORDER BY domain, against";

/// All pairs of clocks that were compared, by name.
pub(super) async fn of(trace: &SuperTrace) -> Result<Vec<Clock>, Error> {
    let batches = trace.sql(BY_CLOCKS).await?.collect().await?;
    // The known rate is that of the main clock.
    let main = trace.info().get("main_clock");
    let in_ns = |ticks: f64, clock: &str| {
        let hz = trace.tick_hz().filter(|_| main.is_none_or(|main| main == clock));
        hz.map(|hz| ticks * 1e9 / hz.per_second())
    };
    let clock = |row: rows::Row<'_>| {
        let (domain, against) = (row.text(0).to_string(), row.text(1).to_string());
        let length = |ticks: usize, ns: usize| match row.number(ns) {
            Some(ns) => Some(ns as f64),
            None => in_ns(row.number(ticks)? as f64, &against),
        };
        let residual_tick = row.fraction(8);
        let residual_ns = row.fraction(7).or_else(|| in_ns(residual_tick?, &domain));
        Clock {
            snapshots: row.count(2),
            span_ns: length(3, 4),
            bracket_ns: length(5, 6),
            residual_ns,
            residual_tick,
            domain,
            against,
        }
    };
    Ok(rows::of(&batches).map(clock).collect())
}

/// Whether they fit.
pub(super) fn check(clocks: &[Clock]) -> Item {
    let mut figures = vec![Figure::new("clocks", clocks.len() as f64)];
    let largest = |residuals: &mut dyn Iterator<Item = f64>| residuals.reduce(f64::max);
    let in_ns = largest(&mut clocks.iter().filter_map(|clock| clock.residual_ns));
    let mut only_in_ticks =
        clocks.iter().filter(|clock| clock.residual_ns.is_none()).filter_map(|clock| clock.residual_tick);
    figures.extend(in_ns.map(|residual| Figure::new("largest residual ns", residual)));
    let in_ticks = largest(&mut only_in_ticks);
    figures
        .extend(in_ticks.map(|residual| Figure::new("largest residual in ticks of unknown rate", residual)));
    let off: Vec<String> = clocks.iter().filter(|clock| !clock.fits()).map(misfit).collect();
    let verdict = match (in_ns, off.as_slice()) {
        (None, _) => Verdict::NotApplicable,
        (_, []) => Verdict::Ok,
        _ => Verdict::Gaps,
    };
    let invariant = "Each clock is linear in the clock that it was compared with.";
    Item { name: "clocks-fit", invariant, verdict, figures, detail: off.join("; ") }
}

fn misfit(clock: &Clock) -> String {
    let residual = clock.residual_ns.unwrap_or_default() / 1e3;
    format!("times of {} are off by up to {residual:.1} us", clock.domain)
}
