//! The parts of a report as tables. They have the same columns in every format.

use std::fmt::Display;

use sigmund_model::{Cpu, Lwp, Thread, Ticks};
use sigmund_query::{
    Clock, Disagreement, Gap, Item, LossSource, LwpTime, LwpWitnesses, Neighbour, Stay, Touched,
};
use sigmund_sql::SuperTrace;

use crate::output::{Cell, Table};

pub(super) fn invariants(items: &[Item]) -> Table {
    let columns = ["name", "verdict", "invariant", "figures", "detail"];
    Table::new("Invariants", &columns, items, |item| {
        let figures: Vec<String> = item.figures.iter().map(super::figure).collect();
        vec![
            item.name.into(),
            item.verdict.name().into(),
            item.invariant.into(),
            figures.join(", ").as_str().into(),
            item.detail.as_str().into(),
        ]
    })
}

pub(super) fn witnesses(lwps: &[LwpWitnesses]) -> Table {
    let columns = ["lwp", "name", "events", "agree", "disagree", "single", "percent"];
    Table::new("CPU of each LWP's events, by the probe and by sched_switch", &columns, lwps, |one| {
        vec![
            one.lwp.0.into(),
            one.name.as_deref().into(),
            one.events.into(),
            one.agree.into(),
            one.disagree.into(),
            one.single.into(),
            one.percent().map_or(Cell::Nothing, Cell::Fraction),
        ]
    })
}

pub(super) fn disagreements(trace: &SuperTrace, all: &[Disagreement]) -> Table {
    let columns =
        ["ts_tick", "time_us", "lwp", "thread", "event", "cpu", "cpu_seen", "left_after_us", "cause"];
    Table::new("Events whose CPU differs between the probe and sched_switch", &columns, all, |one| {
        vec![
            one.tick.0.into(),
            since_start(trace, one.tick),
            one.lwp.0.into(),
            one.thread.map(|t| t.0).into(),
            one.name.as_str().into(),
            one.cpu.map(|c| c.0).into(),
            one.cpu_seen.0.into(),
            one.left_after.map_or(Cell::Nothing, |t| micros(trace, t.0 as f64)),
            one.cause.name().into(),
        ]
    })
}

pub(super) fn losses(trace: &SuperTrace, all: &[LossSource]) -> Table {
    let columns = [
        "severity",
        "kind",
        "level",
        "cpu",
        "lwp",
        "losses",
        "events",
        "time_us",
        "from_us",
        "to_us",
        "detail",
        "advice",
        "unknown_us",
    ];
    Table::new("What is missing, by source", &columns, all, |one| {
        vec![
            one.severity.as_str().into(),
            one.kind.as_str().into(),
            one.level.as_str().into(),
            one.cpu.map(|c| c.0).into(),
            one.lwp.map(|l| l.0).into(),
            one.losses.into(),
            one.events.into(),
            one.time.map_or(Cell::Nothing, |t| micros(trace, t.0 as f64)),
            one.from.map_or(Cell::Nothing, |t| since_start(trace, t)),
            one.to.map_or(Cell::Nothing, |t| since_start(trace, t)),
            one.example.as_str().into(),
            one.advice.as_str().into(),
            one.unknown.map_or(Cell::Nothing, |t| micros(trace, t.0 as f64)),
        ]
    })
}

pub(super) fn gaps(trace: &SuperTrace, all: &[Gap]) -> Table {
    let columns = [
        "severity",
        "kind",
        "level",
        "cpu",
        "lwp",
        "from_tick",
        "to_tick",
        "from_us",
        "time_us",
        "events",
        "lwps",
        "touched_lwps",
        "threads",
        "touched_threads",
        "cpus",
        "touched_cpus",
    ];
    Table::new("Gaps, and the LWPs, user threads and CPUs in use across them", &columns, all, |one| {
        vec![
            one.severity.as_str().into(),
            one.kind.as_str().into(),
            one.level.as_str().into(),
            one.cpu.map(|c| c.0).into(),
            one.lwp.map(|l| l.0).into(),
            one.from.map(|t| t.0).into(),
            one.to.map(|t| t.0).into(),
            one.from.map_or(Cell::Nothing, |t| since_start(trace, t)),
            one.time().map_or(Cell::Nothing, |t| micros(trace, t.0 as f64)),
            one.events.into(),
            one.lwps.count.into(),
            touched(&one.lwps, |Lwp(lwp)| lwp),
            one.threads.count.into(),
            touched(&one.threads, |Thread(thread)| thread),
            one.cpus.count.into(),
            touched(&one.cpus, |Cpu(cpu)| cpu),
        ]
    })
}

