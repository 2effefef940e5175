//! Which rows of a column have a value, and where lists begin (Dremel's levels; parquet-format, README.md).
//!
//! ```text
//!   rows                       7     NULL  9           flat: a bit each, 1 where there is a value
//!   definition                 1     0     1
//!
//!   rows                       [5, NULL]   []   [6]    lists: what begins a list has repetition 0
//!   repetition                  0  1       0     0
//!   definition                  2  1       0     2     2: a value; 1: NULL in its place; 0: the list is empty
//! ```

use parquet::schema::types::ColumnDescriptor;

use super::{bits::Bits, hybrid};

/// Levels of an element of a list: no element, because the list is empty; NULL; a value.
const EMPTY: u64 = 0;
const NULL: u64 = 1;
const VALUE: u64 = 2;
/// Number of bits of such a level.
const ELEMENT_BITS: u32 = 2;
/// A word full of the level of a value.
const ALL_VALUES: u64 = u64::MAX / 3 * VALUE;
/// Number of elements whose levels are written together.
const STRETCH: u32 = u64::BITS / ELEMENT_BITS;

/// The levels of some rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Levels {
    rows: usize,
    repetition: Bits,
    definition: Bits,
}

/// The elements of a list, up to [`STRETCH`] at a time.
#[derive(Default)]
pub(crate) struct Stretch {
    definition: u64,
    elements: u32,
    goes_on: bool,
}

impl Levels {
    /// The levels of a flat column that has a value in every row.
    pub(crate) fn all(rows: usize) -> Levels {
        let mut levels = Levels { rows, ..Levels::default() };
        (0..rows / 64).for_each(|_| levels.definition.push(u64::MAX, 64));
        levels.definition.push((1 << (rows % 64)) - 1, (rows % 64) as u32);
        levels
    }

    /// Adds a row of a flat column.
    #[inline]
    pub(crate) fn push(&mut self, has_value: bool) {
        self.rows += 1;
        self.definition.push(u64::from(has_value), 1);
    }

    /// Adds up to 64 rows of a flat column. `has_value` has a bit for each row with a value.
    #[inline]
    pub(crate) fn push_rows(&mut self, has_value: u64, rows: usize) {
        self.rows += rows;
        self.definition.push(has_value, rows as u32);
    }

    /// Adds the next element of a list.
    #[inline]
    pub(crate) fn push_element(&mut self, list: &mut Stretch, has_value: bool) {
        if list.elements == STRETCH {
            self.put_down(list);
        }
        list.definition |= (NULL + u64::from(has_value)) << (ELEMENT_BITS * list.elements);
        list.elements += 1;
    }

    /// Adds a list of `elements` elements without NULL.
    #[inline]
    pub(crate) fn push_full_list(&mut self, elements: usize) {
        if elements < STRETCH as usize {
            // An empty list takes one level, too.
            let levels = elements.max(1) as u32;
            let all = (1 << (ELEMENT_BITS * elements as u32)) - 1;
            self.repetition.push((1 << levels) - 2, levels);
            self.definition.push(ALL_VALUES & all, ELEMENT_BITS * levels);
            self.rows += 1;
            return;
        }
        let mut list = Stretch::default();
        let mut left = elements;
        while left > STRETCH as usize {
            (list.definition, list.elements) = (ALL_VALUES, STRETCH);
            self.put_down(&mut list);
            left -= STRETCH as usize;
        }
        list.elements = left as u32;
        list.definition = ALL_VALUES & !u64::MAX.checked_shl(ELEMENT_BITS * list.elements).unwrap_or(0);
        self.end_list(list);
    }

    /// Adds empty lists.
    pub(crate) fn push_empty_lists(&mut self, lists: usize) {
        const { assert!(EMPTY == 0) };
        self.rows += lists;
        for from in (0..lists).step_by(STRETCH as usize) {
            let levels = (lists - from).min(STRETCH as usize) as u32;
            self.repetition.push(0, levels);
            self.definition.push(0, ELEMENT_BITS * levels);
        }
    }

    /// Ends a list, which makes it a row.
    #[inline]
    pub(crate) fn end_list(&mut self, mut list: Stretch) {
        const { assert!(NULL + 1 == VALUE && EMPTY == 0) };
        if list.elements == 0 {
            // An empty list is only a level.
            list.elements = 1;
        }
        self.put_down(&mut list);
        self.rows += 1;
    }

    #[inline]
    fn put_down(&mut self, list: &mut Stretch) {
        let all = u64::MAX >> (u64::BITS - list.elements);
        self.repetition.push(all - u64::from(!list.goes_on), list.elements);
        self.definition.push(list.definition, ELEMENT_BITS * list.elements);
        *list = Stretch { goes_on: true, ..Stretch::default() };
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Number of levels. For a flat column these are the rows; for lists, the elements and the empty lists.
    pub(crate) fn len(&self) -> usize {
        if self.repetition.len() > 0 { self.repetition.len() } else { self.rows }
    }

    /// Appends the beginning of a page: the levels that its column has, each after its length.
    pub(crate) fn write(&self, column: &ColumnDescriptor, page: &mut Vec<u8>) {
        if column.max_rep_level() > 0 {
            with_length(page, |page| hybrid::encode_bits(&self.repetition, 1, page));
        }
        match column.max_def_level() {
            0 => {}
            1 => with_length(page, |page| hybrid::encode_bits(&self.definition, 1, page)),
            _ => with_length(page, |page| hybrid::encode_bits(&self.definition, ELEMENT_BITS as usize, page)),
        }
    }
}

fn with_length(page: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = page.len();
    page.extend([0; 4]);
    write(page);
    let length = (page.len() - at - 4) as u32;
    page[at..at + 4].copy_from_slice(&length.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_lists_have_the_levels_that_each_of_them_has() {
        let (mut one_by_one, mut together) = (Levels::default(), Levels::default());
        for lists in [0, 1, 2, 31, 32, 33, 64, 100] {
            (0..lists).for_each(|_| one_by_one.end_list(Stretch::default()));
            together.push_empty_lists(lists);
            assert_eq!(together, one_by_one, "{lists} lists");
            one_by_one.push_full_list(3);
            together.push_full_list(3);
        }
    }

    // Up to more elements than levels that are written together.
    #[test]
    fn a_full_list_has_the_levels_of_its_elements() {
        for elements in [0, 1, 2, 31, 32, 33, 64, 65, 100] {
            let (mut one_by_one, mut full) = (Levels::default(), Levels::default());
            for _ in 0..3 {
                let mut list = Stretch::default();
                (0..elements).for_each(|_| one_by_one.push_element(&mut list, true));
                one_by_one.end_list(list);
                full.push_full_list(elements);
            }
            let words = |bits: &Bits| bits.words(ELEMENT_BITS as usize).collect::<Vec<_>>();
            assert_eq!(words(&full.definition), words(&one_by_one.definition), "{elements} elements");
            let bits = |bits: &Bits| (bits.len(), bits.words(1).collect::<Vec<_>>());
            assert_eq!(bits(&full.repetition), bits(&one_by_one.repetition), "{elements} elements");
            assert_eq!((full.rows(), full.len()), (one_by_one.rows(), one_by_one.len()));
        }
    }
}
