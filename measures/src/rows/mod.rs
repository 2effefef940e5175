//! The rows of an answer in compact form, because there may be millions.

mod packed;
mod spill;

use std::{fmt, io, ops::Range};

use crate::Value;
use packed::{Cells, Packed, Windows};
pub use spill::{Spill, Storage};

/// The number of rows that share texts and are allocated together.
const PART: usize = 4096;

/// A part with more bytes than this gets no more rows, because places in it have 32 bits.
const MOST_BYTES: usize = 1 << 28;

/// The maximum number of rows in a stretch. To read a row, the rows before it in its stretch have to be skipped.
const STRETCH: usize = 32;

/// Rows of cells. All rows have the same number of cells.
#[derive(Clone, Default)]
pub struct Rows {
    len: usize,
    /// The number of cells in a row.
    width: usize,
    parts: Vec<Packed>,
    /// How many rows were added one by one to the last part; 0 if its rows were not added one by one.
    added: usize,
    /// Sorted by the numbers of their rows.
    stretches: Vec<Stretch>,
}

/// Rows that are stored one after the other in a part.
#[derive(Clone, Copy)]
struct Stretch {
    /// The number of its first row.
    first: u32,
    part: u32,
    /// Its offset in the part.
    from: u32,
}

/// Rows that were made, in any order.
#[derive(Default)]
pub(crate) struct Made {
    width: usize,
    parts: Vec<Packed>,
}

/// Consecutive rows of [`Made`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    part: u32,
    from: u32,
    count: u32,
}

impl Rows {
    /// The number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a row.
    ///
    /// # Panics
    /// When it does not have as many cells as the other rows.
    pub fn push(&mut self, row: &[Value<'_>]) {
        if self.is_empty() {
            self.width = row.len();
        }
        assert_eq!(row.len(), self.width, "as many cells as in the other rows");
        if self.added.is_multiple_of(PART) {
            self.parts.last_mut().into_iter().for_each(Packed::seal);
            self.parts.push(Packed::default());
            self.added = 0;
        }
        let part = self.parts.len() - 1;
        if self.added.is_multiple_of(STRETCH) {
            let from = self.parts[part].end() as u32;
            self.stretches.push(Stretch { first: self.len as u32, part: part as u32, from });
        }
        self.parts[part].push(row);
        self.added += 1;
        self.len += 1;
    }

    /// A cell; [`Value::Null`] if there is no such row or column.
    pub fn cell(&self, row: usize, column: usize) -> Value<'_> {
        if column >= self.width {
            return Value::Null;
        }
        let mut reader = Reader::new(self, row..row.saturating_add(1));
        reader.cells.as_mut().and_then(|(cells, _)| cells.nth(column)).unwrap_or(Value::Null)
    }

    /// All rows, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Vec<Value<'_>>> {
        self.range(0..self.len)
    }

    /// Some of the rows, with a cell for each column. Faster than reading cell by cell.
    pub fn range(&self, rows: Range<usize>) -> impl ExactSizeIterator<Item = Vec<Value<'_>>> {
        Reader::new(self, rows)
    }

    /// Calls a function with each of some rows, until it fails. The rows share the memory of their cells, so for millions of rows this
    /// is faster than [`range`](Self::range).
    ///
    /// # Errors
    /// That of the function.
    pub fn try_for_each<'r, E>(
        &'r self,
        rows: Range<usize>,
        mut each: impl FnMut(&mut Vec<Value<'r>>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut reader, mut row) = (Reader::new(self, rows), Vec::with_capacity(self.width));
        while reader.read(&mut row) {
            each(&mut row)?;
        }
        Ok(())
    }

    /// To be called after rows were read: some may have been [spilled](Spill).
    ///
    /// # Errors
    /// When rows could not be read. What was read of them is not what they were.
    pub fn check(&self) -> Result<(), String> {
        let failure = self.parts.iter().find_map(Packed::failure);
        failure.map_or(Ok(()), |failure| {
            Err(format!("expected the rows of the answer that went out of memory, found none: {failure}"))
        })
    }

    /// All rows. Only for few rows.
    pub fn to_vec(&self) -> Vec<Vec<Value<'_>>> {
        self.iter().collect()
    }

    /// The rows of `made`, in this order.
    pub(crate) fn in_order(made: Made, order: impl IntoIterator<Item = Place>) -> Rows {
        let Made { width, parts } = made;
        let mut len = 0;
        let stretch = |Place { part, from, count }| {
            let first = len as u32;
            len += count as usize;
            Stretch { first, part, from }
        };
        let stretches = order.into_iter().map(stretch).collect();
        Rows { len, width, parts, added: 0, stretches }
    }
}

