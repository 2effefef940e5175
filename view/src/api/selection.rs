//! The time in each state of some rows in a window: the numbers of `--states`, exact to the tick.
//!
//! States come from the index. The time of interrupts is subtracted from `active` (or `running`), like in the measure.

use rayon::prelude::*;
use serde_json::{Value, json};
use sigmund_model::{LwpState, ThreadState, tables::INTERRUPTS};

use super::{
    Query, Refusal,
    cells::objects,
    measure::{Asked, command},
    query::Window,
};
use crate::{
    View,
    actors::UNKNOWN,
    index::{Track, partition::MOST_SUMS},
    key::{Key, Kind},
};

pub(super) async fn selection(view: &View, query: &Query) -> Result<Value, Refusal> {
    let window = query.window(view)?;
    let keys = match (query.keys()?, query.parsed::<u32>("pid")?) {
        (Some(mut keys), _) => {
            keys.sort_by_key(|key| key.number);
            keys.dedup();
            keys
        }
        (None, pid) => all(view, pid),
    };
    let kind = keys.first().map_or(Kind::Thread, |key| key.kind);
    let (track, names): (Track, Vec<&str>) = match kind {
        Kind::Thread => (Track::ThreadState, ThreadState::ALL.iter().map(|state| state.name()).collect()),
        Kind::Lwp => (Track::LwpState, LwpState::ALL.iter().map(|state| state.name()).collect()),
        Kind::Cpu => return Err(Refusal::wrong("expected user threads or LWPs: a CPU has no states")),
    };
    if keys.iter().any(|key| key.kind != kind) {
        return Err(Refusal::wrong("expected user threads or LWPs, found both"));
    }
    let sums = keys
        .par_iter()
        .filter_map(|key| Some(view.index.row(track, view.actors.row(*key)?).sums(window.from, window.to)))
        .reduce(|| [0; MOST_SUMS], |a, b| std::array::from_fn(|at| a[at].saturating_add(b[at])));
    let all = sums.iter().fold(0_u64, |all, ticks| all.saturating_add(*ticks));
    let interrupted = interrupted(view, query, kind, &keys, window).await?;
    let on_cpu = if kind == Kind::Thread { "active" } else { "running" };
    let mut states: Vec<(&str, u64)> = names.into_iter().zip(sums).collect();
    for (_, ticks) in states.iter_mut().filter(|(name, _)| *name == on_cpu) {
        *ticks = ticks.saturating_sub(interrupted);
    }
    states.push(("interrupted", interrupted));
    let states = states.iter().filter(|(_, ticks)| *ticks > 0);
    let states = states
        .map(|(name, ticks)| json!({ "state": name, "ticks": ticks, "share": *ticks as f64 / all as f64 }));
    let asked = Asked {
        keys: (query.get("keys").is_some() || query.get("pid").is_some()).then_some(&keys[..]),
        window,
        kind,
        ..Asked::default()
    };
    let (command, sql) = command(view, "states", &asked);
    Ok(json!({
        "rows": keys.len(),
        "states": states.collect::<Vec<_>>(),
        "command": command,
        "sql": sql,
    }))
}

/// The time for which interrupts ran during the activity of these rows.
async fn interrupted(
    view: &View,
    query: &Query,
    kind: Kind,
    keys: &[Key],
    window: Window,
) -> Result<u64, Refusal> {
    if view.trace.info().left_out_tables().any(|table| table == INTERRUPTS.name) {
        return Ok(0);
    }
    let column = kind.name();
    let whose = if query.get("keys").is_some() {
        let numbers: Vec<String> = keys.iter().map(|key| (key.number as i64).to_string()).collect();
        format!("{column} IN ({})", numbers.join(", "))
    } else if let Some(pid) = query.parsed::<u32>("pid")? {
        format!("{column} IN (SELECT {column} FROM raw_{column}s WHERE pid = {pid})")
    } else {
        // 0 is the idle task.
        format!("{column} <> 0")
    };
    let Window { from, to } = window;
    let query = format!(
        "SELECT sum(least(ts_tick + dur_tick, {to}) - greatest(ts_tick, {from})) AS ticks FROM raw_interrupts \
         WHERE depth = 0 AND {whose} AND ts_tick < {to} AND ts_tick + dur_tick > {from}"
    );
    let rows = objects(view, &query, 1).await?;
    let ticks = rows.first().map(|row| &row["ticks"]);
    Ok(ticks.and_then(|ticks| ticks.as_u64().or_else(|| ticks.as_str()?.parse().ok())).unwrap_or_default())
}

/// All user threads, or all LWPs if there are no user threads; of one process if `pid` is given.
fn all(view: &View, pid: Option<u32>) -> Vec<Key> {
    let threads = &view.actors.threads;
    if threads.numbers.is_empty() {
        let lwps = view.actors.lwps.iter().filter(|lwp| lwp.number != 0);
        return lwps
            .filter(|lwp| pid.is_none_or(|pid| lwp.pid == Some(pid)))
            .map(|lwp| Key::lwp(lwp.number))
            .collect();
    }
    let rows = threads.numbers.iter().zip(&threads.pids);
    rows.filter(|(_, of)| pid.is_none_or(|pid| **of == pid && pid != UNKNOWN))
        .map(|(number, _)| Key::thread(*number))
        .collect()
}
