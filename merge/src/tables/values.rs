//! One chunk of a column of numbers or texts, flat or in lists: by dictionary while that is small, as they are behind.
//!
//! What Arrow's writer does, in the shape that our columns have. It is most of what a merge writes, so it is most of
//! what writing costs.

use std::{collections::HashMap, hash::Hash};

use arrow::{
    array::{Array, AsArray},
    datatypes::{DataType, Int32Type, Int64Type},
};
use foldhash::fast::RandomState;
use parquet::{
    basic::{Encoding, Type as PhysicalType},
    errors::ParquetError,
    file::statistics::Statistics,
    schema::types::ColumnDescPtr,
};

use super::{
    chunk::{Chunk, EncodedChunk, Levels},
    hybrid,
};

/// Values of a dictionary. One that has so many is not looked up any more: the values behind are written as they are.
const MOST_PLACES: usize = 1 << 16;

/// A column chunk that is being encoded.
pub(super) struct ValueChunk {
    chunk: Chunk,
    numbers: Dictionary<i64>,
    texts: Dictionary<Box<[u8]>>,
    /// The smallest and the largest number.
    range: Option<(i64, i64)>,
    nulls: u64,
    levels: Levels,
}

/// The values that have a place so far.
struct Dictionary<V> {
    places: HashMap<V, u32, RandomState>,
    bytes: Vec<u8>,
    /// The places of the values of a page.
    indices: Vec<u32>,
}

impl ValueChunk {
    /// Whether a column of this type is encoded here.
    pub(super) fn takes(ty: &DataType) -> bool {
        match ty {
            DataType::Int32 | DataType::Int64 | DataType::Utf8 => true,
            DataType::List(element) => matches!(element.data_type(), DataType::Int64 | DataType::Utf8),
            _ => false,
        }
    }

    pub(super) fn new(column: ColumnDescPtr) -> Result<ValueChunk, ParquetError> {
        Ok(ValueChunk {
            chunk: Chunk::new(column)?,
            numbers: Dictionary::new(),
            texts: Dictionary::new(),
            range: None,
            nulls: 0,
            levels: Levels::default(),
        })
    }

    /// Encodes some rows as a page.
    pub(super) fn page(&mut self, rows: &dyn Array) -> Result<(), ParquetError> {
        let values = self.lay_out(rows);
        let mut page = self.chunk.begin(&self.levels);
        let levels = self.levels.definition.len();
        let encoding = self.append(values.as_ref().map_or(rows, |values| values), &mut page);
        self.chunk.page(&page, rows.len(), levels, encoding)
    }

    /// Notes which values are there; of lists, gives the elements.
    fn lay_out(&mut self, rows: &dyn Array) -> Option<arrow::array::ArrayRef> {
        let most = self.chunk.column().max_def_level() as u32;
        self.levels.clear();
        let Levels { repetition, definition } = &mut self.levels;
        let DataType::List(_) = rows.data_type() else {
            match rows.nulls() {
                Some(nulls) => definition.extend(nulls.iter().map(u32::from)),
                None => definition.resize(rows.len(), most),
            }
            self.nulls += rows.null_count() as u64;
            return None;
        };
        // most: a value; most - 1: none in its place; most - 2: no place, the list is empty.
        let lists = rows.as_list::<i32>();
        let elements = lists.values();
        for ends in lists.offsets().windows(2) {
            let (from, to) = (ends[0] as usize, ends[1] as usize);
            repetition.push(0);
            if from == to {
                definition.push(most - 2);
                continue;
            }
            repetition.extend(std::iter::repeat_n(1, to - from - 1));
            match elements.nulls() {
                Some(nulls) => definition.extend((from..to).map(|at| most - u32::from(nulls.is_null(at)))),
                None => definition.extend(std::iter::repeat_n(most, to - from)),
            }
        }
        Some(elements.clone())
    }

