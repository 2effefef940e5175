//! Computes the rows of one partition. It reads the inputs side by side, key by key.

use std::sync::Arc;

use arrow::{
    array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, RecordBatchOptions, new_null_array},
    compute::{SortOptions, interleave},
    datatypes::{Int64Type, SchemaRef},
    row::{OwnedRow, Row, RowConverter, Rows, SortField},
};
use datafusion::{
    common::Result, error::DataFusionError, execution::SendableRecordBatchStream,
    physical_plan::stream::RecordBatchStreamAdapter,
};
use futures::{StreamExt, stream::try_unfold};

use super::{
    operation::Operation,
    output::Origin,
    sweeps::{Made, RowAt, Span, Sweep},
};

/// With more batches of an input than this, the rows that are still needed are copied, and the batches are dropped.
const KEPT_BATCHES: usize = 64;

/// Where a column of the result comes from, as a column of the inputs' batches.
#[derive(Clone, Copy, Debug)]
enum Place {
    From,
    Length,
    Added,
    Key(usize),
    Column(usize, usize),
}

/// The stream of rows that a function makes.
pub(super) fn made(
    operation: Operation,
    inputs: Vec<SendableRecordBatchStream>,
    keys: usize,
    origins: &[Origin],
    schema: SchemaRef,
    batch_size: usize,
) -> Result<SendableRecordBatchStream> {
    // The order in which the operator requires its inputs.
    let order = SortOptions { descending: false, nulls_first: false };
    let types = (0..keys).map(|place| inputs[0].schema().field(place).data_type().clone());
    let fields = types.map(|ty| SortField::new_with_options(ty, order));
    let converter = RowConverter::new(fields.collect())?;
    let work = Work {
        inputs: inputs.into_iter().map(Reader::new).collect(),
        converter,
        keys,
        key: None,
        sweep: Sweep::new(operation),
        made: Vec::new(),
        places: places(origins, keys),
        schema: Arc::clone(&schema),
        batch_size,
        is_over: false,
    };
    let batches =
        try_unfold(work, |mut work| async move { Ok(work.next_batch().await?.map(|batch| (batch, work))) });
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
}

/// The places of the origins. In an input, its own columns come after the key, the start and the end, in the order of
/// the result.
fn places(origins: &[Origin], keys: usize) -> Vec<Place> {
    let mut next = [keys + 2, keys + 2];
    let place = |origin: &Origin| match origin {
        Origin::From => Place::From,
        Origin::Length => Place::Length,
        Origin::Added => Place::Added,
        Origin::Key(key) => Place::Key(*key),
        Origin::Column(input, _) => {
            let place = next[*input];
            next[*input] += 1;
            Place::Column(*input, place)
        }
    };
    origins.iter().map(place).collect()
}

/// An input and its position.
struct Reader {
    stream: SendableRecordBatchStream,
    /// The columns of batches with rows that are still needed. The first batch has one row of NULLs.
    batches: Vec<Vec<ArrayRef>>,
    last: Option<Last>,
    is_over: bool,
}

/// The batch that was read last.
struct Last {
    keys: Rows,
    from: Int64Array,
    to: Int64Array,
    next: usize,
}

impl Reader {
    fn new(stream: SendableRecordBatchStream) -> Reader {
        let schema = stream.schema();
        let nulls = schema.fields().iter().map(|field| new_null_array(field.data_type(), 1)).collect();
        Reader { stream, batches: vec![nulls], last: None, is_over: false }
    }

    /// The key and the interval of the next row.
    fn peek(&self) -> Option<(Row<'_>, Span)> {
        let last = self.last.as_ref().filter(|last| last.next < last.from.len())?;
        let from = last.from.value(last.next);
        Some((last.keys.row(last.next), Span { from, to: last.to.value(last.next).max(from) }))
    }

    /// Takes the next row.
    fn take(&mut self) -> Option<RowAt> {
        let last = self.last.as_mut()?;
        last.next += 1;
        Some(RowAt { batch: self.batches.len() - 1, row: last.next - 1 })
    }

    /// Reads the next batch, if there is one.
    async fn read(&mut self, converter: &RowConverter, keys: usize) -> Result<()> {
        let Some(batch) = self.stream.next().await.transpose()? else {
            self.is_over = true;
            return Ok(());
        };
        let of = |place: usize| batch.column(place).as_primitive::<Int64Type>().clone();
        let (from, to) = (of(keys), of(keys + 1));
        let keys = converter.convert_columns(&batch.columns()[..keys])?;
        self.last = Some(Last { keys, from, to, next: 0 });
        self.batches.push(batch.columns().to_vec());
        Ok(())
    }
}

