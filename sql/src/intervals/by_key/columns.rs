//! A column of all rows, which grows batch by batch, and of which rows are taken in another order.

use std::{collections::HashMap, ops::Range, sync::Arc};

use arrow::{
    array::{
        Array, ArrayRef, AsArray, DictionaryArray, Int32Array, Int64Array, NullBufferBuilder, StringBuilder,
        UInt32Array,
    },
    buffer::NullBuffer,
    compute::{interleave, take},
    datatypes::{DataType, Int32Type, Int64Type},
};
use datafusion::common::Result;
use foldhash::fast::RandomState;

/// A column that grows.
pub(super) enum Growing {
    Numbers(Vec<i64>, NullBufferBuilder),
    Words(Words),
    /// As it came. Texts and lists of all rows may exceed what one array can hold.
    Pieces(Vec<ArrayRef>),
}

/// A column of words. Each batch has its own dictionary; here they have a common one, because to merge the dictionaries of all batches
/// for each batch of rows that are taken would take quadratic time.
#[derive(Default)]
pub(super) struct Words {
    keys: Vec<i32>,
    nulls: Option<NullBufferBuilder>,
    numbers: HashMap<Box<str>, i32, RandomState>,
    words: StringBuilder,
    /// The dictionary of the batch before, and the number of each of its words, or -1.
    before: Option<(ArrayRef, Vec<i32>)>,
}

impl Growing {
    pub(super) fn new(data_type: &DataType) -> Growing {
        match data_type {
            DataType::Int64 => Growing::Numbers(Vec::new(), NullBufferBuilder::new(0)),
            DataType::Dictionary(keys, values)
                if (keys.as_ref(), values.as_ref()) == (&DataType::Int32, &DataType::Utf8) =>
            {
                Growing::Words(Words { nulls: Some(NullBufferBuilder::new(0)), ..Words::default() })
            }
            _ => Growing::Pieces(Vec::new()),
        }
    }

    pub(super) fn add(&mut self, array: &ArrayRef) {
        match self {
            Growing::Numbers(numbers, nulls) => {
                let more = array.as_primitive::<Int64Type>();
                numbers.extend_from_slice(more.values());
                add_nulls(nulls, more.nulls(), more.len());
            }
            Growing::Words(words) => words.add(array.as_dictionary::<Int32Type>()),
            Growing::Pieces(pieces) => pieces.push(Arc::clone(array)),
        }
    }

    pub(super) fn finish(self) -> Column {
        match self {
            Growing::Numbers(numbers, mut nulls) => {
                Column::Whole(Arc::new(Int64Array::new(numbers.into(), nulls.finish())))
            }
            Growing::Words(words) => Column::Whole(words.finish()),
            Growing::Pieces(pieces) => Column::Pieces(pieces),
        }
    }
}

fn add_nulls(nulls: &mut NullBufferBuilder, more: Option<&NullBuffer>, len: usize) {
    match more {
        Some(more) => nulls.append_buffer(more),
        None => nulls.append_n_non_nulls(len),
    }
}

impl Words {
    fn add(&mut self, more: &DictionaryArray<Int32Type>) {
        let dictionary = more.values();
        let mut known = match self.before.take() {
            Some((before, known)) if before.to_data().ptr_eq(&dictionary.to_data()) => known,
            _ => vec![-1; dictionary.len()],
        };
        let words = dictionary.as_string::<i32>();
        for row in 0..more.len() {
            let place = more.key(row).filter(|place| words.is_valid(*place));
            if let Some(nulls) = &mut self.nulls {
                nulls.append(place.is_some());
            }
            let number = match place {
                Some(place) if known[place] >= 0 => known[place],
                Some(place) => {
                    known[place] = self.number(words.value(place));
                    known[place]
                }
                None => 0,
            };
            self.keys.push(number);
        }
        self.before = Some((Arc::clone(dictionary), known));
    }

    fn number(&mut self, word: &str) -> i32 {
        if let Some(number) = self.numbers.get(word) {
            return *number;
        }
        // As many words as rows at most, which are numbered by 31 bits.
        let number = self.numbers.len() as i32;
        self.numbers.insert(word.into(), number);
        self.words.append_value(word);
        number
    }

    fn finish(mut self) -> ArrayRef {
        let nulls = self.nulls.as_mut().and_then(NullBufferBuilder::finish);
        let keys = Int32Array::new(self.keys.into(), nulls);
        Arc::new(DictionaryArray::new(keys, Arc::new(self.words.finish())))
    }
}

/// A column of all rows.
pub(super) enum Column {
    Whole(ArrayRef),
    Pieces(Vec<ArrayRef>),
}

impl Column {
    /// The whole column, if it is in one piece.
    pub(super) fn whole(&self) -> Option<&ArrayRef> {
        match self {
            Column::Whole(whole) => Some(whole),
            Column::Pieces(_) => None,
        }
    }

    /// The rows of one batch that was added, by its number and its rows. They are copied, so that they alone count as memory of theirs.
    pub(super) fn batch(&self, number: usize, rows: Range<u32>) -> Result<ArrayRef> {
        match self {
            Column::Whole(whole) => Ok(take(whole, &UInt32Array::from_iter_values(rows), None)?),
            Column::Pieces(pieces) => Ok(Arc::clone(&pieces[number])),
        }
    }

    /// Some rows. `starts` has the number of the first row of each piece.
    pub(super) fn rows(&self, rows: &UInt32Array, starts: &[u32]) -> Result<ArrayRef> {
        let pieces = match self {
            Column::Whole(whole) => return Ok(take(whole, rows, None)?),
            Column::Pieces(pieces) => pieces,
        };
        let place = |row: &u32| {
            let piece = starts.partition_point(|start| start <= row) - 1;
            (piece, (row - starts[piece]) as usize)
        };
        let places: Vec<(usize, usize)> = rows.values().iter().map(place).collect();
        let pieces: Vec<&dyn Array> = pieces.iter().map(|piece| piece.as_ref()).collect();
        Ok(interleave(&pieces, &places)?)
    }
}
