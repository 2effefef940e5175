//! The lines of a listing as events: the meanings of their names, and their fields.

use std::collections::HashMap;
use std::io;

use sigmund_model::vocabulary::{InterruptKind, KnownEvent, Meaning, Role};
use sigmund_model::{
    Context, Effect, Event, EventStream, EventType, Field, FieldType, LeaveReason, Level, Loss, Reported,
    TaskState, Thread, Ticks, Wait, WaitKind,
};

use super::params::ListedParam;
use super::row::Row;
use crate::effect_plan::{EffectPlan, interrupt_context, interrupt_number};

/// The event types of a listing, collected from its lines: level, name and code.
#[derive(Debug)]
pub(super) struct ListingTypes {
    types: Vec<EventType>,
    kinds: HashMap<(Level, String, Option<u32>), u32>,
}

impl ListingTypes {
    pub(super) fn of(rows: &[Row]) -> ListingTypes {
        let mut types = ListingTypes { types: Vec::new(), kinds: HashMap::new() };
        for row in rows {
            types.add(row);
        }
        types
    }

    fn add(&mut self, row: &Row) {
        let key = (row.level, row.name.clone(), row.code);
        let types = &mut self.types;
        let kind = *self.kinds.entry(key).or_insert_with(|| {
            types.push(EventType {
                level: row.level,
                code: row.code,
                name: row.name.clone(),
                key: 0,
                fields: Vec::new(),
                format: String::new(),
            });
            types.len() as u32 - 1
        });
        let thread = thread_param(row);
        let fields = &mut self.types[kind as usize].fields;
        for (index, param) in row.params.iter().enumerate() {
            let ty = if thread == Some(index) {
                FieldType::Thread
            } else if param.number.is_some() {
                FieldType::I64
            } else {
                FieldType::Text
            };
            match fields.get_mut(index) {
                None => fields.push(Field { name: param.field.clone(), ty }),
                Some(field) if field.name.is_empty() => field.name.clone_from(&param.field),
                Some(_) => {}
            }
        }
    }

    pub(super) fn event_types(&self) -> Vec<EventType> {
        self.types.clone()
    }

    /// Names of threads, from the column `thr` and from parameters that are threads.
    pub(super) fn thread_names(&self, rows: &[Row]) -> Vec<(Thread, String)> {
        let mut names: HashMap<Thread, String> = HashMap::new();
        for row in rows {
            if let (Reported::Some(thread), Some(name)) = (row.thread, &row.thread_name) {
                names.insert(thread, name.clone());
            }
            if let Some(param) = thread_param(row).and_then(|at| row.params.get(at))
                && let (Some(thread), Some(name)) = (thread_of(param), &param.text)
            {
                names.insert(thread, name.clone());
            }
        }
        names.into_iter().collect()
    }

    fn kind(&self, row: &Row) -> u32 {
        self.kinds.get(&(row.level, row.name.clone(), row.code)).copied().unwrap_or(0)
    }
}

/// The type of an event with the parameters of this line.
fn event_type(row: &Row) -> EventType {
    let field = |param: &ListedParam| {
        let ty = if param.number.is_some() { FieldType::I64 } else { FieldType::Text };
        Field { name: param.field.clone(), ty }
    };
    EventType {
        level: row.level,
        code: row.code,
        name: row.name.clone(),
        key: 0,
        fields: row.params.iter().map(field).collect(),
        format: String::new(),
    }
}

/// The parameter that is the number of a user thread.
fn thread_param(row: &Row) -> Option<usize> {
    let known = (row.level == Level::User).then(|| KnownEvent::of(&event_type(row)))??;
    known.field(Role::Thread)
}

fn thread_of(param: &ListedParam) -> Option<Thread> {
    param.number.and_then(|n| u64::try_from(n).ok()).and_then(Thread::from_switch)
}

/// The effect of a line on the state, and the kind of interrupt that begins or ends.
fn effect(row: &Row) -> (Effect, Option<InterruptKind>) {
    let event_type = event_type(row);
    let Some(known) = KnownEvent::of(&event_type) else { return (Effect::None, None) };
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
            reason: number(Role::Reason).map_or(LeaveReason::Unknown, |n| LeaveReason::from_number(n as u64)),
            wait: Wait {
                kind: number(Role::WaitKind).and_then(|kind| WaitKind::from_number(kind as u64)),
                on: number(Role::Object).filter(|on| *on != 0).map(|on| on as u64),
            },
        },
        Meaning::ThreadNew => thread().map_or(Effect::None, Effect::ThreadNew),
        Meaning::ThreadReady => thread().map_or(Effect::None, Effect::ThreadReady),
        _ => {
            let state = |at| number_at(at).map(|bits| TaskState::from_number(bits).into());
            EffectPlan::of(&event_type, Some).effect(number_at, state)
        }
    };
    (effect, None)
}

/// The lines in time order.
#[derive(Debug)]
pub(super) struct ListingStream {
    rows: std::vec::IntoIter<Row>,
    types: ListingTypes,
    /// The kinds of interrupts whose exits are listed. Without listed exits it is unknown which events are in the
    /// interrupt: then only its entry is.
    exits: Vec<InterruptKind>,
}

impl ListingStream {
    pub(super) fn new(rows: Vec<Row>, types: ListingTypes) -> ListingStream {
        let kernel = rows.iter().filter(|row| row.level == Level::Kern);
        let mut exits: Vec<InterruptKind> = Vec::new();
        for (effect, kind) in kernel.map(effect) {
            let is_exit = matches!(effect, Effect::InterruptExit(_));
            exits.extend(kind.filter(|kind| is_exit && !exits.contains(kind)));
        }
        ListingStream { rows: rows.into_iter(), types, exits }
    }
}

impl EventStream for ListingStream {
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
        let Some(row) = self.rows.next() else { return Ok(false) };
        event.tick = Ticks(row.tick);
        event.kind = self.types.kind(&row);
        event.cpu = row.cpu;
        event.lwp = row.lwp;
        event.thread = row.thread;
        event.context = Context::Task;
        let (effect, interrupt) = effect(&row);
        event.effect = effect;
        if let (Effect::InterruptEnter(_), Some(kind)) = (effect, interrupt)
            && !self.exits.contains(&kind)
        {
            (event.effect, event.context) = (Effect::None, interrupt_context(kind));
        }
        event.params.clear();
        for param in &row.params {
            match (param.number, &param.text) {
                (Some(number), Some(name)) => event.params.push_named(number, name),
                (Some(number), None) => event.params.push_number(number),
                (None, Some(text)) => event.params.push_text(text),
                (None, None) => event.params.push_unknown(),
            }
        }
        Ok(true)
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        Vec::new()
    }
}
