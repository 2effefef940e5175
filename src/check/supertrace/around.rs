//! Prints the context of a disagreement: the states of the LWP, and the events near it.
//!
//! ```text
//! node_begin of LWP 4711 (thread 12), at 12.345 ms: CPU 0 by sched_switch, CPU 1 by the probe
//!   moved to another CPU between the stamp and the look at the CPU; it left 3.1 us after the stamp
//!     LWP 4711 is running on CPU 0 from -120.5 us to +3.1 us, then runnable to +250.0 us, then running on CPU 1
//!     -14.2 us  KERN  sched_switch       CPU 0  LWP 60 → 4711
//!        0      USER  node_begin         CPU 0  LWP 4711
//! ```

use std::io;

use sigmund_model::{Hertz, Level, Lwp, Ticks};
use sigmund_query::{Disagreement, Neighbour, Stay};
use sigmund_sql::SuperTrace;

use crate::{output, terminal};

pub(super) fn print(trace: &SuperTrace, all: &[Disagreement]) -> io::Result<()> {
    let hz = trace.tick_hz();
    for one in all {
        let first = trace.first_tick().unwrap_or_default();
        let at = output::length(Ticks(one.tick.0.saturating_sub(first.0)), hz);
        let thread = one.thread.map_or(String::new(), |thread| format!(" (thread {thread})"));
        let by_switches =
            one.cpu.map_or("CPU unknown by sched_switch".into(), |cpu| format!("CPU {cpu} by sched_switch"));
        terminal::line("")?;
        terminal::line(format_args!(
            "{} of LWP {}{thread}, at {at}: {by_switches}, CPU {} by the probe",
            one.name, one.lwp, one.cpu_seen
        ))?;
        let left =
            one.left_after.map(|ticks| format!("; it left {} after the stamp", output::length(ticks, hz)));
        terminal::line(format_args!("  {}{}", one.cause.sentence(), left.unwrap_or_default()))?;
        terminal::line(format_args!("    LWP {}: {}", one.lwp, states(&one.around.states, one.tick, hz)))?;
        for event in &one.around.events {
            terminal::line(format_args!("    {}", line(event, one.lwp, one.tick, hz)))?;
        }
    }
    Ok(())
}

/// `running on CPU 0 from -120.5 us to +3.1 us, then …`
fn states(all: &[Stay], at: Ticks, hz: Option<Hertz>) -> String {
    let state = |stay: &Stay| {
        let place = stay.cpu.filter(|_| stay.state == "running");
        let place = place.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
        let end = stay.length.map(|length| Ticks(stay.tick.0 + length.0));
        let end = end.map_or(String::new(), |end| format!(" to {}", distance(end, at, hz)));
        format!("{}{place} from {}{end}", stay.state, distance(stay.tick, at, hz))
    };
    all.iter().map(state).collect::<Vec<_>>().join(", ")
}

fn line(event: &Neighbour, of: Lwp, at: Ticks, hz: Option<Hertz>) -> String {
    let number = |what: &str, n: Option<u32>| n.map_or(String::new(), |n| format!("{what} {n}"));
    let cpu = number("CPU", event.cpu.map(|c| c.0));
    let seen = event.cpu_seen.filter(|seen| event.level == Level::User && Some(*seen) != event.cpu);
    let seen = number(", probe on CPU", seen.map(|c| c.0));
    let lwp = number("LWP", event.lwp.map(|l| l.0));
    let to = event.target_lwp.map_or(String::new(), |lwp| format!(" → {lwp}"));
    let mark =
        if event.tick == at && event.lwp == Some(of) && event.level == Level::User { '>' } else { ' ' };
    let when = distance(event.tick, at, hz);
    format!("{mark} {when:>12}  {:<4}  {:<24} {cpu}{seen}  {lwp}{to}", event.level.name(), event.name)
}

/// `-14.200 us`, `+3.100 us`.
fn distance(tick: Ticks, at: Ticks, hz: Option<Hertz>) -> String {
    let sign = if tick < at { '-' } else { '+' };
    format!("{sign}{}", output::length(Ticks(tick.0.abs_diff(at.0)), hz))
}
