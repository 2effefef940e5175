//! The parameters of one event, in a form that a stream can refill without allocation.

use std::fmt;

/// The parameters of an event, one per declared field, in order.
///
/// A field is a number, a text, or both: a number that has a name, written `24(eth0)`.
#[derive(Clone, Debug, Default)]
pub struct Params {
    slots: Vec<Slot>,
    bytes: String,
    /// Names that need no copy.
    constants: Vec<&'static str>,
    /// The number of slots up to the last one that has a text.
    texts: usize,
}

/// 16 bytes, because filling these is most of the cost of reading an event.
#[derive(Clone, Copy, Debug)]
struct Slot {
    number: i64,
    /// Where the text begins in `Params::bytes`. If the text is a constant: its index in `Params::constants`.
    from: u32,
    /// Length of the text, and flags for what the slot holds: the constants below.
    len_and_kind: u32,
}

const HAS_NUMBER: u32 = 1 << 31;
const HAS_TEXT: u32 = 1 << 30;
const IS_CONSTANT: u32 = 1 << 29;
const LEN: u32 = IS_CONSTANT - 1;

/// One parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param<'a> {
    /// Its number. Unsigned and floating-point values keep their bits.
    pub number: Option<i64>,
    /// Its text, or the name of its number.
    pub text: Option<&'a str>,
}

impl Params {
    /// Removes all parameters, keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.slots.clear();
        self.bytes.clear();
        self.constants.clear();
        self.texts = 0;
    }

    /// The size of the parameters in a record of a user trace, in words of 8 bytes: one word for each parameter, plus
    /// the words of texts. The name of a number is not part of the record.
    #[inline]
    pub fn words(&self) -> u64 {
        let is_text = |slot: &&Slot| slot.len_and_kind & (HAS_TEXT | HAS_NUMBER) == HAS_TEXT;
        let words = |slot: &Slot| u64::from(slot.len_and_kind & LEN).div_ceil(8);
        let texts: u64 = self.slots[..self.texts].iter().filter(is_text).map(words).sum();
        self.slots.len() as u64 + texts
    }

    /// Adds a number.
    #[inline]
    pub fn push_number(&mut self, number: i64) {
        self.slots.push(Slot { number, from: 0, len_and_kind: HAS_NUMBER });
    }

    /// Adds numbers, and reserves memory for all of them at once.
    #[inline]
    pub fn push_numbers(&mut self, numbers: impl ExactSizeIterator<Item = i64>) {
        self.slots.extend(numbers.map(|number| Slot { number, from: 0, len_and_kind: HAS_NUMBER }));
    }

    /// Adds a text.
    #[inline]
    pub fn push_text(&mut self, text: &str) {
        let (from, len) = self.keep(text);
        self.slots.push(Slot { number: 0, from, len_and_kind: len | HAS_TEXT });
        self.texts = self.slots.len();
    }

    /// Adds a number that has a name.
    #[inline]
    pub fn push_named(&mut self, number: i64, name: &str) {
        let (from, len) = self.keep(name);
        self.slots.push(Slot { number, from, len_and_kind: len | HAS_NUMBER | HAS_TEXT });
        self.texts = self.slots.len();
    }

    /// Adds a field whose value could not be read.
    #[inline]
    pub fn push_unknown(&mut self) {
        self.slots.push(Slot { number: 0, from: 0, len_and_kind: 0 });
    }

    /// Names the number at `index`, if there is one.
    #[inline]
    pub fn name(&mut self, index: usize, name: &str) {
        let (from, len) = self.keep(name);
        self.set_name(index, from, len | HAS_TEXT);
    }

    /// As [`name`](Self::name), with a name that is not copied.
    #[inline]
    pub fn name_constant(&mut self, index: usize, name: &'static str) {
        let from = self.constants.len() as u32;
        self.constants.push(name);
        self.set_name(index, from, HAS_TEXT | IS_CONSTANT);
    }

    /// As [`name`](Self::name), with the name that `write` appends for the number; no name if it appends nothing.
    #[inline]
    pub fn name_with(&mut self, index: usize, write: impl FnOnce(i64, &mut String)) {
        let Some(number) = self.number(index) else { return };
        let from = self.bytes.len();
        write(number, &mut self.bytes);
        let longest = self.bytes.len().min(from + LEN as usize);
        self.bytes.truncate(self.bytes.floor_char_boundary(longest));
        if self.bytes.len() > from {
            self.set_name(index, from as u32, (self.bytes.len() - from) as u32 | HAS_TEXT);
        }
    }

    /// The number of parameters.
    #[inline]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// The number of parameters up to the last one with a text or a name.
    #[inline]
    pub fn texts(&self) -> usize {
        self.texts
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The parameter at `index`, if there is one.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Param<'_>> {
        self.slots.get(index).map(|slot| self.param(slot))
    }

    /// The number at `index`, if there is one.
    #[inline]
    pub fn number(&self, index: usize) -> Option<i64> {
        let slot = self.slots.get(index)?;
        (slot.len_and_kind & HAS_NUMBER != 0).then_some(slot.number)
    }

    /// All parameters, in order.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Param<'_>> + ExactSizeIterator {
        self.slots.iter().map(|slot| self.param(slot))
    }

    /// The numbers of all parameters, in order; `None` for one without a number.
    #[inline]
    pub fn numbers(&self) -> impl DoubleEndedIterator<Item = Option<i64>> + ExactSizeIterator {
        self.slots.iter().map(|slot| (slot.len_and_kind & HAS_NUMBER != 0).then_some(slot.number))
    }

    /// The number of each parameter from this index on; 0 for one without a number.
    #[inline]
    pub fn numbers_or_zero_from(&self, index: usize) -> impl ExactSizeIterator<Item = i64> {
        let slots = self.slots.get(index..).unwrap_or_default();
        // In a slot without a number, `number` is 0.
        slots.iter().map(|slot| slot.number)
    }

    /// The numbers of all parameters, in order, if every one has a number.
    #[inline]
    pub fn all_numbers(&self) -> Option<impl ExactSizeIterator<Item = i64>> {
        let kinds = self.slots.iter().fold(HAS_NUMBER, |kinds, slot| kinds & slot.len_and_kind);
        (kinds & HAS_NUMBER != 0).then(|| self.slots.iter().map(|slot| slot.number))
    }

    #[inline]
    fn param(&self, slot: &Slot) -> Param<'_> {
        let has = |kind: u32| slot.len_and_kind & kind != 0;
        let number = has(HAS_NUMBER).then_some(slot.number);
        if !has(HAS_TEXT) {
            return Param { number, text: None };
        }
        let from = slot.from as usize;
        let text = if has(IS_CONSTANT) {
            self.constants[from]
        } else {
            &self.bytes[from..from + (slot.len_and_kind & LEN) as usize]
        };
        Param { number, text: Some(text) }
    }

    #[inline]
    fn set_name(&mut self, index: usize, from: u32, len_and_kind: u32) {
        if let Some(slot) = self.slots.get_mut(index).filter(|slot| slot.len_and_kind & HAS_NUMBER != 0) {
            slot.from = from;
            slot.len_and_kind = HAS_NUMBER | len_and_kind;
            self.texts = self.texts.max(index + 1);
        }
    }

    /// Stores a text, cut to half a gigabyte.
    #[inline]
    fn keep(&mut self, text: &str) -> (u32, u32) {
        let text =
            if text.len() > LEN as usize { &text[..text.floor_char_boundary(LEN as usize)] } else { text };
        let from = self.bytes.len() as u32;
        self.bytes.push_str(text);
        (from, text.len() as u32)
    }
}