impl Place {
    /// How many rows there are.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Whether more rows can be added.
    pub(crate) fn has_room(&self) -> bool {
        (self.count as usize) < STRETCH
    }
}

impl Made {
    /// Where the next row goes.
    pub(crate) fn begin(&mut self) -> Place {
        if self.parts.last().is_none_or(|part| part.end() > MOST_BYTES || part.is_spilled()) {
            self.parts.push(Packed::default());
        }
        let part = self.parts.len() - 1;
        Place { part: part as u32, from: self.parts[part].end() as u32, count: 0 }
    }

    /// Adds a row to the last place that was begun. A place has room for [`STRETCH`] rows.
    pub(crate) fn add(&mut self, place: &mut Place, row: &[Value<'_>]) {
        debug_assert!(self.width == 0 || self.width == row.len(), "as many cells as in the other rows");
        debug_assert!(place.part as usize + 1 == self.parts.len() && place.has_room());
        self.width = row.len();
        self.parts[place.part as usize].push(row);
        place.count += 1;
    }

    /// To be called when no more rows are added.
    pub(crate) fn seal(&mut self) {
        self.parts.iter_mut().for_each(Packed::seal);
    }

    /// Moves all rows out of memory.
    pub(crate) fn spill(&mut self, to: &Spill) -> io::Result<()> {
        self.parts.iter_mut().try_for_each(|part| part.spill(to))
    }

    /// Appends other rows. The returned function translates places in `other` to places in this value.
    pub(crate) fn append(&mut self, other: Made) -> impl Fn(Place) -> Place + use<> {
        let before = self.parts.len() as u32;
        self.width = self.width.max(other.width);
        self.parts.extend(other.parts);
        move |place| Place { part: before + place.part, ..place }
    }
}

/// Reads consecutive rows.
struct Reader<'r> {
    rows: &'r Rows,
    left: usize,
    /// The number of the next stretch.
    next: usize,
    /// The cells of the current stretch, and how many of its rows are left.
    cells: Option<(Cells<'r>, usize)>,
}

impl<'r> Reader<'r> {
    fn new(rows: &'r Rows, range: Range<usize>) -> Reader<'r> {
        let range = range.start.min(rows.len)..range.end.min(rows.len);
        let next =
            rows.stretches.partition_point(|stretch| stretch.first as usize <= range.start).saturating_sub(1);
        let mut reader = Reader { rows, left: range.len(), next, cells: None };
        if let Some(Stretch { first, .. }) = rows.stretches.get(next).filter(|_| range.start < range.end) {
            let skipped = range.start - *first as usize;
            reader.begin_stretch();
            if let Some((cells, left)) = &mut reader.cells {
                cells.skip(skipped * rows.width);
                *left -= skipped;
            }
        }
        reader
    }

    /// Reads the next row into `row`. Returns false if there is none.
    fn read(&mut self, row: &mut Vec<Value<'r>>) -> bool {
        row.clear();
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        while self.cells.as_ref().is_some_and(|(_, left)| *left == 0) {
            self.begin_stretch();
        }
        let Some((cells, left)) = self.cells.as_mut() else { return false };
        *left -= 1;
        row.extend(cells.by_ref().take(self.rows.width));
        true
    }

    fn begin_stretch(&mut self) {
        let stretches = &self.rows.stretches;
        let last = self.next.checked_sub(1).and_then(|last| stretches.get(last));
        let cells = self.cells.take().zip(last);
        self.cells = stretches.get(self.next).map(|Stretch { first, part, from }| {
            let end = stretches.get(self.next + 1).map_or(self.rows.len, |next| next.first as usize);
            let cells = cells.filter(|(_, last)| last.part == *part);
            let windows = cells.map_or_else(Windows::default, |((cells, _), _)| cells.into_windows());
            (self.rows.parts[*part as usize].cells(*from as usize, windows), end - *first as usize)
        });
        self.next += 1;
    }
}

impl<'r> Iterator for Reader<'r> {
    type Item = Vec<Value<'r>>;

