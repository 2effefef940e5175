//! Finds the pages of a row group that may have rows in a time. It uses the least and the greatest value of each page,
//! from the page index of the file.

use std::{collections::BTreeSet, sync::Arc};

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
    /// The latest known end of a row that is left out; `None` if no row is left out.
    pub(super) latest: Option<i64>,
}

/// The metadata of a file with its page index; `None` if there is no readable page index.
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

/// Selects the rows that are of use: those that overlap or touch one of several times.
#[derive(Clone, Copy, Debug)]
pub struct Useful<'a> {
    /// The first and the last tick of each time. Sorted, and apart from each other.
    pub times: &'a [(i64, i64)],
    /// Whether rows without an end (those without a length) are of use. If not, they count as ending where they begin.
    pub unended: bool,
}

/// The pages of a row group in which a row may be of use. The table has to have the columns `ts_tick` and `dur_tick`.
/// `None` if the index does not show it.
pub(super) fn pages_within(metadata: &ParquetMetaData, group: usize, useful: Useful<'_>) -> Option<Pages> {
    let columns = metadata.row_group(group).columns();
    let place = |name: &str| columns.iter().position(|column| column.column_path().string() == name);
    let begins =
        (0..columns.len()).map(|column| begins(metadata, group, column)).collect::<Option<Vec<_>>>()?;
    let of_starts = place("ts_tick")?;
    let (starts, begins_of_starts) = (numbers(metadata, group, of_starts)?, &begins[of_starts]);
    let pages = begins_of_starts.len() - 1;
    if starts.min_values().len() != pages {
        return None;
    }
    // If the lengths are unknown, or are divided into other pages, rows may end at any time.
    let lengths = place("dur_tick").filter(|place| begins[*place] == *begins_of_starts);
    let lengths = lengths.and_then(|place| numbers(metadata, group, place));
    let lengths = lengths.filter(|lengths| lengths.min_values().len() == pages);
    let (mut selectors, mut latest) = (Vec::new(), None);
    for page in 0..pages {
        let count = usize::try_from(begins_of_starts[page + 1] - begins_of_starts[page]).ok()?;
        let (least, most) = (starts.min_value(page)?, starts.max_value(page)?);
        let longest = lengths.and_then(|lengths| {
            let all_are_known = !useful.unended || lengths.null_count(page) == Some(0);
            // In a page of NULLs, no row has a length.
            let longest = if lengths.is_null_page(page) { Some(&0) } else { lengths.max_value(page) };
            longest.filter(|_| all_are_known)
        });
        let last_end = longest.map(|longest| most.saturating_add(*longest));
        let first = useful.times.partition_point(|(_, to)| to < least);
        let is_of_use =
            useful.times.get(first).is_some_and(|(from, _)| last_end.is_none_or(|end| end >= *from));
        if !is_of_use {
            // Without lengths, any end is possible.
            latest = latest.max(last_end.or(Some(i64::MAX)));
            selectors.push(RowSelector::skip(count));
        } else {
            selectors.push(RowSelector::select(count));
        }
    }
    Some(Pages { selection: selectors.into(), latest })
}

/// The rows of the pages of a row group that may have one of these values in a column of 64-bit integers. `None` if the index does
/// not show it.
pub(super) fn pages_with(
    metadata: &ParquetMetaData,
    group: usize,
    (column, values): (&str, &BTreeSet<i64>),
) -> Option<RowSelection> {
    let columns = metadata.row_group(group).columns();
    let column = columns.iter().position(|of| of.column_path().string() == column)?;
    // The reader skips pages of the other columns, too: it needs to know where these begin.
    for other in 0..columns.len() {
        begins(metadata, group, other)?;
    }
    let (begins, of_pages) = (begins(metadata, group, column)?, numbers(metadata, group, column)?);
    let pages = begins.len() - 1;
    if of_pages.min_values().len() != pages {
        return None;
    }
    let selector = |page: usize| {
        let count = usize::try_from(begins[page + 1] - begins[page]).ok()?;
        let bounds = of_pages.min_value(page).zip(of_pages.max_value(page));
        let may_have = match bounds {
            _ if of_pages.is_null_page(page) => false,
            Some((least, most)) => least > most || values.range(least..=most).next().is_some(),
            None => true,
        };
        Some(if may_have { RowSelector::select(count) } else { RowSelector::skip(count) })
    };
    Some((0..pages).map(selector).collect::<Option<Vec<_>>>()?.into())
}

