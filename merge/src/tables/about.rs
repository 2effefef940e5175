//! Rows about the trace itself: CPUs, event types, losses, clocks, facts.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use sigmund_model::{
    ClockDomain, Cpu, Level, Loss, LossKind, Severity, sum_of_counts,
    tables::{SCHEMA_VERSION, info_keys},
};

use crate::{
    error::Error,
    input_event_types::InputEventTypes,
    machine::{CpuEntry, Witnesses},
    source::{MainClock, OpenedInput, Sighting},
    summary::Summary,
    tables::TableWriter,
};

/// Events that the kernel counted as lost but no page reports: mostly events after the last page.
pub(crate) fn uncounted_losses(sources: &[OpenedInput], losses: &[Loss]) -> Vec<Loss> {
    let mut by_cpu: BTreeMap<u32, u64> = BTreeMap::new();
    for (cpu, lost) in sources.iter().flat_map(|s| &s.cpus_lost) {
        let of_cpu = by_cpu.entry(*cpu).or_default();
        *of_cpu = of_cpu.saturating_add(*lost);
    }
    let rest = |(cpu, lost): (u32, u64)| {
        let told = sum_of_counts(lost_on(losses, Cpu(cpu)));
        let count = lost.checked_sub(told).filter(|rest| *rest > 0)?;
        let detail =
            format!("{count} events lost in the kernel's buffer of cpu {cpu}; its pages do not say where");
        let advice = "record with a larger --kernel-buffer";
        let loss = Loss::new(LossKind::Dropped, Level::Kern, detail);
        Some(Loss { cpu: Some(Cpu(cpu)), count: Some(count), advice, ..loss })
    };
    by_cpu.into_iter().filter_map(rest).collect()
}

/// What a rotated recording has removed: the events of removed parts, and those events of the first part that are left
/// out because the other streams begin later. Called when all streams have ended.
pub(crate) fn removed((loss, skipped): &(Loss, Arc<AtomicU64>)) -> Loss {
    // Relaxed: each thread that counted has passed on its last event after that.
    let count = loss.count.unwrap_or(0).saturating_add(skipped.load(Ordering::Relaxed));
    Loss { count: Some(count), ..loss.clone() }
}

/// Sides (kernel, user) that have an input but no event.
pub(crate) fn empty_sides(sources: &[OpenedInput], summary: &Summary, losses: &[Loss]) -> Vec<Loss> {
    let has = |source: &OpenedInput, level| match level {
        Level::User => source.numbers_its_threads || source.types.iter().any(|ty| ty.level == level),
        Level::Kern => !source.numbers_its_threads && source.types.iter().any(|ty| ty.level == level),
    };
    let named = |level| sources.iter().find(|source| has(source, level));
    // A damaged, truncated or lost part explains the lack of events.
    let is_told = |level| losses.iter().any(|loss| loss.level == level && loss.severity != Severity::Note);
    let sides = [(Level::Kern, summary.kernel_events, "kernel"), (Level::User, summary.user_events, "user")];
    let missing = |(level, events, side): (Level, u64, &str)| {
        let source = named(level).filter(|_| events == 0 && !is_told(level))?;
        let detail = format!("{}: the {side} side has no event", source.path.display());
        Some(Loss::new(LossKind::NotRecorded, level, detail))
    };
    let mut empty: Vec<Loss> = sides.into_iter().filter_map(missing).collect();
    if empty.is_empty()
        && summary.kernel_events + summary.user_events == 0
        && !is_told(Level::Kern)
        && !is_told(Level::User)
    {
        let names: Vec<_> = sources.iter().map(|source| source.path.display().to_string()).collect();
        let detail = format!("{}: no event", names.join(", "));
        empty.push(Loss::new(LossKind::NotRecorded, Level::User, detail));
    }
    empty
}

/// Makes losses of damaged or truncated inputs serious: such an input differs from the recording, even if its format
/// reports the missing part.
pub(crate) fn judge(losses: &mut [Loss]) {
    for loss in losses.iter_mut().filter(|l| matches!(l.kind, LossKind::Damaged | LossKind::Truncated)) {
        loss.severity = Severity::Serious;
    }
}

fn lost_on(losses: &[Loss], cpu: Cpu) -> impl Iterator<Item = u64> {
    let dropped =
        move |l: &&Loss| l.kind == LossKind::Dropped && l.level == Level::Kern && l.cpu == Some(cpu);
    losses.iter().filter(dropped).filter_map(|l| l.count)
}

pub(crate) fn write_cpus(
    mut table: TableWriter,
    cpus: &[(Cpu, CpuEntry)],
    losses: &[Loss],
) -> Result<(), Error> {
    for (cpu, entry) in cpus {
        let lost = sum_of_counts(lost_on(losses, *cpu));
        table.row(|mut row| {
            row.int(cpu.0).count(entry.events).count(lost).count(entry.busy).count(entry.idle);
        })?;
    }
    table.finish()
}