    /// Appends the values that are there.
    fn append(&mut self, values: &dyn Array, page: &mut Vec<u8>) -> Encoding {
        match values.data_type() {
            DataType::Int32 => {
                let numbers = values.as_primitive::<Int32Type>();
                self.append_numbers(numbers.iter().flatten().map(i64::from), page)
            }
            DataType::Int64 => {
                let numbers = values.as_primitive::<Int64Type>();
                match numbers.nulls() {
                    None => self.append_numbers(numbers.values().iter().copied(), page),
                    Some(_) => self.append_numbers(numbers.iter().flatten(), page),
                }
            }
            _ => {
                let texts = values.as_string::<i32>().iter().flatten();
                self.texts.append(texts.map(str::as_bytes), page, |text, out| {
                    out.extend((text.len() as u32).to_le_bytes());
                    out.extend(text);
                })
            }
        }
    }

    fn append_numbers(&mut self, numbers: impl Iterator<Item = i64> + Clone, page: &mut Vec<u8>) -> Encoding {
        let mut range = self.range;
        let numbers = numbers.inspect(|number| {
            let (least, most) = range.get_or_insert((*number, *number));
            (*least, *most) = ((*least).min(*number), (*most).max(*number));
        });
        let numbers: Vec<i64> = numbers.collect();
        self.range = range;
        let is_narrow = self.chunk.column().physical_type() == PhysicalType::INT32;
        self.numbers.append(numbers.iter(), page, |number, out| match is_narrow {
            true => out.extend((*number as i32).to_le_bytes()),
            false => out.extend(number.to_le_bytes()),
        })
    }

    /// Puts the dictionary in front.
    pub(super) fn close(self) -> Result<EncodedChunk, ParquetError> {
        let statistics = self.statistics();
        let is_text = self.chunk.column().physical_type() == PhysicalType::BYTE_ARRAY;
        let (bytes, len) = if is_text { self.texts.finish() } else { self.numbers.finish() };
        self.chunk.close(&bytes, len, statistics)
    }

    /// What a reader can skip by. Of elements of lists nobody asks for a range.
    fn statistics(&self) -> Option<Statistics> {
        let column = self.chunk.column();
        if column.max_rep_level() > 0 {
            return None;
        }
        let (least, most, nulls) = (self.range.map(|r| r.0), self.range.map(|r| r.1), Some(self.nulls));
        match column.physical_type() {
            PhysicalType::INT32 => {
                let narrow = |number: Option<i64>| number.map(|number| number as i32);
                Some(Statistics::int32(narrow(least), narrow(most), None, nulls, false))
            }
            PhysicalType::INT64 => Some(Statistics::int64(least, most, None, nulls, false)),
            _ => None,
        }
    }
}

impl<V: Hash + Eq> Dictionary<V> {
    fn new() -> Dictionary<V> {
        Dictionary { places: HashMap::default(), bytes: Vec::new(), indices: Vec::new() }
    }