/// The first row of each page of a column, and at the end the number of rows; `None` if these are not sorted.
fn begins(metadata: &ParquetMetaData, group: usize, column: usize) -> Option<Vec<i64>> {
    let rows = metadata.row_group(group).num_rows();
    let pages = metadata.offset_index()?.get(group)?.get(column)?.page_locations();
    let begins: Vec<i64> = pages.iter().map(|page| page.first_row_index).chain([rows]).collect();
    (begins.first() == Some(&0) && begins.is_sorted()).then_some(begins)
}

fn numbers(metadata: &ParquetMetaData, group: usize, column: usize) -> Option<&PrimitiveColumnIndex<i64>> {
    match metadata.column_index()?.get(group)?.get(column)? {
        ColumnIndexMetaData::INT64(index) => Some(index),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use bytes::Bytes;
    use datafusion::parquet::{arrow::ArrowWriter, file::properties::WriterProperties};

    use super::*;

    const ROWS: i64 = 20_000;

    /// A row begins at each tick, and lasts 10. Pages of the two columns begin at the same rows, or not.
    fn file(are_alike: bool) -> ParquetMetaData {
        let column = |values: Vec<i64>| Arc::new(Int64Array::from(values)) as ArrayRef;
        let rows = RecordBatch::try_from_iter([
            ("ts_tick", column((0..ROWS).collect())),
            ("dur_tick", column((0..ROWS).map(|_| 10).collect())),
        ]);
        let rows = rows.unwrap();
        let how = WriterProperties::builder().set_data_page_size_limit(4096).set_write_batch_size(64);
        let how =
            how.set_dictionary_enabled(false).set_column_dictionary_enabled("dur_tick".into(), !are_alike);
        let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), Some(how.build())).unwrap();
        writer.write(&rows).unwrap();
        let file = Bytes::from(writer.into_inner().unwrap());
        let metadata = ParquetMetaDataReader::new().parse_and_finish(&file).unwrap();
        ParquetMetaData::clone(&with_page_index(&metadata, &file).unwrap())
    }

    /// The rows that are selected: the first, and the one after the last.
    fn selected(pages: &Pages) -> (usize, usize) {
        let selectors: Vec<RowSelector> = pages.selection.clone().into();
        let first = selectors.iter().take_while(|part| part.skip).map(|part| part.row_count).sum();
        let count: usize = selectors.iter().filter(|part| !part.skip).map(|part| part.row_count).sum();
        (first, first + count)
    }

    #[test]
    fn pages_without_a_row_of_use_are_left_out() {
        let useful = Useful { times: &[(-20, -10), (10_000, 10_100)], unended: true };
        let pages = pages_within(&file(true), 0, useful).unwrap();
        let (first, end) = selected(&pages);
        assert!((9_000..=9_990).contains(&first) && (10_101..11_500).contains(&end), "{first} to {end}");
        assert_eq!(pages.latest, Some(ROWS - 1 + 10));
    }

    #[test]
    fn pages_without_one_of_the_values_are_left_out() {
        let values = BTreeSet::from([-7, 10_000, ROWS]);
        let selection = pages_with(&file(true), 0, ("ts_tick", &values)).unwrap();
        let (first, end) = selected(&Pages { selection, latest: None });
        assert!((9_000..=10_000).contains(&first) && (10_001..11_500).contains(&end), "{first} to {end}");
        let none = pages_with(&file(true), 0, ("ts_tick", &BTreeSet::from([-7, ROWS]))).unwrap();
        assert_eq!(none.row_count(), 0);
        assert!(pages_with(&file(true), 0, ("thread", &values)).is_none());
    }

    #[test]
    fn lengths_of_other_pages_say_nothing() {
        let useful = Useful { times: &[(10_000, 10_100)], unended: true };
        let (first, end) = selected(&pages_within(&file(false), 0, useful).unwrap());
        assert!(first == 0 && (10_101..11_500).contains(&end), "{first} to {end}");
    }
}
