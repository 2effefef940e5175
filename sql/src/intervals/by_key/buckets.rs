//! Rows, distributed over their keys.

use std::{cmp::Reverse, collections::HashMap, hash::Hash, sync::Arc};

use arrow::{
    array::{ArrayRef, AsArray, Int64Array, RecordBatch, UInt32Array},
    compute::SortOptions,
    datatypes::{DataType, Int64Type, SchemaRef},
    row::{RowConverter, SortField},
};
use datafusion::common::Result;
use foldhash::fast::RandomState;

use super::columns::{Column, Growing};

/// The number of rows after which a query can be cancelled.
const AT_ONCE: usize = 1 << 20;

/// All rows of a partition. The columns of the key come first, then the start and the end.
pub(super) struct Buckets {
    schema: SchemaRef,
    keys: Keys,
    /// The columns, without a key whose values are known from their numbers.
    columns: Vec<Growing>,
    /// The number of the first row of each batch.
    starts: Vec<u32>,
    /// The number of the key of each row.
    numbers: Vec<u32>,
    /// The rows of each key.
    counts: Vec<u32>,
}

/// Bytes for each row, beside its cells: the number of its key, and its place.
pub(super) const PER_ROW: usize = 2 * size_of::<u32>();

impl Buckets {
    pub(super) fn new(schema: SchemaRef, keys: usize) -> Result<Buckets> {
        let keys = Keys::new(&schema, keys)?;
        let columns = schema.fields().iter().skip(keys.known()).map(|field| Growing::new(field.data_type()));
        let columns = columns.collect();
        Ok(Buckets { schema, keys, columns, starts: Vec::new(), numbers: Vec::new(), counts: Vec::new() })
    }

    /// Whether there is room for so many more rows: they are numbered by 31 bits.
    pub(super) fn has_room(&self, rows: usize) -> bool {
        i32::try_from(self.numbers.len() + rows).is_ok()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Adds rows, at least one.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let before = self.numbers.len();
        self.starts.push(before as u32);
        self.keys.number(batch, &mut self.numbers)?;
        self.counts.resize(self.keys.len(), 0);
        self.numbers[before..].iter().for_each(|number| self.counts[*number as usize] += 1);
        let columns = batch.columns().iter().skip(self.keys.known());
        self.columns.iter_mut().zip(columns).for_each(|(column, more)| column.add(more));
        Ok(())
    }

    /// The rows as they were added.
    pub(super) fn into_batches(self) -> impl Iterator<Item = Result<RecordBatch>> {
        let Buckets { schema, keys, columns, starts, numbers, .. } = self;
        let columns: Vec<Column> = columns.into_iter().map(Growing::finish).collect();
        (0..starts.len()).map(move |batch| {
            let start = starts[batch] as usize;
            let end = starts.get(batch + 1).map_or(numbers.len(), |next| *next as usize);
            let key = keys.column(numbers[start..end].iter().copied());
            let others = columns.iter().map(|column| column.batch(batch, start as u32..end as u32));
            let columns = key.into_iter().map(Ok).chain(others).collect::<Result<_>>()?;
            Ok(RecordBatch::try_new(schema.clone(), columns)?)
        })
    }

    /// Sorts the rows by key, then by start; with equal starts the longest first.
    pub(super) async fn sorted(self) -> Sorted {
        let Buckets { schema, keys, columns, starts, numbers, counts } = self;
        let in_order = keys.in_order();
        let (mut next, mut ends, mut end) = (vec![0_u32; counts.len()], Vec::with_capacity(counts.len()), 0);
        for key in &in_order {
            next[*key as usize] = end;
            end += counts[*key as usize];
            ends.push(end as usize);
        }
        let mut order = vec![0_u32; numbers.len()];
        let mut row = 0;
        for some in numbers.chunks(AT_ONCE) {
            for number in some {
                let place = &mut next[*number as usize];
                order[*place as usize] = row;
                *place += 1;
                row += 1;
            }
            tokio::task::yield_now().await;
        }
        drop(numbers);
        let columns: Vec<Column> = columns.into_iter().map(Growing::finish).collect();
        let first = keys.width() - keys.known();
        let time =
            |place: usize| columns[place].whole().map(|times| times.as_primitive::<Int64Type>().clone());
        if let (Some(from), Some(to)) = (time(first), time(first + 1)) {
            sort_each(&mut order, &ends, &from, &to).await;
        }
        Sorted {
            schema,
            keys,
            in_order,
            ends,
            columns,
            starts,
            order: UInt32Array::from(order),
            next: 0,
            at: 0,
        }
    }
}

/// Sorts the rows of each key by start. They are nearly in that order.
async fn sort_each(order: &mut [u32], ends: &[usize], from: &Int64Array, to: &Int64Array) {
    let place = |row: &u32| (from.value(*row as usize), Reverse(to.value(*row as usize)));
    let (mut begin, mut since) = (0, 0);
    for end in ends {
        let rows = &mut order[begin..*end];
        if !rows.is_sorted_by_key(place) {
            rows.sort_by_key(place);
        }
        begin = *end;
        if begin - since > AT_ONCE {
            since = begin;
            tokio::task::yield_now().await;
        }
    }
}

