//! One chunk of a column of numbers or texts, flat or in lists. Values are written with a dictionary while that is
//! small, and plain afterwards.
//!
//! This does the same as Arrow's writer, specialised for our columns. Most of what a merge writes is written here, so
//! most of the cost of writing is here, too.

use parquet::{
    basic::{Encoding, Type},
    errors::ParquetError,
    file::statistics::Statistics,
    schema::types::ColumnDescPtr,
};

use super::{
    chunk::{Chunk, EncodedChunk, Ending},
    column::Filled,
    hybrid,
    value_index::{Plain, ValueIndex},
};

/// Maximum number of values in a dictionary. A full one is no longer used: later values are written plain.
const MOST_PLACES: usize = 1 << 16;

/// A column chunk that is being encoded.
pub(super) struct ValueChunk<P> {
    chunk: Chunk,
    dictionary: P,
    /// The dictionary indexes of the values of a page.
    indices: Vec<u32>,
    /// The smallest and the largest number that are not in the dictionary.
    range: Option<(i64, i64)>,
    nulls: u64,
}

impl<P: ValueIndex> ValueChunk<P> {
    pub(super) fn new(column: ColumnDescPtr) -> Result<ValueChunk<P>, ParquetError> {
        let (chunk, dictionary) = (Chunk::new(column), P::default());
        Ok(ValueChunk { chunk, dictionary, indices: Vec::new(), range: None, nulls: 0 })
    }

    /// Encodes some rows as a page.
    pub(super) fn page(&mut self, rows: &Filled<P::Values>) -> Result<(), ParquetError> {
        let Filled { levels, values } = rows;
        self.nulls += (levels.len() - values.count()) as u64;
        let mut page = self.chunk.begin(levels)?;
        let encoding = self.append(values, &mut page);
        self.chunk.page(page, levels.rows(), levels.len(), encoding)
    }

    fn append(&mut self, values: &P::Values, page: &mut Vec<u8>) -> Encoding {
        if self.dictionary.known().count() >= MOST_PLACES {
            if !self.is_list() {
                self.range = wider(self.range, values.range());
            }
            values.put(self.chunk.column().physical_type(), page);
            return Encoding::PLAIN;
        }
        self.indices.clear();
        self.dictionary.find(values, &mut self.indices);
        let width = hybrid::width_of((self.dictionary.known().count() as u32).saturating_sub(1));
        page.push(width as u8);
        hybrid::encode(&self.indices, width, page);
        Encoding::RLE_DICTIONARY
    }

    fn is_list(&self) -> bool {
        self.chunk.column().max_rep_level() > 0
    }

    /// Ends the chunk. The dictionary comes before its pages.
    pub(super) fn close(self) -> Result<EncodedChunk, ParquetError> {
        let statistics = self.statistics();
        let values = self.dictionary.known();
        let mut bytes = Vec::new();
        values.put(self.chunk.column().physical_type(), &mut bytes);
        let dictionary = Some((bytes, values.count()));
        self.chunk.close(Ending { dictionary, statistics, ..Ending::default() })
    }

    /// Statistics with which a reader skips pages. There are none for elements of lists.
    fn statistics(&self) -> Option<Statistics> {
        if self.is_list() {
            return None;
        }
        let range = wider(self.range, self.dictionary.known().range());
        let (least, most, nulls) = (range.map(|r| r.0), range.map(|r| r.1), Some(self.nulls));
        match self.chunk.column().physical_type() {
            Type::INT32 => {
                let narrow = |number: Option<i64>| number.map(|number| number as i32);
                Some(Statistics::int32(narrow(least), narrow(most), None, nulls, false))
            }
            Type::INT64 => Some(Statistics::int64(least, most, None, nulls, false)),
            _ => None,
        }
    }
}

/// The range that contains both.
fn wider(one: Option<(i64, i64)>, other: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        _ => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::{
        array::{
            Array, ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, ListBuilder,
            PrimitiveBuilder, StringArray, StringBuilder,
        },
        compute::concat,
        datatypes::Int64Type,
    };
    use proptest::{collection::vec, prelude::*};

    use super::{super::there_and_back::there_and_back, *};

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

    // | 40 000 values | 40 000 others | 40 000 of the first again |: the dictionary is full after the second batch.
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

    #[test]
    fn fractions_and_yes_or_no_come_back() {
        come_back(&[Arc::new(Float64Array::from(vec![Some(0.5), None, Some(-0.0), Some(f64::INFINITY)]))]);
        for rows in [1, 8, 63, 64, 65, 200] {
            let answers = (0..rows).map(|row| Some(row % 3 == 0));
            come_back(&[Arc::new(BooleanArray::from_iter(answers))]);
        }
    }

    // Lists of up to 100 elements, which is more than the number of levels that are written together.
    fn lists() -> impl Strategy<Value = Vec<Vec<Option<i64>>>> {
        let element =
            prop_oneof![1 => Just(None), 3 => (-40i64..40).prop_map(Some), 1 => any::<i64>().prop_map(Some)];
        vec(prop_oneof![5 => vec(element.clone(), 0..4), 1 => vec(element, 0..100)], 1..80)
    }

    proptest! {
        #[test]
        fn lists_of_any_length_come_back(pages in vec(lists(), 1..4)) {
            let numbers = |lists: &Vec<Vec<Option<i64>>>| {
                let mut rows = ListBuilder::new(PrimitiveBuilder::<Int64Type>::new());
                lists.iter().for_each(|list| rows.append_value(list.clone()));
                Arc::new(rows.finish()) as ArrayRef
            };
            let texts = |lists: &Vec<Vec<Option<i64>>>| {
                let mut rows = ListBuilder::new(StringBuilder::new());
                lists.iter().for_each(|list| rows.append_value(list.iter().map(|n| n.map(|n| n.to_string()))));
                Arc::new(rows.finish()) as ArrayRef
            };
            come_back(&pages.iter().map(numbers).collect::<Vec<_>>());
            come_back(&pages.iter().map(texts).collect::<Vec<_>>());
        }

        // Stretches with a value in every row, without any, and with both.
        #[test]
        fn numbers_with_stretches_of_null_come_back(
            stretches in vec((1usize..300, 0u32..3, any::<i32>()), 1..8),
        ) {
            let numbers = stretches.iter().flat_map(|(rows, kind, number)| {
                (0..*rows as i32).map(move |row| match kind {
                    0 => None,
                    1 => Some(number.wrapping_add(row % 7)),
                    _ => (row % 3 > 0).then_some(*number),
                })
            });
            let numbers: Vec<_> = numbers.collect();
            come_back(&[Arc::new(Int32Array::from(numbers.clone())), Arc::new(Int32Array::from(numbers))]);
        }
    }
}
