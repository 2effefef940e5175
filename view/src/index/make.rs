//! Makes the index of a super-trace from its tables.
//!
//! Tables of intervals are sorted by the end. So the intervals of one row are in the order of time, but the intervals
//! of different rows are mixed. Each table is read once. Up to [`MOST_CHUNKS`] chunks of row groups are decoded at the
//! same time. Runs are made of them: intervals sorted by row ([`run`](super::run)). The end of each row is passed from
//! one run to the next, in the order of the table. When the runs of a track have [`PART`] intervals, they are gathered
//! into a part of the index ([`gather`](super::gather)), and it is written. So the memory does not grow with the trace.

use std::{io, mem, ops::Range, path::Path};

use arrow::array::RecordBatch;
use rayon::prelude::*;
use sigmund_model::{
    LwpState, ThreadState,
    tables::{ACTIVE, EVENTS, LWP_STATES, THREAD_STATES, Table},
};
use sigmund_sql::{
    RowGroups, SuperTrace,
    columns::{Small, Wide, Words},
};

use super::{
    Header, Part, Progress, Track,
    gather::{gather, last_row, stretches},
    partition::{LONG, ROW},
    population::{BUCKETS, Counting},
    run::{Interval, NO_STATE, NONE, Run, Scratch},
    store::{Mapped, Writer},
};
use crate::{Error, actors::Actors};

/// Approximate number of intervals of a part of a track. Each has 5 or 8 bytes; up to two tracks are in memory.
const PART: usize = 16 << 20;

/// Number of a table's rows that are made into one run. Row groups of a merge have fewer rows.
const CHUNK: usize = 1 << 19;

/// The largest number of chunks in memory: some 50 MB each.
const MOST_CHUNKS: usize = 4;

/// Approximate number of intervals that are gathered together.
const STRETCH: usize = 1 << 18;

/// A table, and the tracks that are made from it.
struct Source {
    table: &'static Table,
    tracks: &'static [Track],
    columns: &'static [&'static str],
    /// Adds the intervals of a batch to those of the tracks. Returns the number of intervals whose row is in no table
    /// of actors.
    place: fn(&Actors, &RecordBatch, &mut [Vec<Interval>]) -> u64,
}

const SOURCES: [Source; 3] = [
    Source {
        table: &THREAD_STATES,
        tracks: &[Track::ThreadState, Track::LwpThread],
        columns: &["ts_tick", "dur_tick", "thread", "state", "lwp"],
        place: of_threads,
    },
    Source {
        table: &LWP_STATES,
        tracks: &[Track::LwpState, Track::CpuLwp],
        columns: &["ts_tick", "dur_tick", "lwp", "state", "cpu"],
        place: of_lwps,
    },
    Source {
        table: &ACTIVE,
        tracks: &[Track::CpuThread],
        columns: &["ts_tick", "dur_tick", "thread", "cpu"],
        place: of_cpus,
    },
];

