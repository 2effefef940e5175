//! The columns of an event's view: its parameters by name, with their declared types.

use std::collections::{HashMap, hash_map::Entry};

use arrow::datatypes::DataType;
use datafusion::{
    functions::core::expr_fn::nullif,
    functions_nested::expr_fn::array_element,
    logical_expr::{Case, Expr, cast, ident, lit},
};
use sigmund_model::{EventType, FieldType};

use crate::{column_names::ColumnNames, functions};

/// The columns of every event view before its fields.
const PLACE: &[&str] = &["ts_tick", "ts_ns", "level", "cpu", "lwp", "thread"];

/// Maximum number of field columns of a view. Real events have at most 60. But a file may declare any number, and a
/// query plan contains all columns of a view.
pub(crate) const MOST_COLUMNS: usize = 1000;
/// Maximum number of fields that the columns of a view read. It matters if event types with different fields share a
/// name.
const MOST_FIELDS: usize = 4000;

/// The columns of a view.
pub(crate) struct FieldColumns {
    pub(crate) columns: Vec<Expr>,
    /// Number of fields without a column, over all types.
    pub(crate) left_out: usize,
}

/// Where the value of a column is in the events of one type.
struct Slot<'a> {
    ty: &'a EventType,
    position: usize,
    /// For a parameter without a name: whether it is the text, or the name of the number.
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
        // SQL counts elements from 1.
        let element = |list: &str| array_element(ident(list), lit(self.position as i64 + 1));
        let number = || element("args");
        match self.ty.fields[self.position].ty {
            _ if self.text => element("texts"),
            FieldType::Text => element("texts"),
            FieldType::U64 | FieldType::Pointer => functions::u64_bits().call(vec![number()]),
            FieldType::F64 => functions::f64_bits().call(vec![number()]),
            FieldType::Bool => number().not_eq(lit(0i64)),
            // 0 means "no thread".
            FieldType::Thread => nullif(number(), lit(0i64)),
            FieldType::U8 | FieldType::U16 | FieldType::U32 | FieldType::I64 => number(),
        }
    }
}

/// The columns of the view for these types, which have the same name.
pub(crate) fn of(types: &[&EventType]) -> FieldColumns {
    let one_shape = types.iter().all(|ty| ty.fields == types[0].fields);
    let types = if one_shape { &types[..1] } else { types };
    let mut columns: Vec<(String, Vec<Slot<'_>>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let (mut slots, mut left_out) = (0, 0);
    for ty in types {
        let room = MOST_FIELDS.saturating_sub(slots).min(MOST_COLUMNS);
        let (named, used) = named_slots(ty, room);
        slots += named.len();
        left_out += ty.fields.len() - used;
        for (name, slot) in named {
            match places.entry(name) {
                Entry::Occupied(place) => columns[*place.get()].1.push(slot),
                Entry::Vacant(_) if columns.len() >= MOST_COLUMNS => left_out += usize::from(!slot.text),
                Entry::Vacant(place) => {
                    columns.push((place.key().clone(), vec![slot]));
                    place.insert(columns.len() - 1);
                }
            }
        }
    }
    let columns = columns.into_iter().map(|(name, slots)| column(&slots, one_shape).alias(name));
    FieldColumns { columns: columns.collect(), left_out }
}

/// The columns of a view of this type alone, each with the position of its field.
pub(crate) fn positions(ty: &EventType) -> impl Iterator<Item = (String, usize)> {
    let (slots, _) = named_slots(ty, MOST_COLUMNS);
    slots.into_iter().map(|(name, slot)| (name, slot.position))
}

/// The first parameters of a type with unique names, at most `room` (or one more), and the number of fields that they
/// cover. Parameters in listings have no names: they become `param1` and `param1_text`.
fn named_slots(ty: &EventType, room: usize) -> (Vec<(String, Slot<'_>)>, usize) {
    let mut names = ColumnNames::without(PLACE);
    let mut slots = Vec::new();
    let mut used = 0;
    for (position, field) in ty.fields.iter().enumerate() {
        if slots.len() >= room {
            break;
        }
        used += 1;
        let unnamed = field.name.is_empty();
        let wanted = if unnamed { format!("param{}", position + 1) } else { field.name.clone() };
        slots.push((names.take(&wanted), Slot { ty, position, text: false }));
        if unnamed && field.ty != FieldType::Text {
            let text = names.take(&format!("{wanted}_text"));
            slots.push((text, Slot { ty, position, text: true }));
        }
    }
    (slots, used)
}

/// A column from the slots with the same name. If their types differ, the column has texts.
fn column(slots: &[Slot<'_>], one_shape: bool) -> Expr {
    let first = &slots[0];
    if one_shape {
        return first.value();
    }
    let same = slots.iter().all(|s| s.data_type() == first.data_type());
    let value = |s: &Slot<'_>| if same { s.value() } else { cast(s.value(), DataType::Utf8) };
    // Not built with `when`, because that copies all cases for each case that is added.
    let cases = slots.iter().map(|slot| (Box::new(is_of(slot.ty)), Box::new(value(slot))));
    Expr::Case(Case::new(None, cases.collect(), None))
}

/// Whether a row of `events` is of this type, among the types with its name. Two types with the same level and code
/// cannot be distinguished: the first declared one is taken.
fn is_of(ty: &EventType) -> Expr {
    let level = ident("level").eq(lit(ty.level.name()));
    match ty.code {
        Some(code) => level.and(ident("code").eq(lit(i64::from(code)))),
        None => level.and(ident("code").is_null()),
    }
}
