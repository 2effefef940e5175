//! Values of a column as texts, in the form of Arrow's formatter. The types of most columns are formatted without
//! `core::fmt`.

use arrow::{
    array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, ListArray, StringArray},
    datatypes::{DataType, Int32Type, Int64Type},
    error::ArrowError,
    util::display::{ArrayFormatter, FormatOptions},
};

/// The values of a column.
pub(super) enum Values<'b> {
    Wide(&'b Int64Array),
    Small(&'b Int32Array),
    Texts(&'b StringArray),
    Words(&'b Int32Array, &'b StringArray),
    Lists(&'b ListArray, Box<Values<'b>>),
    Others(ArrayFormatter<'b>),
}

impl<'b> Values<'b> {
    /// The values of a column. `options` apply to the types that Arrow formats.
    ///
    /// # Errors
    /// If Arrow cannot format its type.
    pub(super) fn of(column: &'b ArrayRef, options: &FormatOptions<'b>) -> Result<Values<'b>, ArrowError> {
        Ok(match column.data_type() {
            DataType::Int64 => Values::Wide(column.as_primitive::<Int64Type>()),
            DataType::Int32 => Values::Small(column.as_primitive::<Int32Type>()),
            DataType::Utf8 => Values::Texts(column.as_string()),
            DataType::List(_) => {
                let lists = column.as_list::<i32>();
                Values::Lists(lists, Box::new(Values::of(lists.values(), options)?))
            }
            DataType::Dictionary(key, word) if is_word(key, word) => {
                let words = column.as_dictionary::<Int32Type>();
                Values::Words(words.keys(), words.values().as_string())
            }
            _ => Values::Others(ArrayFormatter::try_new(column, options)?),
        })
    }

    /// Appends the value of a row; for NULL, appends nothing.
    ///
    /// # Errors
    /// If Arrow cannot format the value.
    pub(super) fn push(&self, out: &mut String, row: usize) -> Result<(), ArrowError> {
        match self {
            Values::Wide(numbers) if numbers.is_valid(row) => push_integer(out, numbers.value(row)),
            Values::Small(numbers) if numbers.is_valid(row) => push_integer(out, numbers.value(row)),
            Values::Texts(texts) if texts.is_valid(row) => out.push_str(texts.value(row)),
            Values::Words(keys, words) if keys.is_valid(row) => {
                let word = keys.value(row) as usize;
                if words.is_valid(word) {
                    out.push_str(words.value(word));
                }
            }
            Values::Lists(lists, elements) if lists.is_valid(row) => {
                out.push('[');
                let offsets = lists.value_offsets();
                let (from, to) = (offsets[row] as usize, offsets[row + 1] as usize);
                for element in from..to {
                    if element > from {
                        out.push_str(", ");
                    }
                    elements.push(out, element)?;
                }
                out.push(']');
            }
            Values::Others(formatter) => formatter.value(row).write(out)?,
            _ => {}
        }
        Ok(())
    }
}

fn is_word(key: &DataType, word: &DataType) -> bool {
    *key == DataType::Int32 && *word == DataType::Utf8
}

fn push_integer(out: &mut String, number: impl itoa::Integer) {
    out.push_str(itoa::Buffer::new().format(number));
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::{
        array::{BooleanArray, DictionaryArray, Float64Array, ListBuilder, StringBuilder},
        datatypes::Int64Type,
    };

    use super::*;

    fn columns() -> Vec<ArrayRef> {
        let mut texts = ListBuilder::new(StringBuilder::new());
        for list in [Some(vec![Some("a"), None, Some("")]), None, Some(vec![]), Some(vec![Some("b, c")])] {
            texts.append_option(list);
        }
        let numbers = [Some(vec![Some(1), None, Some(-3)]), None, Some(vec![]), Some(vec![Some(i64::MIN)])];
        let words: DictionaryArray<Int32Type> =
            [Some("on"), None, Some("on"), Some("\"")].into_iter().collect();
        vec![
            Arc::new(Int64Array::from(vec![Some(i64::MIN), None, Some(0), Some(i64::MAX)])),
            Arc::new(Int32Array::from(vec![Some(i32::MIN), None, Some(0), Some(i32::MAX)])),
            Arc::new(StringArray::from(vec![Some("a\tb"), None, Some(""), Some("ü")])),
            Arc::new(words),
            Arc::new(texts.finish()),
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(numbers)),
            Arc::new(Float64Array::from(vec![Some(0.5), None, Some(1e300), Some(f64::NAN)])),
            Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true)])),
        ]
    }

    #[test]
    fn values_are_written_as_arrow_writes_them() {
        let options = FormatOptions::new();
        for column in columns() {
            // Also a part of a column, whose offsets do not begin at 0.
            for column in [column.slice(1, 3), column] {
                let (values, formatter) = (
                    Values::of(&column, &options).unwrap(),
                    ArrayFormatter::try_new(&column, &options).unwrap(),
                );
                for row in 0..column.len() {
                    let mut text = String::new();
                    values.push(&mut text, row).unwrap();
                    assert_eq!(text, formatter.value(row).to_string(), "{:?} {row}", column.data_type());
                }
            }
        }
    }
}
