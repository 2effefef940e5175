//! A record's bytes into an [`Event`], by a plan made once from the declaration.
//!
//! A text of variable length is declared `__data_loc char[] name`, and its four bytes say where it is:
//!
//! ```text
//!   31          16 15           0
//!   | length      | offset      |     offset from the start of the record; for `__rel_loc`, from the
//!                                     end of these four bytes
//! ```

use std::borrow::Cow;
use std::fmt::Write;

use sigmund_model::{Context, Effect, Event, EventType, Field, FieldType, Level, Lwp, LwpState, Params};

use super::machine::Machine;
use super::naming::Naming;
use super::number::Number;
use super::text::{EventFormat, FieldFormat};
use crate::cut::ByteOrder;

/// An array of numbers with at most so many elements becomes one field each (`args0` … `args5`).
const MAX_SPREAD: u32 = 8;

/// `common_flags` (`enum trace_flag_type`, include/linux/trace_events.h, v6.12).
const TRACE_FLAG_HARDIRQ: u8 = 0x08;
const TRACE_FLAG_SOFTIRQ: u8 = 0x10;
const TRACE_FLAG_NMI: u8 = 0x40;

/// How one parameter is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    Number(Number),
    /// Bytes at a fixed place; `len` 0 means to the end of the record.
    Text {
        offset: u32,
        len: u32,
    },
    Hex {
        offset: u32,
        len: u32,
    },
    LocatedText {
        offset: u32,
        relative: bool,
        order: ByteOrder,
    },
    LocatedHex {
        offset: u32,
        relative: bool,
        order: ByteOrder,
    },
    Unknown,
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
    flags: Option<Number>,
    pid: Option<Number>,
    plans: Vec<Plan>,
    effect: EffectPlan,
    naming: Naming,
}

/// The declaration and the plan of one event; `kind` is its index among its source's event types.
pub(super) fn plan(format: &EventFormat, kind: u32, machine: Machine) -> (EventType, Decoder) {
    let mut fields = Vec::new();
    let mut plans = Vec::new();
    for field in format.fields.iter().filter(|f| !f.name.starts_with("common_")) {
        plan_field(field, machine, &mut fields, &mut plans);
    }
    let format_for_people =
        super::print_fmt::for_people(&format.print_fmt, |name| fields.iter().any(|f| f.name == name));
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
    let decoder = Decoder {
        kind,
        flags: number("common_flags"),
        pid: number("common_pid"),
        plans,
        effect: plan_effect(&format.name, number).unwrap_or(EffectPlan::None),
        naming: Naming::of(&event_type, machine.is_x86_64),
    };
    (event_type, decoder)
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

fn plan_field(field: &FieldFormat, machine: Machine, fields: &mut Vec<Field>, plans: &mut Vec<Plan>) {
    let mut push = |name: String, ty, plan| {
        fields.push(Field { name, ty });
        plans.push(plan);
    };
    let (offset, order, name) = (field.offset, machine.order, field.name.clone());
    let located = field.c_type.strip_prefix("__data_loc ").map(|t| (t, false));
    if let Some((c_type, relative)) =
        located.or_else(|| field.c_type.strip_prefix("__rel_loc ").map(|t| (t, true)))
    {
        let plan = match is_char(c_type.trim_end_matches("[]").trim_end()) {
            true => Plan::LocatedText { offset, relative, order },
            false => Plan::LocatedHex { offset, relative, order },
        };
        return push(name, FieldType::Text, plan);
    }
    let Some(array) = &field.array else {
        return match number_at(field, machine) {
            Some(number) => push(name, number_type(field, field.size), Plan::Number(number)),
            None if field.size > 0 => push(name, FieldType::Text, Plan::Hex { offset, len: field.size }),
            None => push(name, FieldType::Text, Plan::Unknown),
        };
    };
    if is_char(&field.c_type) {
        return push(name, FieldType::Text, Plan::Text { offset, len: field.size });
    }
    let count = array.parse().ok().filter(|n| (1..=MAX_SPREAD).contains(n));
    let element = count.filter(|n| field.size.is_multiple_of(*n)).map(|n| field.size / n);
    if let (Some(count), Some(size @ (4 | 8))) = (count, element) {
        for index in 0..count {
            let offset = offset.saturating_add(index * size);
            let plan = Number::new(offset, size, field.signed, machine).map_or(Plan::Unknown, Plan::Number);
            push(format!("{name}{index}"), number_type(field, size), plan);
        }
        return;
    }
    push(name, FieldType::Text, Plan::Hex { offset, len: field.size });
}

fn is_char(c_type: &str) -> bool {
    matches!(c_type, "char" | "const char")
}

fn number_at(field: &FieldFormat, machine: Machine) -> Option<Number> {
    let plain = field.array.is_none();
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
        event.lwp = self.pid.and_then(|n| n.read_lwp(record));
        let flags = self.flags.and_then(|n| n.read(record)).unwrap_or(0) as u8;
        event.context = context(flags, event.lwp);
        event.effect = self.effect.read(record).unwrap_or(Effect::None);
        event.params.clear();
        for plan in &self.plans {
            plan.push(record, &mut event.params);
        }
        self.naming.apply(&mut event.params);
    }
}