/// Rows in their order.
pub(super) struct Sorted {
    schema: SchemaRef,
    keys: Keys,
    /// The numbers of the keys, in the order of the keys.
    in_order: Vec<u32>,
    /// Where the rows of each of these end.
    ends: Vec<usize>,
    columns: Vec<Column>,
    /// The number of the first row of each batch that was added.
    starts: Vec<u32>,
    order: UInt32Array,
    next: usize,
    /// The place in `in_order` of the key of the next row.
    at: usize,
}

impl Sorted {
    /// The next rows, `size` at most. `None` at the end.
    pub(super) fn next(&mut self, size: usize) -> Result<Option<RecordBatch>> {
        let rows = self.order.slice(self.next, size.min(self.order.len() - self.next));
        if rows.is_empty() {
            return Ok(None);
        }
        let (first, end) = (self.next, self.next + rows.len());
        self.next = end;
        let Sorted { keys, in_order, ends, at, .. } = self;
        let key = keys.column((first..end).map(|row| {
            while ends[*at] <= row {
                *at += 1;
            }
            in_order[*at]
        }));
        let others = self.columns.iter().map(|column| column.rows(&rows, &self.starts));
        let columns: Vec<ArrayRef> = key.into_iter().map(Ok).chain(others).collect::<Result<_>>()?;
        Ok(Some(RecordBatch::try_new(self.schema.clone(), columns)?))
    }
}

/// The keys so far, each with a number.
enum Keys {
    Numbers(Numbered<Option<i64>>),
    /// As bytes whose order is that of the keys.
    Rows(RowConverter, usize, Numbered<Box<[u8]>>),
}

/// Values with numbers, in the order in which they came.
struct Numbered<K> {
    numbers: HashMap<K, u32, RandomState>,
    all: Vec<K>,
}

impl<K: Clone + Eq + Hash> Numbered<K> {
    fn new() -> Numbered<K> {
        Numbered { numbers: HashMap::default(), all: Vec::new() }
    }

    fn add(&mut self, key: K) -> u32 {
        let next = self.all.len() as u32;
        self.all.push(key.clone());
        self.numbers.insert(key, next);
        next
    }

    /// The numbers in the order of their values.
    fn in_order<'k, O: Ord>(&'k self, order: impl Fn(&'k K) -> O) -> Vec<u32> {
        let mut sorted: Vec<(O, u32)> = self.all.iter().map(order).zip(0..).collect();
        sorted.sort_unstable();
        sorted.into_iter().map(|(_, number)| number).collect()
    }
}

impl Keys {
    fn new(schema: &SchemaRef, width: usize) -> Result<Keys> {
        let types = schema.fields().iter().take(width).map(|field| field.data_type());
        if types.clone().eq([&DataType::Int64]) {
            return Ok(Keys::Numbers(Numbered::new()));
        }
        // The order that the operator requires.
        let order = SortOptions { descending: false, nulls_first: false };
        let fields = types.map(|ty| SortField::new_with_options(ty.clone(), order));
        Ok(Keys::Rows(RowConverter::new(fields.collect())?, width, Numbered::new()))
    }

    /// The number of columns.
    fn width(&self) -> usize {
        match self {
            Keys::Numbers(_) => 1,
            Keys::Rows(_, width, _) => *width,
        }
    }

    fn len(&self) -> usize {
        match self {
            Keys::Numbers(keys) => keys.all.len(),
            Keys::Rows(.., keys) => keys.all.len(),
        }
    }

    /// Adds the number of the key of each row.
    fn number(&mut self, batch: &RecordBatch, numbers: &mut Vec<u32>) -> Result<()> {
        match self {
            Keys::Numbers(keys) => {
                let of_rows = batch.column(0).as_primitive::<Int64Type>();
                numbers.extend(of_rows.iter().map(|key| match keys.numbers.get(&key) {
                    Some(known) => *known,
                    None => keys.add(key),
                }));
            }
            Keys::Rows(converter, width, keys) => {
                let of_rows = converter.convert_columns(&batch.columns()[..*width])?;
                numbers.extend(of_rows.iter().map(|key| match keys.numbers.get(key.as_ref()) {
                    Some(known) => *known,
                    None => keys.add(key.as_ref().into()),
                }));
            }
        }
        Ok(())
    }

    /// The number of columns of the key that follow from its numbers.
    fn known(&self) -> usize {
        match self {
            Keys::Numbers(_) => 1,
            Keys::Rows(..) => 0,
        }
    }

    /// The column that follows from the numbers of keys, if one does.
    fn column(&self, numbers: impl Iterator<Item = u32>) -> Option<ArrayRef> {
        let Keys::Numbers(keys) = self else { return None };
        Some(Arc::new(numbers.map(|number| keys.all[number as usize]).collect::<Int64Array>()))
    }

    /// The numbers in the order of the keys. NULL comes last.
    fn in_order(&self) -> Vec<u32> {
        match self {
            Keys::Numbers(keys) => keys.in_order(|key| (key.is_none(), *key)),
            Keys::Rows(.., keys) => keys.in_order(|key| key),
        }
    }
}
