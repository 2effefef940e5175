//! The groups of the rows of a partition: which words each of them has.

use std::{collections::HashMap, sync::Arc};

use arrow::{
    array::{Array, ArrayRef, AsArray, StringArray},
    compute::cast,
    datatypes::DataType,
    error::ArrowError,
};
use foldhash::fast::RandomState;

/// The number of columns of which the numbers of their words fit 64 bits.
pub(super) const MAX_COLUMNS: usize = 4;

/// The number of rows that are grouped at once.
pub(super) const ROWS: usize = 8192;

/// The number of groups, and of words of a column, from which on the groups have to be taken out before more rows are grouped. With
/// those of [`ROWS`] more, they can be numbered by 16 bits.
const MANY: usize = 1 << 15;

const _: () = assert!(MANY + ROWS < NOT_NUMBERED as usize && u16::BITS as usize * MAX_COLUMNS <= 64);

/// The groups so far.
#[derive(Debug)]
pub(super) struct Groups {
    columns: Vec<Column>,
    /// The group of each combination of words that occurred. Not used for one column, whose words are the groups.
    combined: HashMap<u64, u16, RandomState>,
    /// The combinations, in the order of their groups.
    combinations: Vec<u64>,
}

impl Groups {
    pub(super) fn new(columns: usize) -> Groups {
        let columns = (0..columns).map(|_| Column::default()).collect();
        Groups { columns, combined: HashMap::default(), combinations: Vec::new() }
    }

    /// The number of groups.
    pub(super) fn len(&self) -> usize {
        match self.columns.as_slice() {
            [column] => column.words.len(),
            _ => self.combinations.len(),
        }
    }

    /// Whether the groups have to be [taken out](Self::take) now.
    pub(super) fn are_many(&self) -> bool {
        self.len() >= MANY || self.columns.iter().any(|column| column.words.len() >= MANY)
    }

    /// Bytes in memory, nearly.
    pub(super) fn size(&self) -> usize {
        let columns = self.columns.iter().map(|column| column.size).sum::<usize>();
        columns + (self.combined.capacity() + self.combinations.capacity()) * 16
    }

    /// Sets `groups` to the group of each of [`ROWS`] rows at most, whose words are in `columns`.
    pub(super) fn of(&mut self, columns: &[ArrayRef], groups: &mut Vec<usize>) {
        debug_assert!(
            columns.iter().all(|column| column.len() <= ROWS) && columns.len() == self.columns.len()
        );
        groups.clear();
        let mut together = self.columns.iter_mut().zip(columns);
        let Some((first, words)) = together.next() else { return };
        groups.extend(first.numbered(words).map(usize::from));
        if columns.len() == 1 {
            return;
        }
        let mut combinations: Vec<u64> = groups.iter().map(|&number| number as u64).collect();
        for (column, words) in together {
            for (combination, number) in combinations.iter_mut().zip(column.numbered(words)) {
                *combination = *combination << u16::BITS | u64::from(number);
            }
        }
        for (group, combination) in groups.iter_mut().zip(combinations) {
            let next = self.combinations.len();
            let found = self.combined.entry(combination).or_insert_with(|| {
                self.combinations.push(combination);
                // Fewer than MANY before these rows.
                next as u16
            });
            *group = usize::from(*found);
        }
    }

    /// The words of all groups, as columns of these types, and none is left.
    ///
    /// # Errors
    /// If a type has fewer numbers than there are words.
    pub(super) fn take(&mut self, types: &[DataType]) -> Result<Vec<ArrayRef>, ArrowError> {
        let last = self.columns.len() - 1;
        let taken = self.columns.iter().zip(types).enumerate().map(|(place, (column, data_type))| {
            let shift = (last - place) * u16::BITS as usize;
            let words: StringArray = match last {
                0 => column.words.iter().map(Option::as_deref).collect(),
                _ => {
                    let numbers = self.combinations.iter().map(|combination| (combination >> shift) as u16);
                    numbers.map(|number| column.words[usize::from(number)].as_deref()).collect()
                }
            };
            cast(&words, data_type)
        });
        let taken = taken.collect();
        *self = Groups::new(self.columns.len());
        taken
    }
}

/// What a word of a dictionary has as its number, if no row had it yet.
const NOT_NUMBERED: u16 = u16::MAX;

/// The words of one column, by number.
#[derive(Debug, Default)]
struct Column {
    numbers: HashMap<Arc<str>, u16>,
    /// `None` for NULL.
    words: Vec<Option<Arc<str>>>,
    null: Option<u16>,
    /// The dictionary of the rows before.
    dictionary: Option<ArrayRef>,
    /// The number of each of its words.
    of_dictionary: Vec<u16>,
    size: usize,
}

impl Column {
    /// The number of each row of a column.
    fn numbered<'a>(&'a mut self, column: &'a ArrayRef) -> impl Iterator<Item = u16> + 'a {
        let column = column.as_any_dictionary();
        let (keys, dictionary) = (column.keys(), column.values());
        let is_the_same =
            self.dictionary.as_ref().is_some_and(|before| before.to_data().ptr_eq(&dictionary.to_data()));
        if !is_the_same {
            self.of_dictionary.clear();
            self.of_dictionary.resize(dictionary.len(), NOT_NUMBERED);
            self.dictionary = Some(Arc::clone(dictionary));
        }
        let words = dictionary.as_string::<i32>();
        let has_nulls = keys.null_count() > 0;
        // Of a NULL, it can be anything. If all are NULL, the dictionary may have no word at all.
        let places = match dictionary.is_empty() {
            true => vec![0; keys.len()],
            false => column.normalized_keys(),
        };
        places.into_iter().enumerate().map(move |(row, place)| {
            if has_nulls && keys.is_null(row) {
                return self.number(None);
            }
            match self.of_dictionary[place] {
                NOT_NUMBERED => {
                    let number = self.number(words.is_valid(place).then(|| words.value(place)));
                    self.of_dictionary[place] = number;
                    number
                }
                number => number,
            }
        })
    }

    fn number(&mut self, word: Option<&str>) -> u16 {
        let known = word.map_or(self.null, |word| self.numbers.get(word).copied());
        if let Some(number) = known {
            return number;
        }
        // Fewer than MANY before these rows.
        let number = self.words.len() as u16;
        let word: Option<Arc<str>> = word.map(Arc::from);
        match &word {
            Some(word) => {
                self.size += word.len() + 64;
                self.numbers.insert(Arc::clone(word), number);
            }
            None => self.null = Some(number),
        }
        self.words.push(word);
        number
    }
}
