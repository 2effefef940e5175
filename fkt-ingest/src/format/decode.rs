//! Decodes a record's bytes into an [`Event`], by a plan compiled from the declaration.

use std::ffi::CStr;
use std::fmt::Write;

use sigmund_model::{Event, EventType, Field, FieldType, Level, Params, TaskState};

use super::machine::Machine;
use super::naming::Naming;
use super::number::{Number, Run};
use super::print::{FieldLocation, LocationKind, NumberNames, PrintFormat, bit_list, bit_mask, text_of};
use super::recorder::Recorder;
use super::text::{EventFormat, FieldFormat};
use crate::effect_plan::EffectPlan;

/// An array of at most this many numbers becomes one field per number (`args0` … `args5`).
const MAX_SPREAD: u32 = 8;

/// How one parameter is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FieldReader {
    Number(Number),
    /// A text, up to its NUL.
    Text(FieldLocation),
    /// Numbers separated by commas; those of one byte as hexadecimal digits.
    Numbers(FieldLocation),
    /// A bit mask, formatted as by `__get_bitmask` and `__get_cpumask`.
    Mask(FieldLocation),
    /// CPUs, as ranges: `0-3,8`.
    CpuList(FieldLocation),
    Unknown,
}

/// Parameters that are read together.
#[derive(Clone, Debug)]
enum ParameterGroup {
    Numbers(Run),
    Other(FieldReader),
}

/// Fills events of one kind.
#[derive(Clone, Debug)]
pub(super) struct Decoder {
    kind: u32,
    recorder: Recorder,
    steps: Vec<ParameterGroup>,
    effect: EffectPlan<Number>,
    naming: Naming,
    /// Names of numbers from the declaration, by the index of the parameter.
    number_names: Vec<(usize, NumberNames)>,
}

/// The declaration and the plan of one event; `kind` is its index among its source's event types.
pub(super) fn plan(format: &EventFormat, kind: u32, machine: Machine) -> (EventType, Decoder) {
    let mut fields = Vec::new();
    let mut plans = Vec::new();
    for field in format.fields.iter().filter(|f| !f.name.starts_with("common_")) {
        plan_field(format, field, machine, &mut fields, &mut plans);
    }
    let format_for_people = super::readable_format::readable_format(&format.print_fmt, |name| {
        fields.iter().any(|f| f.name == name)
    });
    let event_type = EventType {
        level: Level::Kern,
        code: Some(u32::from(format.id)),
        name: format.name.clone(),
        key: 0,
        fields,
        format: format_for_people,
    };
    let number =
        |name: &str| format.fields.iter().find(|f| f.name == name).and_then(|f| number_at(f, machine));
    let naming = Naming::of(&event_type, machine.is_x86_64);
    let decoder = Decoder {
        kind,
        recorder: Recorder::new(number("common_flags"), number("common_pid")),
        effect: plan_effect(&event_type, &plans),
        number_names: if naming == Naming::None { number_names(format, &plans, machine) } else { Vec::new() },
        naming,
        steps: steps(&plans),
    };
    (event_type, decoder)
}

/// The names of the parameters that are numbers and have names in the declaration.
fn number_names(format: &EventFormat, plans: &[FieldReader], machine: Machine) -> Vec<(usize, NumberNames)> {
    if !format.print_fmt.contains("__print_symbolic") && !format.print_fmt.contains("__print_flags") {
        return Vec::new();
    }
    let names = PrintFormat::parse(format, machine).map(|print_format| print_format.number_names());
    let at =
        |offset| plans.iter().position(|plan| matches!(plan, FieldReader::Number(n) if n.offset == offset));
    names.into_iter().flatten().filter_map(|(offset, names)| Some((at(offset)?, names))).collect()
}

/// The plans in order, adjacent numbers as one step: a system call's seven are one step.
fn steps(plans: &[FieldReader]) -> Vec<ParameterGroup> {
    let mut steps: Vec<ParameterGroup> = Vec::new();
    for plan in plans {
        let FieldReader::Number(number) = plan else {
            steps.push(ParameterGroup::Other(*plan));
            continue;
        };
        let longer = match steps.last() {
            Some(ParameterGroup::Numbers(run)) => run.with(*number),
            _ => None,
        };
        if longer.is_some() {
            steps.pop();
        }
        steps.push(ParameterGroup::Numbers(longer.unwrap_or(Run::of(*number))));
    }
    steps
}

/// Interrupts are left out, because the flags of every record show whether it is in one.
fn plan_effect(event_type: &EventType, plans: &[FieldReader]) -> EffectPlan<Number> {
    let number = |at: usize| match plans.get(at) {
        Some(FieldReader::Number(number)) => Some(*number),
        _ => None,
    };
    let effect = EffectPlan::of(event_type, number);
    if effect.interrupt().is_some() { EffectPlan::None } else { effect }
}

