//! Rejects selectors of events and threads that a trace does not have, and proposes similar names.

use std::collections::BTreeSet;

use arrow::{
    array::AsArray,
    datatypes::{DataType, Int64Type},
};
use datafusion::{
    functions_aggregate::expr_fn::{max, min},
    functions_nested::expr_fn::array_element,
    logical_expr::{Expr, cast, ident, lit, when},
};
use futures::future::BoxFuture;
use sigmund_model::{
    EventType, FieldType, names,
    tables::{EVENTS, LOCKS, SPANS},
};
use sigmund_sql::SuperTrace;
use syscalls::Sysno;

use super::{
    executing,
    plan::{NAMING_SPANS, integer, position, selects},
    selector::{Condition, Selector},
};
use crate::Error;

/// The maximum number of proposed names.
const MOST_PROPOSED: usize = 3;

/// Checks that the trace has the selector's user thread or LWP, and that it declares the selector's event.
/// `USER_EVENT(x)` counts as declared if an event has the name `x`.
///
/// When the trace has none, with the nearest names; when it cannot be read.
pub(crate) async fn check(trace: &SuperTrace, selector: &Selector) -> Result<(), Error> {
    if let Some(thread) = &selector.thread {
        executing::check(trace, &format!("selector `{selector}`"), thread).await?;
    }
    let declares = |name: &str| {
        let names = names::synonyms(name);
        trace.event_types().iter().any(|event| names.contains(&event.ty.name.as_str()))
    };
    if declares(&selector.name) {
        return Ok(());
    }
    // USER_EVENT(received_msg) is another name for received_msg.
    let name = match &selector.condition {
        Some(condition) if selector.name == names::USER_EVENT && condition.field.is_none() => {
            if declares(&condition.value) {
                return Ok(());
            }
            &condition.value
        }
        _ => &selector.name,
    };
    if declares(names::USER_EVENT) && is_named_by_user_event(trace, name).await? {
        return Ok(());
    }
    if selector.condition.is_none() && is_span(trace, name).await? {
        let message = format!(
            "selector `{selector}`: expected an event, found the name of a span or function, which begins at \
             SPAN_BEGIN({name}) or PROF_IN({name}); --explain and --critical-path take that name alone, too"
        );
        return Err(Error::argument(message));
    }
    let nearest = nearest(trace, name);
    let nearest = match nearest.as_slice() {
        [] => "`sigmund info` lists those it has".to_string(),
        names => format!("the nearest names are {}", names.join(", ")),
    };
    Err(Error::argument(format!("selector `{selector}`: the trace has no event `{name}`; {nearest}")))
}

async fn is_named_by_user_event(trace: &SuperTrace, name: &str) -> Result<bool, Error> {
    let on_table = Error::on(trace, EVENTS.name);
    let text = array_element(ident("texts"), lit(1_i64)).eq(lit(name));
    let is_one = ident("name").eq(lit(names::USER_EVENT)).and(text);
    let one = trace.raw(&EVENTS).await?.filter(is_one).and_then(|rows| rows.limit(0, Some(1)));
    let rows = one.map_err(&on_table)?.count().await.map_err(&on_table)?;
    Ok(rows > 0)
}

/// Whether a span or function has this name.
pub(crate) async fn is_span(trace: &SuperTrace, name: &str) -> Result<bool, Error> {
    let on_table = Error::on(trace, SPANS.name);
    let one = trace.raw(&SPANS).await?.filter(ident("name").eq(lit(name)));
    let one = one.and_then(|rows| rows.limit(0, Some(1))).map_err(&on_table)?;
    Ok(one.count().await.map_err(&on_table)? > 0)
}

/// Checks that a lock has this address, or was requested at this call site.
///
/// # Errors
/// When there is none, with the nearest names; when the trace cannot be read.
pub(crate) async fn check_lock(trace: &SuperTrace, site: &str) -> Result<(), Error> {
    let on_table = Error::on(trace, LOCKS.name);
    if let Some(address) = integer(site) {
        let one = trace.raw(&LOCKS).await?.filter(ident("object").eq(lit(address)));
        let one = one.and_then(|rows| rows.limit(0, Some(1))).map_err(&on_table)?;
        return match one.count().await.map_err(&on_table)? {
            0 => Err(Error::argument(format!(
                "locks: expected the address or a call site of a lock, found {site}, the address of none; `--locks` lists them"
            ))),
            _ => Ok(()),
        };
    }
    let sites = trace.raw(&LOCKS).await?.select([cast(ident("call_site"), DataType::Utf8).alias("site")]);
    let sites = sites.and_then(|rows| rows.distinct()).map_err(&on_table)?;
    let (mut names, mut is_known) = (BTreeSet::new(), false);
    let of_site = format!("{site} at ");
    for batch in sites.collect().await.map_err(&on_table)? {
        for text in batch.column(0).as_string::<i32>().iter().flatten() {
            is_known |= text == site || text.starts_with(&of_site);
            names.extend([text.to_string(), span_name(text).to_string()]);
        }
    }
    if is_known || names.is_empty() {
        return Ok(());
    }
    let near = sigmund_sql::nearest(site, names.iter().map(String::as_str));
    let near: Vec<&str> = near.into_iter().take(MOST_PROPOSED).collect();
    let near = if near.is_empty() {
        "`--locks` lists them".to_string()
    } else {
        format!("nearest: {}", near.join(", "))
    };
    Err(Error::argument(format!(
        "locks: expected the address or a call site of a lock, found `{site}`; {near}"
    )))
}

