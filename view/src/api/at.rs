//! The activity of a row at an instant, and the actors that had what the row waited for.

use std::collections::HashMap;

use serde_json::{Value, json};
use sigmund_model::LwpState;
use sigmund_sql::columns::{Small, Wide};

use super::{
    Query, Refusal,
    cells::{self, objects},
    query::Window,
    tiles::tracks,
};
use crate::{
    View,
    index::{
        Track,
        partition::{NOBODY, Stay},
    },
    key::{Key, Kind},
};

/// The largest number of actors listed for a wait.
const MOST_CULPRITS: usize = 50;

/// The largest number of a process's LWPs that are searched for mounted threads.
const MOST_LWPS: usize = 256;

pub(super) async fn at(view: &View, query: &Query) -> Result<Value, Refusal> {
    let key = query.key()?;
    let offset = query.parsed::<f64>("tick")?.unwrap_or_default();
    let tick = view.tick(offset);
    let row =
        view.actors.row(key).ok_or_else(|| Refusal::missing(format!("{key}: the trace has no such row")))?;
    let mut intervals = Vec::new();
    for (name, track, named) in tracks(key.kind) {
        let (stays, _) = view.index.row(*track, row).stays(tick, tick.saturating_add(1), 1);
        let Some(stay) = stays.first().filter(|stay| stay.from <= tick) else { continue };
        let interval = match named {
            Some(kind) if stay.value != NOBODY => identity(view, name, *kind, *stay),
            Some(_) => continue,
            None => state(view, key, *stay).await?,
        };
        intervals.push(interval);
    }
    Ok(json!({ "key": key, "label": view.actors.label(&view.trace, key), "intervals": intervals }))
}

fn identity(view: &View, track: &str, kind: Kind, stay: Stay) -> Value {
    let who = view.actors.key(kind, stay.value as usize);
    json!({
        "track": track,
        "from": view.offset(stay.from), "to": view.offset(stay.to),
        "value": who, "label": view.actors.label(&view.trace, who),
    })
}

/// An interval in a state, with the other columns of its row.
async fn state(view: &View, key: Key, stay: Stay) -> Result<Value, Refusal> {
    let (table, columns) = match key.kind {
        Kind::Thread => ("thread_states", "state, lwp, cpu, blocked_on, blocked_for, end_reason"),
        _ => ("lwp_states", "state, lwp, cpu, end_reason, end_state"),
    };
    let query = format!(
        "SELECT {columns} FROM raw_{table} WHERE {} = {} AND ts_tick = {} AND dur_tick > 0 LIMIT 1",
        key.kind.name(),
        key.number,
        stay.from,
    );
    let found = objects(view, &query, 1).await?.into_iter().next();
    let mut interval = found.unwrap_or_else(|| json!({ "state": null }));
    let word = interval["state"].as_str().unwrap_or("unknown").to_string();
    let number = |name: &str| interval.get(name).and_then(Value::as_u64).map(|number| number as u32);
    let (lwp, cpu) = (number("lwp"), number("cpu"));
    let window = Window { from: stay.from, to: stay.to };
    let had = match (key.kind, word.as_str()) {
        (Kind::Thread, "stalled") => had_cpu(view, lwp, window, true).await?,
        (Kind::Lwp, "runnable") => had_cpu(view, Some(key.number as u32), window, false).await?,
        (Kind::Thread, "ready" | "new") => had_lwps(view, key, window),
        _ => Vec::new(),
    };
    let object = blocked_on(&interval);
    let fields = json!({
        "track": "state", "value": word,
        "from": view.offset(stay.from), "to": view.offset(stay.to),
        "lwp": lwp.map(Key::lwp), "cpu": cpu.map(Key::cpu),
        "blocked_on": object, "had_cpu": had,
    });
    if let (Value::Object(interval), Value::Object(fields)) = (&mut interval, fields) {
        interval.extend(fields);
    }
    Ok(interval)
}

/// The object for which an interval of a thread waits, as its address. `None` for a sleep: there it is a length of
/// time.
pub(super) fn blocked_on(interval: &Value) -> Option<String> {
    let is_sleep = interval.get("blocked_for").and_then(Value::as_str) == Some("sleep");
    interval.get("blocked_on").filter(|_| !is_sleep).and_then(address)
}

/// An object as its address.
pub(super) fn address(object: &Value) -> Option<String> {
    let number = object.as_i64().or_else(|| object.as_str()?.parse().ok())?;
    Some(format!("{:#x}", number as u64))
}

