//! The events of a window, a page at a time, in both directions.

use std::{fmt, ops::Range};

use serde_json::{Value, json};
use sigmund_model::{Cpu, Lwp, Thread, Ticks};
use sigmund_query::{EventPattern, Filter, Format, Instant, Listing, LwpRef, ThreadRef, list_events};

use super::{Query, Refusal, life::keyed, query::Window};
use crate::{View, key::Kind};

const MOST: usize = 1000;

/// A place between events. It precedes the event with number `nth` among the selected events with the tick `at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cursor {
    /// An offset from the first tick of the trace, like all ticks in questions.
    at: i64,
    nth: usize,
}

impl Cursor {
    fn parse(text: &str) -> Option<Cursor> {
        let (at, nth) = text.split_once(':')?;
        Some(Cursor { at: at.parse().ok()?, nth: nth.parse().ok()? })
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.at, self.nth)
    }
}

/// Counts events of equal ticks.
struct Counter<'v> {
    view: &'v View,
    next: Cursor,
}

impl Counter<'_> {
    /// The place of the next event, which has this tick: it follows the places returned before.
    fn place(&mut self, tick: Ticks) -> Cursor {
        let at = self.view.offset(tick.0 as i64);
        let place = if at == self.next.at { self.next } else { Cursor { at, nth: 0 } };
        self.next = Cursor { at, nth: place.nth + 1 };
        place
    }
}

pub(super) async fn events(view: &View, query: &Query) -> Result<Value, Refusal> {
    let (window, limit) = (query.window(view)?, query.count("limit", 200, MOST)?.max(1));
    let filter = selected(query)?;
    let cursor = |name| {
        let parse = |text| {
            Cursor::parse(text)
                .ok_or_else(|| Refusal::wrong(format!("{name}: expected TICK:NUMBER, found `{text}`")))
        };
        query.get(name).map(parse).transpose()
    };
    match (cursor("after")?, cursor("before")?) {
        (Some(_), Some(_)) => Err(Refusal::wrong("expected one of `after` and `before`, found both")),
        (after, None) => {
            let begin = Cursor { at: view.offset(window.from), nth: 0 };
            let from = after.filter(|after| after.at >= begin.at).unwrap_or(begin);
            let window = Window { from: view.tick(from.at as f64), ..window };
            let (rows, more) = page(view, &filter, window, from.nth..from.nth.saturating_add(limit)).await?;
            Ok(answer(rows, more))
        }
        (None, Some(before)) => {
            let (rows, more) = page_before(view, &filter, window, before, limit).await?;
            Ok(answer(rows, more))
        }
    }
}

/// `first` is the cursor before the rows, `last` the cursor after them.
fn answer(rows: Vec<(Cursor, Value)>, more: bool) -> Value {
    let first = rows.first().map(|(place, _)| place.to_string());
    let last = rows.last().map(|(place, _)| Cursor { nth: place.nth + 1, ..*place }.to_string());
    let rows: Vec<Value> = rows.into_iter().map(|(_, row)| row).collect();
    json!({ "more": more, "first": first, "last": last, "rows": rows })
}

/// The events that a question selects, without its window.
fn selected(query: &Query) -> Result<Filter, Refusal> {
    let mut filter = Filter::default();
    if query.get("key").is_some() {
        let key = query.key()?;
        match key.kind {
            Kind::Thread => filter.threads.push(ThreadRef::Number(Thread(key.number))),
            Kind::Lwp => filter.lwps.push(LwpRef::Number(Lwp(key.number as u32))),
            Kind::Cpu => filter.cpus.push(Cpu(key.number as u32)),
        }
    }
    if let Some(name) = query.get("name") {
        filter.events.push(name.parse::<EventPattern>()?);
    }
    Ok(filter)
}

fn within(filter: &Filter, Window { from, to }: Window) -> Filter {
    let instant = |tick: i64| Some(Instant::Tick(Ticks(tick.max(0) as u64)));
    Filter { from: instant(from), to: instant(to - 1), ..filter.clone() }
}

/// The events of a window whose numbers in it are in `places`, and whether there are more after them.
async fn page(
    view: &View,
    filter: &Filter,
    window: Window,
    places: Range<usize>,
) -> Result<(Vec<(Cursor, Value)>, bool), Refusal> {
    let mut rows = Vec::new();
    if window.to <= window.from {
        return Ok((rows, false));
    }
    let (mut events, mut place) = (list_events(&view.trace, &within(filter, window)).await?, 0);
    let mut counter = Counter { view, next: Cursor { at: -1, nth: 0 } };
    while let Some(batch) = events.next().await? {
        for row in batch.rows() {
            let cursor = counter.place(row.tick);
            if place >= places.end {
                return Ok((rows, true));
            }
            if place >= places.start {
                let mut line = Vec::new();
                Listing::new(&view.trace, Format::Ndjson, &mut line)?.event(&row)?;
                rows.push((cursor, event(view, serde_json::from_slice(&line).unwrap_or_default())));
            }
            place += 1;
        }
    }
    Ok((rows, false))
}

/// The last events of a window before a place, and whether there are more before them.
///
/// Events can only be read forwards. So this reads from an earlier and earlier tick, until there are enough events.
async fn page_before(
    view: &View,
    filter: &Filter,
    window: Window,
    before: Cursor,
    limit: usize,
) -> Result<(Vec<(Cursor, Value)>, bool), Refusal> {
    let end = view.tick(before.at as f64).saturating_add(1).min(window.to);
    let mean = view.index.events(window.from, window.to).max(1.0) / window.from.abs_diff(window.to) as f64;
    let mut length = ((2 * limit) as f64 / mean).max(16.0) as i64;
    loop {
        let part = Window { from: end.saturating_sub(length).max(window.from), to: end };
        let is_all = part.from == window.from;
        let count = count_before(view, filter, part, before).await?;
        if count > limit || is_all {
            let (rows, _) = page(view, filter, part, count.saturating_sub(limit)..count).await?;
            return Ok((rows, count > limit));
        }
        length = length.saturating_mul(8);
    }
}

/// The number of events of a window before a place.
async fn count_before(
    view: &View,
    filter: &Filter,
    window: Window,
    before: Cursor,
) -> Result<usize, Refusal> {
    if window.to <= window.from {
        return Ok(0);
    }
    let mut events = list_events(&view.trace, &within(filter, window)).await?;
    let mut counter = Counter { view, next: Cursor { at: -1, nth: 0 } };
    let mut count = 0;
    while let Some(batch) = events.next().await? {
        for row in 0..batch.len() {
            let place = counter.place(batch.tick(row));
            if (place.at, place.nth) >= (before.at, before.nth) {
                return Ok(count);
            }
            count += 1;
        }
    }
    Ok(count)
}

/// An event of a listing, in the form that the page reads.
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
/// The parameters as a line: `name=value name=value`.
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
