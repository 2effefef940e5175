//! The events of a window.

use serde_json::{Value, json};
use sigmund_model::{Cpu, Lwp, Thread, Ticks};
use sigmund_query::{EventPattern, Filter, Format, Instant, Listing, ThreadRef, list_events};

use super::{Query, Refusal, life::keyed, listed};
use crate::{View, key::Kind};

const MOST: usize = 1000;

/// Rows that are skipped for a later page; a window further on is found faster by its time.
const MOST_SKIPPED: usize = 1_000_000;

pub(super) async fn events(view: &View, query: &Query) -> Result<Value, Refusal> {
    let window = query.window(view)?;
    let (limit, offset) = (query.count("limit", 200, MOST)?, query.count("offset", 0, MOST_SKIPPED)?);
    let instant = |tick: i64| Some(Instant::Tick(Ticks(tick as u64)));
    let mut filter = Filter { from: instant(window.from), to: instant(window.to - 1), ..Filter::default() };
    if query.get("key").is_some() {
        let key = query.key()?;
        match key.kind {
            Kind::Thread => filter.threads.push(ThreadRef::Number(Thread(key.number))),
            Kind::Lwp => filter.lwps.push(Lwp(key.number as u32)),
            Kind::Cpu => filter.cpus.push(Cpu(key.number as u32)),
        }
    }
    if let Some(name) = query.get("name") {
        filter.events.push(name.parse::<EventPattern>()?);
    }
    let mut rows = Vec::new();
    let (mut events, mut skipped) = (list_events(&view.trace, &filter).await?, 0);
    'read: while let Some(batch) = events.next().await? {
        if skipped + batch.len() <= offset {
            skipped += batch.len();
            continue;
        }
        for row in batch.rows() {
            if skipped < offset {
                skipped += 1;
                continue;
            }
            let mut line = Vec::new();
            Listing::new(&view.trace, Format::Ndjson, &mut line)?.event(&row)?;
            rows.push(event(view, serde_json::from_slice(&line).unwrap_or_default()));
            if rows.len() > limit {
                break 'read;
            }
        }
    }
    Ok(listed("rows", rows, limit))
}

/// An event of a listing, as the page knows it.
fn event(view: &View, mut event: Value) -> Value {
    for (name, kind) in [("cpu", Kind::Cpu), ("pid", Kind::Lwp), ("thr", Kind::Thread)] {
        keyed(&mut event, name, kind);
    }
    let at = event["date_tick"].as_u64().map(|tick| view.offset(tick as i64));
    json!({
        "at": at, "level": event["type"], "name": event["name"],
        "cpu": event["cpu"], "lwp": event["pid"], "thread": event["thr"],
        "text": parameters(&event["params"]),
    })
}

/// `name=value name=value`, as a line.
fn parameters(params: &Value) -> String {
    let value = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Object(named) => match (&named["number"], named["name"].as_str()) {
            (number, Some(name)) => format!("{number}({name})"),
            (number, None) => number.to_string(),
        },
        other => other.to_string(),
    };
    let words: Vec<String> = match params {
        Value::Object(fields) => fields.iter().map(|(name, of)| format!("{name}={}", value(of))).collect(),
        Value::Array(values) => values.iter().map(value).collect(),
        _ => Vec::new(),
    };
    words.join(" ")
}