/// Makes the index, and keeps it at `path`.
///
/// # Errors
/// If a table cannot be read, or the index cannot be written anywhere.
pub(super) async fn make(
    trace: &SuperTrace,
    actors: &Actors,
    fingerprint: String,
    path: Option<&Path>,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Mapped, Error> {
    let on_index = |error| Error::index(path, &error);
    let (first, last) = (trace.first_tick(), trace.last_tick());
    let extent = (first.map_or(0, |tick| tick.0 as i64), last.map_or(0, |tick| tick.0 as i64));
    let counted = if trace.has_threads() { Track::ThreadState } else { Track::LwpState };
    let states = counted.values().sums();
    let at_once = rayon::current_num_threads().clamp(1, MOST_CHUNKS);
    let mut populations: Vec<Counting> =
        (0..at_once).map(|_| Counting::new(extent.0, extent.1, states)).collect();
    let mut writer = Writer::new(path).map_err(on_index)?;
    let (mut parts, mut stray, mut done) = (Vec::new(), 0, 0);
    for source in &SOURCES {
        let groups = trace.row_groups(source.table, source.columns)?;
        let mut lines: Vec<Line> = source.tracks.iter().map(|track| Line::new(*track, actors)).collect();
        for chunks in chunks(&groups).chunks(at_once) {
            let placed: Result<Vec<Chunk>, _> =
                chunks.par_iter().map(|of| Chunk::read(&groups, of.clone(), source, actors)).collect();
            let mut placed = placed?;
            for chunk in &mut placed {
                stray += chunk.stray;
                done += chunk.rows as u64;
                lines.iter_mut().zip(&mut chunk.tracks).for_each(|(line, of)| line.hand_over(&mut of.ends));
            }
            let runs = placed.into_par_iter().zip(&mut populations).map(|(chunk, population)| {
                let runs = source.tracks.iter().zip(chunk.tracks).map(|(track, placed)| {
                    let population = (*track == counted).then_some(&mut *population);
                    placed.into_run(*track, population)
                });
                runs.collect()
            });
            let runs: Vec<Vec<Run>> = runs.collect();
            for runs in runs {
                for (line, run) in lines.iter_mut().zip(runs) {
                    line.intervals += run.intervals();
                    line.runs.push(run);
                }
            }
            for line in lines.iter_mut().filter(|line| line.intervals >= PART) {
                parts.push(line.write(&mut writer).map_err(on_index)?);
            }
            progress(Progress { table: source.table.name, intervals: done });
            // The task that waits for the index may have been cancelled.
            tokio::task::yield_now().await;
        }
        for mut line in lines {
            parts.push(line.write(&mut writer).map_err(on_index)?);
        }
    }
    let mut populations = populations.into_iter();
    // There is at least one population.
    let mut population = populations.next().unwrap_or_else(|| Counting::new(extent.0, extent.1, states));
    populations.for_each(|other| population.add_all(&other));
    let population = population.finish();
    let ticks: Vec<u8> = population.ticks.iter().flat_map(|ticks| ticks.to_le_bytes()).collect();
    let density = density(trace, population.from, population.width).await?;
    let header = Header {
        fingerprint,
        stray,
        parts,
        from: population.from,
        bucket: population.width,
        states,
        population: writer.array(&ticks).map_err(on_index)?,
        density: writer.array(&density).map_err(on_index)?,
    };
    writer.finish(&header).map_err(on_index)
}

/// Ranges of row groups that have about [`CHUNK`] rows each.
fn chunks(groups: &RowGroups) -> Vec<Range<usize>> {
    let (mut chunks, mut first, mut rows) = (Vec::new(), 0, 0);
    for group in 0..groups.len() {
        rows = groups.rows(group).saturating_add(rows);
        if rows >= CHUNK || group + 1 == groups.len() {
            chunks.push(first..group + 1);
            (first, rows) = (group + 1, 0);
        }
    }
    chunks
}

/// The data of a range of row groups.
struct Chunk {
    tracks: Vec<Placed>,
    stray: u64,
    rows: usize,
}

/// The intervals of one track in a chunk.
struct Placed {
    intervals: Vec<Interval>,
    /// The end of each row: at first in this chunk; after [`Line::hand_over`], before this chunk.
    ends: Vec<i64>,
}

impl Chunk {
    fn read(
        groups: &RowGroups,
        of: Range<usize>,
        source: &Source,
        actors: &Actors,
    ) -> Result<Chunk, sigmund_sql::Error> {
        let mut intervals: Vec<Vec<Interval>> = source.tracks.iter().map(|_| Vec::new()).collect();
        let (mut rows, mut stray) = (0, 0);
        for group in of {
            let batch = groups.read(group)?;
            intervals.iter_mut().for_each(|intervals| intervals.reserve(batch.num_rows()));
            stray += (source.place)(actors, &batch, &mut intervals);
            rows += batch.num_rows();
        }
        let tracks = source.tracks.iter().zip(intervals).map(|(track, intervals)| {
            let mut ends = vec![NONE; track.rows(actors)];
            for interval in intervals.iter().filter(|interval| interval.to > interval.from) {
                let end = &mut ends[interval.row as usize];
                *end = interval.to.max(*end);
            }
            Placed { intervals, ends }
        });
        Ok(Chunk { tracks: tracks.collect(), stray, rows })
    }
}

impl Placed {
    fn into_run(mut self, track: Track, mut population: Option<&mut Counting>) -> Run {
        Run::new(
            &mut self.intervals,
            &mut self.ends,
            track.values(),
            &mut Scratch::default(),
            |Interval { from, to, value, .. }| {
                if let Some(population) = population.as_mut().filter(|of| (*value as usize) < of.states()) {
                    population.add(*from, *to, *value as usize);
                }
            },
        )
    }
}

/// A track that is being made.
struct Line {
    track: Track,
    /// The end of each row so far.
    ends: Vec<i64>,
    /// The runs that are not in a part yet.
    runs: Vec<Run>,
    intervals: usize,
}

impl Line {
    fn new(track: Track, actors: &Actors) -> Line {
        Line { track, ends: vec![NONE; track.rows(actors)], runs: Vec::new(), intervals: 0 }
    }

    /// Takes the rows' ends of a chunk, and replaces them by the ends before this chunk.
    fn hand_over(&mut self, ends: &mut [i64]) {
        for (last, end) in self.ends.iter_mut().zip(ends) {
            let before = *last;
            *last = before.max(*end);
            *end = before;
        }
    }

    /// Writes its runs as a part.
    fn write(&mut self, writer: &mut Writer) -> io::Result<Part> {
        let (runs, values) = (mem::take(&mut self.runs), self.track.values());
        self.intervals = 0;
        let stretches = stretches(&runs, self.ends.len(), STRETCH);
        // There is at least one stretch.
        let (rows, intervals, blocks) = stretches.last().map_or((0, 0, 0), |last| {
            (last.rows.end, last.first_interval + last.intervals, last.first_block + last.blocks)
        });
        let mut part = Part {
            track: self.track,
            rows: writer.reserve(ROW * (rows + 1)),
            lengths: writer.reserve(4 * intervals),
            values: writer.reserve(values.width() * intervals),
            long: writer.reserve(0),
            begins: writer.reserve(8 * blocks),
            sums: writer.reserve(8 * values.of_block() * blocks),
        };
        let (of, to) = (&part, &*writer);
        let long = stretches.par_iter().map(|stretch| {
            let owned = gather(&runs, stretch, values);
            to.write(of.rows, ROW * stretch.rows.start, &owned.rows)?;
            to.write(of.lengths, 4 * stretch.first_interval, &owned.lengths)?;
            to.write(of.values, values.width() * stretch.first_interval, &owned.values)?;
            to.write(of.begins, 8 * stretch.first_block, &owned.begins)?;
            to.write(of.sums, 8 * values.of_block() * stretch.first_block, &owned.sums)?;
            Ok(owned.long)
        });
        let long = long.collect::<io::Result<Vec<Vec<u8>>>>()?.concat();
        debug_assert!(long.len().is_multiple_of(LONG));
        if let Some(last) = stretches.last() {
            writer.write(part.rows, ROW * rows, &last_row(last))?;
        }
        part.long = writer.array(&long)?;
        Ok(part)
    }
}

/// Number of row groups of events that are read between two points at which the task can be cancelled.
const READ_AT_ONCE: usize = 64;

/// The number of events in each bucket, as u32.
async fn density(trace: &SuperTrace, from: i64, width: u64) -> Result<Vec<u8>, Error> {
    let groups = trace.row_groups(&EVENTS, &["ts_tick"])?;
    let mut density = vec![0_u32; BUCKETS];
    let all: Vec<usize> = (0..groups.len()).collect();
    for some in all.chunks(READ_AT_ONCE) {
        let count = |mut counts: Vec<u32>, group: &usize| {
            count_events(&groups.read(*group)?, from, width, &mut counts);
            Ok::<_, sigmund_sql::Error>(counts)
        };
        let counts = some.par_iter().try_fold(|| vec![0_u32; BUCKETS], count);
        let counts = counts.try_reduce(
            || vec![0_u32; BUCKETS],
            |mut a, b| {
                add(&mut a, &b);
                Ok(a)
            },
        );
        add(&mut density, &counts?);
        tokio::task::yield_now().await;
    }
    Ok(density.iter().flat_map(|events| events.to_le_bytes()).collect())
}

fn add(sums: &mut [u32], more: &[u32]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.saturating_add(*more));
}

