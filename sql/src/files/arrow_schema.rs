//! The Arrow schema that a writer leaves in the footer of a Parquet file. The Parquet reader takes the types of columns from it, and
//! panics if the schema has a type that does not exist. So the schema is checked first.

use arrow::ipc::{DateUnit, Field, Precision, TimeUnit, Type, root_as_message};
use base64::{Engine, prelude::BASE64_STANDARD};
use datafusion::parquet::{arrow::ARROW_SCHEMA_META_KEY, file::metadata::FileMetaData};

/// Begins a message that has its length before it.
const CONTINUES: [u8; 4] = [0xff; 4];

/// Whether the reader can take types from it. One that it cannot decode is an error of the reader.
///
/// # Errors
/// What it would panic at.
pub(super) fn check(metadata: &FileMetaData) -> Result<(), String> {
    let values = metadata.key_value_metadata().into_iter().flatten();
    for value in
        values.filter(|pair| pair.key == ARROW_SCHEMA_META_KEY).filter_map(|pair| pair.value.as_ref())
    {
        let Ok(bytes) = BASE64_STANDARD.decode(value) else { continue };
        let message = if bytes.starts_with(&CONTINUES) { bytes.get(8..).unwrap_or(&bytes) } else { &bytes };
        let Ok(message) = root_as_message(message) else { continue };
        let Some(schema) = message.header_as_schema() else { continue };
        let fields = schema.fields().ok_or("an Arrow schema without fields")?;
        fields.iter().try_for_each(check_field)?;
    }
    Ok(())
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
