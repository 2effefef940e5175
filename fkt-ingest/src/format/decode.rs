//! A record's bytes into an [`Event`], by a plan made once from the declaration.
//!

use std::ffi::CStr;
use std::fmt::Write;

use sigmund_model::{Effect, Event, EventType, Field, FieldType, Level, Params, TaskState};

use super::machine::Machine;
use super::naming::Naming;
use super::number::{Number, Run};
use super::print::{Kind, NumberNames, Place, Sentence, bit_list, bit_mask, text_of};
use super::recorder::Recorder;
use super::text::{EventFormat, FieldFormat};

/// An array of numbers with at most so many elements becomes one field each (`args0` … `args5`).
const MAX_SPREAD: u32 = 8;

/// How one parameter is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    Number(Number),
    /// A text, up to its NUL.
    Text(Place),
    /// Numbers with commas between them; those of one byte as hexadecimal digits.
    Numbers(Place),
    /// A mask of bits, as `__get_bitmask` and `__get_cpumask` print it.
    Mask(Place),
    /// CPUs, as ranges: `0-3,8`.
    CpuList(Place),
    Unknown,
}

/// Parameters that are read together.
#[derive(Clone, Debug)]
enum Step {
    Numbers(Run),
    Other(Plan),
}

/// What an event does to the state, with the places of the numbers it needs.
#[derive(Clone, Copy, Debug)]
enum EffectPlan {
    None,
    Switch { prev: Number, state: Number, next: Number },
    Waking(Number),
    Wakeup { pid: Number, target: Option<Number> },
    Migrate { pid: Number, to: Number },
    New(Number),
    Exit,
}

/// Fills events of one kind.
#[derive(Clone, Debug)]
pub(super) struct Decoder {
    kind: u32,
    recorder: Recorder,
    steps: Vec<Step>,
    effect: EffectPlan,
    naming: Naming,
    /// Names that the declaration gives to numbers, by the index of the parameter.
    number_names: Vec<(usize, NumberNames)>,
}

/// The declaration and the plan of one event; `kind` is its index among its source's event types.
pub(super) fn plan(format: &EventFormat, kind: u32, machine: Machine) -> (EventType, Decoder) {
    let mut fields = Vec::new();
    let mut plans = Vec::new();
    for field in format.fields.iter().filter(|f| !f.name.starts_with("common_")) {
        plan_field(format, field, machine, &mut fields, &mut plans);
    }
    let format_for_people =
        super::people::for_people(&format.print_fmt, |name| fields.iter().any(|f| f.name == name));
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
        effect: plan_effect(&format.name, number).unwrap_or(EffectPlan::None),
        number_names: if naming == Naming::None { number_names(format, &plans, machine) } else { Vec::new() },
        naming,
        steps: steps(&plans),
    };
    (event_type, decoder)
}

/// Of the parameters that are numbers, those that the declaration names.
fn number_names(format: &EventFormat, plans: &[Plan], machine: Machine) -> Vec<(usize, NumberNames)> {
    if !format.print_fmt.contains("__print_symbolic") && !format.print_fmt.contains("__print_flags") {
        return Vec::new();
    }
    let names = Sentence::parse(format, machine).map(|sentence| sentence.number_names());
    let at = |offset| plans.iter().position(|plan| matches!(plan, Plan::Number(n) if n.offset == offset));
    names.into_iter().flatten().filter_map(|(offset, names)| Some((at(offset)?, names))).collect()
}

/// The plans in their order, numbers behind each other as one: a system call's seven are one step.
fn steps(plans: &[Plan]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for plan in plans {
        let Plan::Number(number) = plan else {
            steps.push(Step::Other(*plan));
            continue;
        };
        let longer = match steps.last() {
            Some(Step::Numbers(run)) => run.with(*number),
            _ => None,
        };
        if longer.is_some() {
            steps.pop();
        }
        steps.push(Step::Numbers(longer.unwrap_or(Run::of(*number))));
    }
    steps
}

fn plan_effect(name: &str, number: impl Fn(&str) -> Option<Number>) -> Option<EffectPlan> {
    Some(match name {
        "sched_switch" => EffectPlan::Switch {
            prev: number("prev_pid")?,
            state: number("prev_state")?,
            next: number("next_pid")?,
        },
        "sched_waking" => EffectPlan::Waking(number("pid")?),
        "sched_wakeup" | "sched_wakeup_new" => {
            EffectPlan::Wakeup { pid: number("pid")?, target: number("target_cpu") }
        }
        "sched_migrate_task" => EffectPlan::Migrate { pid: number("pid")?, to: number("dest_cpu")? },
        "sched_process_fork" => EffectPlan::New(number("child_pid")?),
        "sched_process_exit" => EffectPlan::Exit,
        _ => EffectPlan::None,
    })
}

