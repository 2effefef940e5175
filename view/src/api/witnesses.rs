//! The user events for which the two witnesses of the CPU disagree: the probe, and the kernel's switches.

use serde_json::Value;
use sigmund_model::tables::EVENTS;

use super::{Query, Refusal, cells::objects, life::keyed, listed, query::Window};
use crate::{View, key::Kind};

const MOST: usize = 1000;

/// The fact of `info` that counts these events.
const COUNTED: &str = "witness_disagree";

pub(super) async fn disagreements(view: &View, query: &Query) -> Result<Value, Refusal> {
    let (Window { from, to }, limit) = (query.window(view)?, query.count("limit", 200, MOST)?);
    // Usually there are none, and then events need not be read.
    if view.trace.info().get(COUNTED) == Some("0") {
        return Ok(listed("disagreements", Vec::new(), limit));
    }
    let first = view.extent.0;
    let query = format!(
        "SELECT ts_tick - {first} AS at, name, cpu, cpu_seen, lwp, thread FROM raw_{} \
         WHERE cpu <> cpu_seen AND ts_tick >= {from} AND ts_tick < {to} ORDER BY ts_tick LIMIT {}",
        EVENTS.name,
        limit + 1,
    );
    let mut found = objects(view, &query, limit).await?;
    for event in &mut found {
        keyed(event, "cpu", Kind::Cpu);
        keyed(event, "cpu_seen", Kind::Cpu);
        keyed(event, "lwp", Kind::Lwp);
        keyed(event, "thread", Kind::Thread);
    }
    Ok(listed("disagreements", found, limit))
}
