//! The lines of a listing as events: what their names mean to the merge, and what their fields are.

use std::collections::HashMap;
use std::io;

use sigmund_model::{
    Context, Cpu, Effect, Event, EventStream, EventType, Field, FieldType, LeaveReason, Level, Loss, Lwp,
    Reported, TaskState, Thread, Ticks, Wait, WaitKind, names,
};

use super::params::ListedParam;
use super::row::Row;

/// The event types of a listing, found by its lines: level, name and code.
#[derive(Debug)]
pub(super) struct Types {
    types: Vec<EventType>,
    places: HashMap<(Level, String, Option<u32>), u32>,
}

impl Types {
    pub(super) fn of(rows: &[Row]) -> Types {
        let mut types = Types { types: Vec::new(), places: HashMap::new() };
        for row in rows {
            types.add(row);
        }
        types
    }

    fn add(&mut self, row: &Row) {
        let key = (row.level, row.name.clone(), row.code);
        let types = &mut self.types;
        let place = *self.places.entry(key).or_insert_with(|| {
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
        let fields = &mut self.types[place as usize].fields;
        for (index, param) in row.params.iter().enumerate() {
            let ty = if names_thread(row, index) {
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
            for (index, param) in row.params.iter().enumerate().filter(|(index, _)| names_thread(row, *index))
            {
                debug_assert_eq!(index, 0);
                if let (Some(thread), Some(name)) = (thread_of(param), &param.text) {
                    names.insert(thread, name.clone());
                }
            }
        }
        names.into_iter().collect()
    }

    fn place(&self, row: &Row) -> u32 {
        self.places.get(&(row.level, row.name.clone(), row.code)).copied().unwrap_or(0)
    }
}

/// Whether a parameter is the number of a user thread.
fn names_thread(row: &Row, index: usize) -> bool {
    index == 0
        && row.level == Level::User
        && matches!(row.name.as_str(), names::USER_CONTEXT_SWITCH | "USER_THREAD_NEW" | "USER_THREAD_READY")
}

fn thread_of(param: &ListedParam) -> Option<Thread> {
    param.number.and_then(|n| u64::try_from(n).ok()).and_then(Thread::from_switch)
}

/// What a line does to the state. Names of the paper and of the kernel mean the same.
fn effect(row: &Row) -> Effect {
    let param = |index: usize, field: &str| {
        let named = row.params.iter().find(|p| p.field == field);
        named.or_else(|| row.params.get(index).filter(|p| p.field.is_empty()))
    };
    let number = |index, field| param(index, field).and_then(|p| p.number);
    let lwp = |field| number(0, field).and_then(|n| u32::try_from(n).ok()).map(Lwp);
    match (row.level, row.name.as_str()) {
        (Level::Kern, names::KERN_CONTEXT_SWITCH | "sched_switch") => match lwp("next_pid") {
            Some(next) => Effect::KernelSwitch {
                prev: None,
                prev_state: number(usize::MAX, "prev_state").map(|bits| TaskState::from_number(bits).into()),
                next,
            },
            None => Effect::None,
        },
        (Level::Kern, "sched_wakeup" | "sched_wakeup_new") => {
            let cpu = number(usize::MAX, "target_cpu").and_then(|n| u32::try_from(n).ok()).map(Cpu);
            lwp("pid").map_or(Effect::None, |lwp| Effect::LwpWakeup { lwp, cpu })
        }
        (Level::Kern, "sched_waking") => lwp("pid").map_or(Effect::None, Effect::LwpWaking),
        (Level::Kern, "sched_process_fork") => lwp("child_pid").map_or(Effect::None, Effect::LwpNew),
        (Level::Kern, names::IRQ | "irq_handler_entry") => {
            Effect::InterruptEnter(number(0, "irq").unwrap_or(-1))
        }
        (Level::Kern, names::IRQ_EXIT | "irq_handler_exit") => {
            Effect::InterruptExit(number(0, "irq").unwrap_or(-1))
        }
        // Softirqs have the numbers −1, −2, …
        (Level::Kern, "softirq_entry") => Effect::InterruptEnter(!number(0, "vec").unwrap_or(0)),
        (Level::Kern, "softirq_exit") => Effect::InterruptExit(!number(0, "vec").unwrap_or(0)),
        (Level::User, names::USER_CONTEXT_SWITCH) => Effect::UserSwitch {
            next: param(0, "next").and_then(thread_of),
            reason: number(1, "reason").map_or(LeaveReason::Unknown, |n| LeaveReason::from_number(n as u64)),
            wait: Wait {
                kind: number(3, "blocked_for").and_then(|kind| WaitKind::from_number(kind as u64)),
                on: number(2, "on").filter(|on| *on != 0).map(|on| on as u64),
            },
        },
        (Level::User, "USER_THREAD_NEW") => {
            param(0, "new").and_then(thread_of).map_or(Effect::None, Effect::ThreadNew)
        }
        (Level::User, "USER_THREAD_READY") => {
            param(0, "ready").and_then(thread_of).map_or(Effect::None, Effect::ThreadReady)
        }
        _ => Effect::None,
    }
}

/// The lines, in the order of time.
#[derive(Debug)]
pub(super) struct ListingStream {
    rows: std::vec::IntoIter<Row>,
    types: Types,
    /// Whether any interrupt's exit is listed. Where none is, nobody can say what is still in an interrupt: then only
    /// the entry itself is.
    shows_exits: bool,
}

impl ListingStream {
    pub(super) fn new(rows: Vec<Row>, types: Types) -> ListingStream {
        let is_exit =
            |row: &Row| matches!(row.name.as_str(), names::IRQ_EXIT | "irq_handler_exit" | "softirq_exit");
        let shows_exits = rows.iter().any(is_exit);
        ListingStream { rows: rows.into_iter(), types, shows_exits }
    }
}

impl EventStream for ListingStream {
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
        let Some(row) = self.rows.next() else { return Ok(false) };
        event.tick = Ticks(row.tick);
        event.kind = self.types.place(&row);
        event.cpu = row.cpu;
        event.lwp = row.lwp;
        event.thread = row.thread;
        event.context = Context::Task;
        event.effect = effect(&row);
        if matches!(event.effect, Effect::InterruptEnter(_)) && !self.shows_exits {
            (event.effect, event.context) = (Effect::None, Context::Irq);
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
