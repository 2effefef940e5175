//! The time in each state of some rows in a window: the numbers of `--states`, to the tick.

use rayon::prelude::*;
use serde_json::{Value, json};
use sigmund_model::{LwpState, ThreadState};

use super::{
    Query, Refusal,
    measure::{Asked, command},
};
use crate::{
    View,
    actors::UNKNOWN,
    index::{Track, partition::MOST_SUMS},
    key::{Key, Kind},
};

pub(super) fn selection(view: &View, query: &Query) -> Result<Value, Refusal> {
    let window = query.window(view)?;
    let keys = match (query.keys()?, query.parsed::<u32>("pid")?) {
        (Some(keys), _) => keys,
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
        .filter_map(|key| {
            let (set, row) = view.index.row(track, view.actors.row(*key)?)?;
            Some(set.sums(row, window.from, window.to))
        })
        .reduce(|| [0; MOST_SUMS], |a, b| std::array::from_fn(|at| a[at] + b[at]));
    let all: u64 = sums.iter().sum();
    let states = names.iter().zip(sums).filter(|(_, ticks)| *ticks > 0);
    let states = states
        .map(|(name, ticks)| json!({ "state": name, "ticks": ticks, "share": ticks as f64 / all as f64 }));
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

/// All user threads, or LWPs if there are none; of a process.
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