    fn next(&mut self) -> Option<Vec<Value<'r>>> {
        let mut row = Vec::with_capacity(if self.left == 0 { 0 } else { self.rows.width });
        self.read(&mut row).then_some(row)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Reader<'_> {}

impl PartialEq for Rows {
    fn eq(&self, other: &Rows) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> Extend<Vec<Value<'a>>> for Rows {
    fn extend<I: IntoIterator<Item = Vec<Value<'a>>>>(&mut self, rows: I) {
        rows.into_iter().for_each(|row| self.push(&row));
    }
}

impl<'a> FromIterator<Vec<Value<'a>>> for Rows {
    fn from_iter<I: IntoIterator<Item = Vec<Value<'a>>>>(all: I) -> Rows {
        let mut rows = Rows::default();
        rows.extend(all);
        rows
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    };

    use super::*;

    fn row(number: usize) -> Vec<Value<'static>> {
        let large = number as i64 * 0x0123_4567_89ab;
        vec![
            7_i64.into(),
            (if number.is_multiple_of(3) { None } else { Some(large) }).into(),
            (if number.is_multiple_of(2) { i64::MIN } else { i64::MAX }).into(),
            (number as f64 / 7.0).into(),
            (number as f64 / 7.0).into(),
            format!("name {}", number % 5).into(),
            if number < 5000 { Value::Null } else { "late".into() },
            match number % 4 {
                0 => Value::Null,
                1 => Value::Number(1),
                _ => "two".into(),
            },
            Value::Number(-1 - number as i64 % 2),
            Value::Number(-1),
        ]
    }

    const MANY: usize = 3 * PART + 5;

    fn added(made: &mut Made, rows: &[Vec<Value<'_>>]) -> Place {
        let mut place = made.begin();
        rows.iter().for_each(|row| made.add(&mut place, row));
        place
    }

    #[test]
    fn rows_are_what_they_were() {
        let mut rows = Rows::default();
        for number in 0..MANY {
            assert_eq!(rows.len(), number);
            rows.push(&row(number));
        }
        assert!(rows.iter().enumerate().all(|(number, found)| found == row(number)));
        assert!((0..MANY).all(|number| (0..10).all(|place| rows.cell(number, place) == row(number)[place])));
        assert_eq!((rows.cell(MANY, 0), rows.cell(0, 10)), (Value::Null, Value::Null));
        for range in [0..0, 5..9, STRETCH - 1..PART + 3, MANY - 1..MANY + 8, MANY..MANY + 1] {
            let expected: Vec<_> = range.clone().filter(|number| *number < MANY).map(row).collect();
            let found = rows.range(range);
            assert_eq!((found.len(), found.collect::<Vec<_>>()), (expected.len(), expected));
        }
        assert_eq!(rows, (0..rows.len()).map(row).collect::<Rows>());
        assert_ne!(rows, (0..rows.len() - 1).map(row).collect::<Rows>());
        assert_eq!((Rows::default().iter().len(), Rows::default().cell(0, 0)), (0, Value::Null));
    }

    #[test]
    fn rows_that_were_made_are_put_in_order() {
        let (mut all, mut places) = (Made::default(), Vec::new());
        for part in [0..3, 3..3 + PART + 1, 0..0, 3 + PART + 1..MANY] {
            let (mut made, mut of_part, mut numbers) = (Made::default(), Vec::new(), part.peekable());
            while let Some(first) = numbers.peek().copied() {
                let some: Vec<_> = numbers.by_ref().take(1 + first % STRETCH).map(row).collect();
                of_part.push(added(&mut made, &some));
            }
            made.seal();
            let moved = all.append(made);
            places.extend(of_part.into_iter().map(moved));
        }
        assert!(places.iter().any(|place| place.count as usize == STRETCH));
        let mut expected: Vec<Vec<Vec<Value<'_>>>> = Vec::new();
        let mut number = 0..;
        for place in &places {
            expected.push(number.by_ref().take(place.count as usize).map(row).collect());
        }
        expected.reverse();
        let mut gathered = Rows::in_order(all, places.into_iter().rev());
        assert_eq!((gathered.len(), gathered.to_vec()), (MANY, expected.concat()));
        assert_eq!(gathered.cell(MANY / 2, 3), expected.concat()[MANY / 2][3]);
        gathered.push(&row(7));
        assert_eq!(gathered.to_vec().pop(), Some(row(7)));
        assert_eq!(Rows::in_order(Made::default(), []), Rows::default());
    }

    /// A storage whose bytes can be read until `is_broken`.
    #[derive(Clone, Debug, Default)]
    struct Bytes(Arc<(Mutex<Vec<u8>>, AtomicBool)>);

    impl Storage for Bytes {
        fn append(&self, bytes: &[u8]) -> io::Result<u64> {
            let mut all = self.0.0.lock().unwrap();
            all.extend_from_slice(bytes);
            Ok((all.len() - bytes.len()) as u64)
        }

        fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
            if self.0.1.load(Relaxed) {
                return Err(io::Error::other("the disk is gone"));
            }
            bytes.copy_from_slice(&self.0.0.lock().unwrap()[at as usize..][..bytes.len()]);
            Ok(())
        }
    }