/// Equal if the numbers, texts and names are equal, wherever they are stored.
impl PartialEq for Params {
    fn eq(&self, other: &Params) -> bool {
        self.iter().eq(other.iter())
    }
}

impl fmt::Display for Param<'_> {
    /// `24`, `eth0` or `24(eth0)`; `?` if it could not be read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.number, self.text) {
            (Some(number), Some(name)) => write!(f, "{number}({name})"),
            (Some(number), None) => write!(f, "{number}"),
            (None, Some(text)) => f.write_str(text),
            (None, None) => f.write_str("?"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_a_text_and_a_named_number_print_as_the_paper_prints_them() {
        let mut params = Params::default();
        params.push_number(15);
        params.push_text("received_msg");
        params.push_named(24, "eth0");
        let printed: Vec<String> = params.iter().map(|p| p.to_string()).collect();
        assert_eq!(printed, ["15", "received_msg", "24(eth0)"]);
    }

    #[test]
    fn numbers_alone_are_all_there_or_have_holes() {
        let mut params = Params::default();
        assert_eq!(params.all_numbers().map(|numbers| numbers.len()), Some(0));
        params.push_named(24, "eth0");
        params.push_number(-1);
        assert_eq!(params.all_numbers().map(Iterator::collect::<Vec<_>>), Some(vec![24, -1]));
        params.push_text("text");
        assert!(params.all_numbers().is_none());
        params.push_unknown();
        assert_eq!(params.numbers_or_zero_from(1).collect::<Vec<_>>(), [-1, 0, 0]);
        assert_eq!(params.numbers_or_zero_from(5).len(), 0);
    }

    #[test]
    fn a_name_is_the_same_whether_it_was_copied_or_not() {
        let (mut copied, mut constant) = (Params::default(), Params::default());
        for params in [&mut copied, &mut constant] {
            params.push_text("a");
            params.push_number(7);
            params.push_unknown();
        }
        assert_eq!(copied, constant);
        copied.name(1, "mmap");
        assert_ne!(copied, constant);
        constant.name_constant(1, "mmap");
        // A field without a number gets no name, nor one whose name is empty.
        constant.name_constant(2, "none");
        constant.name_with(2, |_, name| name.push_str("none"));
        constant.name_with(1, |_, _| {});
        assert_eq!(copied, constant);
        assert_eq!(constant.iter().map(|p| p.to_string()).collect::<Vec<_>>(), ["a", "7(mmap)", "?"]);
        let mut written = Params::default();
        written.push_text("a");
        written.push_numbers([7].into_iter());
        written.push_unknown();
        written.name_with(1, |number, name| name.push_str(if number == 7 { "mmap" } else { "?" }));
        assert_eq!(written, constant);
        assert_eq!(written.numbers().collect::<Vec<_>>(), [None, Some(7), None]);
    }
}