fn plan_field(
    format: &EventFormat,
    field: &FieldFormat,
    machine: Machine,
    fields: &mut Vec<Field>,
    plans: &mut Vec<FieldReader>,
) {
    let mut push = |name: String, ty, plan| {
        fields.push(Field { name, ty });
        plans.push(plan);
    };
    if let Some(number) = number_at(field, machine) {
        return push(field.name.clone(), number_type(field, field.size), FieldReader::Number(number));
    }
    let Some(location) =
        FieldLocation::of(field, machine).filter(|location| location.kind != LocationKind::Number)
    else {
        return push(field.name.clone(), FieldType::Text, FieldReader::Unknown);
    };
    if let Some(count) = spread(field, location) {
        let size = u32::from(location.element.size);
        for index in 0..count {
            let offset = field.offset.saturating_add(index * size);
            let plan = Number::new(offset, size, field.signed, machine)
                .map_or(FieldReader::Unknown, FieldReader::Number);
            push(format!("{}{index}", field.name), number_type(field, size), plan);
        }
        return;
    }
    let plan = match element_type(field) {
        "char" | "const char" => FieldReader::Text(location),
        mask if mask.contains("cpumask") => FieldReader::CpuList(location),
        "unsigned long" if location.kind != LocationKind::Array => {
            bitmask_or_numbers(format, field, location)
        }
        _ => FieldReader::Numbers(location),
    };
    push(field.name.clone(), FieldType::Text, plan);
}

/// A bitmask is declared as an array of longs; only `print fmt` distinguishes the two.
fn bitmask_or_numbers(format: &EventFormat, field: &FieldFormat, location: FieldLocation) -> FieldReader {
    let printed = ["__get_bitmask(", "__get_rel_bitmask("].map(|get| format!("{get}{})", field.name));
    let is_mask = printed.iter().any(|printed| format.print_fmt.contains(printed));
    if is_mask { FieldReader::Mask(location) } else { FieldReader::Numbers(location) }
}

/// The number of fields for the elements of a short array.
fn spread(field: &FieldFormat, location: FieldLocation) -> Option<u32> {
    let count = field.array.as_deref()?.parse().ok().filter(|n| (1..=MAX_SPREAD).contains(n))?;
    let wide =
        matches!(location.element.size, 4 | 8) && field.size == count * u32::from(location.element.size);
    (location.kind == LocationKind::Array && wide).then_some(count)
}

/// `char` of `__data_loc char[]`.
fn element_type(field: &FieldFormat) -> &str {
    let c_type = field.c_type.trim_start_matches("__data_loc ").trim_start_matches("__rel_loc ");
    c_type.trim_end_matches("[]").trim_end()
}

fn number_at(field: &FieldFormat, machine: Machine) -> Option<Number> {
    let located = field.c_type.starts_with("__data_loc ") || field.c_type.starts_with("__rel_loc ");
    let plain = field.array.is_none() && !located;
    plain.then(|| Number::new(field.offset, field.size, field.signed, machine))?
}

fn number_type(field: &FieldFormat, size: u32) -> FieldType {
    match (size, field.signed) {
        _ if field.c_type.contains('*') => FieldType::Pointer,
        _ if field.c_type == "bool" => FieldType::Bool,
        (_, true) => FieldType::I64,
        (1, _) => FieldType::U8,
        (2, _) => FieldType::U16,
        (4, _) => FieldType::U32,
        _ => FieldType::U64,
    }
}

impl Decoder {
    /// Fills all of `event` except its tick and its CPU, which come from the page.
    #[inline]
    pub(super) fn fill(&self, record: &[u8], event: &mut Event) {
        event.kind = self.kind;
        (event.context, event.lwp) = self.recorder.read(record);
        let number = |number: Number| number.read(record);
        let state = |at| number(at).map(|bits| TaskState::from_number(bits).into());
        event.effect = self.effect.effect(number, state);
        event.params.clear();
        for step in &self.steps {
            match step {
                ParameterGroup::Numbers(run) => run.push(record, &mut event.params),
                ParameterGroup::Other(plan) => plan.push(record, &mut event.params),
            }
        }
        self.naming.apply(&mut event.params);
        for (index, names) in &self.number_names {
            event.params.name_with(*index, |number, name| names.write(number, name));
        }
    }
}

impl FieldReader {
    #[inline]
    fn push(&self, record: &[u8], params: &mut Params) {
        match self {
            FieldReader::Number(number) => Run::of(*number).push(record, params),
            FieldReader::Text(location) => match location.bytes(record) {
                Some(bytes) => push_text(bytes, params),
                None => params.push_unknown(),
            },
            FieldReader::Numbers(_)
            | FieldReader::Mask(_)
            | FieldReader::CpuList(_)
            | FieldReader::Unknown => self.push_rare(record, params),
        }
    }