/// Counts the events in each bucket. Events are in the order of time, so most are in the bucket of the previous one.
fn count_events(batch: &RecordBatch, from: i64, width: u64, counts: &mut [u32]) {
    let ticks = Wide::of(batch, 0);
    let (mut bucket, mut within) = (0, 0..0_u64);
    for row in 0..batch.num_rows() {
        let Ok(offset) = u64::try_from(ticks.or_zero(row).saturating_sub(from)) else { continue };
        if !within.contains(&offset) {
            bucket = offset / width;
            within = bucket * width..(bucket + 1).saturating_mul(width);
        }
        if let Some(count) = counts.get_mut(bucket as usize) {
            *count = count.saturating_add(1);
        }
    }
}

fn of_threads(actors: &Actors, batch: &RecordBatch, tracks: &mut [Vec<Interval>]) -> u64 {
    let (from, length, thread) = (Wide::of(batch, 0), Wide::of(batch, 1), Wide::of(batch, 2));
    let state = |word: &str| ThreadState::ALL.iter().position(|state| state.name() == word);
    let (state, lwp) = (Words::of(batch, 3, state), Small::of(batch, 4));
    let mut stray = 0;
    for row in 0..batch.num_rows() {
        let Some(length) = length.get(row) else { continue };
        let from = from.or_zero(row);
        let to = from.saturating_add(length);
        let Some(thread) = actors.thread(thread.or_zero(row) as u64) else {
            stray += 1;
            continue;
        };
        let value = state.get(row).flatten().map_or(NO_STATE, |state| state as u32);
        tracks[0].push(Interval { row: thread as u32, from, to, value });
        if let Some(lwp) = lwp.get(row).and_then(|lwp| actors.lwp(lwp)) {
            tracks[1].push(Interval { row: lwp as u32, from, to, value: thread as u32 });
        }
    }
    stray
}

