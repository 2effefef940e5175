//! Makes the index of a super-trace from its tables.
//!
//! Tables of intervals are sorted by the end, so those of one row come in the order of time, and rows take turns. A table is
//! read once to count the intervals of each row, and once more to put each in its place; of long traces once more for each
//! [`SEGMENT`], so that memory does not grow with the trace.

use std::{io, path::Path};

use arrow::array::RecordBatch;
use sigmund_model::{
    LwpState, ThreadState,
    tables::{ACTIVE, LWP_STATES, THREAD_STATES, Table},
};
use sigmund_sql::{
    SuperTrace,
    columns::{Small, Wide, Words},
};

use super::{
    Header, Progress, Segment, Track,
    build::{Assembly, Owned},
    partition::{NOBODY, Values},
    population::{BUCKETS, Counting},
    sequence::Sequence,
    store::{Mapped, Writer},
};
use crate::{Error, actors::Actors};

/// Intervals of a track that are in memory at once: 5 or 8 bytes each, in up to two tracks.
const SEGMENT: usize = 24 << 20;

/// The value of a hole between two states.
const NO_STATE: u32 = u8::MAX as u32;

/// An interval of one of a table's tracks.
struct Placed {
    /// Of [`Source::tracks`].
    track: usize,
    row: usize,
    from: i64,
    to: i64,
    value: u32,
}

/// A table, and the tracks that are made of it.
struct Source {
    table: &'static Table,
    tracks: &'static [Track],
    columns: &'static [&'static str],
    /// Calls the function with all intervals of a batch; returns how many are of rows that no table has.
    place: fn(&Actors, &RecordBatch, &mut dyn FnMut(Placed)) -> u64,
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
/// When a table cannot be read, or the index cannot be written anywhere.
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
    let of_threads = trace.has_threads();
    let states = if of_threads { ThreadState::ALL.len() } else { LwpState::ALL.len() };
    let mut population = Counting::new(extent.0, extent.1, states);
    let mut writer = Writer::new(path).map_err(on_index)?;
    let (mut segments, mut stray, mut done) = (Vec::new(), 0, 0);
    for source in &SOURCES {
        let counted = if of_threads { Track::ThreadState } else { Track::LwpState };
        let mut sequences: Vec<Sequence> =
            source.tracks.iter().map(|track| Sequence::new(track.rows(actors))).collect();
        let mut counts: Vec<Vec<usize>> =
            source.tracks.iter().map(|track| vec![0; track.rows(actors)]).collect();
        each(trace, source, |batch| {
            stray += (source.place)(actors, batch, &mut |placed| {
                let Placed { track, row, from, to, value } = placed;
                let Some(added) = sequences[track].add(row, from, to) else { return };
                counts[track][row] += added.count();
                if source.tracks[track] == counted && (value as usize) < states {
                    population.add(added.from, added.to, value as usize);
                }
            });
            done += batch.num_rows() as u64;
            progress(Progress { table: source.table.name, intervals: done });
        })
        .await?;
        drop(sequences);
        let ranges: Vec<Vec<(usize, usize)>> = counts.iter().map(|counts| ranges(counts)).collect();
        for pass in 0..ranges.iter().map(Vec::len).max().unwrap_or_default() {
            let parts = parts(trace, actors, source, &counts, &ranges, pass).await?;
            for (track, first_row, part) in parts {
                segments.push(write(&mut writer, track, first_row, &part).map_err(on_index)?);
            }
        }
    }
    let population = population.finish();
    let ticks: Vec<u8> = population.ticks.iter().flat_map(|ticks| ticks.to_le_bytes()).collect();
    let density = density(trace, population.from, population.width).await?;
    let header = Header {
        fingerprint,
        stray,
        segments,
        from: population.from,
        bucket: population.width,
        states,
        population: writer.array(&ticks).map_err(on_index)?,
        density: writer.array(&density).map_err(on_index)?,
    };
    writer.finish(&header).map_err(on_index)
}

async fn each(
    trace: &SuperTrace,
    source: &Source,
    each: impl FnMut(&RecordBatch),
) -> Result<(), sigmund_sql::Error> {
    trace.each_batch_of(source.table, source.columns, each).await
}

/// The `pass`th range of rows of each track of a source.
async fn parts(
    trace: &SuperTrace,
    actors: &Actors,
    source: &Source,
    counts: &[Vec<usize>],
    ranges: &[Vec<(usize, usize)>],
    pass: usize,
) -> Result<Vec<(Track, usize, Owned)>, Error> {
    let mut parts: Vec<Option<(usize, Assembly)>> = Vec::new();
    for (track, (counts, ranges)) in source.tracks.iter().zip(counts.iter().zip(ranges)) {
        let range = ranges.get(pass);
        parts.push(range.map(|(first, end)| (*first, Assembly::new(&counts[*first..*end], track.values()))));
    }
    let mut sequences: Vec<Sequence> = counts.iter().map(|counts| Sequence::new(counts.len())).collect();
    each(trace, source, |batch| {
        (source.place)(actors, batch, &mut |placed| {
            let Placed { track, row, from, to, value } = placed;
            let Some(added) = sequences[track].add(row, from, to) else { return };
            let Some((first, end)) = ranges[track].get(pass) else { return };
            let Some((_, part)) = parts[track].as_mut().filter(|_| (*first..*end).contains(&row)) else {
                return;
            };
            if let Some((from, to)) = added.hole {
                let nothing =
                    if source.tracks[track].values() == Values::Identities { NOBODY } else { NO_STATE };
                part.push(row - first, from, to, nothing);
            }
            part.push(row - first, added.from, added.to, value);
        });
    })
    .await?;
    let tracks = source.tracks.iter().zip(parts);
    Ok(tracks.filter_map(|(track, part)| part.map(|(first, part)| (*track, first, part.finish()))).collect())
}

