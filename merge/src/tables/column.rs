//! Columns of a table that are being filled.

use std::sync::Arc;

use arrow::{
    array::{ArrayRef, BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, ListArray, StringBuilder},
    buffer::{OffsetBuffer, ScalarBuffer},
    datatypes::{DataType, Field},
};
use sigmund_model::tables::ColumnType;

use super::dictionary::{Keys, NONE, Values};

/// What a column was filled with.
pub(super) enum Cells {
    /// As an array.
    Array(ArrayRef),
    /// As places in a list of values.
    Keys(Keys),
}

impl<A: arrow::array::Array + 'static> From<A> for Cells {
    fn from(array: A) -> Cells {
        Cells::Array(Arc::new(array))
    }
}

/// A column of any type.
pub(super) enum Column {
    Int64(Int64Builder),
    Int32(Int32Builder),
    Float64(Float64Builder),
    Bool(BooleanBuilder),
    Word(Words),
    Text(StringBuilder),
    Numbers(List<Int64Builder>),
    Texts(List<StringBuilder>),
}

impl Column {
    pub(super) fn new(ty: ColumnType) -> Column {
        match ty {
            ColumnType::Int64 => Column::Int64(Int64Builder::new()),
            ColumnType::Int32 => Column::Int32(Int32Builder::new()),
            ColumnType::Float64 => Column::Float64(Float64Builder::new()),
            ColumnType::Bool => Column::Bool(BooleanBuilder::new()),
            ColumnType::Word => Column::Word(Words::default()),
            ColumnType::Text => Column::Text(StringBuilder::new()),
            ColumnType::Numbers => Column::Numbers(List::default()),
            ColumnType::Texts => Column::Texts(List::default()),
        }
    }

    /// What it was filled with; it is empty then.
    pub(super) fn finish(&mut self) -> Cells {
        match self {
            Column::Int64(b) => b.finish().into(),
            Column::Int32(b) => b.finish().into(),
            Column::Float64(b) => b.finish().into(),
            Column::Bool(b) => b.finish().into(),
            Column::Word(words) => words.finish(),
            Column::Text(b) => b.finish().into(),
            Column::Numbers(list) => list.finish(),
            Column::Texts(list) => list.finish(),
        }
    }
}

/// A column of few words: their places in a list of words, which is kept from batch to batch.
///
/// A word is looked for in the list from its start, so the list should be short: all words of a table are states,
/// reasons and the like. (Event names are not looked for: [`EventRows`](super::EventRows).)
#[derive(Default)]
pub(super) struct Words {
    words: Vec<Box<str>>,
    keys: Vec<u32>,
    /// The words, as they are written; `None` if one has come since.
    values: Option<Arc<Values>>,
}

impl Words {
    #[inline]
    pub(super) fn append(&mut self, word: Option<&str>) {
        let key = word.map_or(NONE, |word| self.key(word));
        self.keys.push(key);
    }

    #[inline]
    fn key(&mut self, word: &str) -> u32 {
        if let Some(key) = self.words.iter().position(|known| **known == *word) {
            return key as u32;
        }
        self.values = None;
        self.words.push(word.into());
        self.words.len() as u32 - 1
    }

    fn finish(&mut self) -> Cells {
        let values = self.values.get_or_insert_with(|| Values::texts(self.words.iter().map(|word| &**word)));
        let rows = self.keys.len();
        let keys = std::mem::replace(&mut self.keys, Vec::with_capacity(rows));
        Cells::Keys(Keys { keys, values: Arc::clone(values) })
    }
}

/// A column of lists: their values one behind the other, and where each list ends.
pub(super) struct List<B> {
    pub(super) values: B,
    ends: Vec<i32>,
}

/// What fills the values of a list.
pub(super) trait ListValues: Default {
    /// The type of the elements.
    const TYPE: DataType;
    fn len(&self) -> usize;
    fn array(&mut self) -> ArrayRef;
}

impl ListValues for Int64Builder {
    const TYPE: DataType = DataType::Int64;

    fn len(&self) -> usize {
        arrow::array::ArrayBuilder::len(self)
    }

    fn array(&mut self) -> ArrayRef {
        Arc::new(self.finish())
    }
}

impl ListValues for StringBuilder {
    const TYPE: DataType = DataType::Utf8;

    fn len(&self) -> usize {
        arrow::array::ArrayBuilder::len(self)
    }

    fn array(&mut self) -> ArrayRef {
        Arc::new(self.finish())
    }
}

impl<B: ListValues> Default for List<B> {
    fn default() -> List<B> {
        List { values: B::default(), ends: vec![0] }
    }
}

impl<B: ListValues> List<B> {
    /// The values pushed since the last list are a list.
    #[inline]
    pub(super) fn end(&mut self) {
        self.ends.push(self.values.len() as i32);
    }

    pub(super) fn finish(&mut self) -> Cells {
        let lists = self.ends.len();
        let ends = std::mem::replace(&mut self.ends, Vec::with_capacity(lists));
        self.ends.push(0);
        let field = Arc::new(Field::new_list_field(B::TYPE, true));
        let ends = OffsetBuffer::new(ScalarBuffer::from(ends));
        ListArray::new(field, ends, self.values.array(), None).into()
    }
}