/// The actors that were on the CPU while an LWP was in its run queue, like the culprits of `--states`. User threads if
/// `of_threads` is set.
async fn had_cpu(
    view: &View,
    lwp: Option<u32>,
    window: Window,
    of_threads: bool,
) -> Result<Vec<Value>, Refusal> {
    let Some(lwp) = lwp else { return Ok(Vec::new()) };
    let query = format!(
        "SELECT ts_tick AS \"from\", ts_tick + dur_tick AS \"to\", cpu FROM raw_lwp_states WHERE lwp = {lwp} \
         AND state = '{}' AND ts_tick < {} AND ts_tick + dur_tick > {}",
        LwpState::Runnable.name(),
        window.to,
        window.from,
    );
    let (mut had, mut cpus) = (Had::default(), Vec::new());
    cells::each(view, &query, MOST_STAYS, |batch| {
        let (from, to, cpu) = (Wide::of(batch, 0), Wide::of(batch, 1), Small::of(batch, 2));
        for row in 0..batch.num_rows() {
            let Some(cpu) = cpu.get(row) else { continue };
            let part =
                Window { from: from.or_zero(row).max(window.from), to: to.or_zero(row).min(window.to) };
            if let Some(row) = view.actors.cpu(cpu) {
                had.add_cpu(view, row, part, of_threads);
                cpus.push(cpu);
            }
        }
    })
    .await?;
    let mut culprits = had.culprits(view);
    if let Some(cpu) = cpus.first().filter(|first| cpus.iter().all(|cpu| cpu == *first)) {
        culprits.iter_mut().for_each(|culprit| culprit["cpu"] = json!(Key::cpu(*cpu)));
    }
    Ok(culprits)
}

/// The user threads that were mounted on the LWPs of a user thread's process.
fn had_lwps(view: &View, key: Key, window: Window) -> Vec<Value> {
    let actors = &view.actors;
    let Some(pid) = actors.thread(key.number).map(|row| actors.threads.pids[row]) else { return Vec::new() };
    let lwps = actors.lwps.iter().enumerate().filter(|(_, lwp)| lwp.carries && lwp.pid == Some(pid));
    let mut had = Had::default();
    for (row, _) in lwps.take(MOST_LWPS) {
        had.add(view, Track::LwpThread, row, Kind::Thread, window);
    }
    had.culprits(view)
}

/// For how long each actor had the CPU or LWP in question.
#[derive(Default)]
struct Had(HashMap<Key, u64>);

/// The largest number of a row's intervals that are read.
const MOST_STAYS: usize = 100_000;

impl Had {
    fn add(&mut self, view: &View, track: Track, row: usize, kind: Kind, window: Window) {
        let (stays, _) = view.index.row(track, row).stays(window.from, window.to, MOST_STAYS);
        for stay in stays.iter().filter(|stay| stay.value != NOBODY) {
            let time = stay.to.min(window.to).saturating_sub(stay.from.max(window.from)).max(0) as u64;
            *self.0.entry(view.actors.key(kind, stay.value as usize)).or_default() += time;
        }
    }

    /// Adds the actors on a CPU: the user thread that was mounted on the LWP there, or the LWP.
    fn add_cpu(&mut self, view: &View, cpu: usize, window: Window, of_threads: bool) {
        let (stays, _) = view.index.row(Track::CpuLwp, cpu).stays(window.from, window.to, MOST_STAYS);
        for stay in stays.iter().filter(|stay| stay.value != NOBODY) {
            let part = Window { from: stay.from.max(window.from), to: stay.to.min(window.to) };
            let time = part.to.saturating_sub(part.from).max(0) as u64;
            let lwp = stay.value as usize;
            let before = self.all();
            if of_threads {
                self.add(view, Track::LwpThread, lwp, Kind::Thread, part);
            }
            // The LWP gets the time in which no user thread was mounted on it.
            let rest = time.saturating_sub(self.all() - before);
            if rest > 0 {
                *self.0.entry(view.actors.key(Kind::Lwp, lwp)).or_default() += rest;
            }
        }
    }

    fn all(&self) -> u64 {
        self.0.values().sum()
    }

    fn culprits(self, view: &View) -> Vec<Value> {
        let mut culprits: Vec<(Key, u64)> = self.0.into_iter().collect();
        culprits.sort_by_key(|(key, time)| (std::cmp::Reverse(*time), key.number));
        let culprits = culprits.into_iter().take(MOST_CULPRITS);
        culprits
            .map(|(key, ticks)| {
                let label = view.actors.label(&view.trace, key);
                json!({ "key": key, "label": label, "ticks": ticks })
            })
            .collect()
    }
}
