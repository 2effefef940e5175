//! Columns whose type depends on the table.

use arrow::{
    array::{Array, AsArray, Int32Array, RecordBatch, StringArray},
    datatypes::Int32Type,
};
use sigmund_sql::columns::Wide;

/// A column of `Int64` or `Int32`.
pub(super) enum Numbers<'b> {
    Wide(Wide<'b>),
    Small(&'b Int32Array),
}

impl<'b> Numbers<'b> {
    pub(super) fn of(batch: &'b RecordBatch, column: usize) -> Numbers<'b> {
        match batch.column(column).as_primitive_opt::<Int32Type>() {
            Some(numbers) => Numbers::Small(numbers),
            None => Numbers::Wide(Wide::of(batch, column)),
        }
    }

    #[inline]
    pub(super) fn get(&self, row: usize) -> Option<i64> {
        match self {
            Numbers::Wide(numbers) => numbers.get(row),
            Numbers::Small(numbers) => numbers.is_valid(row).then(|| numbers.value(row).into()),
        }
    }
}

/// A column of texts or dictionary words.
pub(super) enum Texts<'b> {
    Words(&'b Int32Array, &'b StringArray),
    Texts(&'b StringArray),
}

impl<'b> Texts<'b> {
    pub(super) fn of(batch: &'b RecordBatch, column: usize) -> Texts<'b> {
        let column = batch.column(column);
        match column.as_dictionary_opt::<Int32Type>() {
            Some(words) => Texts::Words(words.keys(), words.values().as_string()),
            None => Texts::Texts(column.as_string()),
        }
    }

    #[inline]
    pub(super) fn get(&self, row: usize) -> Option<&'b str> {
        match self {
            Texts::Words(keys, words) => keys.is_valid(row).then(|| words.value(keys.value(row) as usize)),
            Texts::Texts(texts) => texts.is_valid(row).then(|| texts.value(row)),
        }
    }
}
