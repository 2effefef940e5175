//! The parameters of one event, in a form that a stream can refill without allocating.

use std::fmt;

/// The parameters of an event, one per declared field, in order.
///
/// A field is a number, a text, or both: a number that has a name, written `24(eth0)`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params {
    slots: Vec<Slot>,
    bytes: String,
    /// The last slot with a text is the one before this.
    texts: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Slot {
    number: Option<i64>,
    /// Range in `Params::bytes`.
    text: Option<(u32, u32)>,
}

/// One parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param<'a> {
    /// Its number. Unsigned and floating-point values keep their bits.
    pub number: Option<i64>,
    /// Its text, or the name of its number.
    pub text: Option<&'a str>,
}

impl Params {
    /// Forgets all parameters, keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.slots.clear();
        self.bytes.clear();
        self.texts = 0;
    }

    /// Adds a number.
    #[inline]
    pub fn push_number(&mut self, number: i64) {
        self.slots.push(Slot { number: Some(number), text: None });
    }

    /// Adds a text.
    #[inline]
    pub fn push_text(&mut self, text: &str) {
        let range = self.keep(text);
        self.slots.push(Slot { number: None, text: Some(range) });
        self.texts = self.slots.len();
    }

    /// Adds a number that has a name.
    #[inline]
    pub fn push_named(&mut self, number: i64, name: &str) {
        let range = self.keep(name);
        self.slots.push(Slot { number: Some(number), text: Some(range) });
        self.texts = self.slots.len();
    }

    /// Adds a field whose value could not be read.
    #[inline]
    pub fn push_unknown(&mut self) {
        self.slots.push(Slot { number: None, text: None });
    }

    /// Gives the number at `index` a name, if there is a number.
    #[inline]
    pub fn name(&mut self, index: usize, name: &str) {
        if self.slots.get(index).is_some_and(|slot| slot.number.is_some()) {
            self.slots[index].text = Some(self.keep(name));
            self.texts = self.texts.max(index + 1);
        }
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// How many there are up to the last one with a text or a name.
    #[inline]
    pub fn texts(&self) -> usize {
        self.texts
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The parameter at `index`, if there are so many.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Param<'_>> {
        self.slots.get(index).map(|slot| self.param(slot))
    }

    /// All of them, in order.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Param<'_>> + ExactSizeIterator {
        self.slots.iter().map(|slot| self.param(slot))
    }

    #[inline]
    fn param(&self, slot: &Slot) -> Param<'_> {
        let text = slot.text.map(|(from, to)| &self.bytes[from as usize..to as usize]);
        Param { number: slot.number, text }
    }

    #[inline]
    fn keep(&mut self, text: &str) -> (u32, u32) {
        let from = self.bytes.len() as u32;
        self.bytes.push_str(text);
        (from, self.bytes.len() as u32)
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
    fn texts_are_counted_up_to_the_last() {
        let mut params = Params::default();
        params.push_number(15);
        assert_eq!(params.texts(), 0);
        params.push_text("received_msg");
        params.push_number(7);
        params.push_number(8);
        assert_eq!(params.texts(), 2);
        params.name(2, "seven");
        params.name(0, "fifteen");
        assert_eq!(params.texts(), 3);
        params.clear();
        assert_eq!(params.texts(), 0);
    }

    #[test]
    fn a_number_a_text_and_a_named_number_print_as_the_paper_prints_them() {
        let mut params = Params::default();
        params.push_number(15);
        params.push_text("received_msg");
        params.push_named(24, "eth0");
        let printed: Vec<String> = params.iter().map(|p| p.to_string()).collect();
        assert_eq!(printed, ["15", "received_msg", "24(eth0)"]);
    }
}
