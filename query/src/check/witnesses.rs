//! The two sources of the CPU of a user event: the probe that recorded it, and the kernel's `sched_switch`.

use sigmund_model::{
    Lwp,
    tables::info_keys::{WITNESS_AGREE, WITNESS_DISAGREE, WITNESS_SINGLE},
};
use sigmund_sql::SuperTrace;

use super::{
    Figure, Item, Verdict,
    disagreements::{Causes, EXAMINED},
    rows,
};
use crate::Error;

/// If a smaller percentage agrees, whatever the cause, then the two sides are not from the same recording or not on the
/// same clock.
const LEAST_PERCENT: f64 = 99.9;

/// The largest accepted percentage of events whose CPUs differ for no known reason.
const MOST_UNEXPLAINED: f64 = 0.01;

/// How often the CPU from the probe and from sched_switch agree for the user events of one LWP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LwpWitnesses {
    /// The LWP.
    pub lwp: Lwp,
    /// Its name.
    pub name: Option<String>,
    /// User events that it recorded.
    pub events: u64,
    /// User events whose CPU is the same by the probe and by sched_switch.
    pub agree: u64,
    /// User events whose CPU differs.
    pub disagree: u64,
    /// User events whose CPU is known from one of the two only.
    pub single: u64,
}

impl LwpWitnesses {
    /// The percentage of agreement where both are known; `None` if there are none.
    pub fn percent(&self) -> Option<f64> {
        percent(self.agree, self.disagree)
    }
}

fn percent(agree: u64, disagree: u64) -> Option<f64> {
    let both = agree + disagree;
    (both > 0).then(|| agree as f64 * 100.0 / both as f64)
}

/// An LWP's number may be used again. It then has several rows in `lwps`, which are merged here.
const OF_LWPS: &str = "
    WITH recorded AS (
        SELECT lwp, count(*) AS events FROM raw_events WHERE level = 'USER' AND lwp IS NOT NULL GROUP BY lwp),
    witnessed AS (
        SELECT lwp, max(name) FILTER (WHERE carries_threads) AS name, sum(witness_agree) AS agree,
               sum(witness_disagree) AS disagree
        FROM raw_lwps GROUP BY lwp)
    SELECT recorded.lwp, name, events, agree, disagree, events - coalesce(agree + disagree, 0) AS single
    FROM recorded LEFT JOIN witnessed ON witnessed.lwp = recorded.lwp
    ORDER BY coalesce(disagree, 0) DESC, recorded.lwp";

/// Each LWP that recorded user events; those with most disagreements come first.
pub(super) async fn of_lwps(trace: &SuperTrace) -> Result<Vec<LwpWitnesses>, Error> {
    let batches = trace.sql(OF_LWPS).await?.collect().await?;
    let one = |row: rows::Row<'_>| LwpWitnesses {
        lwp: row.lwp(0).unwrap_or(Lwp::IDLE),
        name: row.maybe_text(1),
        events: row.count(2),
        agree: row.count(3),
        disagree: row.count(4),
        single: row.count(5),
    };
    Ok(rows::of(&batches).map(one).collect())
}

/// Uses the merge's own counts, in `info`, and the causes found in the tables.
pub(super) fn check(trace: &SuperTrace, causes: Causes) -> Result<Item, Error> {
    let count = |key| trace.info().count(key).map(|n| n.unwrap_or_default());
    let (agree, disagree, single) = (count(WITNESS_AGREE)?, count(WITNESS_DISAGREE)?, count(WITNESS_SINGLE)?);
    let figure = |name: &str, count: u64| Figure::new(name, count as f64);
    let mut figures =
        vec![figure("agree", agree), figure("disagree", disagree), figure("one source only", single)];
    if causes != Causes::default() {
        figures.push(figure("moved", causes.moved));
        figures.push(figure("off-cpu", causes.off_cpu));
        figures.push(figure("other-cpu", causes.other_cpu));
    }
    let (verdict, detail) = match percent(agree, disagree) {
        // Both sides have events, but nothing shows that they are from the same time, clock and boot.
        None if single > 0 && count("kernel_events")? > 0 => (
            Verdict::Gaps,
            "no user event has a CPU from both: sched_switch events do not cover the time of the user events, or \
             are of another clock or boot"
                .to_string(),
        ),
        None => (Verdict::NotApplicable, "no user event has a CPU from both".to_string()),
        Some(percent) => {
            figures.push(Figure::new("percent", percent));
            match judge(percent, agree, disagree, causes) {
                (Verdict::Ok, detail) if single > agree + disagree => (
                    Verdict::Gaps,
                    format!("{detail}; most user events have a CPU from one source only: no sched_switch events cover them"),
                ),
                judged => judged,
            }
        }
    };
    let invariant = "The CPU of a user event is the same from the probe and from sched_switch.";
    Ok(Item { name: "two-witnesses", invariant, verdict, figures, detail })
}

/// Differences without a known reason break the invariant.
fn judge(percent: f64, agree: u64, disagree: u64, causes: Causes) -> (Verdict, String) {
    // The cause of an event that was not examined is unknown, too.
    let unexamined = disagree.saturating_sub(EXAMINED as u64);
    let unexplained = (causes.other_cpu + unexamined) as f64 * 100.0 / (agree + disagree) as f64;
    let detail = format!("{percent:.4} % agree, expected at least {LEAST_PERCENT} %");
    if percent < LEAST_PERCENT {
        (Verdict::Broken, detail)
    } else if unexplained > MOST_UNEXPLAINED {
        let more =
            format!("{unexplained:.4} % differ for no known reason, expected at most {MOST_UNEXPLAINED} %");
        (Verdict::Broken, format!("{detail}; {more}"))
    } else if causes.off_cpu > 0 {
        // The merge has a row in `losses` for them. That row is the gap.
        let more =
            format!("{} on no CPU by sched_switch: some switches are not in the trace", causes.off_cpu);
        (Verdict::Ok, format!("{detail}; {more}"))
    } else {
        (Verdict::Ok, detail)
    }
}
