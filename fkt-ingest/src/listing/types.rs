//! The events that a listing names, and the meaning of its lines.

use std::collections::HashMap;

use sigmund_model::vocabulary::{InterruptKind, KnownEvent, Meaning, Role};
use sigmund_model::{
    Effect, EventType, Field, FieldType, LeaveReason, Level, TaskState, Thread, Wait, WaitKind,
};

use super::params::ListedParam;
use super::row::Row;
use crate::effect_plan::{EffectPlan, interrupt_number};

/// The number of remembered meanings for lines with one name. Lines of one event usually have the same fields.
const SHAPES: usize = 4;

/// The event types of a listing, collected from its lines: level, name and code.
#[derive(Debug, Default)]
pub(super) struct ListingTypes {
    types: Vec<EventType>,
    kinds: HashMap<(Level, Option<u32>), HashMap<Box<str>, u32>>,
    /// By kind.
    shapes: Vec<Vec<Shape>>,
}

/// The meaning of an event with these fields.
#[derive(Debug)]
struct Shape {
    fields: Vec<Box<str>>,
    known: Option<KnownEvent>,
    plan: EffectPlan<usize>,
}

impl ListingTypes {
    /// Adds the event of a line.
    pub(super) fn add(&mut self, row: &Row<'_>) {
        let kind = self.kind(row).unwrap_or_else(|| self.declare(row));
        let fields = self.types[kind as usize].fields.len();
        if fields >= row.params.len() && self.types[kind as usize].fields.iter().all(|f| !f.name.is_empty()) {
            return;
        }
        let thread = self.thread_param(row);
        let fields = &mut self.types[kind as usize].fields;
        for (index, param) in row.params.iter().enumerate() {
            let ty = if thread == Some(index) { FieldType::Thread } else { type_of(param) };
            match fields.get_mut(index) {
                None => fields.push(Field { name: param.field.to_owned(), ty }),
                Some(field) if field.name.is_empty() => param.field.clone_into(&mut field.name),
                Some(_) => {}
            }
        }
    }

    fn declare(&mut self, row: &Row<'_>) -> u32 {
        let kind = self.types.len() as u32;
        self.kinds.entry((row.level, row.code)).or_default().insert(row.name.into(), kind);
        self.types.push(EventType { fields: Vec::new(), ..event_type(row) });
        self.shapes.push(Vec::new());
        kind
    }

    pub(super) fn event_types(&self) -> Vec<EventType> {
        self.types.clone()
    }

    /// Its index among the event types; available after a line with this name has been added.
    pub(super) fn kind(&self, row: &Row<'_>) -> Option<u32> {
        self.kinds.get(&(row.level, row.code))?.get(row.name).copied()
    }

    /// The parameter that is the number of a user thread.
    pub(super) fn thread_param(&mut self, row: &Row<'_>) -> Option<usize> {
        if row.level == Level::User { self.shape(row).known?.field(Role::Thread) } else { None }
    }

    /// The effect of a line on the state, and the kind of interrupt that begins or ends.
    pub(super) fn effect(&mut self, row: &Row<'_>) -> (Effect, Option<InterruptKind>) {
        let Shape { known: Some(known), plan, .. } = self.shape(row) else { return (Effect::None, None) };
        let number_at = |at: usize| row.params.get(at)?.number;
        let number = |role| known.field(role).and_then(number_at);
        let thread = || known.field(Role::Thread).and_then(|at| thread_of(row.params.get(at)?));
        // The number may be omitted.
        let interrupt =
            |kind| number(Role::Number).and_then(|number| interrupt_number(kind, number)).unwrap_or(-1);
        let effect = match known.meaning() {
            Meaning::InterruptEnter(kind) => return (Effect::InterruptEnter(interrupt(kind)), Some(kind)),
            Meaning::InterruptExit(kind) => return (Effect::InterruptExit(interrupt(kind)), Some(kind)),
            Meaning::UserSwitch => Effect::UserSwitch {
                next: thread(),
                reason: number(Role::Reason)
                    .map_or(LeaveReason::Unknown, |n| LeaveReason::from_number(n as u64)),
                wait: Wait {
                    kind: number(Role::WaitKind).and_then(|kind| WaitKind::from_number(kind as u64)),
                    on: number(Role::Object).filter(|on| *on != 0).map(|on| on as u64),
                },
            },
            Meaning::ThreadNew => thread().map_or(Effect::None, Effect::ThreadNew),
            Meaning::ThreadReady => thread().map_or(Effect::None, Effect::ThreadReady),
            _ => {
                let state = |at| number_at(at).map(|bits| TaskState::from_number(bits).into());
                plan.effect(number_at, state)
            }
        };
        (effect, None)
    }

    /// The meaning of a line with these fields. It is found only once for all lines with the same fields.
    fn shape(&mut self, row: &Row<'_>) -> &Shape {
        let kind = self.kind(row).unwrap_or_else(|| self.declare(row));
        let shapes = &mut self.shapes[kind as usize];
        let is_of = |shape: &Shape| {
            shape.fields.iter().map(|field| &**field).eq(row.params.iter().map(|param| param.field))
        };
        let at = shapes.iter().position(is_of).unwrap_or_else(|| {
            // The oldest one is removed.
            if shapes.len() == SHAPES {
                shapes.remove(0);
            }
            shapes.push(Shape::of(row));
            shapes.len() - 1
        });
        &shapes[at]
    }
}

impl Shape {
    fn of(row: &Row<'_>) -> Shape {
        let event_type = event_type(row);
        Shape {
            fields: row.params.iter().map(|param| param.field.into()).collect(),
            known: KnownEvent::of(&event_type),
            plan: EffectPlan::of(&event_type, Some),
        }
    }
}

/// The type of an event with the parameters of this line.
fn event_type(row: &Row<'_>) -> EventType {
    let field = |param: &ListedParam<'_>| Field { name: param.field.to_owned(), ty: type_of(param) };
    EventType {
        level: row.level,
        code: row.code,
        name: row.name.to_owned(),
        key: 0,
        fields: row.params.iter().map(field).collect(),
        format: String::new(),
    }
}

fn type_of(param: &ListedParam<'_>) -> FieldType {
    if param.number.is_some() { FieldType::I64 } else { FieldType::Text }
}

/// The user thread that a parameter names.
pub(super) fn thread_of(param: &ListedParam<'_>) -> Option<Thread> {
    param.number.and_then(|n| u64::try_from(n).ok()).and_then(Thread::from_switch)
}
