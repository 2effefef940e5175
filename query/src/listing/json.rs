//! An event as a JSON object. Unknown values are null.
//!
//! `params` is an object when every parameter has a name of its own, else an array. A number that has a name is
//! `{"number": 24, "name": "eth0"}`.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use sigmund_model::{FieldType, Param};
use sigmund_sql::ThreadNames;

use super::{EventRow, declarations::Declared, level_word, params};

/// One event.
pub(crate) fn object(row: &EventRow<'_>, ty: Option<&Declared<'_>>, threads: &ThreadNames) -> Value {
    json!({
        "type": level_word(row.level),
        "date_tick": row.tick.0,
        "pid": row.lwp.map(|l| l.0),
        "cpu": row.cpu.map(|c| c.0),
        "thr": row.thread.map(|t| t.0),
        "thr_name": row.thread.and_then(|t| threads.name(t)),
        "code": row.code,
        "name": row.name,
        "params": parameters(row, ty, threads),
    })
}

fn parameters(row: &EventRow<'_>, ty: Option<&Declared<'_>>, threads: &ThreadNames) -> Value {
    let values = row.params().enumerate().map(|(i, p)| value(p, params::field_type(row, ty, i), threads));
    match names(ty, row.params().len()) {
        Some(names) => Value::Object(names.map(String::from).zip(values).collect::<Map<_, _>>()),
        None => Value::Array(values.collect()),
    }
}

/// The names of the first `count` parameters, if all have one and no two the same.
fn names<'d>(ty: Option<&'d Declared<'_>>, count: usize) -> Option<impl Iterator<Item = &'d str>> {
    let fields = ty.map_or(&[][..], |ty| &ty.fields[..]).get(..count)?;
    let names: HashSet<&str> = fields.iter().map(|f| f.name.as_str()).collect();
    (names.len() == count && !names.contains("")).then(|| fields.iter().map(|f| f.name.as_str()))
}

fn value(param: Param<'_>, ty: FieldType, threads: &ThreadNames) -> Value {
    let Some(number) = param.number else { return param.text.into() };
    let number = match ty {
        FieldType::U64 | FieldType::Pointer => json!(number as u64),
        FieldType::F64 => json!(f64::from_bits(number as u64)),
        FieldType::Bool => json!(number != 0),
        _ => json!(number),
    };
    match params::number_name(param, ty, threads) {
        Some(name) => json!({"number": number, "name": name}),
        None => number,
    }
}
