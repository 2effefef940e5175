//! Several CPUs look for the events of a few threads, each in a part of the time.
//!
//! Who looks for a few events of a long trace decodes many, and keeps next to nothing. The parts come one after the other in the
//! listing, so their events are in time order.

use std::iter;

use datafusion::{execution::SendableRecordBatchStream, physical_plan::stream::RecordBatchStreamAdapter};
use futures::{StreamExt, stream};
use sigmund_model::tables::EVENTS;
use sigmund_sql::SuperTrace;

use crate::{Error, Filter, ThreadRef, Window};

/// A part has at least this many row groups: about a million events.
const LEAST: usize = 4;

/// The maximum number of parts: each keeps a row group in memory.
const MOST: usize = 8;

/// The times in which one CPU each looks for events, in their order. A single one, all of it, if more are of no use.
pub(super) fn parts(trace: &SuperTrace, filter: &Filter) -> Result<Vec<Window>, Error> {
    let is_of_few = (1..=MOST_THREADS).contains(&filter.threads.len());
    let borders = if is_of_few { borders(trace, filter)? } else { Vec::new() };
    let begins = iter::once(None).chain(borders.iter().copied().map(Some));
    let ends = borders.iter().map(|next| Some(next.saturating_sub(1))).chain([None]);
    Ok(begins.zip(ends).map(|(from, to)| Window { from, to }).collect())
}

/// Filters with more threads may select most events, and who waits for the first part to be printed gains nothing.
const MOST_THREADS: usize = 100;

/// The ticks at which parts begin, except for the first: the beginnings of row groups. As many of those that may have events of the
/// filter are in each part.
fn borders(trace: &SuperTrace, filter: &Filter) -> Result<Vec<i64>, Error> {
    let window = filter.window(trace)?;
    let groups = trace.row_groups(&EVENTS, &["ts_tick"])?;
    let is_in = |group: usize, column: &str, (first, last): (i64, i64)| {
        groups.bounds(group, column).is_none_or(|(least, most)| least <= last && most >= first)
    };
    let all = (window.from.unwrap_or(i64::MIN), window.to.unwrap_or(i64::MAX));
    // The numbers of threads with a name are not known yet.
    let has_thread = |group: usize| {
        let of_thread = |thread: &ThreadRef| match thread {
            ThreadRef::Number(thread) => {
                let number = thread.0 as i64;
                ["thread", "target_thread"].into_iter().any(|column| is_in(group, column, (number, number)))
            }
            _ => true,
        };
        filter.threads.iter().any(of_thread)
    };
    let may_have = |group: &usize| is_in(*group, "ts_tick", all) && has_thread(*group);
    let begins = (0..groups.len()).filter(may_have).filter_map(|group| groups.bounds(group, "ts_tick"));
    let mut begins: Vec<i64> = begins.map(|(first, _)| first).filter(|first| *first > i64::MIN).collect();
    // They are, unless a stranger wrote the table: then, too, each event is in one part.
    begins.sort_unstable();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let parts = (begins.len() / LEAST).min(cpus).clamp(1, MOST);
    Ok((1..parts).map(|part| begins[part * begins.len() / parts]).collect())
}

/// The rows of streams of the same columns, one stream after the other.
///
/// # Panics
/// When there is no stream.
pub(super) fn in_order(mut streams: Vec<SendableRecordBatchStream>) -> SendableRecordBatchStream {
    match streams.len() {
        1 => streams.swap_remove(0),
        _ => {
            let schema = streams[0].schema();
            Box::pin(RecordBatchStreamAdapter::new(schema, stream::iter(streams).flatten()))
        }
    }
}