fn plan_field(
    format: &EventFormat,
    field: &FieldFormat,
    machine: Machine,
    fields: &mut Vec<Field>,
    plans: &mut Vec<Plan>,
) {
    let mut push = |name: String, ty, plan| {
        fields.push(Field { name, ty });
        plans.push(plan);
    };
    if let Some(number) = number_at(field, machine) {
        return push(field.name.clone(), number_type(field, field.size), Plan::Number(number));
    }
    let Some(place) = Place::of(field, machine).filter(|place| place.kind != Kind::Number) else {
        return push(field.name.clone(), FieldType::Text, Plan::Unknown);
    };
    if let Some(count) = spread(field, place) {
        let size = u32::from(place.element.size);
        for index in 0..count {
            let offset = field.offset.saturating_add(index * size);
            let plan = Number::new(offset, size, field.signed, machine).map_or(Plan::Unknown, Plan::Number);
            push(format!("{}{index}", field.name), number_type(field, size), plan);
        }
        return;
    }
    let plan = match element_type(field) {
        "char" | "const char" => Plan::Text(place),
        mask if mask.contains("cpumask") => Plan::CpuList(place),
        "unsigned long" if place.kind != Kind::Array => bitmask_or_numbers(format, field, place),
        _ => Plan::Numbers(place),
    };
    push(field.name.clone(), FieldType::Text, plan);
}

/// A bitmask is declared as an array of longs; how it is printed tells it from one.
fn bitmask_or_numbers(format: &EventFormat, field: &FieldFormat, place: Place) -> Plan {
    let printed = ["__get_bitmask(", "__get_rel_bitmask("].map(|get| format!("{get}{})", field.name));
    let is_mask = printed.iter().any(|printed| format.print_fmt.contains(printed));
    if is_mask { Plan::Mask(place) } else { Plan::Numbers(place) }
}

/// How many fields of their own the elements of a short array become.
fn spread(field: &FieldFormat, place: Place) -> Option<u32> {
    let count = field.array.as_deref()?.parse().ok().filter(|n| (1..=MAX_SPREAD).contains(n))?;
    let wide = matches!(place.element.size, 4 | 8) && field.size == count * u32::from(place.element.size);
    (place.kind == Kind::Array && wide).then_some(count)
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
    /// Fills all of `event` that the record says; tick and CPU are the page's business.
    #[inline]
    pub(super) fn fill(&self, record: &[u8], event: &mut Event) {
        event.kind = self.kind;
        (event.context, event.lwp) = self.recorder.read(record);
        event.effect = self.effect.read(record).unwrap_or(Effect::None);
        event.params.clear();
        for step in &self.steps {
            match step {
                Step::Numbers(run) => run.push(record, &mut event.params),
                Step::Other(plan) => plan.push(record, &mut event.params),
            }
        }
        self.naming.apply(&mut event.params);
        for (index, names) in &self.number_names {
            event.params.name_with(*index, |number, name| names.write(number, name));
        }
    }
}

impl EffectPlan {
    #[inline]
    fn read(self, record: &[u8]) -> Option<Effect> {
        Some(match self {
            EffectPlan::None => Effect::None,
            EffectPlan::Switch { prev, state, next } => Effect::KernelSwitch {
                prev: prev.read_lwp(record),
                prev_state: state.read(record).map(|bits| TaskState::from_number(bits).into()),
                next: next.read_lwp(record)?,
            },
            EffectPlan::Waking(pid) => Effect::LwpWaking(pid.read_lwp(record)?),
            EffectPlan::Wakeup { pid, target } => Effect::LwpWakeup {
                lwp: pid.read_lwp(record)?,
                cpu: target.and_then(|target| target.read_cpu(record)),
            },
            EffectPlan::Migrate { pid, to } => {
                Effect::LwpMigrate { lwp: pid.read_lwp(record)?, cpu: to.read_cpu(record)? }
            }
            EffectPlan::New(pid) => Effect::LwpNew(pid.read_lwp(record)?),
            EffectPlan::Exit => Effect::LwpExit,
        })
    }
}

impl Plan {
    #[inline]
    fn push(&self, record: &[u8], params: &mut Params) {
        match self {
            Plan::Number(number) => Run::of(*number).push(record, params),
            Plan::Text(place) => match place.bytes(record) {
                Some(bytes) => push_text(bytes, params),
                None => params.push_unknown(),
            },
            Plan::Numbers(_) | Plan::Mask(_) | Plan::CpuList(_) | Plan::Unknown => {
                self.push_rare(record, params)
            }
        }
    }

    /// What few events have.
    #[inline(never)]
    fn push_rare(&self, record: &[u8], params: &mut Params) {
        let text = match self {
            Plan::Numbers(place) => place.bytes(record).map(|bytes| numbers(bytes, place)),
            Plan::Mask(place) => place.bytes(record).map(|bytes| bit_mask(bytes, place.machine)),
            Plan::CpuList(place) => place.bytes(record).map(|bytes| bit_list(bytes, place.machine)),
            Plan::Number(_) | Plan::Text(_) | Plan::Unknown => None,
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

fn numbers(bytes: &[u8], place: &Place) -> String {
    let mut text = String::new();
    let size = usize::from(place.element.size.max(1));
    for bytes in bytes.chunks_exact(size) {
        // Writing to a String cannot fail.
        let _ = match Place::number(place.element, place.machine, bytes) {
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

    // |irq = -1|len 5, at 14|len 5, 0 behind itself|"eth0\0"|
    #[test]
    fn a_located_text_is_found_where_its_word_says() {
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