    /// Appends values, by their places or, if the dictionary is full, as `plain` writes them.
    fn append<'v, Q>(
        &mut self,
        values: impl Iterator<Item = &'v Q>,
        page: &mut Vec<u8>,
        plain: impl Fn(&Q, &mut Vec<u8>),
    ) -> Encoding
    where
        V: std::borrow::Borrow<Q>,
        Q: Hash + Eq + ToOwned + ?Sized + 'v,
        Q::Owned: Into<V>,
    {
        if self.places.len() >= MOST_PLACES {
            values.for_each(|value| plain(value, page));
            return Encoding::PLAIN;
        }
        self.indices.clear();
        for value in values {
            let place = match self.places.get(value) {
                Some(place) => *place,
                None => {
                    let place = self.places.len() as u32;
                    self.places.insert(value.to_owned().into(), place);
                    plain(value, &mut self.bytes);
                    place
                }
            };
            self.indices.push(place);
        }
        let width = hybrid::width_of((self.places.len() as u32).saturating_sub(1));
        page.push(width as u8);
        hybrid::encode(&self.indices, width, page);
        Encoding::RLE_DICTIONARY
    }

    fn finish(self) -> (Vec<u8>, u32) {
        (self.bytes, self.places.len() as u32)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::{
        array::{
            ArrayRef, Int32Array, Int64Array, ListBuilder, PrimitiveBuilder, StringArray, StringBuilder,
        },
        compute::concat,
        datatypes::{Field, Schema},
    };
    use bytes::Bytes;
    use parquet::arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder};

    use super::*;

    /// Writes the batches as a page each of one row group, and reads them with Arrow's reader.
    fn there_and_back(batches: &[ArrayRef]) -> (ArrayRef, Statistics) {
        let field = Field::new("column", batches[0].data_type().clone(), true);
        let schema = Arc::new(Schema::new(vec![field]));
        let (mut file, _) =
            ArrowWriter::try_new(Vec::new(), schema, None).unwrap().into_serialized_writer().unwrap();
        let mut chunk = ValueChunk::new(file.schema_descr().column(0)).unwrap();
        batches.iter().for_each(|batch| chunk.page(batch).unwrap());
        let EncodedChunk { bytes, close } = chunk.close().unwrap();
        let mut group = file.next_row_group().unwrap();
        group.append_column(&bytes, close).unwrap();
        group.close().unwrap();
        let bytes = Bytes::from(file.into_inner().unwrap());
        let reader = ParquetRecordBatchReaderBuilder::try_new(bytes).unwrap();
        let statistics = reader.metadata().row_group(0).column(0).statistics().cloned();
        let read: Vec<ArrayRef> =
            reader.build().unwrap().map(|batch| Arc::clone(batch.unwrap().column(0))).collect();
        let read: Vec<&dyn Array> = read.iter().map(|array| array.as_ref()).collect();
        (concat(&read).unwrap(), statistics.unwrap_or(Statistics::boolean(None, None, None, None, false)))
    }

    fn come_back(batches: &[ArrayRef]) -> Statistics {
        let written: Vec<&dyn Array> = batches.iter().map(|array| array.as_ref()).collect();
        let (read, statistics) = there_and_back(batches);
        assert_eq!(&read, &concat(&written).unwrap());
        statistics
    }

    #[test]
    fn numbers_that_may_be_missing_come_back_with_their_range() {
        let some = Int32Array::from(vec![Some(7), None, Some(-3), Some(7), None]);
        let none = Int32Array::from(vec![None, None]);
        let statistics = come_back(&[Arc::new(some), Arc::new(none)]);
        assert_eq!(statistics, Statistics::int32(Some(-3), Some(7), None, Some(4), false));
        let nothing = come_back(&[Arc::new(Int64Array::from(vec![None, None, None]))]);
        assert_eq!((nothing.null_count_opt(), nothing.min_bytes_opt()), (Some(3), None));
    }

    // | 40 000 values | 40 000 others | 40 000 of the first again |: the dictionary is full behind the second.
    #[test]
    fn behind_a_full_dictionary_values_stand_as_they_are() {
        let batch = |from: i64| Arc::new(Int64Array::from_iter_values((from..from + 40_000).map(|n| n * n)));
        let statistics = come_back(&[batch(0), batch(40_000), batch(0)]);
        assert_eq!(statistics, Statistics::int64(Some(0), Some(79_999 * 79_999), None, Some(0), false));
        let texts = |from: i64| {
            Arc::new(StringArray::from_iter_values((from..from + 40_000).map(|n| format!("word {n}"))))
        };
        come_back(&[texts(0), texts(40_000), texts(0)]);
    }

    #[test]
    fn lists_of_numbers_come_back_empty_or_with_holes() {
        let mut lists = ListBuilder::new(PrimitiveBuilder::<Int64Type>::new());
        for list in [vec![Some(1), None, Some(i64::MIN)], vec![], vec![None], vec![Some(1); 40], vec![]] {
            lists.append_value(list);
        }
        come_back(&[Arc::new(lists.finish())]);
    }

    #[test]
    fn lists_of_texts_come_back() {
        let batch = |word: &str| {
            let mut lists = ListBuilder::new(StringBuilder::new());
            lists.append_value([Some(word), None, Some("")]);
            lists.append_value(Vec::<Option<&str>>::new());
            lists.append_value([Some("hackbench"); 20]);
            Arc::new(lists.finish())
        };
        come_back(&[batch("sched"), batch("sched_switch")]);
    }
}
