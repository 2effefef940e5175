//! Finds rows, spans and events by a part of their name.

use serde_json::{Value, json};
use sigmund_model::tables::SPANS;

use super::{
    Query, Refusal,
    cells::objects,
    life::keyed,
    rows::{Pattern, row},
};
use crate::{
    View,
    key::{Key, Kind},
};

pub(super) async fn search(view: &View, query: &Query) -> Result<Value, Refusal> {
    let text = query.get("text").unwrap_or_default();
    let limit = query.count("limit", 20, 200)?;
    let pattern = Pattern::new(text);
    let actors = &view.actors;
    let fits = |key: &Key| {
        pattern.fits(&key.number.to_string())
            || actors.name(&view.trace, *key).is_some_and(|name| pattern.fits(name))
    };
    let lwps = actors.lwps.iter().map(|lwp| Key::lwp(lwp.number)).filter(|key| key.number != 0);
    let threads = actors.threads.numbers.iter().map(|number| Key::thread(*number));
    let of = |keys: Vec<Key>| -> Vec<Value> {
        keys.into_iter().filter_map(|key| Some(row(view, key.kind, actors.row(key)?))).collect()
    };
    let mut rows = of(threads.filter(fits).take(limit).collect());
    rows.extend(of(lwps.filter(fits).take(limit).collect()));
    let events = view.trace.event_types().iter().filter(|event| event.events > 0);
    let events = events.map(|event| event.ty.name.as_str()).filter(|name| pattern.fits(name)).take(limit);
    let events: Vec<&str> = events.collect();
    let spans = spans(view, text, limit).await?;
    Ok(json!({ "rows": rows, "spans": spans, "events": events }))
}

async fn spans(view: &View, text: &str, limit: usize) -> Result<Vec<Value>, Refusal> {
    if text.is_empty() || view.trace.info().left_out_tables().any(|table| table == SPANS.name) {
        return Ok(Vec::new());
    }
    let (first, text) = (view.extent.0, text.to_lowercase().replace('\'', "''"));
    let query = format!(
        "SELECT ts_tick - {first} AS \"from\", ts_tick + dur_tick - {first} AS \"to\", name, thread, lwp \
         FROM raw_spans WHERE strpos(lower(name), '{text}') > 0 LIMIT {limit}"
    );
    let mut spans = objects(view, &query, limit).await?;
    for span in &mut spans {
        keyed(span, "thread", Kind::Thread);
        keyed(span, "lwp", Kind::Lwp);
        let key = if span["thread"].is_null() { span["lwp"].clone() } else { span["thread"].clone() };
        span["key"] = key;
    }
    Ok(spans)
}