pub(super) fn cpu_times(trace: &SuperTrace, all: &[LwpTime]) -> Table {
    let columns = ["lwp", "name", "source", "from_us", "to_us", "kernel_us", "on_cpu_us", "unknown_us"];
    let us = |ns: f64| Cell::Fraction(ns.round() / 1e3);
    Table::new("LWPs whose time on CPUs differs from the kernel's accounting", &columns, all, |one| {
        vec![
            one.lwp.0.into(),
            one.name.as_deref().into(),
            one.source.into(),
            since_start(trace, one.from),
            since_start(trace, one.to),
            us(one.kernel_ns),
            us(one.on_cpu_ns),
            us(one.unknown_ns),
        ]
    })
}

pub(super) fn clocks(all: &[Clock]) -> Table {
    let columns = ["clock", "against", "snapshots", "span_us", "bracket_ns", "residual_ns", "residual_tick"];
    Table::new("Clocks, each relative to the one it was compared with", &columns, all, |one| {
        vec![
            one.domain.as_str().into(),
            one.against.as_str().into(),
            one.snapshots.into(),
            one.span_ns.map_or(Cell::Nothing, |ns| Cell::Fraction(ns.round() / 1e3)),
            one.bracket_ns.map_or(Cell::Nothing, Cell::Fraction),
            one.residual_ns.map_or(Cell::Nothing, Cell::Fraction),
            one.residual_tick.map_or(Cell::Nothing, Cell::Fraction),
        ]
    })
}

/// The states of an LWP around an event.
pub(super) fn states(all: &[Stay]) -> Table {
    let columns = ["ts_tick", "dur_tick", "state", "cpu", "end_reason"];
    Table::new("", &columns, all, |one| {
        vec![
            one.tick.0.into(),
            one.length.map(|t| t.0).into(),
            one.state.as_str().into(),
            one.cpu.map(|c| c.0).into(),
            one.end_reason.as_deref().into(),
        ]
    })
}

/// The events around an event.
pub(super) fn events(all: &[Neighbour]) -> Table {
    let columns = ["ts_tick", "level", "name", "cpu", "cpu_seen", "lwp", "thread", "target_lwp"];
    Table::new("", &columns, all, |one| {
        vec![
            one.tick.0.into(),
            one.level.name().into(),
            one.name.as_str().into(),
            one.cpu.map(|c| c.0).into(),
            one.cpu_seen.map(|c| c.0).into(),
            one.lwp.map(|l| l.0).into(),
            one.thread.map(|t| t.0).into(),
            one.target_lwp.map(|l| l.0).into(),
        ]
    })
}

/// Microseconds since the first event; empty if the tick rate is unknown.
pub(super) fn since_start(trace: &SuperTrace, tick: Ticks) -> Cell<'static> {
    let first = trace.first_tick().map_or(0, |t| t.0);
    micros(trace, tick.0 as f64 - first as f64)
}

/// Ticks in microseconds; empty if the tick rate is unknown.
pub(super) fn micros(trace: &SuperTrace, ticks: f64) -> Cell<'static> {
    trace.tick_hz().map_or(Cell::Nothing, |hz| Cell::Fraction((ticks * 1e9 / hz.per_second()).round() / 1e3))
}

/// `3 15 27 …`
fn touched<T: Copy, N: Display>(all: &Touched<T>, number: fn(T) -> N) -> Cell<'static> {
    let mut names: Vec<String> = all.named.iter().map(|one| number(*one).to_string()).collect();
    if all.count > names.len() as u64 {
        names.push("…".into());
    }
    names.join(" ").into()
}
