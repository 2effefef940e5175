//! Interrupts: from the entry of a handler to its exit, on one CPU. They nest.
//!
//! An event in task context shows that every handler of its CPU has returned. A handler whose exit was not traced is
//! known up to the last event inside it.

use sigmund_model::{Cpu, EndReason, Lwp, Thread, Ticks, vocabulary::InterruptKind};

use super::names::{NameId, Names};
use crate::{error::Error, tables::OptionalTable};

/// Maximum nesting depth; if more are open, exits are missing.
const DEEPEST: usize = 16;

/// Larger CPU numbers are taken to be damaged; their interrupts are left out.
const MOST_CPUS: usize = 1 << 16;

/// What an event reports about an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InterruptEvent<'e> {
    pub(crate) kind: InterruptKind,
    pub(crate) number: Option<i64>,
    pub(crate) name: Option<&'e str>,
}

#[derive(Clone, Copy, Debug)]
struct OpenInterrupt {
    since: Ticks,
    kind: InterruptKind,
    number: Option<i64>,
    name: Option<NameId>,
    lwp: Option<Lwp>,
    thread: Option<Thread>,
}

/// The open interrupts of one CPU, the innermost last.
#[derive(Debug, Default)]
struct Stack {
    open: Vec<OpenInterrupt>,
    /// The last event inside them.
    known_until: Ticks,
}

/// The table, and the open interrupts.
pub(crate) struct Interrupts {
    rows: OptionalTable,
    names: Names,
    stacks: Vec<Stack>,
    /// Number of open interrupts on all CPUs.
    open: usize,
}

impl Interrupts {
    pub(super) fn new(rows: OptionalTable) -> Interrupts {
        Interrupts { rows, names: Names::default(), stacks: Vec::new(), open: 0 }
    }

    /// An event on a CPU, in task context or not. To be called before the interrupt that the event itself begins or
    /// ends.
    #[inline]
    pub(crate) fn event(&mut self, cpu: Cpu, in_task: bool, tick: Ticks) -> Result<(), Error> {
        if self.open == 0 { Ok(()) } else { self.event_while_open(cpu, in_task, tick) }
    }

    fn event_while_open(&mut self, cpu: Cpu, in_task: bool, tick: Ticks) -> Result<(), Error> {
        let Some(stack) = self.stacks.get_mut(cpu.0 as usize).filter(|stack| !stack.open.is_empty()) else {
            return Ok(());
        };
        if in_task {
            let known_until = stack.known_until;
            return self.end_all(cpu, known_until, EndReason::Unseen);
        }
        stack.known_until = tick;
        Ok(())
    }

    /// A handler begins; it interrupts this LWP and this user thread.
    pub(crate) fn enter(
        &mut self,
        cpu: Cpu,
        event: InterruptEvent<'_>,
        (lwp, thread): (Option<Lwp>, Option<Thread>),
        tick: Ticks,
    ) -> Result<(), Error> {
        let index = cpu.0 as usize;
        if index >= MOST_CPUS || !self.rows.is_written() {
            return Ok(());
        }
        if self.stacks.len() <= index {
            self.stacks.resize_with(index + 1, Stack::default);
        }
        if self.stacks[index].open.len() >= DEEPEST {
            let known_until = self.stacks[index].known_until;
            self.end_all(cpu, known_until, EndReason::Unseen)?;
        }
        let name = event.name.and_then(|name| self.names.id(name));
        let (kind, number) = (event.kind, event.number);
        let stack = &mut self.stacks[index];
        stack.open.push(OpenInterrupt { since: tick, kind, number, name, lwp, thread });
        stack.known_until = tick;
        self.open += 1;
        Ok(())
    }

    /// A handler ends: the innermost of this kind and number. Handlers nested in it have also ended.
    pub(crate) fn exit(&mut self, cpu: Cpu, event: InterruptEvent<'_>, tick: Ticks) -> Result<(), Error> {
        let Some(stack) = self.stacks.get(cpu.0 as usize) else { return Ok(()) };
        let is_it = |open: &OpenInterrupt| {
            open.kind == event.kind && (open.number == event.number || event.number.is_none())
        };
        let Some(place) = stack.open.iter().rposition(is_it) else { return Ok(()) };
        let known_until = stack.known_until;
        while self.stacks[cpu.0 as usize].open.len() > place + 1 {
            self.end(cpu, known_until, EndReason::Unseen)?;
        }
        self.end(cpu, tick, EndReason::Returned)?;
        self.stacks[cpu.0 as usize].known_until = tick;
        Ok(())
    }

    /// An interrupt that is reported by one event, after its end.
    pub(crate) fn ended(
        &mut self,
        cpu: Cpu,
        event: InterruptEvent<'_>,
        (lwp, thread): (Option<Lwp>, Option<Thread>),
        (since, tick): (Ticks, Ticks),
    ) -> Result<(), Error> {
        self.enter(cpu, event, (lwp, thread), since)?;
        self.exit(cpu, event, tick)
    }

    /// A gap in the events of this CPU begins.
    pub(crate) fn lose(&mut self, cpu: Cpu, tick: Ticks) -> Result<(), Error> {
        self.end_all(cpu, tick, EndReason::Lost)
    }

    fn end_all(&mut self, cpu: Cpu, tick: Ticks, reason: EndReason) -> Result<(), Error> {
        while self.stacks.get(cpu.0 as usize).is_some_and(|stack| !stack.open.is_empty()) {
            self.end(cpu, tick, reason)?;
        }
        Ok(())
    }

    /// Ends the innermost interrupt.
    fn end(&mut self, cpu: Cpu, tick: Ticks, reason: EndReason) -> Result<(), Error> {
        let stack = &mut self.stacks[cpu.0 as usize];
        let Some(open) = stack.open.pop() else { return Ok(()) };
        let depth = stack.open.len() as i64;
        let parent = stack.open.last().map(|parent| parent.since.0);
        self.open -= 1;
        let end = tick.max(open.since);
        let names = &self.names;
        self.rows.row(|mut row| {
            row.count(open.since.0).count(end.0 - open.since.0).int(cpu.0).text(open.kind.name());
            row.maybe_int(open.number).maybe_text(open.name.map(|name| names.of(name)));
            row.maybe_int(open.lwp.map(|lwp| lwp.0.into())).maybe_count(open.thread.map(|thread| thread.0));
            row.int(depth).text(reason.name()).maybe_count(parent);
        })
    }

    /// The trace ends.
    pub(crate) fn end_trace(&mut self, tick: Ticks) -> Result<(), Error> {
        (0..self.stacks.len() as u32)
            .map(Cpu)
            .try_for_each(|cpu| self.end_all(cpu, tick, EndReason::TraceEnd))
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        self.rows.finish()
    }
}
