//! The two witnesses: the CPU a probe saw, and the CPU that the kernel's switches say its LWP was on.

use sigmund_model::tables::info_keys::{WITNESS_AGREE, WITNESS_DISAGREE, WITNESS_SINGLE};
use sigmund_sql::SuperTrace;

use super::{Figure, Item, Verdict};
use crate::Error;

/// An LWP may be moved between the probe's look at its CPU and its look at the clock; more than this is an error.
const LEAST_PERCENT: f64 = 99.9;

/// From the merge's own count, in `info`.
pub(crate) fn check(trace: &SuperTrace) -> Result<Item, Error> {
    let count = |key| trace.info().count(key).map(|n| n.unwrap_or_default() as f64);
    let (agree, disagree, single) = (count(WITNESS_AGREE)?, count(WITNESS_DISAGREE)?, count(WITNESS_SINGLE)?);
    let mut figures = vec![
        Figure::new("agree", agree),
        Figure::new("disagree", disagree),
        Figure::new("one witness only", single),
    ];
    let both = agree + disagree;
    let percent = agree * 100.0 / both;
    let (verdict, detail) = if both == 0.0 {
        (Verdict::NotApplicable, "no user event has two witnesses".to_string())
    } else {
        figures.push(Figure::new("percent", percent));
        let verdict = if percent >= LEAST_PERCENT { Verdict::Ok } else { Verdict::Broken };
        (verdict, format!("{percent:.4} % agree, expected at least {LEAST_PERCENT} %"))
    };
    let promise = "The CPU that a probe saw is the CPU that the kernel had its LWP on.";
    Ok(Item { name: "two-witnesses", promise, verdict, figures, detail })
}
