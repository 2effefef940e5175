//! One pass over the rows of a table, in the order of the files, which is sorted by the ends of the rows. It can show
//! cheaply that an invariant holds. If it cannot show it, the query of the invariant decides, and counts what is
//! broken.

use std::collections::HashMap;

use arrow::{
    array::{Array, AsArray, BooleanArray, Int64Array, RecordBatch},
    datatypes::Int64Type,
};
use datafusion::{execution::SendableRecordBatchStream, physical_plan::common::spawn_buffered};
use foldhash::fast::RandomState;
use futures::StreamExt;
use sigmund_sql::SuperTrace;

use super::{begun, by_number::ByNumber};
use crate::Error;

/// Batches that another thread reads ahead.
const AHEAD: usize = 2;

/// What a pass checks, with a query for the columns that it reads. All columns are Int64, except `is_last`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pass {
    /// `tick`: no tick is less than the previous one.
    Sorted(&'static str),
    /// `key`, `from`, `to`: intervals of one key do not overlap.
    Disjoint(&'static str),
    /// `key`, `from`, `to`, `is_last`: intervals of one key follow each other without a gap, up to the last one.
    Chained(&'static str),
    /// `key`, `depth`, `from`, `to`, `parent`: rows of one key and depth do not overlap. Each lies within a row of the
    /// next smaller depth that begins at `parent`, which is -1 at depth 0.
    Nested(&'static str),
    /// `key`, `from`, `to`: each lies within the only row of the second query that has the same key. The second query
    /// has the same columns.
    Within(&'static str, &'static str),
    /// `key`, `ticks`: for each key of the last query, all queries have the same sum.
    SameSums(&'static [&'static str], &'static str),
    /// Pairs of queries, each with `key`, `from`, `to`: where a row of the first ends, a row of the second with the
    /// same key begins.
    Begun(&'static [[&'static str; 2]]),
}

impl Pass {
    fn query(self) -> &'static str {
        match self {
            Pass::Sorted(query) | Pass::Disjoint(query) | Pass::Chained(query) | Pass::Nested(query) => query,
            Pass::Within(query, _) | Pass::SameSums(_, query) => query,
            Pass::Begun(_) => "",
        }
    }

    /// The number of rows, if the pass shows that the invariant holds for all of them.
    pub(super) async fn shows(self, trace: &SuperTrace, last_tick: i64) -> Result<Option<u64>, Error> {
        match self {
            Pass::SameSums(queries, of) => return same_sums(trace, queries, of, last_tick).await,
            Pass::Begun(queries) => {
                let mut count = 0;
                for [expected, found] in queries {
                    let Some(shown) = begun::all_begun(trace, expected, found, last_tick).await? else {
                        return Ok(None);
                    };
                    count += shown;
                }
                return Ok(Some(count));
            }
            _ => {}
        }
        let (mut seen, mut count) = (Seen::default(), 0);
        let failed = Error::on(trace, "check");
        let mut rows = rows(trace, self.query(), last_tick).await?;
        while let Some(batch) = rows.next().await.transpose().map_err(&failed)? {
            if let Pass::Within(_, outer) = self
                && count == 0
            {
                let mut outer = self::rows(trace, outer, last_tick).await?;
                while let Some(batch) = outer.next().await.transpose().map_err(&failed)? {
                    if !seen.add_outer(&batch) {
                        return Ok(None);
                    }
                }
            }
            let holds = match self {
                Pass::Sorted(_) => seen.is_sorted(&batch),
                Pass::Disjoint(_) => seen.is_disjoint(&batch),
                Pass::Chained(_) => seen.is_chained(&batch),
                Pass::Nested(_) => seen.is_nested(&batch),
                Pass::Within(..) => seen.is_within(&batch),
                Pass::SameSums(..) | Pass::Begun(_) => false,
            };
            if !holds {
                return Ok(None);
            }
            count += batch.num_rows() as u64;
        }
        Ok(seen.has_no_orphan().then_some(count))
    }
}

/// The rows of a query, in the order of the files.
pub(super) async fn rows(
    trace: &SuperTrace,
    query: &str,
    last_tick: i64,
) -> Result<SendableRecordBatchStream, Error> {
    let query = query.replace("$last_tick", &last_tick.to_string());
    let plan = trace.filtering_late(trace.in_file_order(trace.sql(&query).await?.into_frame()));
    let rows = plan.execute_stream().await.map_err(Error::on(trace, "check"))?;
    Ok(spawn_buffered(rows, AHEAD))
}

/// The number of keys, if all queries have the same sum for each key.
async fn same_sums(
    trace: &SuperTrace,
    queries: &[&str],
    of: &str,
    last_tick: i64,
) -> Result<Option<u64>, Error> {
    let Some(sums) = sums(trace, of, last_tick, None).await? else { return Ok(None) };
    for query in queries {
        let Some(left) = self::sums(trace, query, last_tick, Some(&sums)).await? else { return Ok(None) };
        if left.values().any(|left| *left != 0) {
            return Ok(None);
        }
    }
    Ok(Some(sums.values().count() as u64))
}

/// The sum of each key. With `of`: what remains of those sums after subtracting the rows of the query; other keys are
/// ignored. `None` if it cannot be computed.
async fn sums(
    trace: &SuperTrace,
    query: &str,
    last_tick: i64,
    of: Option<&ByNumber<i64>>,
) -> Result<Option<ByNumber<i64>>, Error> {
    let mut sums = of.cloned().unwrap_or_default();
    let mut rows = rows(trace, query, last_tick).await?;
    while let Some(batch) = rows.next().await.transpose().map_err(Error::on(trace, "check"))? {
        let columns = [0, 1].map(|place| column(&batch, place));
        for row in 0..batch.num_rows() {
            let Some([key, ticks]) = cells(&columns, row) else { return Ok(None) };
            let sum = match of {
                None => sums.get(key).map_or(Some(ticks), |sum| sum.checked_add(ticks)),
                Some(_) => match sums.get(key) {
                    Some(left) => left.checked_sub(ticks),
                    None => continue,
                },
            };
            let Some(sum) = sum else { return Ok(None) };
            sums.insert(key, sum);
        }
    }
    Ok(Some(sums))
}