struct Work {
    inputs: Vec<Reader>,
    converter: RowConverter,
    keys: usize,
    key: Option<OwnedRow>,
    sweep: Sweep,
    made: Vec<Made>,
    places: Vec<Place>,
    schema: SchemaRef,
    batch_size: usize,
    is_over: bool,
}

impl Work {
    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while !self.is_over && self.made.len() < self.batch_size {
            for input in &mut self.inputs {
                while !input.is_over && input.peek().is_none() {
                    input.read(&self.converter, self.keys).await?;
                }
            }
            self.sweep_batch();
            if self.inputs.iter().any(|input| input.batches.len() > KEPT_BATCHES) {
                if !self.made.is_empty() {
                    break;
                }
                self.compact()?;
            }
        }
        if self.made.is_empty() {
            return Ok(None);
        }
        let batch = self.batch()?;
        self.made.clear();
        self.compact()?;
        Ok(Some(batch))
    }

    /// Takes rows in the order of key and start, until an input has to be read or there are enough result rows.
    fn sweep_batch(&mut self) {
        while self.made.len() < self.batch_size {
            if self.inputs.iter().any(|input| !input.is_over && input.peek().is_none()) {
                return;
            }
            let rows =
                self.inputs.iter().enumerate().filter_map(|(number, input)| Some((input.peek()?, number)));
            let Some(((key, at), number)) =
                rows.min_by(|((a, at_a), _), ((b, at_b), _)| a.cmp(b).then(at_a.from.cmp(&at_b.from)))
            else {
                self.sweep.end_of_key(&mut self.made);
                self.is_over = true;
                return;
            };
            if self.key.as_ref().is_none_or(|last| last.row() != key) {
                self.sweep.end_of_key(&mut self.made);
                self.key = Some(key.owned());
            }
            if let Some(row) = self.inputs[number].take() {
                self.sweep.next(number, at, row, &mut self.made);
            }
        }
    }

    fn batch(&self) -> Result<RecordBatch> {
        let number = |number: fn(&Made) -> i64| -> ArrayRef {
            Arc::new(self.made.iter().map(number).collect::<Int64Array>())
        };
        let column = |place: &Place| match *place {
            Place::From => Ok(number(|made| made.at.from)),
            Place::Length => Ok(number(|made| made.at.to.saturating_sub(made.at.from))),
            Place::Added => Ok(number(|made| made.added)),
            Place::Key(place) => self.column(0, place),
            Place::Column(input, place) => self.column(input, place),
        };
        let columns = self.places.iter().map(column).collect::<Result<Vec<ArrayRef>>>()?;
        // A query that only counts rows may need no column.
        let options = RecordBatchOptions::new().with_row_count(Some(self.made.len()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    /// A column of an input, for the result rows.
    fn column(&self, input: usize, place: usize) -> Result<ArrayRef> {
        let at = |made: &Made| made.of[input].map_or((0, 0), |row| (row.batch, row.row));
        let rows: Vec<(usize, usize)> = self.made.iter().map(at).collect();
        gather(&self.inputs[input].batches, place, &rows)
    }

    /// If there are many batches, keeps only the rows that are still needed.
    fn compact(&mut self) -> Result<()> {
        let mut needed: [Vec<(usize, usize)>; 2] = [Vec::new(), Vec::new()];
        if self.inputs.iter().all(|input| input.batches.len() <= KEPT_BATCHES) {
            return Ok(());
        }
        for (input, row) in self.sweep.rows() {
            needed[input].push((row.batch, row.row));
            *row = RowAt { batch: 1, row: needed[input].len() - 1 };
        }
        for (input, rows) in self.inputs.iter_mut().zip(needed) {
            let columns = input.batches[0].len();
            let kept = (0..columns).map(|place| gather(&input.batches, place, &rows));
            let kept: Vec<ArrayRef> = kept.collect::<Result<_>>()?;
            // The last batch is still being read.
            let last = if input.batches.len() > 1 { input.batches.pop() } else { None };
            input.batches.truncate(1);
            input.batches.push(kept);
            input.batches.extend(last);
        }
        Ok(())
    }
}

/// A column of some rows of batches.
fn gather(batches: &[Vec<ArrayRef>], place: usize, rows: &[(usize, usize)]) -> Result<ArrayRef> {
    let arrays: Vec<&dyn Array> = batches.iter().map(|columns| columns[place].as_ref()).collect();
    interleave(&arrays, rows).map_err(DataFusionError::from)
}
