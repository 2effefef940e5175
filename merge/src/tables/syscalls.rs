//! The table `syscalls`. Many traces have a row for every two events, so its columns are filled without lookups, and a
//! name is a key into the list of names.

use std::sync::Arc;

use sigmund_model::{EndReason, Lwp, Thread, Ticks, tables::SYSCALLS};

use super::{directory::Directory, writer::BATCH_ROWS};
use crate::{
    encoding::{Cells, Filled, Keys, Levels, NONE, Parts, Values},
    error::Error,
};

/// One system call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SyscallRow<'r> {
    pub(crate) since: Ticks,
    pub(crate) end: Ticks,
    pub(crate) lwp: Lwp,
    pub(crate) thread: Option<Thread>,
    pub(crate) number: Option<i64>,
    /// The key of its name.
    pub(crate) name: Option<u32>,
    pub(crate) args: &'r [i64],
    pub(crate) ret: Option<i64>,
    /// The part of its length in which its LWP was not on a CPU.
    pub(crate) off_cpu: Option<u64>,
    pub(crate) reason: EndReason,
}

/// Writes the table `syscalls`.
pub(crate) struct SyscallRows {
    parts: Parts,
    reasons: Arc<Values>,
    tick: Vec<i64>,
    dur: Vec<i64>,
    lwp: Vec<i64>,
    thread: Filled<Vec<i64>>,
    number: Filled<Vec<i64>>,
    name: Vec<u32>,
    args: Filled<Vec<i64>>,
    ret: Filled<Vec<i64>>,
    off_cpu: Filled<Vec<i64>>,
    reason: Vec<u32>,
}

impl SyscallRows {
    /// Creates the table, unless its name is among those left out.
    pub(crate) fn create(directory: &Directory, left_out: &[String]) -> Result<Option<SyscallRows>, Error> {
        if left_out.iter().any(|name| name == SYSCALLS.name) {
            return Ok(None);
        }
        Ok(Some(SyscallRows {
            parts: directory.parts(&SYSCALLS)?,
            reasons: Values::texts(EndReason::ALL.iter().map(|reason| reason.name())),
            tick: Vec::with_capacity(BATCH_ROWS),
            dur: Vec::with_capacity(BATCH_ROWS),
            lwp: Vec::with_capacity(BATCH_ROWS),
            thread: Filled::default(),
            number: Filled::default(),
            name: Vec::with_capacity(BATCH_ROWS),
            args: Filled::default(),
            ret: Filled::default(),
            off_cpu: Filled::default(),
            reason: Vec::with_capacity(BATCH_ROWS),
        }))
    }

    /// Adds a row. Names are keys into `names`, which may have grown since the previous row.
    #[inline]
    pub(crate) fn push<'n>(
        &mut self,
        row: SyscallRow<'_>,
        names: impl Iterator<Item = &'n str>,
    ) -> Result<(), Error> {
        self.tick.push(row.since.0 as i64);
        self.dur.push((row.end.0 - row.since.0) as i64);
        self.lwp.push(i64::from(row.lwp.0 as i32));
        self.thread.push(row.thread.map(|thread| thread.0 as i64));
        self.number.push(row.number);
        self.name.push(row.name.unwrap_or(NONE));
        self.args.push_numbers(row.args.iter().copied());
        self.ret.push(row.ret);
        self.off_cpu.push(row.off_cpu.map(|ticks| ticks as i64));
        self.reason.push(row.reason as u32);
        if self.tick.len() >= BATCH_ROWS { self.flush(names) } else { Ok(()) }
    }

    /// Completes the files.
    pub(crate) fn finish<'n>(mut self, names: impl Iterator<Item = &'n str>) -> Result<(), Error> {
        self.flush(names)?;
        self.parts.finish()
    }

    fn flush<'n>(&mut self, names: impl Iterator<Item = &'n str>) -> Result<(), Error> {
        let rows = self.tick.len();
        let full = |values: &mut Vec<i64>| {
            let values = std::mem::replace(values, Vec::with_capacity(BATCH_ROWS));
            Cells::Numbers(Filled { levels: Levels::all(rows), values })
        };
        let keys = |keys: &mut Vec<u32>, values: Arc<Values>| {
            let keys = Arc::new(std::mem::replace(keys, Vec::with_capacity(BATCH_ROWS)));
            Cells::Keys(Keys { keys, values })
        };
        // In the order of the table's columns.
        let batch = vec![
            full(&mut self.tick),
            full(&mut self.dur),
            full(&mut self.lwp),
            Cells::Numbers(self.thread.take()),
            Cells::Numbers(self.number.take()),
            keys(&mut self.name, Values::texts(names)),
            Cells::Numbers(self.args.take()),
            Cells::Numbers(self.ret.take()),
            Cells::Numbers(self.off_cpu.take()),
            keys(&mut self.reason, Arc::clone(&self.reasons)),
        ];
        self.parts.write(batch, rows)
    }
}