    #[test]
    fn rows_that_are_spilled_are_what_they_were_or_say_that_they_cannot_be_read() {
        let (mut all, mut places) = (Made::default(), Vec::new());
        let bytes = Bytes::default();
        let spill = Spill::new(bytes.clone());
        for from in (0..MANY).step_by(100) {
            let (mut made, mut of_part) = (Made::default(), Vec::new());
            for first in (from..MANY.min(from + 100)).step_by(7) {
                let some: Vec<_> = (first..MANY.min(from + 100).min(first + 7)).map(row).collect();
                of_part.push(added(&mut made, &some));
            }
            made.seal();
            let moved = all.append(made);
            places.extend(of_part.into_iter().map(moved));
            // The rest stays in memory.
            if from < MANY / 2 {
                all.spill(&spill).unwrap();
            }
        }
        let spilled = all.parts.iter().filter(|part| part.is_spilled());
        assert!(spilled.count() > all.parts.len() / 3 && !all.parts.iter().all(Packed::is_spilled));
        places.push(added(&mut all, &[row(MANY)]));
        let rows = Rows::in_order(all, places);
        assert!(rows.iter().enumerate().all(|(number, found)| found == row(number)));
        assert!((0..=MANY).all(|number| rows.range(number..number + 1).all(|found| found == row(number))));
        assert_eq!((rows.cell(99, 5), rows.check()), (row(99)[5].clone(), Ok(())));
        bytes.0.1.store(true, Relaxed);
        assert_eq!(rows.iter().count(), MANY + 1);
        let expected =
            "expected the rows of the answer that went out of memory, found none: the disk is gone";
        assert_eq!(rows.check(), Err(expected.to_string()));
    }

    #[test]
    fn a_cell_takes_the_bytes_of_its_number_or_one_if_it_is_repeated() {
        let bytes = |row: &[Value<'_>]| {
            let mut packed = Packed::default();
            packed.push(row);
            packed.end()
        };
        assert_eq!(bytes(&[Value::Null, 0_i64.into(), 255_i64.into(), 256_i64.into()]), 1 + 1 + 2 + 3);
        assert_eq!(bytes(&[(-1_i64).into(), (-257_i64).into(), i64::MIN.into()]), 1 + 3 + 9);
        assert_eq!(
            bytes(&[Value::Fraction(100.0), Value::Fraction(0.0), Value::Fraction(1.0 / 3.0)]),
            3 + 1 + 9
        );
        assert_eq!(bytes(&[70_000_i64.into(), 70_000_i64.into(), 70_000_i64.into()]), 4 + 1 + 1);
        assert_eq!(bytes(&["a name".into(), "another".into(), "a name".into()]), 1 + 2 + 1);
    }
}