/// The values nearest to the value of a selector, if no event has that value. `None` if an event has it.
///
/// # Errors
/// When the value should be the name of a system call or of a span, and there is none of that name; when the trace cannot be
/// read.
pub fn nearest_values<'a>(
    trace: &'a SuperTrace,
    selector: &'a Selector,
) -> BoxFuture<'a, Result<Option<String>, Error>> {
    Box::pin(async move {
        let Some(condition) = &selector.condition else { return Ok(None) };
        if let Some(number) = integer(&condition.value).filter(|_| !condition.quoted) {
            return nearest_numbers(trace, selector, condition, number).await;
        }
        let Some((place, kind)) = place_of_value(trace, selector, condition) else { return Ok(None) };
        let mut values = texts_at(trace, &selector.name, place).await?;
        let value = condition.value.as_str();
        if values.contains(value) || values.is_empty() {
            return Ok(None);
        }
        if kind == ValueKind::Span {
            values = values.iter().map(|text| span_name(text).to_string()).collect();
            if values.contains(value) {
                return Ok(None);
            }
        }
        // Values that begin with the given one come first.
        let mut near: Vec<&str> = values.iter().map(String::as_str).collect();
        near.retain(|other| other.starts_with(value));
        for other in sigmund_sql::nearest(value, values.iter().map(String::as_str)) {
            if !near.contains(&other) {
                near.push(other);
            }
        }
        near.truncate(MOST_PROPOSED);
        let message = format!("selector `{selector}`: no event has this value; nearest: {}", near.join(", "));
        // That no event has a value becomes known only after reading all events, so it is no error. That there is no such
        // system call or span is an error.
        let is_mistake = match kind {
            ValueKind::SystemCall => value.parse::<Sysno>().is_err(),
            ValueKind::Span => !is_span(trace, value).await?,
            ValueKind::Text => false,
        };
        if is_mistake { Err(Error::argument(message)) } else { Ok(Some(message)) }
    })
}

/// The numbers just below and above that of a selector, if no event has that number. `None` if an event has it.
async fn nearest_numbers(
    trace: &SuperTrace,
    selector: &Selector,
    condition: &Condition,
    number: i64,
) -> Result<Option<String>, Error> {
    let on_table = Error::on(trace, EVENTS.name);
    let field = condition.field.as_deref();
    let place = |ty: &EventType| field.map_or(Some(0), |field| position(ty, field));
    let is_integer = |ty: &EventType, place: usize| {
        let of_field = ty.fields.get(place).map_or(FieldType::I64, |field| field.ty);
        !matches!(of_field, FieldType::Text | FieldType::F64 | FieldType::Bool)
    };
    let synonyms = names::synonyms(&selector.name);
    let types = trace.event_types().iter().map(|event| &event.ty);
    let of_name = types.filter(|ty| synonyms.contains(&ty.name.as_str()));
    let Some(place) =
        of_name.clone().find_map(place).filter(|at| of_name.clone().all(|ty| is_integer(ty, *at)))
    else {
        return Ok(None);
    };
    let anyone = Selector { thread: None, ..selector.clone() };
    let one = trace.raw(&EVENTS).await?.filter(selects(trace, &anyone).await?);
    let one = one.and_then(|rows| rows.limit(0, Some(1))).map_err(&on_table)?;
    if one.count().await.map_err(&on_table)? > 0 {
        return Ok(None);
    }
    let is_event = synonyms.iter().map(|name| ident("name").eq(lit(*name))).reduce(Expr::or);
    let value = || array_element(ident("args"), lit(place as i64 + 1));
    let side = |is_side: Expr| when(is_side, value()).end();
    let frame = trace.raw(&EVENTS).await?.filter(is_event.unwrap_or_else(|| lit(false)));
    let nearest = frame.and_then(|rows| {
        let below = max(side(value().lt(lit(number)))?).alias("below");
        rows.aggregate(vec![], vec![below, min(side(value().gt(lit(number)))?).alias("above")])
    });
    let mut near = Vec::new();
    for batch in nearest.map_err(&on_table)?.collect().await.map_err(&on_table)? {
        for column in batch.columns() {
            near.extend(column.as_primitive::<Int64Type>().iter().flatten().map(|number| number.to_string()));
        }
    }
    let near =
        if near.is_empty() { "nor any other".to_string() } else { format!("nearest: {}", near.join(", ")) };
    Ok(Some(format!("selector `{selector}`: no event has this value; {near}")))
}