    /// Parameters that few events have.
    #[inline(never)]
    fn push_rare(&self, record: &[u8], params: &mut Params) {
        let text = match self {
            FieldReader::Numbers(location) => location.bytes(record).map(|bytes| numbers(bytes, location)),
            FieldReader::Mask(location) => {
                location.bytes(record).map(|bytes| bit_mask(bytes, location.machine))
            }
            FieldReader::CpuList(location) => {
                location.bytes(record).map(|bytes| bit_list(bytes, location.machine))
            }
            FieldReader::Number(_) | FieldReader::Text(_) | FieldReader::Unknown => None,
        };
        match text {
            Some(text) => params.push_text(&text),
            None => params.push_unknown(),
        }
    }
}

#[inline]
fn push_text(bytes: &[u8], params: &mut Params) {
    let text = CStr::from_bytes_until_nul(bytes).map_or(bytes, CStr::to_bytes);
    match std::str::from_utf8(text) {
        Ok(text) => params.push_text(text),
        Err(_) => params.push_text(&text_of(bytes)),
    }
}

fn numbers(bytes: &[u8], location: &FieldLocation) -> String {
    let mut text = String::new();
    let size = usize::from(location.element.size.max(1));
    for bytes in bytes.chunks_exact(size) {
        // Writing to a String cannot fail.
        let _ = match FieldLocation::number(location.element, location.machine, bytes) {
            _ if size == 1 => write!(text, "{:02x}", bytes.first().copied().unwrap_or(0)),
            Some(number) if text.is_empty() => write!(text, "{number}"),
            Some(number) => write!(text, ",{number}"),
            None => Ok(()),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(declaration: &str, record: &[u8]) -> Vec<String> {
        let text = format!("name: x\nID: 1\nformat:\n{declaration}");
        let format = crate::format::event_format(&text).unwrap();
        let (event_type, decoder) = plan(&format, 0, Machine::little_64(true));
        let mut event = Event::default();
        decoder.fill(record, &mut event);
        assert_eq!(event.params.len(), event_type.fields.len());
        event.params.iter().map(|p| p.to_string()).collect()
    }

    // |irq = -1|len 5, at 14|len 5, 0 after itself|"eth0\0"|
    #[test]
    fn a_located_text_is_found_at_the_place_in_its_word() {
        let declaration = "\tfield:int irq;\toffset:0;\tsize:4;\tsigned:1;\n\
            \tfield:__data_loc char[] name;\toffset:4;\tsize:4;\tsigned:0;\n\
            \tfield:__rel_loc char[] again;\toffset:8;\tsize:4;\tsigned:0;\n\
            \tfield:__data_loc char[] none;\toffset:0;\tsize:4;\tsigned:0;\n";
        let mut record = (-1i32).to_le_bytes().to_vec();
        record.extend(((5u32 << 16) | 12).to_le_bytes());
        record.extend((5u32 << 16).to_le_bytes());
        record.extend(b"eth0\0");
        assert_eq!(printed(declaration, &record), ["-1", "eth0", "eth0", "?"]);
    }

    #[test]
    fn arrays_and_masks_are_texts_and_short_arrays_are_numbers() {
        let declaration = "\tfield:u8 mac[3];\toffset:0;\tsize:3;\tsigned:0;\n\
            \tfield:s16 steps[2];\toffset:4;\tsize:4;\tsigned:1;\n\
            \tfield:__data_loc u32[] ids;\toffset:8;\tsize:4;\tsigned:0;\n\
            \tfield:__data_loc cpumask_t mask;\toffset:12;\tsize:4;\tsigned:0;\n\
            \tfield:u32 two[2];\toffset:16;\tsize:8;\tsigned:0;\n\
            \tfield:struct in6_addr six;\toffset:24;\tsize:3;\tsigned:0;\n";
        let mut record = vec![1, 2, 0xfe, 0, 0xff, 0xff, 3, 0];
        record.extend(((8u32 << 16) | 16).to_le_bytes());
        record.extend(((8u32 << 16) | 16).to_le_bytes());
        record.extend([5, 0, 0, 0, 6, 0, 0, 0, 9, 9, 9]);
        let expected = ["0102fe", "-1,3", "5,6", "0,2,33-34", "5", "6", "090909"];
        assert_eq!(printed(declaration, &record), expected);
    }

    #[test]
    fn a_number_has_the_name_that_the_declaration_gives_it() {
        let declaration = "\tfield:unsigned int vec;\toffset:0;\tsize:4;\tsigned:0;\n\n\
            print fmt: \"vec=%u [action=%s]\", REC->vec, __print_symbolic(REC->vec, { 0, \"HI\" }, { 1, \"TIMER\" })\n";
        assert_eq!(printed(declaration, &[1, 0, 0, 0]), ["1(TIMER)"]);
        assert_eq!(printed(declaration, &[2, 0, 0, 0]), ["2"]);
    }
}
