//! One pass over the rows of a table in the order of the files, which is that of their ends: enough to show that an invariant
//! holds. Where a pass does not show it, the query of the invariant counts what is broken, or shows that it holds all the same.

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

/// Batches that another CPU reads ahead.
const AHEAD: usize = 2;

/// What a pass looks for, and a query for the columns that it reads, all of them Int64 but `is_last`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pass {
    /// `tick`: none is less than the one before.
    Sorted(&'static str),
    /// `key`, `from`, `to`: those of one key do not overlap.
    Disjoint(&'static str),
    /// `key`, `from`, `to`, `is_last`: those of one key follow each other without a hole, up to the last.
    Chained(&'static str),
    /// `key`, `depth`, `from`, `to`, `parent`: those of one key and depth do not overlap, and each lies within one of a depth less
    /// that begins at `parent`, which is -1 at depth 0.
    Nested(&'static str),
    /// `key`, `from`, `to`: each lies within the only one of its key in the second query, which has the same columns.
    Within(&'static str, &'static str),
    /// `key`, `ticks`: of each key in the last query, they have the same sum in all.
    SameSums(&'static [&'static str], &'static str),
    /// `key`, `from`, `to`, of two queries each: where each row of the first ends, one of its key in the second begins.
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

    /// How many rows there are, if the pass shows that the invariant holds for all of them.
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
    let plan = trace.in_file_order(trace.sql(&query).await?.into_frame());
    let rows = plan.execute_stream().await.map_err(Error::on(trace, "check"))?;
    Ok(spawn_buffered(rows, AHEAD))
}

/// How many keys there are, if the sums of each are the same.
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

/// The sum of each key; or what is left of `of` without it, of the keys that this has. `None` if it cannot be computed.
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

/// What the rows so far were.
#[derive(Debug, Default)]
struct Seen {
    tick: Option<i64>,
    /// The end of the last of each key, and whether it was the last of a chain.
    ends: ByNumber<(i64, bool)>,
    /// The only interval of each key that others may lie within.
    outer: ByNumber<(i64, i64)>,
    /// Of each key the rows of each depth.
    nests: HashMap<i64, Vec<Depth>, RandomState>,
}

/// Rows of one key and depth.
#[derive(Clone, Copy, Debug)]
struct Depth {
    /// The end of the last.
    end: i64,
    /// Where the first begins that no row of a depth less has been found around.
    orphan: Option<i64>,
    /// Where that one begins, as the last says.
    parent: i64,
}

/// The parent of a row around which there is none.
const NO_PARENT: i64 = -1;

impl Seen {
    fn is_sorted(&mut self, batch: &RecordBatch) -> bool {
        let ticks = column(batch, 0);
        let ticks = ticks.values();
        let follows = self.tick.zip(ticks.first()).is_none_or(|(last, first)| last <= *first);
        self.tick = ticks.last().copied().or(self.tick);
        follows && ticks.is_sorted() && batch.column(0).null_count() == 0
    }

    /// If the next of each key begins after the one before has ended, no two overlap, in whatever order of time they come.
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
                // After the last one the key is that of something else.
                Some((end, true)) => end <= from,
                Some((end, false)) => end == from,
            };
            follows && from <= to
        })
    }
}

impl Seen {
    /// In the order of their ends, inner rows come before the one around them.
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

    /// Whether every inner row has one around it.
    fn has_no_orphan(&self) -> bool {
        self.nests.values().flatten().all(|depth| depth.orphan.is_none())
    }

    fn add_outer(&mut self, batch: &RecordBatch) -> bool {
        let columns = [0, 1, 2].map(|place| column(batch, place));
        (0..batch.num_rows()).all(|row| {
            let outer = cells(&columns, row);
            // If a number was used again, the query of the invariant decides which is meant.
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
