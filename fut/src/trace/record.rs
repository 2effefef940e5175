//! A record: 16 bytes, and 8 for each parameter word.

use sigmund_model::{Cpu, FieldType, Params, Ticks};

/// Length of a record before its parameters, in bytes.
pub const RECORD_HEAD_LEN: usize = 16;
/// Maximum number of parameter words of a record. Longer texts are truncated.
pub const MAX_RECORD_WORDS: usize = 255;
/// The value of `cpu` if the probe could not read it.
pub const CPU_UNKNOWN: u16 = 0xffff;

/// The second word of a record: code, words, flags, CPU. It is never 0, because codes begin at 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHead {
    /// The event's code, 1 and up.
    pub code: u32,
    /// Words of parameters after the header.
    pub words: u8,
    /// Reserved, 0.
    pub flags: u8,
    /// The CPU read by the probe; [`CPU_UNKNOWN`] if it could not.
    pub cpu: u16,
}

impl RecordHead {
    /// The header as the second word of a record.
    #[inline(always)]
    pub fn to_word(self) -> u64 {
        u64::from(self.code)
            | u64::from(self.words) << 32
            | u64::from(self.flags) << 40
            | u64::from(self.cpu) << 48
    }

    /// The header from the second word of a record.
    pub fn from_word(word: u64) -> RecordHead {
        RecordHead {
            code: word as u32,
            words: (word >> 32) as u8,
            flags: (word >> 40) as u8,
            cpu: (word >> 48) as u16,
        }
    }

    /// Bytes of the whole record.
    pub fn record_len(self) -> usize {
        RECORD_HEAD_LEN + 8 * usize::from(self.words)
    }
}

/// One record, cut from a packet.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Its time stamp.
    pub tick: Ticks,
    /// Its header.
    pub head: RecordHead,
    words: &'a [u8],
}

impl Record<'_> {
    /// The CPU read by the probe; `None` if it could not.
    pub fn cpu(&self) -> Option<Cpu> {
        (self.head.cpu != CPU_UNKNOWN).then_some(Cpu(u32::from(self.head.cpu)))
    }

    /// The word at `index`.
    pub fn word(&self, index: usize) -> Option<u64> {
        let bytes = self.words.get(8 * index..8 * index + 8)?;
        bytes.try_into().ok().map(u64::from_le_bytes)
    }

    /// The text whose length is the word at `index`.
    pub(super) fn text(&self, index: usize) -> Option<std::borrow::Cow<'_, str>> {
        let len = usize::try_from(self.word(index)?).ok()?;
        let bytes = self.words.get(8 * (index + 1)..)?.get(..len)?;
        Some(String::from_utf8_lossy(bytes))
    }

    /// Reads the parameters of a C program's record that does not fit its declaration. `text_after` is the number of
    /// numbers before its text, according to its own code. Numbers go to the fields that are not texts, the text to the
    /// first text field. Fields without a parameter become unknown; parameters without a field come last.
    pub(super) fn params_by_code(
        &self,
        fields: impl Iterator<Item = FieldType>,
        text_after: Option<u32>,
        params: &mut Params,
    ) {
        let count = text_after.map_or(self.words.len() / 8, |numbers| numbers as usize);
        let mut numbers = (0..count).map_while(|index| self.word(index));
        let mut text = text_after.map(|_| self.text(count));
        for ty in fields {
            if ty == FieldType::Text {
                push_text(text.take().flatten(), params);
            } else {
                match numbers.next() {
                    Some(word) => params.push_number(word as i64),
                    None => params.push_unknown(),
                }
            }
        }
        numbers.for_each(|word| params.push_number(word as i64));
        if let Some(text) = text {
            push_text(text, params);
        }
    }

    /// Reads the parameters according to their declared types. Fields without words become unknown. Words without a
    /// declared field become numbers.
    pub fn params(&self, fields: impl Iterator<Item = FieldType>, params: &mut Params) {
        let mut index = 0;
        for ty in fields {
            let Some(word) = self.word(index) else {
                params.push_unknown();
                continue;
            };
            index += 1;
            if ty != FieldType::Text {
                params.push_number(word as i64);
                continue;
            }
            let rest = self.words.get(8 * index..).unwrap_or(&[]);
            match usize::try_from(word).ok().and_then(|len| rest.get(..len)) {
                Some(text) => {
                    params.push_text(&String::from_utf8_lossy(text));
                    index += text.len().div_ceil(8);
                }
                None => {
                    params.push_unknown();
                    index = self.words.len() / 8;
                }
            }
        }
        while let Some(word) = self.word(index) {
            params.push_number(word as i64);
            index += 1;
        }
    }
}

fn push_text(text: Option<std::borrow::Cow<'_, str>>, params: &mut Params) {
    match text {
        Some(text) => params.push_text(&text),
        None => params.push_unknown(),
    }
}

/// The records of one packet's payload, in the order in which they were reserved.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    /// The records in the payload of a packet of events.
    pub fn of(payload: &'a [u8]) -> Records<'a> {
        Records { rest: payload }
    }

    /// Number of remaining bytes. If it is not 0 after the last record, the payload is damaged.
    pub fn left(&self) -> usize {
        self.rest.len()
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let (tick, rest) = self.rest.split_first_chunk::<8>()?;
        let (word, rest) = rest.split_first_chunk::<8>()?;
        let head = RecordHead::from_word(u64::from_le_bytes(*word));
        let (words, rest) = rest.split_at_checked(8 * usize::from(head.words))?;
        self.rest = rest;
        Some(Record { tick: Ticks(u64::from_le_bytes(*tick)), head, words })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(words: &[u64]) -> Vec<u8> {
        let head = RecordHead { code: 7, words: words.len() as u8, flags: 0, cpu: 3 };
        [1000, head.to_word()].iter().chain(words).flat_map(|w| w.to_le_bytes()).collect()
    }

    fn printed(bytes: &[u8], fields: &[FieldType]) -> Vec<String> {
        let record = Records::of(bytes).next().unwrap();
        let mut params = Params::default();
        record.params(fields.iter().copied(), &mut params);
        params.iter().map(|p| p.to_string()).collect()
    }

    #[test]
    fn a_text_is_a_length_and_padded_bytes_between_other_fields() {
        let bytes = record(&[5, 4, u64::from_le_bytes(*b"eth0\0\0\0\0"), 9]);
        assert_eq!(printed(&bytes, &[FieldType::U64, FieldType::Text, FieldType::U64]), ["5", "eth0", "9"]);
    }

    #[test]
    fn a_text_longer_than_its_record_is_unknown_and_undeclared_words_are_kept() {
        let bytes = record(&[400, 1, 2]);
        assert_eq!(printed(&bytes, &[FieldType::Text]), ["?"]);
        assert_eq!(printed(&bytes, &[FieldType::U64]), ["400", "1", "2"]);
        assert_eq!(printed(&record(&[]), &[FieldType::U64]), ["?"]);
    }

    #[test]
    fn records_stop_at_what_is_not_a_whole_record() {
        let mut bytes = record(&[1, 2]);
        let whole = bytes.len();
        bytes.extend_from_slice(&record(&[3])[..20]);
        let mut records = Records::of(&bytes);
        assert_eq!(records.next().unwrap().cpu(), Some(Cpu(3)));
        assert!(records.next().is_none());
        assert_eq!(records.left(), bytes.len() - whole);
    }
}