/// The name of a span or function, without its place in the code: `request` of `request at server.rs:32`.
fn span_name(text: &str) -> &str {
    let is_place = |place: &str| {
        place
            .rsplit_once(':')
            .is_some_and(|(_, line)| !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit()))
    };
    text.rsplit_once(" at ").filter(|(_, place)| is_place(place)).map_or(text, |(name, _)| name)
}

/// What the value of a selector is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueKind {
    /// The name of a system call.
    SystemCall,
    /// The name of a span or function.
    Span,
    /// Any text.
    Text,
}

/// The position of the field to which the selector's value applies, and the kind of the value. `None` if no event has
/// the field.
fn place_of_value(
    trace: &SuperTrace,
    selector: &Selector,
    condition: &Condition,
) -> Option<(usize, ValueKind)> {
    let synonyms = names::synonyms(&selector.name);
    let is_one_of = |names: &[&str]| synonyms.iter().any(|name| names.contains(name));
    let field = condition.field.as_deref();
    let place = |ty: &EventType| match field {
        Some(field) => ty.field(field),
        // The name of a number can be in a separate field: IRQ(eth0).
        None => ty.field("name").or(Some(0)),
    };
    let events = trace.event_types().iter().map(|event| &event.ty);
    let place = events.filter(|ty| synonyms.contains(&ty.name.as_str())).find_map(place)?;
    let kind = match field {
        None | Some("id") if is_one_of(&["sys_enter", "sys_exit"]) => ValueKind::SystemCall,
        None if is_one_of(&NAMING_SPANS) => ValueKind::Span,
        _ => ValueKind::Text,
    };
    Some((place, kind))
}

/// The texts in one field of all events with this name.
async fn texts_at(trace: &SuperTrace, name: &str, place: usize) -> Result<BTreeSet<String>, Error> {
    let on_table = Error::on(trace, EVENTS.name);
    let text = cast(array_element(ident("texts"), lit(place as i64 + 1)), DataType::Utf8);
    let is_event = names::synonyms(name).iter().map(|name| ident("name").eq(lit(*name))).reduce(Expr::or);
    let Some(is_event) = is_event else { return Ok(BTreeSet::new()) };
    let events = trace.raw(&EVENTS).await?.filter(is_event);
    let texts = events.and_then(|rows| rows.select([text.alias("value")])).and_then(|rows| rows.distinct());
    let mut values = BTreeSet::new();
    for batch in texts.map_err(&on_table)?.collect().await.map_err(&on_table)? {
        values.extend(batch.column(0).as_string::<i32>().iter().flatten().map(String::from));
    }
    Ok(values)
}

/// Similar names of events, the nearest first.
fn nearest<'t>(trace: &'t SuperTrace, name: &str) -> Vec<&'t str> {
    let mut alike: Vec<(usize, &str)> = Vec::new();
    for event in trace.event_types() {
        for candidate in names::synonyms(&event.ty.name) {
            let distance = distance(name, candidate);
            let is_part = are_related(&candidate.to_lowercase(), &name.to_lowercase());
            if is_part || distance <= name.chars().count().max(3) / 3 {
                alike.push((if is_part { 0 } else { distance }, candidate));
            }
        }
    }
    alike.sort_unstable();
    alike.dedup();
    alike.into_iter().take(MOST_PROPOSED).map(|(_, name)| name).collect()
}

/// Whether a name contains what was asked for, or is what that begins with, as `sys_enter` of `sys_enter_write`.
fn are_related(name: &str, asked: &str) -> bool {
    name.contains(asked)
        || asked.strip_prefix(name).is_some_and(|rest| name.len() >= LEAST_PREFIX && rest.starts_with('_'))
}

/// A shorter name is not proposed for what begins with it.
const LEAST_PREFIX: usize = 4;

/// The Levenshtein distance of two names, ignoring case.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) =
        (a.to_lowercase().chars().collect(), b.to_lowercase().chars().collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_related_to_what_is_longer_or_shorter_by_words() {
        for (name, asked, expected) in [
            ("sys_enter", "sys_enter_write", true),
            ("irq_handler_entry", "irq_handler", true),
            ("sys", "sys_enter", false),
            ("sched_wak", "sched_waking", false),
        ] {
            assert_eq!(are_related(name, asked), expected, "{name} {asked}");
        }
    }

    #[test]
    fn the_distance_counts_edits() {
        for (a, b, edits) in [
            ("", "", 0),
            ("abc", "ABC", 0),
            ("recieved", "received", 2),
            ("sched", "", 5),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!((distance(a, b), distance(b, a)), (edits, edits), "{a} {b}");
        }
    }
}
