//! Typed access to columns of batches. The types are those of `sigmund_model::tables`.

use arrow::{
    array::{Array, AsArray, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray},
    datatypes::{Int32Type, Int64Type},
};

/// A column with the type `Int64`.
pub struct Wide<'b>(&'b Int64Array);

impl<'b> Wide<'b> {
    /// Column `column` of a batch.
    ///
    /// # Panics
    /// When it is of another type.
    pub fn of(batch: &'b RecordBatch, column: usize) -> Wide<'b> {
        Wide(batch.column(column).as_primitive::<Int64Type>())
    }

    /// The value of a row; `None` for NULL.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    pub fn get(&self, row: usize) -> Option<i64> {
        self.0.is_valid(row).then(|| self.0.value(row))
    }

    /// The value of a row; 0 for NULL.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    pub fn or_zero(&self, row: usize) -> i64 {
        self.get(row).unwrap_or_default()
    }

    /// The user thread of a row.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    pub fn thread(&self, row: usize) -> Option<u64> {
        self.get(row).map(|number| number as u64)
    }
}

/// A column with the type `Int32`: a CPU, LWP, process, or small count.
pub struct Small<'b>(&'b Int32Array);

impl<'b> Small<'b> {
    /// Column `column` of a batch.
    ///
    /// # Panics
    /// When it is of another type.
    pub fn of(batch: &'b RecordBatch, column: usize) -> Small<'b> {
        Small(batch.column(column).as_primitive::<Int32Type>())
    }

    /// The value of a row; `None` for NULL.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    pub fn get(&self, row: usize) -> Option<u32> {
        self.0.is_valid(row).then(|| self.0.value(row) as u32)
    }

    /// The value of a row; 0 for NULL.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    pub fn or_zero(&self, row: usize) -> u32 {
        self.get(row).unwrap_or_default()
    }
}

/// A column of words. Each word is looked up only once per batch.
pub struct Words<'b, T> {
    keys: &'b Int32Array,
    values: Vec<T>,
}

impl<'b, T: Copy> Words<'b, T> {
    /// Column `column` of a batch, which is a dictionary. Calls `look_up` with each of its words.
    ///
    /// # Panics
    /// When it is of another type.
    pub fn of(batch: &'b RecordBatch, column: usize, mut look_up: impl FnMut(&str) -> T) -> Words<'b, T> {
        let dictionary = batch.column(column).as_dictionary::<Int32Type>();
        let values = dictionary.values().as_string::<i32>();
        let values = values.iter().map(|word| look_up(word.unwrap_or_default())).collect();
        Words { keys: dictionary.keys(), values }
    }

    /// The value of a row; `None` for NULL.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    pub fn get(&self, row: usize) -> Option<T> {
        if self.keys.is_valid(row) { self.values.get(self.keys.value(row) as usize).copied() } else { None }
    }
}

/// A column of texts: from a row group a dictionary, from a query plain.
pub struct Texts<'b> {
    keys: Option<&'b Int32Array>,
    texts: &'b StringArray,
}

impl<'b> Texts<'b> {
    /// Column `column` of a batch.
    ///
    /// # Panics
    /// When it is of another type.
    pub fn of(batch: &'b RecordBatch, column: usize) -> Texts<'b> {
        let column = batch.column(column);
        match column.as_dictionary_opt::<Int32Type>() {
            Some(words) => Texts { keys: Some(words.keys()), texts: words.values().as_string::<i32>() },
            None => Texts { keys: None, texts: column.as_string::<i32>() },
        }
    }

    /// The value of a row; `None` for NULL.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline]
    pub fn get(&self, row: usize) -> Option<&'b str> {
        let row = match self.keys {
            None => row,
            Some(keys) => usize::try_from(keys.is_valid(row).then(|| keys.value(row))?).ok()?,
        };
        self.texts.is_valid(row).then(|| self.texts.value(row))
    }
}

/// A column of booleans.
///
/// # Panics
/// When it is of another type.
pub fn booleans(batch: &RecordBatch, column: usize) -> &BooleanArray {
    batch.column(column).as_boolean()
}
