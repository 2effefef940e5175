//! What is missing: the rows of `losses`, by severity, kind and source. A serious loss makes the trace broken.

use std::collections::BTreeMap;

use sigmund_model::{Cpu, Lwp, Severity, Ticks};
use sigmund_sql::SuperTrace;

use super::{Figure, Item, Verdict, rows};
use crate::Error;

/// The losses of one kind in one source.
#[derive(Clone, Debug, PartialEq)]
pub struct LossSource {
    /// `note`, `gap` or `serious`.
    pub severity: String,
    /// `dropped`, `damaged`, …
    pub kind: String,
    /// `KERN` or `USER`.
    pub level: String,
    /// The kernel stream, if it is one.
    pub cpu: Option<Cpu>,
    /// The user stream, if it is one.
    pub lwp: Option<Lwp>,
    /// The number of losses.
    pub losses: u64,
    /// Events lost in them, as far as they were counted.
    pub events: Option<u64>,
    /// The total length of these losses, as far as both ends are known. Contradictions are instants and have no length.
    pub time: Option<Ticks>,
    /// The start of the first loss.
    pub from: Option<Ticks>,
    /// The end of the last loss.
    pub to: Option<Ticks>,
    /// The detail of one of them.
    pub example: String,
    /// What to do about it next time; may be empty.
    pub advice: String,
    /// How long states are unknown because of these losses, summed over the threads and LWPs concerned, as far as that
    /// was measured.
    pub unknown: Option<Ticks>,
}

const BY_SOURCE: &str = "
    SELECT CAST(severity AS VARCHAR) AS severity, CAST(kind AS VARCHAR) AS kind, CAST(level AS VARCHAR) AS level, cpu, lwp,
           count(*) AS losses, sum(count) AS events,
           sum(to_tick - from_tick) FILTER (WHERE kind <> 'contradiction') AS time,
           min(from_tick) AS from_tick, max(to_tick) AS to_tick, min(detail) AS example, max(advice) AS advice,
           sum(unknown_tick) AS unknown
    FROM raw_losses
    GROUP BY severity, kind, level, cpu, lwp
    ORDER BY CASE severity WHEN 'serious' THEN 0 WHEN 'gap' THEN 1 ELSE 2 END, kind, level, cpu, lwp";

/// All losses, the most severe first.
pub(super) async fn by_source(trace: &SuperTrace) -> Result<Vec<LossSource>, Error> {
    let batches = trace.sql(BY_SOURCE).await?.collect().await?;
    let source = |row: rows::Row<'_>| LossSource {
        severity: row.text(0).to_string(),
        kind: row.text(1).to_string(),
        level: row.text(2).to_string(),
        cpu: row.cpu(3),
        lwp: row.lwp(4),
        losses: row.count(5),
        events: row.number(6).map(|n| n.max(0) as u64),
        time: row.tick(7),
        from: row.tick(8),
        to: row.tick(9),
        example: row.text(10).to_string(),
        advice: row.text(11).to_string(),
        unknown: row.tick(12),
    };
    Ok(rows::of(&batches).map(source).collect())
}

/// One figure per severity and kind.
pub(super) fn check(losses: &[LossSource]) -> Item {
    let mut kinds: BTreeMap<(&str, &str), (u64, Option<u64>, &str)> = BTreeMap::new();
    for source in losses {
        let kind = kinds.entry((&source.severity, &source.kind)).or_insert((0, None, &source.example));
        kind.0 += source.losses;
        kind.1 = kind.1.into_iter().chain(source.events).reduce(u64::saturating_add);
    }
    let (mut figures, mut details) = (Vec::new(), Vec::new());
    for ((severity, kind), (losses, events, example)) in &kinds {
        let what = format!("{severity} {kind}");
        figures.push(Figure::new(what.clone(), *losses as f64));
        figures.extend(events.map(|events| Figure::new(format!("{what} events"), events as f64)));
        details.push(format!("{what}: {example}"));
    }
    let any = |severity: Severity| losses.iter().any(|source| source.severity == severity.name());
    let verdict = if any(Severity::Serious) {
        Verdict::Broken
    } else if any(Severity::Gap) {
        Verdict::Gaps
    } else {
        Verdict::Ok
    };
    Item {
        name: "losses",
        invariant: "No events are missing that analyses depend on.",
        verdict,
        figures,
        detail: details.join("; "),
    }
}