/// What is known from the rows so far.
#[derive(Debug, Default)]
struct Seen {
    tick: Option<i64>,
    /// For each key, the end of its last row, and whether that row was the last of a chain.
    ends: ByNumber<(i64, bool)>,
    /// The only interval of each key that other rows may lie within.
    outer: ByNumber<(i64, i64)>,
    /// For each key, the rows of each depth.
    nests: HashMap<i64, Vec<Depth>, RandomState>,
}

/// Rows of one key and depth.
#[derive(Clone, Copy, Debug)]
struct Depth {
    /// The end of the last row.
    end: i64,
    /// The beginning of the first row for which no row of the next smaller depth was found around it so far.
    orphan: Option<i64>,
    /// The beginning of that outer row, as the last row gives it.
    parent: i64,
}

/// The parent of a row at depth 0.
const NO_PARENT: i64 = -1;

impl Seen {
    fn is_sorted(&mut self, batch: &RecordBatch) -> bool {
        let ticks = column(batch, 0);
        let ticks = ticks.values();
        let follows = self.tick.zip(ticks.first()).is_none_or(|(last, first)| last <= *first);
        self.tick = ticks.last().copied().or(self.tick);
        follows && ticks.is_sorted() && batch.column(0).null_count() == 0
    }

    /// If each row of a key begins after the previous one has ended, no two of them overlap, even if the rows are not
    /// sorted by time.
    fn is_disjoint(&mut self, batch: &RecordBatch) -> bool {
        let columns = [0, 1, 2].map(|place| column(batch, place));
        (0..batch.num_rows()).all(|row| {
            let Some([key, from, to]) = cells(&columns, row) else { return false };
            let is_after = self.ends.insert(key, (to, false)).is_none_or(|(end, _)| end <= from);
            is_after && from <= to
        })
    }

    fn is_chained(&mut self, batch: &RecordBatch) -> bool {
        let columns = [0, 1, 2].map(|place| column(batch, place));
        let is_last: &BooleanArray = batch.column(3).as_boolean();
        (0..batch.num_rows()).all(|row| {
            let Some([key, from, to]) = cells(&columns, row) else { return false };
            let next = (to, is_last.value(row));
            let follows = match self.ends.insert(key, next) {
                None => true,
                // After the last row of a chain, the key belongs to something else.
                Some((end, true)) => end <= from,
                Some((end, false)) => end == from,
            };
            follows && from <= to
        })
    }
}

impl Seen {
    /// Rows are sorted by their ends, so inner rows come before the row around them.
    fn is_nested(&mut self, batch: &RecordBatch) -> bool {
        let columns = [0, 1, 2, 3, 4].map(|place| column(batch, place));
        (0..batch.num_rows()).all(|row| {
            let Some([key, depth, from, to, parent]) = cells(&columns, row) else { return false };
            let Ok(depth) = usize::try_from(depth) else { return false };
            if depth > MOST_DEPTHS || from > to || (depth == 0) != (parent == NO_PARENT) {
                return false;
            }
            let depths = self.nests.entry(key).or_default();
            if depths.len() < depth + 2 {
                depths.resize(depth + 2, Depth { end: i64::MIN, orphan: None, parent: NO_PARENT });
            }
            let is_sorted = depths.iter().all(|other| other.end <= to);
            let Depth { orphan: inner, parent: of_inner, .. } = depths[depth + 1];
            depths[depth + 1].orphan = None;
            let is_around = inner.is_none_or(|inner| from <= inner && from == of_inner);
            let Depth { end, orphan, parent: last } = depths[depth];
            let holds = is_sorted && is_around && end <= from && (orphan.is_none() || parent == last);
            let orphan = orphan.unwrap_or(from);
            depths[depth] = Depth { end: to, orphan: (depth > 0).then_some(orphan), parent };
            holds
        })
    }

    /// Whether each inner row has a row around it.
    fn has_no_orphan(&self) -> bool {
        self.nests.values().flatten().all(|depth| depth.orphan.is_none())
    }

    fn add_outer(&mut self, batch: &RecordBatch) -> bool {
        let columns = [0, 1, 2].map(|place| column(batch, place));
        (0..batch.num_rows()).all(|row| {
            let outer = cells(&columns, row);
            // If a number was used again, only the query of the invariant can tell which interval is meant.
            outer.is_some_and(|[key, from, to]| self.outer.insert(key, (from, to)).is_none())
        })
    }

    fn is_within(&mut self, batch: &RecordBatch) -> bool {
        let columns = [0, 1, 2].map(|place| column(batch, place));
        (0..batch.num_rows()).all(|row| {
            let Some([key, from, to]) = cells(&columns, row) else { return false };
            self.outer.get(key).is_some_and(|(begin, end)| *begin <= from && to <= *end)
        })
    }
}

/// Deeper rows are left to the query of the invariant.
const MOST_DEPTHS: usize = 1000;

pub(super) fn column(batch: &RecordBatch, place: usize) -> Int64Array {
    batch.column(place).as_primitive::<Int64Type>().clone()
}

/// `None` if one of them is NULL.
pub(super) fn cells<const N: usize>(columns: &[Int64Array; N], row: usize) -> Option<[i64; N]> {
    let is_known = columns.iter().all(|column| column.is_valid(row));
    is_known.then(|| columns.each_ref().map(|column| column.value(row)))
}
