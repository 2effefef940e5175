//! The event types of all inputs, and what the merge needs to know about each type at every event.

use std::path::Path;

use sigmund_model::{
    Event, EventType, FieldType, Level, Lwp, Pid, Thread,
    vocabulary::{KnownEvent, Meaning, Role},
};

use crate::{error::Error, machine::Machine, source::OpenedInput};

/// The event types of all sources.
pub(crate) struct InputEventTypes {
    types: Vec<InputEventType>,
    /// The index of the first event type of each source.
    starts: Vec<usize>,
}

/// One event type, and what the merge needs to know about it at every event.
pub(crate) struct InputEventType {
    pub(crate) event_type: EventType,
    pub(crate) level: Level,
    /// The process that the events belong to, if its source has events of only one process.
    pub(crate) pid: Option<Pid>,
    /// File name of the input that declares it.
    pub(crate) source: String,
    pub(crate) events: u64,
    /// The meaning of the event, if it is known.
    pub(crate) known: Option<KnownEvent>,
    pub(crate) meaning: Option<Meaning>,
    /// The part of the event's name that is itself a name: `read` of `sys_enter_read`.
    pub(crate) named: Option<Box<str>>,
    /// Fields of a system call: its number, its return value, its first argument.
    pub(crate) number_field: Option<usize>,
    pub(crate) return_field: Option<usize>,
    pub(crate) argument_field: Option<usize>,
    /// The first field that is a user thread.
    thread_field: Option<usize>,
    /// Fields that name LWPs: for each LWP, the field with its number and the field with its name.
    lwp_name_fields: [Option<(usize, usize)>; 2],
    /// What the event reports about processes.
    about_processes: Option<AboutProcesses>,
}

/// What an event reports about processes, and in which of its fields.
#[derive(Clone, Copy)]
enum AboutProcesses {
    /// The process of an LWP.
    Of { lwp: usize, pid: usize, parent: Option<usize> },
    /// Flags of `clone`. They determine whether the new LWP belongs to the same process.
    Makes { child: usize, flags: usize },
    /// An LWP has a different number from now on.
    Executes { new: usize, old: usize },
}

/// `CLONE_THREAD` (include/uapi/linux/sched.h).
const CLONE_THREAD: i64 = 0x10000;

impl AboutProcesses {
    fn of(known: &KnownEvent) -> Option<AboutProcesses> {
        let lwp = known.field(Role::Lwp)?;
        match known.meaning() {
            Meaning::LwpOfProcess | Meaning::LwpNew => {
                let parent = known.field(Role::ParentProcess);
                Some(AboutProcesses::Of { lwp, pid: known.field(Role::Process)?, parent })
            }
            Meaning::Clone => {
                Some(AboutProcesses::Makes { child: lwp, flags: known.field(Role::CloneFlags)? })
            }
            Meaning::Exec => Some(AboutProcesses::Executes { new: lwp, old: known.field(Role::OldLwp)? }),
            _ => None,
        }
    }

    fn tell(self, event: &Event, machine: &mut Machine) -> Result<(), Error> {
        let number = |index: usize| event.params.number(index);
        let lwp = |index| {
            number(index).and_then(|n| u32::try_from(n).ok()).map(Lwp).filter(|lwp| *lwp != Lwp::IDLE)
        };
        match self {
            AboutProcesses::Of { lwp: of, pid, parent } => {
                if let (Some(of), Some(Lwp(pid))) = (lwp(of), lwp(pid)) {
                    machine.is_of(of, Pid(pid));
                    if let Some(Lwp(parent)) = parent.and_then(lwp).filter(|_| of.0 == pid) {
                        machine.has_parent(Pid(pid), Pid(parent));
                    }
                }
                Ok(())
            }
            AboutProcesses::Makes { child, flags } => {
                if let (Some(child), Some(flags)) = (lwp(child), number(flags)) {
                    machine.makes(event, child, flags & CLONE_THREAD != 0);
                }
                Ok(())
            }
            AboutProcesses::Executes { new, old } => match (lwp(new), lwp(old)) {
                (Some(new), Some(old)) => machine.executes(event, new, old),
                _ => Ok(()),
            },
        }
    }
}

