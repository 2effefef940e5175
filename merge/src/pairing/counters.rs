//! Counters: the number of LWPs in the run queue of each CPU, and of user threads in the ready queue of each process.
//!
//! Changes at the same instant are one row. A switch that puts one LWP into a queue and takes another one out of it
//! changes nothing.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sigmund_model::{Cpu, Pid, Ticks};

use crate::{error::Error, tables::OptionalTable};

/// A counted queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Queue {
    /// Runnable LWPs that wait for this CPU.
    Run(Cpu),
    /// Ready user threads of this process.
    Ready(Option<Pid>),
}

#[derive(Clone, Copy, Debug, Default)]
struct Length {
    now: i64,
    written: i64,
}

/// The table, and the current lengths of all queues.
pub(crate) struct Counters {
    rows: OptionalTable,
    lengths: HashMap<Queue, Length, RandomState>,
    /// Queues whose length has changed at `at`.
    changed: Vec<Queue>,
    at: Ticks,
}

impl Counters {
    pub(super) fn new(rows: OptionalTable) -> Counters {
        Counters { rows, lengths: HashMap::default(), changed: Vec::new(), at: Ticks(0) }
    }

    /// An LWP or user thread leaves queue `from`, if any, and enters queue `to`, if any.
    #[inline]
    pub(crate) fn moves(&mut self, from: Option<Queue>, to: Option<Queue>, tick: Ticks) -> Result<(), Error> {
        if from == to || !self.rows.is_written() { Ok(()) } else { self.change(from, to, tick) }
    }

    fn change(&mut self, from: Option<Queue>, to: Option<Queue>, tick: Ticks) -> Result<(), Error> {
        if tick > self.at {
            self.write_changes()?;
            self.at = tick;
        }
        for (queue, by) in [(from, -1), (to, 1)] {
            if let Some(queue) = queue {
                self.lengths.entry(queue).or_default().now += by;
                self.changed.push(queue);
            }
        }
        Ok(())
    }

    fn write_changes(&mut self) -> Result<(), Error> {
        for queue in self.changed.drain(..) {
            let Some(length) = self.lengths.get_mut(&queue).filter(|length| length.now != length.written)
            else {
                continue;
            };
            length.written = length.now;
            let (kind, cpu, pid) = match queue {
                Queue::Run(cpu) => ("run-queue", Some(cpu), None),
                Queue::Ready(pid) => ("ready-queue", None, pid),
            };
            let (at, value) = (self.at, length.now);
            self.rows.row(|mut row| {
                row.count(at.0).text(kind).maybe_int(cpu.map(|cpu| cpu.0.into()));
                row.maybe_int(pid.map(|pid| pid.0.into())).int(value);
            })?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<(), Error> {
        self.write_changes()?;
        self.rows.finish()
    }
}
