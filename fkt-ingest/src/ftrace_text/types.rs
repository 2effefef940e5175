//! The events that occur in a text, with the fields in their lines.
//!
//! A field is a number if its value in every line is one, decimal or hexadecimal; otherwise it is a text.

use std::collections::HashMap;

use sigmund_model::vocabulary::InterruptKind;
use sigmund_model::{Effect, EventType, Field, FieldType, Level, Params, TaskState};

use super::line::number;
use super::pairs::{Form, Pair, TEXT};
use crate::effect_plan::EffectPlan;

/// Events beyond this number of names are texts without a name.
const MAX_TYPES: usize = 4096;

/// Largest number of fields of an event.
const MAX_FIELDS: usize = 64;
const MAX_FIELDS_OF_ALL: usize = 1 << 16;

/// Fields that are texts although they may look like numbers.
const TEXTS: [&[u8]; 8] =
    [b"comm", b"prev_comm", b"next_comm", b"child_comm", b"parent_comm", b"filename", b"prev_state", TEXT];

/// The form of a field's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldForm {
    Decimal,
    /// Hexadecimal, with or without `0x`.
    Hex,
    Text,
}

#[derive(Debug)]
struct FoundField {
    name: Vec<u8>,
    form_of: FieldForm,
}

/// The events that were found, by their names.
#[derive(Debug, Default)]
pub(super) struct TextTypes {
    by_name: HashMap<Vec<u8>, u32>,
    fields: Vec<Vec<FoundField>>,
    fields_of_all: usize,
    /// Filled when all lines have been read.
    declared: Vec<EventType>,
    effects: Vec<EffectPlan<usize>>,
}

