//! Checks that a row begins at each tick where one is expected. Two tables are read side by side: one names the
//! expected ticks, the other has the rows that begin there, sorted by their ends.

use arrow::array::Int64Array;
use datafusion::execution::SendableRecordBatchStream;
use futures::StreamExt;
use sigmund_sql::SuperTrace;

use super::{
    by_number::ByNumber,
    pass::{cells, column, rows},
};
use crate::Error;

/// No tick: this place is free.
const NOTHING: i64 = i64::MIN;

/// The ticks at which rows of one key are expected to begin. At most two: the next one can be expected before the row
/// that is being read has ended.
type Expected = [i64; 2];

/// Checks that each row of the first query (`key`, `from`, `to`) is followed by a row of the second query, which has
/// the same columns: one with the same key that begins at its `to`. Returns the number of rows of the first query if
/// that holds. Returns `None` if a row has a NULL, or if the pass cannot show that it holds.
pub(super) async fn all_begun(
    trace: &SuperTrace,
    expected: &str,
    found: &str,
    last_tick: i64,
) -> Result<Option<u64>, Error> {
    let mut expected = Rows::open(trace, expected, last_tick).await?;
    let mut found = Rows::open(trace, found, last_tick).await?;
    let (mut open, mut count, mut are_open) = (ByNumber::<Expected>::default(), 0_u64, 0_u64);
    while found.fill().await? {
        let Some([key, from, to]) = found.next() else { return Ok(None) };
        // An expectation that this row or an earlier one meets began before this row ended.
        while expected.fill().await? {
            let Some([key, begin, tick]) = expected.peek() else { return Ok(None) };
            if begin > to {
                break;
            }
            expected.next();
            let mut of_key = open.get(key).copied().unwrap_or([NOTHING; 2]);
            if begin > tick {
                return Ok(None);
            }
            count += 1;
            if of_key.contains(&tick) {
                continue;
            }
            let Some(free) = of_key.iter_mut().find(|tick| **tick == NOTHING) else { return Ok(None) };
            *free = tick;
            open.insert(key, of_key);
            are_open += 1;
        }
        if let Some(of_key) = open.get(key)
            && let Some(place) = of_key.iter().position(|tick| *tick == from)
        {
            let mut of_key = *of_key;
            of_key[place] = NOTHING;
            open.insert(key, of_key);
            are_open -= 1;
        }
    }
    Ok((are_open == 0 && !expected.fill().await?).then_some(count))
}

/// The rows of a query, read one at a time.
struct Rows<'t> {
    trace: &'t SuperTrace,
    batches: SendableRecordBatchStream,
    columns: Option<[Int64Array; 3]>,
    row: usize,
}

impl<'t> Rows<'t> {
    async fn open(trace: &'t SuperTrace, query: &str, last_tick: i64) -> Result<Rows<'t>, Error> {
        let batches = rows(trace, query, last_tick).await?;
        Ok(Rows { trace, batches, columns: None, row: 0 })
    }

    /// Makes the next row the current one, reading a batch if necessary. `false` if there are no more rows.
    async fn fill(&mut self) -> Result<bool, Error> {
        while self.columns.as_ref().is_none_or(|[key, ..]| self.row == key.len()) {
            let batch = self.batches.next().await.transpose();
            let Some(batch) = batch.map_err(Error::on(self.trace, "check"))? else { return Ok(false) };
            self.columns = Some([0, 1, 2].map(|place| column(&batch, place)));
            self.row = 0;
        }
        Ok(true)
    }

    /// The current row; `None` if one of its cells is NULL.
    fn peek(&self) -> Option<[i64; 3]> {
        cells(self.columns.as_ref()?, self.row)
    }

    fn next(&mut self) -> Option<[i64; 3]> {
        let row = self.peek();
        self.row += 1;
        row
    }
}
