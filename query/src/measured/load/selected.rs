//! What a question about some user threads needs: the rows of these threads, and of other rows those of the times in which they
//! matter to these threads.

use std::collections::BTreeSet;

use arrow::array::RecordBatch;
use sigmund_measures::{Needs, Slicer};
use sigmund_model::{
    Hertz,
    tables::{LWP_STATES, THREAD_STATES},
};
use sigmund_sql::SuperTrace;

use super::{
    AHEAD, MOST_LIVES,
    own::OwnRows,
    polled,
    reader::{Reader, TableReader, Wanted},
    states,
    times::Times,
};
use crate::Error;

/// The rows of the selected threads, and the times of which other rows are of use.
pub(super) struct Selected {
    threads: BTreeSet<u64>,
    rows: OwnRows,
    /// When one of these threads was stalled, if it matters what ran on its CPU.
    stalls: Times,
    /// When an LWP was awake that then unparked one of these threads, if that matters.
    polled: Times,
    /// When one of these threads was on an LWP, if it matters what the LWP did.
    on_lwps: Times,
    /// When the LWP of one of these threads slept.
    asleep: Times,
}

impl Selected {
    /// `None` if all rows have to be read: the measure needs them, or the rows of these threads are not so few. `last` is the last
    /// tick of the trace.
    pub(super) async fn read(
        trace: &SuperTrace,
        threads: Option<&BTreeSet<u64>>,
        needs: Needs,
        wanted: &Wanted,
        (last, hz): (i64, Option<Hertz>),
    ) -> Result<Option<Selected>, Error> {
        let threads = threads.filter(|threads| needs.only_own && threads.len() <= MOST_LIVES);
        let Some(threads) = threads else { return Ok(None) };
        let Some(rows) = OwnRows::read(trace, threads, wanted, (last, hz)).await? else { return Ok(None) };
        let polled = if needs.pollers {
            polled::before_unparks(trace, threads, wanted.window).await?
        } else {
            Some(Times::default())
        };
        let stalls = if needs.on_cpu { rows.stalls() } else { Times::default() };
        let on_lwps = if needs.only_pollers { Times::default() } else { rows.on_lwps() };
        let asleep = rows.asleep();
        Ok(polled.map(|polled| Selected { threads: threads.clone(), rows, stalls, polled, on_lwps, asleep }))
    }

    /// Whether it matters what ran on the CPUs at some time.
    pub(super) fn has_stalls(&self) -> bool {
        !self.stalls.is_empty()
    }

    /// The times of which interrupts and system calls are of use.
    pub(super) fn on_lwps(&self) -> Times {
        self.on_lwps.clone()
    }

    /// The times of which system calls are of use in which an LWP slept.
    pub(super) fn asleep(&self) -> Times {
        self.asleep.clone()
    }

    /// Readers of the states of user threads and LWPs: of all that `of_states` and `of_lwps` select, the rows that are of use.
    pub(super) fn readers(
        self,
        trace: &SuperTrace,
        needs: Needs,
        (of_states, of_lwps): (Wanted, Wanted),
        last: i64,
    ) -> Result<Vec<Box<dyn Reader>>, Error> {
        let Selected { threads, rows, stalls, polled, on_lwps, .. } = self;
        let mut readers: Vec<Box<dyn Reader>> = Vec::new();
        let of_others = stalls.and(&polled);
        if !of_others.is_empty() {
            let wanted = Wanted { times: of_others.clone(), ..of_states };
            let decode = move |batch: &RecordBatch| {
                let mut touched = of_others.touched();
                states::on_lwps(batch, last, |thread, interval| {
                    touched.has(interval.from, interval.to) && !threads.contains(&thread)
                })
            };
            let (table, add) = ((&THREAD_STATES, states::OF_PLACES), Slicer::threads);
            readers.push(TableReader::open_ahead(trace, table, wanted, decode, add, AHEAD)?);
        }
        let times = on_lwps.and(&polled);
        let (table, add) = ((&LWP_STATES, states::OF_LWPS), Slicer::lwps);
        if needs.lwp_states && !stalls.is_empty() {
            let decode = move |batch: &RecordBatch| {
                let matters = states::lwps_near(batch, last, &times);
                states::of_lwps(batch, last, |row, _| matters[row])
            };
            readers.push(TableReader::open_ahead(trace, table, of_lwps, decode, add, AHEAD)?);
        } else if needs.lwp_states && !times.is_empty() {
            let wanted = Wanted { times: times.clone(), ..of_lwps };
            let decode = move |batch: &RecordBatch| {
                let mut touched = times.touched();
                states::of_lwps(batch, last, |_, interval| touched.has(interval.from, interval.to))
            };
            readers.push(TableReader::open_ahead(trace, table, wanted, decode, add, AHEAD)?);
        }
        readers.push(Box::new(rows));
        Ok(readers)
    }
}