impl InputEventTypes {
    pub(crate) fn of(sources: &[OpenedInput]) -> InputEventTypes {
        let mut event_types = InputEventTypes { types: Vec::new(), starts: Vec::new() };
        for source in sources {
            event_types.starts.push(event_types.types.len());
            let (path, pid) = (&source.path, source.process());
            event_types
                .types
                .extend(source.types.iter().map(|event_type| InputEventType::new(event_type, path, pid)));
        }
        event_types
    }

    /// Counts an event. Returns its type, and the number of the type among all types.
    #[inline]
    pub(crate) fn seen(&mut self, source: usize, event: &Event) -> (usize, &InputEventType) {
        let number = self.starts[source] + event.kind as usize;
        let kind = &mut self.types[number];
        kind.events += 1;
        (number, kind)
    }

    /// The type of an event of a source, and the number of the type among all types.
    pub(crate) fn of_source(&self, source: usize, kind: u32) -> (usize, &InputEventType) {
        let number = self.starts[source] + kind as usize;
        (number, &self.types[number])
    }

    /// All event types.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &InputEventType> + Clone {
        self.types.iter()
    }
}

impl InputEventType {
    pub(crate) fn new(event_type: &EventType, source: &Path, pid: Option<Pid>) -> InputEventType {
        let known = KnownEvent::of(event_type);
        let field = |role| known.and_then(|known| known.field(role));
        let named = |lwp, name| field(lwp).zip(field(name));
        let lwp_name_fields = match known.map(|known| known.meaning()) {
            Some(Meaning::Switch) => {
                [named(Role::PrevLwp, Role::PrevName), named(Role::NextLwp, Role::NextName)]
            }
            Some(Meaning::LwpOfProcess | Meaning::LwpNew) => [named(Role::Lwp, Role::LwpName), None],
            _ => [None; 2],
        };
        InputEventType {
            event_type: event_type.clone(),
            level: event_type.level,
            pid,
            source: source.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned()),
            events: 0,
            number_field: field(Role::Number),
            return_field: field(Role::Return),
            argument_field: field(Role::Argument),
            thread_field: event_type.fields.iter().position(|f| f.ty == FieldType::Thread),
            lwp_name_fields,
            about_processes: known.as_ref().and_then(AboutProcesses::of),
            meaning: known.map(|known| known.meaning()),
            named: known.and_then(|known| known.named_by(&event_type.name).map(Box::from)),
            known,
        }
    }

    /// The user thread that an event names.
    pub(crate) fn declared_thread(&self, event: &Event) -> Option<Thread> {
        let number = event.params.get(self.thread_field?)?.number?;
        u64::try_from(number).ok().and_then(Thread::from_switch)
    }

    /// Reports to the machine what an event contains about processes. Called before the machine gets the event itself.
    #[inline]
    pub(crate) fn tell_processes(&self, event: &Event, machine: &mut Machine) -> Result<(), Error> {
        self.about_processes.map_or(Ok(()), |about| about.tell(event, machine))
    }

    /// Reports to the machine the names of LWPs that an event contains.
    #[inline]
    pub(crate) fn name_lwps(&self, event: &Event, machine: &mut Machine) {
        for (lwp, name) in self.lwp_name_fields.iter().flatten() {
            let lwp = event.params.number(*lwp).and_then(|n| u32::try_from(n).ok()).map(Lwp);
            let name = event.params.get(*name).and_then(|p| p.text);
            if let (Some(lwp), Some(name)) = (lwp.filter(|lwp| *lwp != Lwp::IDLE), name) {
                machine.name_lwp(lwp, name);
            }
        }
    }
}