impl TextTypes {
    /// Adds the fields of a line to its event.
    pub(super) fn add(&mut self, name: &[u8], pairs: &[Pair<'_>]) {
        let index = match self.by_name.get(name) {
            Some(index) => *index as usize,
            None => self.add_name(name),
        };
        let fields = &mut self.fields[index];
        for (at, pair) in pairs.iter().enumerate() {
            let known = match fields.get(at).filter(|field| field.name == pair.name) {
                Some(_) => Some(at),
                None => fields.iter().position(|field| field.name == pair.name),
            };
            let form_of = form_of(pair);
            match known {
                Some(at) if fields[at].form_of != form_of => fields[at].form_of = FieldForm::Text,
                Some(_) => {}
                None if fields.len() < MAX_FIELDS && self.fields_of_all < MAX_FIELDS_OF_ALL => {
                    self.fields_of_all += 1;
                    fields.push(FoundField { name: pair.name.to_vec(), form_of });
                }
                None => {}
            }
        }
    }

    #[cold]
    fn add_name(&mut self, name: &[u8]) -> usize {
        let name = if self.fields.len() < MAX_TYPES { name } else { b"" };
        let next = self.fields.len() as u32;
        let index = *self.by_name.entry(name.to_vec()).or_insert(next);
        if index == next {
            self.fields.push(Vec::new());
        }
        index as usize
    }

    /// Declares the events that were found.
    pub(super) fn declare(&mut self) {
        let mut names: Vec<(&Vec<u8>, u32)> =
            self.by_name.iter().map(|(name, index)| (name, *index)).collect();
        names.sort_by_key(|(_, index)| *index);
        self.declared =
            names.iter().map(|(name, index)| event_type(name, &self.fields[*index as usize])).collect();
        self.effects = self.declared.iter().map(|ty| EffectPlan::of(ty, Some)).collect();
    }

    pub(super) fn declared(&self) -> &[EventType] {
        &self.declared
    }

    /// The index of the event with this name.
    pub(super) fn kind(&self, name: &[u8]) -> u32 {
        self.by_name.get(name).or_else(|| self.by_name.get(&b""[..])).copied().unwrap_or(0)
    }

    /// Fills the parameters of an event; a field that the line does not have is unknown.
    pub(super) fn fill(&self, kind: u32, pairs: &[Pair<'_>], params: &mut Params) {
        params.clear();
        for (at, field) in self.fields[kind as usize].iter().enumerate() {
            let pair = match pairs.get(at).filter(|pair| pair.name == field.name) {
                Some(pair) => Some(pair),
                None => pairs.iter().find(|pair| pair.name == field.name),
            };
            let Some(pair) = pair else {
                params.push_unknown();
                continue;
            };
            let number = match field.form_of {
                FieldForm::Decimal => decimal(pair.value),
                FieldForm::Hex => hex(pair.value),
                FieldForm::Text => None,
            };
            match number {
                Some(number) => params.push_number(number),
                None => params.push_text(&String::from_utf8_lossy(pair.value)),
            }
        }
    }

    /// The effect of an event with these parameters.
    pub(super) fn effect(&self, kind: u32, params: &Params) -> Effect {
        let state = |at| {
            let letters = params.get(at)?.text?;
            Some(TaskState::from_letters(letters).into())
        };
        self.effects[kind as usize].effect(|at| params.number(at), state)
    }

    /// The kind of interrupt that begins or ends with this event.
    pub(super) fn interrupt(&self, kind: u32) -> Option<InterruptKind> {
        self.effects[kind as usize].interrupt()
    }
}

fn event_type(name: &[u8], fields: &[FoundField]) -> EventType {
    let field = |found: &FoundField| {
        let ty = match found.form_of {
            FieldForm::Decimal => FieldType::I64,
            FieldForm::Hex => FieldType::U64,
            FieldForm::Text => FieldType::Text,
        };
        Field { name: String::from_utf8_lossy(&found.name).into_owned(), ty }
    };
    let name = if name.is_empty() { TEXT } else { name };
    EventType {
        level: Level::Kern,
        code: None,
        name: String::from_utf8_lossy(name).into_owned(),
        key: 0,
        fields: fields.iter().map(field).collect(),
        format: String::new(),
    }
}

fn form_of(pair: &Pair<'_>) -> FieldForm {
    let Pair { name, value, form } = *pair;
    if TEXTS.contains(&name) {
        return FieldForm::Text;
    }
    match form {
        Form::Hex if hex(value).is_some() => FieldForm::Hex,
        Form::Plain if decimal(value).is_some() => FieldForm::Decimal,
        Form::Plain if value.starts_with(b"0x") && hex(value).is_some() => FieldForm::Hex,
        _ => FieldForm::Text,
    }
}

/// Unsigned numbers keep their bits.
fn decimal(value: &[u8]) -> Option<i64> {
    match value.strip_prefix(b"-") {
        Some(digits) => number(digits).and_then(|n| 0i64.checked_sub_unsigned(n)),
        None => number(value).map(|n| n as i64),
    }
}

fn hex(value: &[u8]) -> Option<i64> {
    let digits = value.strip_prefix(b"0x").unwrap_or(value);
    if digits.is_empty() || digits.len() > 16 {
        return None;
    }
    let number = digits.iter().try_fold(0u64, |number, digit| {
        char::from(*digit).to_digit(16).map(|digit| number << 4 | u64::from(digit))
    });
    number.map(|number| number as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair<'a>(name: &'a str, value: &'a str) -> Pair<'a> {
        Pair { name: name.as_bytes(), value: value.as_bytes(), form: Form::Plain }
    }

    #[test]
    fn a_field_is_a_number_if_it_is_one_in_every_line() {
        let lines = [
            [pair("a", "1"), pair("b", "7"), pair("c", "0x10")],
            [pair("b", "x"), pair("a", "-3"), pair("c", "0xffffffffffffffff")],
        ];
        let mut types = TextTypes::default();
        lines.iter().for_each(|pairs| types.add(b"event", pairs));
        types.declare();
        let found: Vec<(&str, FieldType)> =
            types.declared()[0].fields.iter().map(|f| (f.name.as_str(), f.ty)).collect();
        assert_eq!(found, [("a", FieldType::I64), ("b", FieldType::Text), ("c", FieldType::U64)]);
        let mut params = Params::default();
        types.fill(types.kind(b"event"), &lines[1], &mut params);
        let printed: Vec<String> = params.iter().map(|p| p.to_string()).collect();
        assert_eq!(printed, ["-3", "x", "-1"]);
    }
}
