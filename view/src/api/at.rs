//! What a row did at an instant, and who had what it waited for.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{Query, Refusal, cells::objects, query::Window, tiles::tracks};
use crate::{
    View,
    index::{
        Track,
        partition::{NOBODY, Stay},
    },
    key::{Key, Kind},
};

/// Who are listed for a wait.
const MOST_CULPRITS: usize = 8;

/// LWPs of a process that are looked at for who had them.
const MOST_LWPS: usize = 256;

pub(super) async fn at(view: &View, query: &Query) -> Result<Value, Refusal> {
    let key = query.key()?;
    let offset = query.parsed::<f64>("tick")?.unwrap_or_default();
    let tick = view.tick(offset);
    let row =
        view.actors.row(key).ok_or_else(|| Refusal::missing(format!("{key}: the trace has no such row")))?;
    let mut intervals = Vec::new();
    for (name, track, named) in tracks(key.kind) {
        let Some((set, row)) = view.index.row(*track, row) else { continue };
        let (stays, _) = set.stays(row, tick, tick.saturating_add(1), 1);
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

/// An interval in a state, with what its table says besides.
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
        (Kind::Thread, "stalled") => had_cpu(view, lwp, window),
        (Kind::Lwp, "runnable") => had_cpu(view, Some(key.number as u32), window),
        (Kind::Thread, "ready" | "new") => had_lwps(view, key, window),
        _ => Vec::new(),
    };
    let object = interval.get("blocked_on").and_then(blocked_on);
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

/// An object as its address.
pub(super) fn blocked_on(object: &Value) -> Option<String> {
    let number = object.as_i64().or_else(|| object.as_str()?.parse().ok())?;
    Some(format!("{:#x}", number as u64))
}

/// Who was on the CPU for which an LWP was runnable: the one that it went to afterwards, or else the one that it came from.
fn had_cpu(view: &View, lwp: Option<u32>, window: Window) -> Vec<Value> {
    let Some(cpu) = lwp.and_then(|lwp| cpu_of(view, lwp, window)) else { return Vec::new() };
    let Some(row) = view.actors.cpu(cpu) else { return Vec::new() };
    let mut had = Had::default();
    had.add(view, Track::CpuLwp, row, Kind::Lwp, window);
    let mut culprits = had.culprits(view);
    for culprit in &mut culprits {
        // Whom that LWP carried meanwhile, most of the time.
        let carried = culprit["key"].as_str().and_then(|key| key.parse::<Key>().ok());
        let mut threads = Had::default();
        if let Some(row) = carried.and_then(|key| view.actors.row(key)) {
            threads.add(view, Track::LwpThread, row, Kind::Thread, window);
        }
        culprit["thread"] = threads.culprits(view).first().map_or(Value::Null, |first| first["key"].clone());
        culprit["cpu"] = json!(Key::cpu(cpu));
    }
    culprits
}

/// The CPU that an LWP ran on after a time, or before it.
fn cpu_of(view: &View, lwp: u32, window: Window) -> Option<u32> {
    let own = view.actors.lwp(lwp)? as u32;
    let was_there = |row: usize, from: i64, to: i64| {
        let Some((set, row)) = view.index.row(Track::CpuLwp, row) else { return false };
        let (stays, _) = set.stays(row, from, to, 2);
        stays.iter().any(|stay| stay.value == own)
    };
    let cpus = || view.actors.cpus.iter().enumerate();
    let after = cpus().find(|(row, _)| was_there(*row, window.to, window.to.saturating_add(1)));
    let before = || cpus().find(|(row, _)| was_there(*row, window.from.saturating_sub(1), window.from));
    after.or_else(before).map(|(_, cpu)| cpu.number)
}

/// Who was mounted on the LWPs of a user thread's process.
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

/// Time by who had something.
#[derive(Default)]
struct Had(HashMap<Key, u64>);

/// Intervals of a row that are looked at.
const MOST_STAYS: usize = 100_000;

impl Had {
    fn add(&mut self, view: &View, track: Track, row: usize, kind: Kind, window: Window) {
        let Some((set, row)) = view.index.row(track, row) else { return };
        let (stays, _) = set.stays(row, window.from, window.to, MOST_STAYS);
        for stay in stays.iter().filter(|stay| stay.value != NOBODY) {
            let time = stay.to.min(window.to).saturating_sub(stay.from.max(window.from)).max(0) as u64;
            *self.0.entry(view.actors.key(kind, stay.value as usize)).or_default() += time;
        }
    }

    fn culprits(self, view: &View) -> Vec<Value> {
        let mut culprits: Vec<(Key, u64)> = self.0.into_iter().collect();
        culprits.sort_by_key(|(key, time)| (std::cmp::Reverse(*time), key.number));
        let culprits = culprits.into_iter().take(MOST_CULPRITS);
        culprits
            .map(|(key, ticks)| {
                let label = view.actors.label(&view.trace, key);
                json!({ "key": key, "label": label, "thread": null, "ticks": ticks })
            })
            .collect()
    }
}
