//! The table `syscalls`. Many traces have a row for every two events, so its columns are filled without lookups, and a
//! name is a key into the list of names.

use std::sync::Arc;

use sigmund_model::{EndReason, Lwp, Thread, Ticks, tables::SYSCALLS};

use super::{directory::Directory, writer::BATCH_ROWS};
use crate::{
    encoding::{Cells, Filled, GATHERED_ROWS, Gathered, Keys, Levels, NONE, Parts, Values},
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
    /// The part of its length during which its LWP was not on a CPU.
    pub(crate) off_cpu: Option<u64>,
    pub(crate) reason: EndReason,
}

/// Writes the table `syscalls`.
pub(crate) struct SyscallRows {
    parts: Parts,
    reasons: Arc<Values>,
    gathered: GatheredCalls,
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

/// The last few rows, without their arguments.
struct GatheredCalls {
    rows: usize,
    tick: [i64; GATHERED_ROWS],
    dur: [i64; GATHERED_ROWS],
    lwp: [i64; GATHERED_ROWS],
    thread: Gathered,
    number: Gathered,
    name: [u32; GATHERED_ROWS],
    ret: Gathered,
    off_cpu: Gathered,
    reason: [u32; GATHERED_ROWS],
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
            gathered: GatheredCalls::default(),
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
        self.args.push_numbers(row.args.iter().copied());
        self.gathered.push(&row);
        if self.gathered.rows < GATHERED_ROWS {
            return Ok(());
        }
        self.settle();
        if self.tick.len() >= BATCH_ROWS { self.flush(names) } else { Ok(()) }
    }

    /// Completes the files.
    pub(crate) fn finish<'n>(mut self, names: impl Iterator<Item = &'n str>) -> Result<(), Error> {
        self.flush(names)?;
        self.parts.finish()
    }

    /// Adds the gathered rows to the columns.
    fn settle(&mut self) {
        let gathered = &mut self.gathered;
        let rows = std::mem::take(&mut gathered.rows);
        self.tick.extend_from_slice(&gathered.tick[..rows]);
        self.dur.extend_from_slice(&gathered.dur[..rows]);
        self.lwp.extend_from_slice(&gathered.lwp[..rows]);
        self.thread.push_gathered(&mut gathered.thread, rows);
        self.number.push_gathered(&mut gathered.number, rows);
        self.name.extend_from_slice(&gathered.name[..rows]);
        self.ret.push_gathered(&mut gathered.ret, rows);
        self.off_cpu.push_gathered(&mut gathered.off_cpu, rows);
        self.reason.extend_from_slice(&gathered.reason[..rows]);
    }

    fn flush<'n>(&mut self, names: impl Iterator<Item = &'n str>) -> Result<(), Error> {
        self.settle();
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

impl GatheredCalls {
    #[inline]
    fn push(&mut self, call: &SyscallRow<'_>) {
        let row = self.rows % GATHERED_ROWS;
        self.tick[row] = call.since.0 as i64;
        self.dur[row] = (call.end.0 - call.since.0) as i64;
        self.lwp[row] = i64::from(call.lwp.0 as i32);
        self.thread.fill(row, call.thread.map(|thread| thread.0 as i64));
        self.number.fill(row, call.number);
        self.name[row] = call.name.unwrap_or(NONE);
        self.ret.fill(row, call.ret);
        self.off_cpu.fill(row, call.off_cpu.map(|ticks| ticks as i64));
        self.reason[row] = call.reason as u32;
        self.rows = row + 1;
    }
}

impl Default for GatheredCalls {
    fn default() -> GatheredCalls {
        let none = Gathered::default();
        GatheredCalls {
            rows: 0,
            tick: [0; GATHERED_ROWS],
            dur: [0; GATHERED_ROWS],
            lwp: [0; GATHERED_ROWS],
            thread: none,
            number: none,
            name: [NONE; GATHERED_ROWS],
            ret: none,
            off_cpu: none,
            reason: [0; GATHERED_ROWS],
        }
    }
}
