//! The life of a thread: its states in a window, its places, and its wakers.

use serde_json::{Value, json};
use sigmund_model::tables::WAKEUPS;

use super::{Query, Refusal, at::blocked_on, cells::objects, query::Window};
use crate::{
    View,
    key::{Key, Kind},
};

const MOST: usize = 5000;

pub(super) async fn life(view: &View, query: &Query) -> Result<Value, Refusal> {
    let (key, window) = (query.key()?, query.window(view)?);
    let limit = query.count("limit", 1000, MOST)?;
    let Window { from, to } = window;
    let (table, columns) = match key.kind {
        Kind::Thread => ("thread_states", "lwp, cpu, blocked_for, blocked_on, end_reason"),
        Kind::Lwp => ("lwp_states", "lwp, cpu, end_reason"),
        Kind::Cpu => return Err(Refusal::wrong(format!("{key}: expected a user thread or an LWP"))),
    };
    let (name, number, first) = (key.kind.name(), key.number, view.extent.0);
    let query = format!(
        "SELECT ts_tick - {first} AS \"from\", ts_tick + dur_tick - {first} AS \"to\", state, {columns} \
         FROM raw_{table} WHERE {name} = {number} AND dur_tick IS NOT NULL AND ts_tick < {to} \
         AND ts_tick + dur_tick > {from} ORDER BY ts_tick LIMIT {}",
        limit + 1,
    );
    let mut intervals = objects(view, &query, limit + 1).await?;
    let more = intervals.len() > limit;
    intervals.truncate(limit);
    for interval in &mut intervals {
        keyed(interval, "lwp", Kind::Lwp);
        keyed(interval, "cpu", Kind::Cpu);
        interval["blocked_on"] = blocked_on(interval).into();
    }
    let wakeups = wakeups(view, key, window, limit).await?;
    Ok(json!({ "more": more, "intervals": intervals, "wakeups": wakeups }))
}

/// Replaces the number in field `name` by the key of a row.
pub(super) fn keyed(object: &mut Value, name: &str, kind: Kind) {
    let number = |value: &Value| value.as_u64().or_else(|| value.as_str()?.parse().ok());
    if let Some(number) = object.get(name).and_then(number) {
        object[name] = json!(Key { kind, number });
    }
}

async fn wakeups(view: &View, key: Key, window: Window, limit: usize) -> Result<Vec<Value>, Refusal> {
    if view.trace.info().left_out_tables().any(|table| table == WAKEUPS.name) {
        return Ok(Vec::new());
    }
    let (name, number, first) = (key.kind.name(), key.number, view.extent.0);
    let Window { from, to } = window;
    let query = format!(
        "SELECT ts_tick - {first} AS at, level, context, waker_lwp, waker_thread, lwp, thread, cpu, \
         latency_tick AS latency FROM raw_wakeups WHERE ({name} = {number} OR waker_{name} = {number}) \
         AND ts_tick >= {from} AND ts_tick < {to} ORDER BY ts_tick LIMIT {limit}",
    );
    let mut wakeups = objects(view, &query, limit).await?;
    for wakeup in &mut wakeups {
        keyed(wakeup, "waker_thread", Kind::Thread);
        keyed(wakeup, "waker_lwp", Kind::Lwp);
        keyed(wakeup, "thread", Kind::Thread);
        keyed(wakeup, "lwp", Kind::Lwp);
        keyed(wakeup, "cpu", Kind::Cpu);
        let is_of_kernel = wakeup["level"] == "KERN";
        let either = |first: &str, second: &str| {
            if wakeup[first].is_null() { wakeup[second].clone() } else { wakeup[first].clone() }
        };
        let by = either("waker_thread", "waker_lwp");
        let of = if is_of_kernel && key.kind == Kind::Lwp {
            wakeup["lwp"].clone()
        } else {
            either("thread", "lwp")
        };
        wakeup["by_lwp"] = wakeup["waker_lwp"].clone();
        (wakeup["by"], wakeup["of"]) = (by, of);
    }
    Ok(wakeups)
}