pub(crate) fn write_event_types(mut table: TableWriter, event_types: &InputEventTypes) -> Result<(), Error> {
    for kind in event_types.iter() {
        let event_type = &kind.event_type;
        table.row(|mut row| {
            row.text(kind.level.name()).maybe_int(event_type.code.map(i64::from)).text(&event_type.name);
            row.text(&kind.source).count(event_type.key);
            row.texts(event_type.fields.iter().map(|f| Some(f.name.as_str())));
            row.texts(event_type.fields.iter().map(|f| Some(f.ty.name())));
            row.text(&event_type.format).count(kind.events);
        })?;
    }
    table.finish()
}

/// The largest number that a column can store. Numbers in a damaged input, and sums of lengths, may be larger.
const MOST: u64 = i64::MAX as u64;

pub(crate) fn write_losses(mut table: TableWriter, losses: &[Loss]) -> Result<(), Error> {
    for loss in losses {
        table.row(|mut row| {
            row.text(loss.kind.name()).text(loss.level.name()).text(loss.severity.name());
            row.maybe_int(loss.cpu.map(|c| c.0.into())).maybe_int(loss.lwp.map(|l| l.0.into()));
            let [from, to] = [loss.from, loss.to].map(|tick| tick.map(|t| t.0).filter(|t| *t <= MOST));
            row.maybe_count(from).maybe_count(to).maybe_count(loss.count.map(|count| count.min(MOST)));
            row.text(&loss.detail).text(loss.advice).maybe_count(loss.unknown.map(|ticks| ticks.min(MOST)));
        })?;
    }
    table.finish()
}

pub(crate) fn write_clocks(mut table: TableWriter, clock: &MainClock) -> Result<(), Error> {
    for Sighting { kind, against, before, after, domain, value, used, residual, bound } in &clock.sightings {
        let (value_ns, value_tick) = by_unit(*domain, Some(*value));
        let (before_ns, before_tick) = by_unit(*against, Some(*before));
        let (after_ns, after_tick) = by_unit(*against, Some(*after));
        let (residual_ns, residual_tick) = by_unit(*domain, *residual);
        let (bound_ns, bound_tick) = by_unit(*domain, *bound);
        table.row(|mut row| {
            row.text(domain.name()).maybe_count(value_ns).maybe_count(value_tick).text(against.name());
            row.maybe_count(before_tick).maybe_count(after_tick);
            row.maybe_count(before_ns).maybe_count(after_ns);
            row.maybe_float(residual_ns).maybe_float(residual_tick);
            row.text(kind.name()).bool(*used).maybe_float(bound_ns).maybe_float(bound_tick);
        })?;
    }
    table.finish()
}

/// A value for the column of nanoseconds and for the column of ticks: one of the two is `None`.
fn by_unit<T>(domain: ClockDomain, value: Option<T>) -> (Option<T>, Option<T>) {
    if domain.counts_nanos() { (value, None) } else { (None, value) }
}

pub(crate) fn write_info(
    mut table: TableWriter,
    sources: &[OpenedInput],
    clock: &MainClock,
    summary: &Summary,
    witnesses: Witnesses,
    late: u64,
    left_out_tables: &[String],
) -> Result<(), Error> {
    let mut facts: Vec<(String, String)> = Vec::new();
    let mut fact = |key: &str, value: String| facts.push((key.into(), value));
    fact(info_keys::SCHEMA_VERSION, SCHEMA_VERSION.to_string());
    fact("writer", concat!("sigmund ", env!("CARGO_PKG_VERSION")).into());
    fact("main_clock", clock.domain.name().into());
    if let Some(hz) = clock.tick_hz {
        fact(info_keys::TICK_HZ, hz.per_second().to_string());
    }
    if let Some((first, last)) = summary.span {
        fact(info_keys::FIRST_TICK, first.0.to_string());
        fact(info_keys::LAST_TICK, last.0.to_string());
    }
    fact("kernel_events", summary.kernel_events.to_string());
    fact("user_events", summary.user_events.to_string());
    fact(info_keys::WITNESS_AGREE, witnesses.agree.to_string());
    fact(info_keys::WITNESS_DISAGREE, witnesses.disagree.to_string());
    fact(info_keys::WITNESS_SINGLE, witnesses.single.to_string());
    fact("late_events", late.to_string());
    if !left_out_tables.is_empty() {
        fact(info_keys::LEFT_OUT_TABLES, left_out_tables.join(","));
    }
    for (number, source) in (1..).zip(sources) {
        fact(&format!("input_{number}"), source.path.display().to_string());
        source.facts.iter().for_each(|(key, value)| fact(key, value.clone()));
    }
    facts.extend(summary.left_out.iter().map(|text| ("left_out".into(), text.clone())));
    for (key, value) in facts {
        table.row(|mut row| {
            row.text(&key).text(&value);
        })?;
    }
    table.finish()
}