/// Ranges of rows that have at most [`SEGMENT`] intervals each, or one row.
fn ranges(counts: &[usize]) -> Vec<(usize, usize)> {
    let (mut ranges, mut first, mut intervals) = (Vec::new(), 0, 0);
    for (row, count) in counts.iter().enumerate() {
        if row > first && intervals + count > SEGMENT {
            ranges.push((first, row));
            (first, intervals) = (row, 0);
        }
        intervals += count;
    }
    ranges.push((first, counts.len()));
    ranges
}

fn write(writer: &mut Writer, track: Track, first_row: usize, part: &Owned) -> io::Result<Segment> {
    Ok(Segment {
        track,
        first_row,
        rows: writer.array(&part.rows)?,
        lengths: writer.array(&part.lengths)?,
        values: writer.array(&part.values)?,
        long: writer.array(&part.long)?,
        begins: writer.array(&part.begins)?,
        sums: writer.array(&part.sums)?,
    })
}

/// Events in each bucket, u32.
async fn density(trace: &SuperTrace, from: i64, width: u64) -> Result<Vec<u8>, Error> {
    let mut density = vec![0_u32; BUCKETS];
    let query = format!(
        "SELECT (ts_tick - {from}) / {width} AS bucket, count(*) AS events FROM raw_events GROUP BY 1"
    );
    for batch in trace.sql(&query).await?.collect().await? {
        let (bucket, events) = (Wide::of(&batch, 0), Wide::of(&batch, 1));
        for row in 0..batch.num_rows() {
            if let Some(place) = usize::try_from(bucket.or_zero(row)).ok().and_then(|at| density.get_mut(at))
            {
                *place = u32::try_from(events.or_zero(row)).unwrap_or(u32::MAX);
            }
        }
    }
    Ok(density.iter().flat_map(|events| events.to_le_bytes()).collect())
}

fn of_threads(actors: &Actors, batch: &RecordBatch, each: &mut dyn FnMut(Placed)) -> u64 {
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
        each(Placed { track: 0, row: thread, from, to, value });
        if let Some(lwp) = lwp.get(row).and_then(|lwp| actors.lwp(lwp)) {
            each(Placed { track: 1, row: lwp, from, to, value: thread as u32 });
        }
    }
    stray
}

fn of_lwps(actors: &Actors, batch: &RecordBatch, each: &mut dyn FnMut(Placed)) -> u64 {
    let (from, length, lwp) = (Wide::of(batch, 0), Wide::of(batch, 1), Small::of(batch, 2));
    let state = |word: &str| LwpState::ALL.iter().position(|state| state.name() == word);
    let (state, cpu) = (Words::of(batch, 3, state), Small::of(batch, 4));
    let mut stray = 0;
    for row in 0..batch.num_rows() {
        let Some(length) = length.get(row) else { continue };
        let from = from.or_zero(row);
        let to = from.saturating_add(length);
        let number = lwp.or_zero(row);
        // The idle task is on every CPU at once; the CPU is idle then.
        if number == 0 {
            continue;
        }
        let Some(lwp) = actors.lwp(number) else {
            stray += 1;
            continue;
        };
        let state = state.get(row).flatten();
        each(Placed { track: 0, row: lwp, from, to, value: state.map_or(NO_STATE, |state| state as u32) });
        let is_on_cpu = state.is_some_and(|state| LwpState::ALL[state] == LwpState::Running);
        if let Some(cpu) = cpu.get(row).filter(|_| is_on_cpu).and_then(|cpu| actors.cpu(cpu)) {
            each(Placed { track: 1, row: cpu, from, to, value: lwp as u32 });
        }
    }
    stray
}

fn of_cpus(actors: &Actors, batch: &RecordBatch, each: &mut dyn FnMut(Placed)) -> u64 {
    let (from, length) = (Wide::of(batch, 0), Wide::of(batch, 1));
    let (thread, cpu) = (Wide::of(batch, 2), Small::of(batch, 3));
    let mut stray = 0;
    for row in 0..batch.num_rows() {
        let from = from.or_zero(row);
        let to = from.saturating_add(length.or_zero(row));
        let Some(cpu) = cpu.get(row).and_then(|cpu| actors.cpu(cpu)) else { continue };
        match actors.thread(thread.or_zero(row) as u64) {
            Some(thread) => each(Placed { track: 0, row: cpu, from, to, value: thread as u32 }),
            None => stray += 1,
        }
    }
    stray
}
