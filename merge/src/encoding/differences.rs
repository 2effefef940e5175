//! One chunk of a column of ticks, as differences, which are small where rows are in the order of time
//! (parquet-format, Encodings.md, "DELTA_BINARY_PACKED = 5").
//!
//! ```text
//!   page    varint block, varint miniblocks, varint values | zigzag first value | block | block | …
//!   block   zigzag least difference | width of each miniblock | 32 differences, less the least | … of 4 miniblocks
//! ```

use parquet::{
    basic::{BoundaryOrder, Encoding, Type},
    errors::ParquetError,
    file::{
        metadata::ColumnIndexBuilder, page_index::column_index::ColumnIndexMetaData, statistics::Statistics,
    },
    schema::types::ColumnDescPtr,
};

use super::{
    chunk::{Chunk, EncodedChunk, Ending},
    column::Filled,
    packing::{aligned, pack},
    varint::{varint, zigzag},
};

/// Values of a miniblock, and miniblocks of a block: the fewest that the format allows, since one long wait widens all of
/// a miniblock.
const MINIBLOCK: usize = 32;
const MINIBLOCKS: usize = 4;
const BLOCK: usize = MINIBLOCK * MINIBLOCKS;

/// A column chunk that is being encoded.
pub(super) struct DifferenceChunk {
    chunk: Chunk,
    pages: Vec<PageRange>,
}

/// What a reader can skip a page by.
struct PageRange {
    nulls: i64,
    /// The smallest and the largest, if there are any.
    range: Option<(i64, i64)>,
}

impl DifferenceChunk {
    pub(super) fn new(column: ColumnDescPtr) -> Result<DifferenceChunk, ParquetError> {
        Ok(DifferenceChunk { chunk: Chunk::new(column)?, pages: Vec::new() })
    }

    /// Encodes some rows as a page.
    pub(super) fn page(&mut self, rows: &Filled<Vec<i64>>) -> Result<(), ParquetError> {
        let ticks = &rows.values;
        let count = rows.levels.rows();
        let least_and_most = ticks.iter().min().copied().zip(ticks.iter().max().copied());
        self.pages.push(PageRange { nulls: (count - ticks.len()) as i64, range: least_and_most });
        let mut page = self.chunk.begin(&rows.levels);
        encode(ticks, &mut page);
        self.chunk.page(&page, count, count, Encoding::DELTA_BINARY_PACKED)
    }

    pub(super) fn close(self) -> Result<EncodedChunk, ParquetError> {
        let ranges = || self.pages.iter().filter_map(|page| page.range);
        let (least, most) = (ranges().map(|r| r.0).min(), ranges().map(|r| r.1).max());
        let nulls = self.pages.iter().map(|page| page.nulls as u64).sum();
        let ending = Ending {
            statistics: Some(Statistics::int64(least, most, None, Some(nulls), false)),
            index: Some(self.index()?),
            ..Ending::default()
        };
        self.chunk.close(ending)
    }

    fn index(&self) -> Result<ColumnIndexMetaData, ParquetError> {
        let mut index = ColumnIndexBuilder::new(Type::INT64);
        for page in &self.pages {
            let bytes = |number: i64| number.to_le_bytes().to_vec();
            let (least, most) = page.range.map_or_else(Default::default, |r| (bytes(r.0), bytes(r.1)));
            index.append(page.range.is_none(), least, most, page.nulls);
        }
        let ranges: Vec<(i64, i64)> = self.pages.iter().filter_map(|page| page.range).collect();
        if ranges.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1) {
            index.set_boundary_order(BoundaryOrder::ASCENDING);
        }
        index.build()
    }
}

