//! Objects that are drawn in addition to states: spans, interrupts, locks, queues.

use serde_json::Value;
use sigmund_model::tables::{COUNTERS, INTERRUPTS, LOCKS, SPANS, Table};

use super::{Query, Refusal, at::address, cells::objects, life::keyed, listed, query::Window};
use crate::{View, key::Kind};

const MOST: usize = 5000;

fn has(view: &View, table: &Table) -> bool {
    view.trace.info().left_out_tables().all(|name| name != table.name)
}

pub(super) async fn spans(view: &View, query: &Query) -> Result<Value, Refusal> {
    let (key, Window { from, to }) = (query.key()?, query.window(view)?);
    let limit = query.count("limit", 2000, MOST)?;
    let is_of_it = match key.kind {
        Kind::Thread => format!("thread = {}", key.number),
        Kind::Lwp => format!("lwp = {} AND thread IS NULL", key.number),
        Kind::Cpu => return Err(Refusal::wrong(format!("{key}: expected a user thread or an LWP"))),
    };
    if !has(view, &SPANS) {
        return Ok(listed("spans", Vec::new(), limit));
    }
    let first = view.extent.0;
    let query = format!(
        "SELECT ts_tick - {first} AS \"from\", ts_tick + dur_tick - {first} AS \"to\", name, depth, kind, \
         active_tick AS active, source FROM raw_spans WHERE {is_of_it} AND ts_tick < {to} \
         AND ts_tick + dur_tick > {from} LIMIT {}",
        limit + 1,
    );
    Ok(listed("spans", objects(view, &query, limit).await?, limit))
}

pub(super) async fn interrupts(view: &View, query: &Query) -> Result<Value, Refusal> {
    let Window { from, to } = query.window(view)?;
    let (cpu, limit) = (query.count("cpu", 0, u32::MAX as usize)?, query.count("limit", 2000, MOST)?);
    if !has(view, &INTERRUPTS) {
        return Ok(listed("interrupts", Vec::new(), limit));
    }
    let first = view.extent.0;
    let query = format!(
        "SELECT ts_tick - {first} AS \"from\", ts_tick + dur_tick - {first} AS \"to\", kind, number, name, depth \
         FROM raw_interrupts WHERE cpu = {cpu} AND ts_tick < {to} AND ts_tick + dur_tick > {from} LIMIT {}",
        limit + 1,
    );
    Ok(listed("interrupts", objects(view, &query, limit).await?, limit))
}

pub(super) async fn locks(view: &View, query: &Query) -> Result<Value, Refusal> {
    let (key, Window { from, to }) = (query.key()?, query.window(view)?);
    let limit = query.count("limit", 1000, MOST)?;
    if !has(view, &LOCKS) || key.kind == Kind::Cpu {
        return Ok(listed("locks", Vec::new(), limit));
    }
    let (first, column) = (view.extent.0, key.kind.name());
    let query = format!(
        "SELECT ts_tick - {first} AS at, wait_tick AS wait, hold_tick AS hold, object, kind, holder, call_site \
         FROM raw_locks WHERE {column} = {} AND ts_tick < {to} \
         AND ts_tick + coalesce(wait_tick, 0) + coalesce(hold_tick, 0) >= {from} LIMIT {}",
        key.number,
        limit + 1,
    );
    let mut locks = objects(view, &query, limit).await?;
    for lock in &mut locks {
        keyed(lock, "holder", Kind::Thread);
        lock["object"] = lock.get("object").and_then(address).into();
    }
    Ok(listed("locks", locks, limit))
}

/// The points at which a queue's length changes. The first one may be before the window.
pub(super) async fn counters(view: &View, query: &Query) -> Result<Value, Refusal> {
    let Window { from, to } = query.window(view)?;
    let (id, limit) = (query.count("id", 0, u32::MAX as usize)?, query.count("limit", 2000, MOST)?);
    let (kind, column) = match query.get("kind") {
        Some("run-queue") => ("run-queue", "cpu"),
        Some("ready-queue") => ("ready-queue", "pid"),
        other => {
            let found = other.unwrap_or_default();
            return Err(Refusal::wrong(format!("kind: expected run-queue or ready-queue, found `{found}`")));
        }
    };
    if !has(view, &COUNTERS) {
        return Ok(listed("points", Vec::new(), limit));
    }
    let first = view.extent.0;
    let of = format!("FROM raw_counters WHERE kind = '{kind}' AND {column} = {id}");
    let query = format!(
        "SELECT at, value FROM (\
           (SELECT ts_tick - {first} AS at, value {of} AND ts_tick < {from} ORDER BY ts_tick DESC LIMIT 1) \
           UNION ALL \
           (SELECT ts_tick - {first} AS at, value {of} AND ts_tick >= {from} AND ts_tick < {to} \
            ORDER BY ts_tick LIMIT {})) ORDER BY at",
        limit + 1,
    );
    let points = objects(view, &query, limit).await?;
    let pair = |point: Value| Value::from(vec![point["at"].clone(), point["value"].clone()]);
    Ok(listed("points", points.into_iter().map(pair).collect(), limit))
}
