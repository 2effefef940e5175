//! Loads names and lifetimes of user threads, LWPs and processes, and the gaps.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use arrow::array::RecordBatch;
use datafusion::logical_expr::ident;
use sigmund_measures::{Gap, Interval, Life, LivesBuilder, Names};
use sigmund_model::{
    LossKind,
    tables::{LOSSES, LWPS, PROCESSES, THREADS},
};
use sigmund_sql::SuperTrace;

use super::cells::{Small, Texts, Wide, Words, interval, overlapping, read, read_threads, stream};
use crate::Error;

/// Room is made for at most so many lives at once (335 MB). For more, it grows as they are read.
const MOST_RESERVED: u64 = 1 << 23;

/// From the beginning of the first of these threads to the end of the last; `None` if none of them is known.
pub(super) async fn lives(
    trace: &SuperTrace,
    threads: &BTreeSet<u64>,
    last: i64,
) -> Result<Option<Interval>, Error> {
    let mut lives: Option<Interval> = None;
    read_threads(trace, threads, &["ts_tick", "dur_tick"], |batch| {
        let (from, length) = (Wide::of(batch, 0), Wide::of(batch, 1));
        for row in 0..batch.num_rows() {
            let life = interval(from.or_zero(row), length.get(row), last);
            let all = lives.get_or_insert(life);
            *all = Interval::new(all.from.min(life.from), all.to.max(life.to));
        }
    })
    .await?;
    Ok(lives)
}

/// Which user threads have their names and lives loaded.
#[derive(Clone, Copy)]
pub(super) struct Named<'a> {
    /// Those that live in this window.
    pub(super) lives: Interval,
    /// Of them, only these.
    pub(super) only: Option<&'a BTreeSet<u64>>,
}

/// Loads names and lives. Of user threads only those that live in the window.
pub(super) async fn names(
    trace: &SuperTrace,
    Named { lives, only }: Named<'_>,
    last: i64,
    names: &mut Names,
) -> Result<(), Error> {
    let columns = ["thread", "name", "pid", "ts_tick", "dur_tick", "created_by"];
    let mut threads = LivesBuilder::default();
    if only.is_none() && lives == Interval::ALL {
        // The number comes from the file, so it is not believed beyond this.
        threads.reserve(trace.row_count(&THREADS).min(MOST_RESERVED) as usize);
    }
    let each = |batch: &RecordBatch| {
        let (thread, created_by, rows) = (Wide::of(batch, 0), Wide::of(batch, 5), Rows::of(batch, last));
        for row in 0..batch.num_rows() {
            let life = Life { created_by: created_by.thread(row), ..rows.life(row) };
            if lives == Interval::ALL || life.interval.from < lives.to && life.interval.to >= lives.from {
                threads.push(thread.or_zero(row) as u64, life);
            }
        }
    };
    match only {
        Some(only) => read_threads(trace, only, &columns, each).await?,
        None if lives == Interval::ALL => read(trace, &THREADS, &columns, each).await?,
        None => {
            let on_table = Error::on(trace, THREADS.name);
            let frame = overlapping(trace.raw(&THREADS).await?, lives).map_err(&on_table)?;
            let frame = frame.select(columns.iter().map(|column| ident(*column))).map_err(&on_table)?;
            stream(trace, THREADS.name, frame, each).await?;
        }
    }
    names.threads = threads.build();
    let mut lwps = LivesBuilder::default();
    let columns = ["lwp", "name", "pid", "ts_tick", "dur_tick"];
    read(trace, &LWPS, &columns, |batch| {
        let (lwp, rows) = (Small::of(batch, 0), Rows::of(batch, last));
        for row in 0..batch.num_rows() {
            lwps.push(lwp.or_zero(row), rows.life(row));
        }
    })
    .await?;
    names.lwps = lwps.build();
    if trace.info().left_out_tables().any(|table| table == PROCESSES.name) {
        return Ok(());
    }
    let mut processes = HashMap::new();
    read(trace, &PROCESSES, &["pid", "name"], |batch| {
        let (pid, name) = (Small::of(batch, 0), Texts::of(batch, 1));
        for row in 0..batch.num_rows() {
            if let (Some(pid), Some(name)) = (pid.get(row), name.get(row)) {
                processes.insert(pid, name.into());
            }
        }
    })
    .await?;
    names.processes = Arc::new(processes);
    Ok(())
}

/// The columns name, pid, ts_tick and dur_tick of a batch, which begin at its second column.
struct Rows<'b> {
    name: Texts<'b>,
    pid: Small<'b>,
    from: Wide<'b>,
    length: Wide<'b>,
    last: i64,
}

impl<'b> Rows<'b> {
    fn of(batch: &'b RecordBatch, last: i64) -> Rows<'b> {
        let (name, pid) = (Texts::of(batch, 1), Small::of(batch, 2));
        Rows { name, pid, from: Wide::of(batch, 3), length: Wide::of(batch, 4), last }
    }

    /// The life in a row, without its creator.
    fn life(&self, row: usize) -> Life<'b> {
        Life {
            name: self.name.get(row),
            pid: self.pid.get(row),
            interval: interval(self.from.or_zero(row), self.length.get(row), self.last),
            created_by: None,
        }
    }
}

/// The gaps in events that analyses depend on.
pub(in crate::measured) async fn gaps(trace: &SuperTrace, extent: Interval) -> Result<Vec<Gap>, Error> {
    let mut gaps = Vec::new();
    read(trace, &LOSSES, &["severity", "cpu", "lwp", "from_tick", "to_tick", "kind"], |batch| {
        let is_note = Words::of(batch, 0, |word| word == "note");
        let (cpu, lwp) = (Small::of(batch, 1), Small::of(batch, 2));
        let (from, to) = (Wide::of(batch, 3), Wide::of(batch, 4));
        let is_sum = Words::of(batch, 5, |word| word == LossKind::Contradiction.name());
        for row in (0..batch.num_rows()).filter(|row| is_note.get(*row) != Some(true)) {
            // A contradiction without a time (for example that of counters that are not aligned) covers the whole
            // trace.
            let is_sum = is_sum.get(row) == Some(true) && from.get(row).is_some() && to.get(row).is_some();
            let from = from.get(row).unwrap_or(extent.from);
            let interval = Interval::new(from, to.get(row).unwrap_or(extent.to));
            gaps.push(Gap { interval, cpu: cpu.get(row), lwp: lwp.get(row), is_sum });
        }
    })
    .await?;
    Ok(gaps)
}