/// Appends the values. What overflows wraps, as it does in readers.
fn encode(values: &[i64], out: &mut Vec<u8>) {
    let first = values.first().copied().unwrap_or(0);
    [BLOCK, MINIBLOCKS, values.len()].into_iter().for_each(|number| varint(number as u64, out));
    zigzag(first, out);
    let mut before = first;
    for block in values.get(1..).unwrap_or_default().chunks(BLOCK) {
        encode_block(block, before, out);
        before = block[block.len() - 1];
    }
}

fn encode_block(block: &[i64], mut before: i64, out: &mut Vec<u8>) {
    // Behind the last value there are zeros.
    let mut differences = [0u64; BLOCK];
    let mut least = i64::MAX;
    for (value, difference) in block.iter().zip(&mut differences) {
        let step = value.wrapping_sub(before);
        *difference = step as u64;
        least = least.min(step);
        before = *value;
    }
    differences[..block.len()].iter_mut().for_each(|d| *d = d.wrapping_sub(least as u64));
    zigzag(least, out);
    let widths = out.len();
    out.extend([0; MINIBLOCKS]);
    for (number, miniblock) in differences.chunks(MINIBLOCK).take(block.len().div_ceil(MINIBLOCK)).enumerate()
    {
        let bits = u64::BITS - miniblock.iter().fold(0, |all, d| all | d).leading_zeros();
        let width = aligned(bits);
        out[widths + number] = width as u8;
        pack(miniblock, width, out);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array};
    use proptest::{collection::vec, prelude::*};

    use super::{super::there_and_back::named, *};

    /// Writes pages of ticks and reads them with Arrow's reader.
    fn come_back(pages: &[Vec<Option<i64>>]) -> Statistics {
        let written: Vec<ArrayRef> =
            pages.iter().map(|page| Arc::new(Int64Array::from(page.clone())) as ArrayRef).collect();
        let (read, statistics) = named("ts_tick", &written);
        let all: Int64Array = pages.iter().flatten().copied().collect();
        assert_eq!(&read, &(Arc::new(all) as ArrayRef));
        statistics
    }

    // The example of Encodings.md: of 7 5 3 1 2 3 4 5 the differences are -2 -2 -2 1 1 1 1, the least is -2, and what is
    // left are 0 0 0 3 3 3 3 in 2 bits each.
    #[test]
    fn differences_stand_as_the_specification_draws_them() {
        let mut out = Vec::new();
        encode(&[7, 5, 3, 1, 2, 3, 4, 5], &mut out);
        assert_eq!(out[..5], [0x80, 1, 4, 8, 14]);
        assert_eq!(out[5..10], [3, 2, 0, 0, 0]);
        assert_eq!(out[10..12], [0b1100_0000, 0b0011_1111]);
        assert_eq!(out.len(), 10 + 8);
    }

    #[test]
    fn ticks_that_wrap_or_are_missing_come_back_with_their_range() {
        let some = vec![Some(i64::MIN), None, Some(i64::MAX), Some(-1), Some(i64::MIN), None];
        let statistics = come_back(&[some, vec![None; 3], vec![Some(5)]]);
        assert_eq!(statistics, Statistics::int64(Some(i64::MIN), Some(i64::MAX), None, Some(5), false));
        let nothing = come_back(&[vec![None; 70]]);
        assert_eq!((nothing.null_count_opt(), nothing.min_bytes_opt()), (Some(70), None));
    }

    proptest! {
        // Steps of every width, and as many ticks as end everywhere in a block.
        #[test]
        fn ticks_of_any_steps_come_back(
            first in any::<i64>(),
            width in 0u32..=64,
            steps in vec((any::<u64>(), 0u8..10), 0..700),
            known in any::<bool>(),
        ) {
            let mut tick = first;
            let page = steps.iter().map(|(step, chance)| {
                tick = tick.wrapping_add(step.checked_shr(64 - width).unwrap_or(0) as i64);
                (known || *chance > 0).then_some(tick)
            });
            let page: Vec<_> = std::iter::once(Some(first)).chain(page).collect();
            come_back(&[page.clone(), page]);
        }
    }
}
