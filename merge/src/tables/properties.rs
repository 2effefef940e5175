//! How each column is encoded. What was measured stands in ARCHITECTURE.md.

use arrow::datatypes::Field;
use parquet::{
    basic::{Compression, Encoding, ZstdLevel},
    file::properties::{EnabledStatistics, WriterProperties},
    schema::types::ColumnPath,
};
use sigmund_model::tables::{ColumnType, Table};

/// zstd; ticks as differences, which are small where rows are in the order of time; words by dictionary. Statistics
/// where a reader can skip by them: the smallest and largest of some words says nothing.
pub(super) fn properties(table: &Table) -> WriterProperties {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!("sigmund ", env!("CARGO_PKG_VERSION")).into());
    for column in table.columns {
        let path = ColumnPath::from(column.name);
        properties = match column.ty {
            ColumnType::Int64 if column.name.ends_with("_tick") => properties
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            ColumnType::Word => properties.set_column_statistics_enabled(path, EnabledStatistics::None),
            ColumnType::Numbers | ColumnType::Texts => {
                let element = ColumnPath::from(vec![column.name.into(), "list".into(), "item".into()]);
                properties.set_column_statistics_enabled(element, EnabledStatistics::None)
            }
            _ => properties,
        };
    }
    properties.build()
}

/// Whether a column holds ticks, which are written as differences.
pub(super) fn is_difference(field: &Field) -> bool {
    field.name().ends_with("_tick")
}