fn of_lwps(actors: &Actors, batch: &RecordBatch, tracks: &mut [Vec<Interval>]) -> u64 {
    let (from, length, lwp) = (Wide::of(batch, 0), Wide::of(batch, 1), Small::of(batch, 2));
    let state = |word: &str| LwpState::ALL.iter().position(|state| state.name() == word);
    let (state, cpu) = (Words::of(batch, 3, state), Small::of(batch, 4));
    let mut stray = 0;
    for row in 0..batch.num_rows() {
        let Some(length) = length.get(row) else { continue };
        let from = from.or_zero(row);
        let to = from.saturating_add(length);
        let number = lwp.or_zero(row);
        // The idle task is on several CPUs at the same time; these CPUs are idle then.
        if number == 0 {
            continue;
        }
        let Some(lwp) = actors.lwp(number) else {
            stray += 1;
            continue;
        };
        let state = state.get(row).flatten();
        let value = state.map_or(NO_STATE, |state| state as u32);
        tracks[0].push(Interval { row: lwp as u32, from, to, value });
        let is_on_cpu = state.is_some_and(|state| LwpState::ALL[state] == LwpState::Running);
        if let Some(cpu) = cpu.get(row).filter(|_| is_on_cpu).and_then(|cpu| actors.cpu(cpu)) {
            tracks[1].push(Interval { row: cpu as u32, from, to, value: lwp as u32 });
        }
    }
    stray
}

fn of_cpus(actors: &Actors, batch: &RecordBatch, tracks: &mut [Vec<Interval>]) -> u64 {
    let (from, length) = (Wide::of(batch, 0), Wide::of(batch, 1));
    let (thread, cpu) = (Wide::of(batch, 2), Small::of(batch, 3));
    let mut stray = 0;
    for row in 0..batch.num_rows() {
        let from = from.or_zero(row);
        let to = from.saturating_add(length.or_zero(row));
        let Some(cpu) = cpu.get(row).and_then(|cpu| actors.cpu(cpu)) else { continue };
        match actors.thread(thread.or_zero(row) as u64) {
            Some(thread) => tracks[0].push(Interval { row: cpu as u32, from, to, value: thread as u32 }),
            None => stray += 1,
        }
    }
    stray
}
