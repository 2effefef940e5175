//! The events that occur in a text, with the fields that their lines name.
//!
//! A field is a number if it is one in every line, decimal or hexadecimal; else it is a text.

use std::collections::HashMap;

use sigmund_model::{Cpu, Effect, EventType, Field, FieldType, Level, Lwp, Params, TaskState};

use super::line::number;
use super::pairs::{Form, Pair, TEXT};

/// Events with more names than so many are text without a name.
const MAX_TYPES: usize = 4096;

/// Of more fields than so many, the first are kept; of all events together, too.
const MAX_FIELDS: usize = 64;
const MAX_FIELDS_OF_ALL: usize = 1 << 16;

/// Texts that may look like numbers.
const TEXTS: [&[u8]; 8] =
    [b"comm", b"prev_comm", b"next_comm", b"child_comm", b"parent_comm", b"filename", b"prev_state", TEXT];

/// How the values of a field look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looks {
    Decimal,
    /// With or without `0x`.
    Hex,
    Text,
}

#[derive(Debug)]
struct FoundField {
    name: Vec<u8>,
    looks: Looks,
}

/// The events that were found, and the way from a line to each.
#[derive(Debug, Default)]
pub(super) struct Types {
    by_name: HashMap<Vec<u8>, u32>,
    fields: Vec<Vec<FoundField>>,
    fields_of_all: usize,
    /// Filled when all lines have been seen.
    declared: Vec<EventType>,
    effects: Vec<EffectPlan>,
}

/// What an event does to the state, with the places of the fields it needs.
#[derive(Clone, Copy, Debug)]
enum EffectPlan {
    None,
    Switch { prev: usize, state: Option<usize>, next: usize },
    Waking(usize),
    Wakeup { pid: usize, target: Option<usize> },
    Migrate { pid: usize, to: usize },
    New(usize),
    Exit,
    InterruptEnter(usize),
    InterruptExit(usize),
}

impl Types {
    /// Adds what a line shows of its event.
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
            let looks = looks(pair);
            match known {
                Some(at) if fields[at].looks != looks => fields[at].looks = Looks::Text,
                Some(_) => {}
                None if fields.len() < MAX_FIELDS && self.fields_of_all < MAX_FIELDS_OF_ALL => {
                    self.fields_of_all += 1;
                    fields.push(FoundField { name: pair.name.to_vec(), looks });
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

    /// Declares what was found.
    pub(super) fn declare(&mut self) {
        let mut names: Vec<(&Vec<u8>, u32)> =
            self.by_name.iter().map(|(name, index)| (name, *index)).collect();
        names.sort_by_key(|(_, index)| *index);
        self.declared =
            names.iter().map(|(name, index)| event_type(name, &self.fields[*index as usize])).collect();
        self.effects =
            self.declared.iter().map(|ty| EffectPlan::of(ty).unwrap_or(EffectPlan::None)).collect();
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
            let number = match field.looks {
                Looks::Decimal => decimal(pair.value),
                Looks::Hex => hex(pair.value),
                Looks::Text => None,
            };
            match number {
                Some(number) => params.push_number(number),
                None => params.push_text(&String::from_utf8_lossy(pair.value)),
            }
        }
    }

    /// What an event with these parameters does.
    pub(super) fn effect(&self, kind: u32, params: &Params) -> Effect {
        self.effects[kind as usize].read(params).unwrap_or(Effect::None)
    }
}

fn event_type(name: &[u8], fields: &[FoundField]) -> EventType {
    let field = |found: &FoundField| {
        let ty = match found.looks {
            Looks::Decimal => FieldType::I64,
            Looks::Hex => FieldType::U64,
            Looks::Text => FieldType::Text,
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

fn looks(pair: &Pair<'_>) -> Looks {
    let Pair { name, value, form } = *pair;
    if TEXTS.contains(&name) {
        return Looks::Text;
    }
    match form {
        Form::Hex if hex(value).is_some() => Looks::Hex,
        Form::Plain if decimal(value).is_some() => Looks::Decimal,
        Form::Plain if value.starts_with(b"0x") && hex(value).is_some() => Looks::Hex,
        _ => Looks::Text,
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

impl EffectPlan {
    fn of(ty: &EventType) -> Option<EffectPlan> {
        let field = |name: &str| ty.field(name);
        Some(match ty.name.as_str() {
            "sched_switch" => EffectPlan::Switch {
                prev: field("prev_pid")?,
                state: field("prev_state"),
                next: field("next_pid")?,
            },
            "sched_waking" => EffectPlan::Waking(field("pid")?),
            "sched_wakeup" | "sched_wakeup_new" => {
                EffectPlan::Wakeup { pid: field("pid")?, target: field("target_cpu") }
            }
            "sched_migrate_task" => EffectPlan::Migrate { pid: field("pid")?, to: field("dest_cpu")? },
            "sched_process_fork" => EffectPlan::New(field("child_pid")?),
            "sched_process_exit" => EffectPlan::Exit,
            "irq_handler_entry" => EffectPlan::InterruptEnter(field("irq")?),
            "irq_handler_exit" => EffectPlan::InterruptExit(field("irq")?),
            _ => return None,
        })
    }

    fn read(self, params: &Params) -> Option<Effect> {
        let number = |at: usize| params.get(at)?.number;
        let lwp = |at| number(at).and_then(|n| u32::try_from(n).ok()).map(Lwp);
        let cpu = |at| number(at).and_then(|n| u32::try_from(n).ok()).map(Cpu);
        Some(match self {
            EffectPlan::None => Effect::None,
            EffectPlan::Switch { prev, state, next } => Effect::KernelSwitch {
                prev: lwp(prev),
                prev_state: state
                    .and_then(|at| params.get(at)?.text)
                    .map(|letters| TaskState::from_letters(letters).into()),
                next: lwp(next)?,
            },
            EffectPlan::Waking(pid) => Effect::LwpWaking(lwp(pid)?),
            EffectPlan::Wakeup { pid, target } => {
                Effect::LwpWakeup { lwp: lwp(pid)?, cpu: target.and_then(cpu) }
            }
            EffectPlan::Migrate { pid, to } => Effect::LwpMigrate { lwp: lwp(pid)?, cpu: cpu(to)? },
            EffectPlan::New(pid) => Effect::LwpNew(lwp(pid)?),
            EffectPlan::Exit => Effect::LwpExit,
            EffectPlan::InterruptEnter(irq) => Effect::InterruptEnter(number(irq)?),
            EffectPlan::InterruptExit(irq) => Effect::InterruptExit(number(irq)?),
        })
    }
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
        let mut types = Types::default();
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
