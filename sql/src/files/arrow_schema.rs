//! Checks the Arrow schema that a writer leaves in the footer of a Parquet file. The Parquet reader takes the types of
//! columns from it, and panics if it contains a type that does not exist.

use arrow::ipc::{DateUnit, Field, Precision, TimeUnit, Type, root_as_message};
use base64::{Engine, prelude::BASE64_STANDARD};
use datafusion::parquet::{arrow::ARROW_SCHEMA_META_KEY, file::metadata::FileMetaData};

/// Precedes a message with a length prefix.
const CONTINUES: [u8; 4] = [0xff; 4];

/// Checks that the reader can take types from the schema. (If the reader cannot decode it, the reader itself returns an
/// error.)
///
/// # Errors
/// When the reader would panic; the text has the reason.
pub(super) fn check(metadata: &FileMetaData) -> Result<(), String> {
    let values = metadata.key_value_metadata().into_iter().flatten();
    for value in
        values.filter(|pair| pair.key == ARROW_SCHEMA_META_KEY).filter_map(|pair| pair.value.as_ref())
    {
        check_encoded(value)?;
    }
    Ok(())
}

fn check_encoded(schema: &str) -> Result<(), String> {
    let Ok(bytes) = BASE64_STANDARD.decode(schema) else { return Ok(()) };
    let message = if bytes.starts_with(&CONTINUES) { bytes.get(8..).unwrap_or(&bytes) } else { &bytes };
    let Ok(message) = root_as_message(message) else { return Ok(()) };
    let Some(schema) = message.header_as_schema() else { return Ok(()) };
    let fields = schema.fields().ok_or("an Arrow schema without fields")?;
    fields.iter().try_for_each(check_field)
}

fn check_field(field: Field<'_>) -> Result<(), String> {
    let name = field.name().unwrap_or_default();
    let exists = |exists: bool| match exists {
        true => Ok(()),
        false => {
            Err(format!("column `{name}` of an Arrow type that does not exist, or that is not read here"))
        }
    };
    if let Some(dictionary) = field.dictionary() {
        exists(dictionary.indexType().is_some_and(|index| is_width(index.bitWidth())))?;
    }
    let children = || field.children().into_iter().flatten();
    match field.type_type() {
        Type::Null | Type::Bool => Ok(()),
        Type::Utf8 | Type::LargeUtf8 | Type::Utf8View => Ok(()),
        Type::Binary | Type::LargeBinary | Type::BinaryView => Ok(()),
        Type::Int => exists(field.type_as_int().is_some_and(|int| is_width(int.bitWidth()))),
        Type::FloatingPoint => exists(field.type_as_floating_point().is_some_and(|float| {
            [Precision::HALF, Precision::SINGLE, Precision::DOUBLE].contains(&float.precision())
        })),
        Type::Decimal => exists(field.type_as_decimal().is_some_and(|decimal| {
            [32, 64, 128, 256].contains(&decimal.bitWidth())
                && u8::try_from(decimal.precision()).is_ok()
                && i8::try_from(decimal.scale()).is_ok()
        })),
        Type::Date => exists(
            field
                .type_as_date()
                .is_some_and(|date| [DateUnit::DAY, DateUnit::MILLISECOND].contains(&date.unit())),
        ),
        Type::Timestamp => exists(field.type_as_timestamp().is_some_and(|time| is_unit(time.unit()))),
        Type::Duration => exists(field.type_as_duration().is_some_and(|length| is_unit(length.unit()))),
        Type::List | Type::LargeList => {
            exists(children().count() == 1)?;
            children().try_for_each(check_field)
        }
        Type::Struct_ => children().try_for_each(check_field),
        _ => exists(false),
    }
}

fn is_width(bits: i32) -> bool {
    [8, 16, 32, 64].contains(&bits)
}

fn is_unit(unit: TimeUnit) -> bool {
    [TimeUnit::SECOND, TimeUnit::MILLISECOND, TimeUnit::MICROSECOND, TimeUnit::NANOSECOND].contains(&unit)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use arrow::datatypes::Schema;
    use datafusion::parquet::{
        arrow::{ArrowSchemaConverter, encode_arrow_schema, parquet_to_arrow_schema},
        file::metadata::KeyValue,
    };
    use sigmund_model::tables::{ColumnType, EVENTS};

    use super::*;

    /// Each bit of the schema of a table with all types. Unchecked, the reader panics at some.
    #[test]
    fn no_wrong_bit_makes_the_reader_panic() {
        let field = |column: &sigmund_model::tables::Column| {
            arrow::datatypes::Field::new(column.name, column.ty.data_type(), true)
        };
        assert!(EVENTS.columns.iter().any(|column| column.ty == ColumnType::Word));
        let schema = Schema::new(EVENTS.columns.iter().map(field).collect::<Vec<_>>());
        let of_parquet = ArrowSchemaConverter::new().convert(&schema).unwrap();
        let right = encode_arrow_schema(&schema);
        assert_eq!(check_encoded(&right), Ok(()));
        let bytes = BASE64_STANDARD.decode(&right).unwrap();
        let (mut refused, mut saved) = (0, 0);
        for bit in 0..8 * bytes.len() {
            let mut wrong = bytes.clone();
            wrong[bit / 8] ^= 1 << (bit % 8);
            let wrong = BASE64_STANDARD.encode(wrong);
            let is_refused = check_encoded(&wrong).is_err();
            let values = vec![KeyValue::new(ARROW_SCHEMA_META_KEY.to_string(), wrong)];
            let read = || drop(parquet_to_arrow_schema(&of_parquet, Some(&values)));
            if is_refused {
                refused += 1;
                saved += usize::from(catch_unwind(AssertUnwindSafe(read)).is_err());
            } else {
                read();
            }
        }
        // The reader would have panicked at these.
        assert!(saved > 50 && saved <= refused, "{saved} of {refused}");
    }
}
