//! Which pages of a row group may have rows of a time: by the least and the greatest values of each, from the file's page index.

use std::sync::Arc;

use datafusion::parquet::{
    arrow::arrow_reader::{RowSelection, RowSelector},
    file::{
        metadata::{PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader},
        page_index::column_index::{ColumnIndexMetaData, PrimitiveColumnIndex},
        reader::ChunkReader,
    },
};

/// The rows of a row group that may be of use.
pub(super) struct Pages {
    pub(super) selection: RowSelection,
    /// No row that is left out, and has a known end, ends after this; `None` if none is left out.
    pub(super) latest: Option<i64>,
}

/// The metadata of a file with its page index; `None` if it has none that can be read.
pub(super) fn with_page_index(
    metadata: &ParquetMetaData,
    file: &impl ChunkReader,
) -> Option<Arc<ParquetMetaData>> {
    let reader = ParquetMetaDataReader::new_with_metadata(metadata.clone());
    let mut reader = reader.with_page_index_policy(PageIndexPolicy::Optional);
    reader.read_page_indexes(file).ok()?;
    let metadata = reader.finish().ok()?;
    (metadata.column_index().is_some() && metadata.offset_index().is_some()).then(|| Arc::new(metadata))
}

/// The pages of a row group in which a row may begin at `to` or before it and end at `from` or after it, in a table with the
/// columns `ts_tick` and `dur_tick`. A length that is not known has no end. `None` if the index does not tell.
pub(super) fn pages_within(
    metadata: &ParquetMetaData,
    group: usize,
    (from, to): (i64, i64),
) -> Option<Pages> {
    let columns = metadata.row_group(group).columns();
    let place = |name: &str| columns.iter().position(|column| column.column_path().string() == name);
    let starts = ticks(metadata, group, place("ts_tick")?)?;
    // Without a column of lengths, rows may end at any time.
    let lengths = place("dur_tick").and_then(|place| ticks(metadata, group, place));
    let pages = metadata.offset_index()?.get(group)?.get(place("ts_tick")?)?.page_locations();
    let rows = metadata.row_group(group).num_rows();
    let begins = pages.iter().map(|page| page.first_row_index).chain([rows]);
    let begins: Vec<i64> = begins.collect();
    if begins.first() != Some(&0) || !begins.is_sorted() || starts.min_values().len() != pages.len() {
        return None;
    }
    let (mut selectors, mut latest) = (Vec::new(), None);
    for page in 0..pages.len() {
        let count = usize::try_from(begins[page + 1] - begins[page]).ok()?;
        let (least, most) = (starts.min_value(page)?, starts.max_value(page)?);
        let longest = lengths.and_then(|lengths| {
            let all_are_known = lengths.null_count(page) == Some(0);
            lengths.max_value(page).filter(|_| all_are_known)
        });
        let last_end = longest.map(|longest| most.saturating_add(*longest));
        let is_after = *least > to;
        let is_before = last_end.is_some_and(|end| end < from);
        if is_after || is_before {
            // Of one after the window, that of rows without an end is of no use.
            latest = latest.max(last_end.or(Some(i64::MAX)));
            selectors.push(RowSelector::skip(count));
        } else {
            selectors.push(RowSelector::select(count));
        }
    }
    Some(Pages { selection: selectors.into(), latest })
}

fn ticks(metadata: &ParquetMetaData, group: usize, column: usize) -> Option<&PrimitiveColumnIndex<i64>> {
    match metadata.column_index()?.get(group)?.get(column)? {
        ColumnIndexMetaData::INT64(index) => Some(index),
        _ => None,
    }
}
