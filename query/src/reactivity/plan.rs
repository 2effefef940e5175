//! A selector as a condition on the rows of `events`.

use datafusion::{
    error::Result as PlanResult,
    functions_nested::expr_fn::array_element,
    logical_expr::{Expr, ident, lit},
    prelude::DataFrame,
};
use sigmund_model::{EventType, FieldType, Level, names};
use sigmund_sql::SuperTrace;

use super::{
    executing,
    selector::{Condition, Selector},
};
use crate::Error;

/// The events that meet either condition, in time order, with a column for each condition.
pub(crate) fn either(events: DataFrame, from: Expr, to: Expr, window: Vec<Expr>) -> PlanResult<DataFrame> {
    let events = window.into_iter().try_fold(events, |frame, condition| frame.filter(condition))?;
    let mut columns = ["ts_tick", "cpu", "lwp", "thread"].map(ident).to_vec();
    columns.push(from.clone().is_true().alias("is_from"));
    columns.push(to.clone().is_true().alias("is_to"));
    columns.push(ident("context"));
    events.filter(from.or(to))?.select(columns)
}

/// The condition on events that a selector selects in this trace.
///
/// NAME is the whole name of an event, or its synonym. An event of the program has two names: `USER_EVENT(x)` also
/// selects user events named `x`, and `x` also selects `USER_EVENT` with the parameter `x`.
pub(crate) async fn selects(trace: &SuperTrace, selector: &Selector) -> Result<Expr, Error> {
    let names = names::synonyms(&selector.name);
    let types: Vec<&EventType> =
        trace.event_types().iter().map(|e| &e.ty).filter(|t| names.contains(&t.name.as_str())).collect();
    let mut alternatives = Vec::new();
    match &selector.condition {
        None => {
            alternatives.extend(names.into_iter().map(|name| ident("name").eq(lit(name))));
            // Only if there are such events, because this condition reads the texts of all events.
            if trace.event_types().iter().any(|event| event.ty.name == names::USER_EVENT) {
                let is_text = element("texts", 0).eq(lit(selector.name.as_str()));
                alternatives.push(ident("name").eq(lit(names::USER_EVENT)).and(is_text));
            }
        }
        Some(condition) => {
            if let Some(field) = &condition.field {
                check_field(&types, field, selector)?;
            }
            for ty in types {
                let fulfilled = fulfils(trace, ty, condition)?;
                alternatives.extend(fulfilled.map(|fulfilled| is_of(ty).and(fulfilled)));
            }
            if selector.name == names::USER_EVENT && condition.field.is_none() {
                let user = ident("level").eq(lit(Level::User.name()));
                alternatives.push(user.and(ident("name").eq(lit(condition.value.as_str()))));
            }
        }
    }
    let selected = any(alternatives);
    Ok(match &selector.thread {
        None => selected,
        Some(who) => selected.and(executing::condition(trace, who).await?.unwrap_or_else(|| lit(false))),
    })
}

/// Events whose first field is a span or a function.
pub(super) const NAMING_SPANS: [&str; 6] =
    ["SPAN_BEGIN", "SPAN_END", "PROF_IN", "PROF_OUT", "FUNC_ENTER", "FUNC_EXIT"];

fn check_field(types: &[&EventType], field: &str, selector: &Selector) -> Result<(), Error> {
    if types.is_empty() || types.iter().any(|ty| position(ty, field).is_some()) {
        return Ok(());
    }
    let mut fields: Vec<&str> = types.iter().flat_map(|ty| &ty.fields).map(|f| f.name.as_str()).collect();
    fields.retain(|name| !name.is_empty());
    fields.dedup();
    let known = if fields.is_empty() { "parameters without names".into() } else { fields.join(", ") };
    let message = format!("selector `{selector}`: {} has no field `{field}`, it has: {known}", selector.name);
    Err(Error::argument(message))
}

fn is_of(ty: &EventType) -> Expr {
    let code = match ty.code {
        Some(code) => ident("code").eq(lit(i64::from(code))),
        None => ident("code").is_null(),
    };
    ident("name").eq(lit(ty.name.as_str())).and(ident("level").eq(lit(ty.level.name()))).and(code)
}

/// The position of a field. Listings do not name their parameters. There, the kernel's name of the first field stands
/// for the first parameter.
pub(super) fn position(ty: &EventType, field: &str) -> Option<usize> {
    let is_first = || {
        ty.fields.first().is_some_and(|f| f.name.is_empty()) && names::first_field(&ty.name) == Some(field)
    };
    ty.field(field).or_else(|| is_first().then_some(0))
}

/// The condition on events of one type; `None` if they have no such parameter.
fn fulfils(trace: &SuperTrace, ty: &EventType, condition: &Condition) -> Result<Option<Expr>, Error> {
    let position = match &condition.field {
        Some(field) => match position(ty, field) {
            Some(position) => position,
            None => return Ok(None),
        },
        None => 0,
    };
    let field_type = ty.fields.get(position).map_or(FieldType::I64, |f| f.ty);
    let numbers = if condition.quoted { Vec::new() } else { numbers(trace, &condition.value, field_type)? };
    let is_text = |position| element("texts", position).eq(lit(condition.value.as_str()));
    let mut alternatives = vec![is_text(position)];
    alternatives.extend(numbers.iter().map(|n| element("args", position).eq(lit(*n))));
    // A span's place in the code follows its name: `request at server.rs:32`.
    if condition.field.is_none() && NAMING_SPANS.contains(&ty.name.as_str()) {
        let name = condition.value.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        alternatives.push(element("texts", position).like(lit(format!("{name} at %"))));
    }
    // irq_handler_entry has the name of its number in a separate field, so IRQ(eth0) selects it too.
    if condition.field.is_none()
        && numbers.is_empty()
        && let Some(name) = ty.field("name")
    {
        alternatives.push(is_text(name));
    }
    Ok(Some(any(alternatives)))
}

/// The number that a text represents, in decimal or after `0x`.
pub(super) fn integer(value: &str) -> Option<i64> {
    let unsigned = || match value.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => value.parse().ok(),
    };
    value.parse::<i64>().ok().or_else(|| unsigned().map(|n| n as i64))
}

/// The numbers that a field of this type holds for this value.
fn numbers(trace: &SuperTrace, value: &str, ty: FieldType) -> Result<Vec<i64>, Error> {
    Ok(match ty {
        FieldType::Text => Vec::new(),
        FieldType::F64 => value.parse().ok().map(|n: f64| n.to_bits() as i64).into_iter().collect(),
        FieldType::Bool if value == "true" => vec![1],
        FieldType::Bool if value == "false" => vec![0],
        FieldType::Thread => match integer(value) {
            Some(number) => vec![number],
            None => trace.threads()?.named(value).into_iter().map(|t| t.0 as i64).collect(),
        },
        _ => integer(value).into_iter().collect(),
    })
}

/// The parameter at a position; SQL counts from 1.
fn element(list: &str, position: usize) -> Expr {
    array_element(ident(list), lit(position as i64 + 1))
}

fn any(alternatives: Vec<Expr>) -> Expr {
    alternatives.into_iter().reduce(Expr::or).unwrap_or_else(|| lit(false))
}