/// What the CPU was doing: an NMI interrupts interrupts, which interrupt softirqs.
pub(super) fn context(flags: u8, lwp: Option<Lwp>) -> Context {
    match lwp {
        _ if flags & TRACE_FLAG_NMI != 0 => Context::Nmi,
        _ if flags & TRACE_FLAG_HARDIRQ != 0 => Context::Irq,
        _ if flags & TRACE_FLAG_SOFTIRQ != 0 => Context::Softirq,
        Some(Lwp::IDLE) => Context::Idle,
        _ => Context::Task,
    }
}

impl EffectPlan {
    #[inline]
    fn read(self, record: &[u8]) -> Option<Effect> {
        Some(match self {
            EffectPlan::None => Effect::None,
            EffectPlan::Switch { prev, state, next } => Effect::KernelSwitch {
                prev: prev.read_lwp(record),
                prev_state: state.read(record).map(LwpState::from_prev_state),
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
    fn push(self, record: &[u8], params: &mut Params) {
        match self {
            Plan::Number(number) => match number.read(record) {
                Some(value) => params.push_number(value),
                None => params.push_unknown(),
            },
            Plan::Text { offset, len } => push_text(fixed(record, offset, len), params),
            Plan::Hex { offset, len } => push_hex(fixed(record, offset, len), params),
            Plan::LocatedText { offset, relative, order } => {
                push_text(located(record, offset, relative, order), params)
            }
            Plan::LocatedHex { offset, relative, order } => {
                push_hex(located(record, offset, relative, order), params)
            }
            Plan::Unknown => params.push_unknown(),
        }
    }
}

fn fixed(record: &[u8], offset: u32, len: u32) -> Option<&[u8]> {
    let bytes = record.get(offset as usize..)?;
    if len == 0 { Some(bytes) } else { bytes.get(..len as usize) }
}

fn located(record: &[u8], offset: u32, relative: bool, order: ByteOrder) -> Option<&[u8]> {
    let bytes = record.get(offset as usize..)?;
    let word = order.u32(*bytes.first_chunk()?);
    let (from, len) = ((word & 0xffff) as usize, (word >> 16) as usize);
    let base = if relative { bytes.get(4..)? } else { record };
    base.get(from..)?.get(..len)
}

#[inline]
fn push_text(bytes: Option<&[u8]>, params: &mut Params) {
    let Some(bytes) = bytes else { return params.push_unknown() };
    let len = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    match String::from_utf8_lossy(&bytes[..len]) {
        Cow::Borrowed(text) => params.push_text(text),
        Cow::Owned(text) => params.push_text(&text),
    }
}

fn push_hex(bytes: Option<&[u8]>, params: &mut Params) {
    let Some(bytes) = bytes else { return params.push_unknown() };
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    params.push_text(&text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nmi_beats_irq_beats_softirq_beats_idle() {
        assert_eq!(context(0x58, Some(Lwp(7))), Context::Nmi);
        assert_eq!(context(0x18, Some(Lwp(7))), Context::Irq);
        assert_eq!(context(0x10, Some(Lwp(0))), Context::Softirq);
        assert_eq!(context(0x00, Some(Lwp(0))), Context::Idle);
        assert_eq!(context(0x01, Some(Lwp(7))), Context::Task);
    }

    // |common …|irq = -1 |len 5, at 16|"eth0\0"|
    #[test]
    fn a_located_text_is_found_where_its_word_says() {
        let mut record = vec![0u8; 8];
        record.extend((-1i32).to_le_bytes());
        record.extend(((5u32 << 16) | 16).to_le_bytes());
        record.extend(b"eth0\0");
        let mut params = Params::default();
        let machine = Machine::little_64(true);
        Plan::Number(Number::new(8, 4, true, machine).unwrap()).push(&record, &mut params);
        Plan::LocatedText { offset: 12, relative: false, order: machine.order }.push(&record, &mut params);
        Plan::LocatedText { offset: 8, relative: false, order: machine.order }.push(&record, &mut params);
        let printed: Vec<String> = params.iter().map(|p| p.to_string()).collect();
        assert_eq!(printed, ["-1", "eth0", "?"]);
    }
}
