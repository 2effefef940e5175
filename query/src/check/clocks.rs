//! How well each other clock fits the main one: the rows of `clocks`, by clock.

use sigmund_model::Ticks;
use sigmund_sql::SuperTrace;

use super::{Figure, Item, Verdict, rows};
use crate::Error;

/// A snapshot may lie so far beside its clock's line, and as far as its own bracket is wide. More than that, and times of
/// this clock can be on the wrong side of an event of another.
const MOST_NS: f64 = 10_000.0;

/// One clock that was compared with the main one.
#[derive(Clone, Debug, PartialEq)]
pub struct Clock {
    /// Its name.
    pub domain: String,
    /// How often both were read.
    pub snapshots: u64,
    /// From the first snapshot to the last.
    pub span: Ticks,
    /// The widest bracket: how long the main clock went on while the other was read.
    pub bracket: Ticks,
    /// The same in nanoseconds, if somebody knows how long a tick is.
    pub bracket_ns: Option<f64>,
    /// The largest distance of a snapshot from the line, in nanoseconds; `None` where no line could be drawn.
    pub residual_ns: Option<f64>,
}

impl Clock {
    fn fits(&self) -> bool {
        let most = MOST_NS + self.bracket_ns.unwrap_or(0.0);
        self.residual_ns.is_none_or(|residual| residual <= most)
    }
}

const BY_CLOCK: &str = "
    SELECT CAST(domain AS VARCHAR) AS domain, count(*) AS snapshots,
           max(coalesce(after_tick, after_ns)) - min(coalesce(before_tick, before_ns)) AS span_tick,
           max(coalesce(after_tick - before_tick, after_ns - before_ns)) AS bracket_tick, max(abs(residual_ns)) AS residual_ns
    FROM raw_clocks GROUP BY domain ORDER BY domain";

/// All clocks of which there are snapshots, by name.
pub(super) async fn of(trace: &SuperTrace) -> Result<Vec<Clock>, Error> {
    let batches = trace.sql(BY_CLOCK).await?.collect().await?;
    let clock = |row: rows::Row<'_>| {
        let bracket = Ticks(row.count(3));
        Clock {
            domain: row.text(0).to_string(),
            snapshots: row.count(1),
            span: Ticks(row.count(2)),
            bracket,
            bracket_ns: trace.tick_hz().map(|hz| bracket.0 as f64 * 1e9 / hz.per_second()),
            residual_ns: row.fraction(4),
        }
    };
    Ok(rows::of(&batches).map(clock).collect())
}

/// Whether they fit.
pub(super) fn check(clocks: &[Clock]) -> Item {
    let residuals = || clocks.iter().filter_map(|clock| clock.residual_ns);
    let mut figures = vec![Figure::new("clocks", clocks.len() as f64)];
    if residuals().next().is_some() {
        figures.push(Figure::new("largest residual ns", residuals().fold(0.0, f64::max)));
    }
    let off: Vec<String> = clocks.iter().filter(|clock| !clock.fits()).map(told).collect();
    let verdict = match (residuals().next(), off.as_slice()) {
        (None, _) => Verdict::NotApplicable,
        (_, []) => Verdict::Ok,
        _ => Verdict::Gaps,
    };
    let promise = "Each clock that was compared with the main one runs straight beside it.";
    Item { name: "clocks-fit", promise, verdict, figures, detail: off.join("; ") }
}

fn told(clock: &Clock) -> String {
    let residual = clock.residual_ns.unwrap_or_default() / 1e3;
    format!("times of {} are only good to {residual:.1} us", clock.domain)
}
