//! The columns of an event's view: its parameters, by name, with the type they were declared with.

use std::collections::BTreeSet;

use arrow::datatypes::DataType;
use datafusion::{
    error::Result,
    functions::core::expr_fn::nullif,
    functions_nested::expr_fn::array_element,
    logical_expr::{Expr, cast, ident, lit, when},
};
use sigmund_model::{EventType, FieldType};

use crate::{event_views::free_name, functions};

/// What every event view has before the fields.
const PLACE: &[&str] = &["ts_tick", "ts_ns", "level", "cpu", "lwp", "thread"];

/// Where a column's value lies in the events of one type.
struct Slot<'a> {
    ty: &'a EventType,
    position: usize,
    /// Of a parameter without a name: its text, or the name of its number.
    text: bool,
}

impl Slot<'_> {
    fn data_type(&self) -> DataType {
        match self.ty.fields[self.position].ty {
            _ if self.text => DataType::Utf8,
            FieldType::Text => DataType::Utf8,
            FieldType::U64 | FieldType::Pointer => DataType::UInt64,
            FieldType::F64 => DataType::Float64,
            FieldType::Bool => DataType::Boolean,
            FieldType::U8 | FieldType::U16 | FieldType::U32 | FieldType::I64 | FieldType::Thread => {
                DataType::Int64
            }
        }
    }

    fn value(&self) -> Expr {
        // SQL counts from 1.
        let element = |list: &str| array_element(ident(list), lit(self.position as i64 + 1));
        let number = || element("args");
        match self.ty.fields[self.position].ty {
            _ if self.text => element("texts"),
            FieldType::Text => element("texts"),
            FieldType::U64 | FieldType::Pointer => functions::u64_bits().call(vec![number()]),
            FieldType::F64 => functions::f64_bits().call(vec![number()]),
            FieldType::Bool => number().not_eq(lit(0i64)),
            // 0 is no thread.
            FieldType::Thread => nullif(number(), lit(0i64)),
            FieldType::U8 | FieldType::U16 | FieldType::U32 | FieldType::I64 => number(),
        }
    }
}

/// The columns of the view of these types, which have one name.
pub(crate) fn of(types: &[&EventType]) -> Result<Vec<Expr>> {
    let shape = |ty: &EventType| ty.fields.iter().map(|f| (f.name.clone(), f.ty)).collect::<Vec<_>>();
    let one_shape = types.iter().all(|ty| shape(ty) == shape(types[0]));
    let types = if one_shape { &types[..1] } else { types };
    let mut columns: Vec<(String, Vec<Slot<'_>>)> = Vec::new();
    for (name, slot) in types.iter().flat_map(|ty| named_slots(ty)) {
        match columns.iter_mut().find(|(n, _)| *n == name) {
            Some((_, slots)) => slots.push(slot),
            None => columns.push((name, vec![slot])),
        }
    }
    columns.into_iter().map(|(name, slots)| Ok(column(&slots, one_shape)?.alias(name))).collect()
}

/// A type's parameters with unique names. Those of listings have none: `param1`, and `param1_text`.
fn named_slots(ty: &EventType) -> Vec<(String, Slot<'_>)> {
    let mut taken: BTreeSet<String> = PLACE.iter().map(|p| p.to_string()).collect();
    let mut slots = Vec::new();
    for (position, field) in ty.fields.iter().enumerate() {
        let unnamed = field.name.is_empty();
        let wanted = if unnamed { format!("param{}", position + 1) } else { field.name.clone() };
        let name = free_name("field_", &wanted, &taken);
        taken.insert(name.clone());
        if unnamed && field.ty != FieldType::Text {
            let text = free_name("field_", &format!("{wanted}_text"), &taken);
            taken.insert(text.clone());
            slots.push((name, Slot { ty, position, text: false }));
            slots.push((text, Slot { ty, position, text: true }));
        } else {
            slots.push((name, Slot { ty, position, text: false }));
        }
    }
    slots
}

/// One column from the slots that share its name; texts where their types differ.
fn column(slots: &[Slot<'_>], one_shape: bool) -> Result<Expr> {
    let first = &slots[0];
    if one_shape {
        return Ok(first.value());
    }
    let same = slots.iter().all(|s| s.data_type() == first.data_type());
    let value = |s: &Slot<'_>| if same { s.value() } else { cast(s.value(), DataType::Utf8) };
    let mut cases = when(is_of(first.ty), value(first));
    for slot in &slots[1..] {
        cases = cases.when(is_of(slot.ty), value(slot));
    }
    cases.end()
}

/// Whether a row of `events` is of this type, among those of its name. Two types of one level and one code
/// cannot be told apart: the first declared is taken.
fn is_of(ty: &EventType) -> Expr {
    let level = ident("level").eq(lit(ty.level.name()));
    match ty.code {
        Some(code) => level.and(ident("code").eq(lit(i64::from(code)))),
        None => level.and(ident("code").is_null()),
    }
}
