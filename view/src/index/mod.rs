//! The index of a super-trace for drawing: the places and states of actors, as partitions of time with prefix sums.
//!
//! | track | a row | its values | from |
//! |---|---|---|---|
//! | thread state | a user thread | its state | `thread_states` |
//! | LWP state | an LWP | its state | `lwp_states` |
//! | LWP's thread | an LWP | the user thread mounted on it | `thread_states` |
//! | CPU's LWP | a CPU | the LWP on it | `lwp_states`, running |
//! | CPU's thread | a CPU | the user thread that executed there | `active` |
//!
//! In addition, it has the number of user threads (or LWPs) in each state over time, and the number of events.

mod fingerprint;
mod frugal;
pub(crate) mod gather;
mod make;
pub(crate) mod partition;
pub(crate) mod pixels;
pub(crate) mod population;
pub(crate) mod row;
pub(crate) mod run;
mod store;

use std::path::Path;

use serde::{Deserialize, Serialize};
use sigmund_model::{LwpState, ThreadState};
use sigmund_sql::SuperTrace;

use self::{
    partition::{Arrays, ROW, TrackSet, Values},
    population::{BUCKETS, Population},
    row::Row,
    store::{Mapped, Span},
};
use crate::actors::Actors;

/// A kind of track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Track {
    ThreadState,
    LwpState,
    LwpThread,
    CpuLwp,
    CpuThread,
}

impl Track {
    const ALL: [Track; 5] =
        [Track::ThreadState, Track::LwpState, Track::LwpThread, Track::CpuLwp, Track::CpuThread];

    pub(crate) fn values(self) -> Values {
        match self {
            Track::ThreadState => Values::States(ThreadState::ALL.len()),
            Track::LwpState => Values::States(LwpState::ALL.len()),
            _ => Values::Identities,
        }
    }

    /// The number of its rows.
    fn rows(self, actors: &Actors) -> usize {
        match self {
            Track::ThreadState => actors.threads.numbers.len(),
            Track::LwpState | Track::LwpThread => actors.lwps.len(),
            Track::CpuLwp | Track::CpuThread => actors.cpus.len(),
        }
    }
}

/// All rows of a track, in a part of its time.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Part {
    track: Track,
    rows: Span,
    lengths: Span,
    values: Span,
    long: Span,
    begins: Span,
    sums: Span,
}

/// The content of an index file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Header {
    fingerprint: String,
    /// The number of intervals whose row is in no table of actors.
    stray: u64,
    /// The parts of each track are in the order of time.
    parts: Vec<Part>,
    from: i64,
    bucket: u64,
    states: usize,
    population: Span,
    density: Span,
}

/// The index.
pub(crate) struct Index {
    file: Mapped,
    header: Header,
    population: Population,
    density: Vec<u32>,
    /// The last check of how much of it counts as memory.
    looked: frugal::Looked,
}

/// The progress in making an index.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The table that is being read.
    pub table: &'static str,
    /// Intervals read so far, of all tables.
    pub intervals: u64,
}

impl Index {
    /// The index of a super-trace. It is the index in `cache`, if that index belongs to this super-trace; otherwise a
    /// new one is made and kept there.
    ///
    /// # Errors
    /// If a table cannot be read, or the index cannot be written anywhere.
    pub(crate) async fn open(
        trace: &SuperTrace,
        actors: &Actors,
        cache: Option<&Path>,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Index, crate::Error> {
        let fingerprint = fingerprint::of(trace.path());
        let path = cache.map(|cache| cache.join(format!("{}.index", fingerprint::name(&fingerprint))));
        let kept = path.as_deref().and_then(Mapped::open);
        if let Some(index) = kept.and_then(|file| Index::of(file, &fingerprint, actors).ok()) {
            return Ok(index);
        }
        let file = make::make(trace, actors, fingerprint.clone(), path.as_deref(), progress).await?;
        Index::of(file, &fingerprint, actors).map_err(crate::Error::defect)
    }

    /// Checks that the parts of a mapped index are consistent.
    fn of(file: Mapped, fingerprint: &str, actors: &Actors) -> Result<Index, String> {
        let header: Header = file.header().ok_or("it is not whole")?;
        if header.fingerprint != fingerprint {
            return Err("it is of another super-trace".to_string());
        }
        for track in Track::ALL {
            let parts = header.parts.iter().filter(|part| part.track == track);
            for part in parts {
                let set = TrackSet::new(arrays(&file, part), track.values())?;
                if set.rows() != track.rows(actors) {
                    return Err("it has other rows".to_string());
                }
            }
        }
        let ticks = file.array(header.population).chunks_exact(8);
        let ticks: Vec<u64> = ticks.map(|tick| tick.try_into().map_or(0, u64::from_le_bytes)).collect();
        let density = file.array(header.density).chunks_exact(4);
        let density: Vec<u32> = density.map(|n| n.try_into().map_or(0, u32::from_le_bytes)).collect();
        if ticks.len() != BUCKETS * header.states || density.len() != BUCKETS || header.bucket == 0 {
            return Err("its totals are missing".to_string());
        }
        let (from, width, states) = (header.from, header.bucket, header.states);
        let population = Population { from, width, states, ticks };
        Ok(Index { file, header, population, density, looked: frugal::Looked::default() })
    }

    /// A row of a track. If it does not exist, it has no intervals.
    pub(crate) fn row(&self, track: Track, row: usize) -> Row<'_> {
        // A question about all rows reads the whole index.
        if self.looked.is_due() {
            self.give_back_too_much();
        }
        let parts = self.header.parts.iter().filter(|part| part.track == track);
        let has_it = |part: &&Part| (row + 1) * ROW < part.rows.length();
        let sets = parts.filter(has_it);
        let sets = sets.map(|part| TrackSet::of_checked(arrays(&self.file, part), track.values()));
        Row::new(sets, track.values(), row)
    }

    /// The number of user threads in each state; of LWPs, if there are no user threads.
    pub(crate) fn population(&self) -> &Population {
        &self.population
    }

    /// The number of events in `[from, to)`. Events are assumed to be evenly distributed within each of the
    /// [`BUCKETS`].
    pub(crate) fn events(&self, from: i64, to: i64) -> f64 {
        let offset = |tick: i64| {
            let offset = tick.saturating_sub(self.header.from).max(0) as f64;
            (offset / self.header.bucket as f64).min(BUCKETS as f64)
        };
        let (mut at, to) = (offset(from), offset(to));
        let mut events = 0.0;
        while at < to {
            let end = ((at as usize + 1) as f64).min(to);
            events += f64::from(self.density.get(at as usize).copied().unwrap_or_default()) * (end - at);
            at = end;
        }
        events
    }

    /// The number of intervals whose row is in no table of actors. They are not shown.
    pub(crate) fn stray(&self) -> u64 {
        self.header.stray
    }

    /// Must be called after each question. It keeps the server's memory small.
    pub(crate) fn answered(&self) {
        self.give_back_too_much();
    }

    fn give_back_too_much(&self) {
        if frugal::is_too_much() {
            self.file.give_back();
        }
    }

    /// Its size in bytes.
    pub(crate) fn size(&self) -> usize {
        self.file.size()
    }
}

fn arrays<'f>(file: &'f Mapped, part: &Part) -> Arrays<'f> {
    Arrays {
        rows: file.array(part.rows),
        lengths: file.array(part.lengths),
        values: file.array(part.values),
        long: file.array(part.long),
        begins: file.array(part.begins),
        sums: file.array(part.sums),
    }
}
