//! Lines of a Pajé file, formatted without allocating.

use std::io::{self, Write};

use sigmund_model::Nanos;

use super::{
    digits::{ShortText, decimal, hexadecimal, seconds},
    header::event,
    name::{self, Commas},
    palette::{self, Color},
};

/// The alias of a container, a type, a value or a link, by which other lines refer to it: `t17`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Alias {
    prefix: Prefix,
    number: Option<u64>,
}

/// A space and up to three letters, padded with zeros: hashed and compared as a number, copied as four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Prefix(u32);

impl Prefix {
    const fn new(letters: &'static str) -> Prefix {
        let (mut word, mut at) = ([b' ', 0, 0, 0], 0);
        while at < letters.len() {
            word[at + 1] = letters.as_bytes()[at];
            at += 1;
        }
        Prefix(u32::from_le_bytes(word))
    }

    fn append_to(self, out: &mut Vec<u8>) {
        let end = out.len() + 4 - (self.0.leading_zeros() / 8) as usize;
        out.extend_from_slice(&self.0.to_le_bytes());
        out.truncate(end);
    }
}

/// A numbered alias: `t17`.
pub(super) fn alias(prefix: &'static str, number: impl Into<u64>) -> Alias {
    Alias { prefix: Prefix::new(prefix), number: Some(number.into()) }
}

/// An alias without a number: `ST`.
pub(super) const fn only(alias: &'static str) -> Alias {
    Alias { prefix: Prefix::new(alias), number: None }
}

/// Writes lines, buffered.
pub(super) struct Lines<W> {
    out: W,
    buffer: Vec<u8>,
    time: TimeText,
    text: PreparedText,
}

/// The text of the last time, cached because many changes share an instant.
#[derive(Default)]
struct TimeText {
    nanos: Nanos,
    /// With a leading space.
    text: ShortText,
    written: Vec<u8>,
}

impl TimeText {
    fn set(&mut self, nanos: Nanos) {
        self.nanos = nanos;
        self.written.clear();
        self.written.push(b' ');
        seconds(&mut self.written, nanos);
        self.text.set(&self.written);
    }
}

/// A text in its written form ([`name`]), for the next line.
#[derive(Default)]
struct PreparedText {
    written: Vec<u8>,
    /// Length of the part in that line.
    head: usize,
    /// The number of its first continuation, if it has one.
    rest: Option<u64>,
    /// Number of continuations so far.
    rests: u64,
}

/// The state type whose values are the continuations of long texts.
pub(super) const RESTS: Alias = only("R");

/// Size of the buffer, in bytes.
const CHUNK: usize = 64 << 10;

impl<W: Write> Lines<W> {
    pub(super) fn new(out: W) -> Lines<W> {
        let mut time = TimeText::default();
        time.set(Nanos(0));
        Lines { out, buffer: Vec::with_capacity(CHUNK + (CHUNK >> 3)), time, text: PreparedText::default() }
    }

    /// Appends lines that are already formatted.
    pub(super) fn formatted(&mut self, lines: &str) {
        self.buffer.extend_from_slice(lines.as_bytes());
    }

    /// Begins the line of an event without a time.
    pub(super) fn define(&mut self, event: &'static str) -> &mut Self {
        self.buffer.extend_from_slice(event.as_bytes());
        self
    }

    /// Begins the line of an event with a time.
    pub(super) fn at(&mut self, nanos: Nanos, event: &'static str) -> &mut Self {
        if self.time.nanos != nanos {
            self.time.set(nanos);
        }
        self.define(event);
        self.time.text.append_to(&mut self.buffer);
        self
    }

    pub(super) fn word(&mut self, word: &'static str) -> &mut Self {
        self.buffer.push(b' ');
        self.buffer.extend_from_slice(word.as_bytes());
        self
    }

    pub(super) fn alias(&mut self, alias: Alias) -> &mut Self {
        alias.prefix.append_to(&mut self.buffer);
        if let Some(number) = alias.number {
            decimal(&mut self.buffer, number);
        }
        self
    }

    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        self.word("");
        decimal(&mut self.buffer, number);
        self
    }

    pub(super) fn hex(&mut self, number: u64) -> &mut Self {
        self.word("0x");
        hexadecimal(&mut self.buffer, number);
        self
    }

    /// Prepares a text for the next line, to which [`text`](Self::text) appends it. If it is too long for a line, its
    /// continuations are declared now.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn prepare(&mut self, name: &str, commas: Commas) -> io::Result<()> {
        self.prepare_with(|text| name::write(text, name, commas))
    }

    /// Like [`prepare`](Self::prepare), with a function that appends the written form.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn prepare_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let mut written = std::mem::take(&mut self.text.written);
        written.clear();
        write(&mut written);
        let (head, mut rest) = name::cut(&written);
        self.text.head = head.len();
        self.text.rest = self.next_rest(rest);
        while let Some(number) = self.next_rest(rest) {
            let (part, after) = name::cut(rest);
            self.text.rests = number;
            self.define(event::VALUE).alias(alias("vr", number)).alias(RESTS).word("\"");
            decimal(&mut self.buffer, number);
            self.buffer.push(b' ');
            self.buffer.extend_from_slice(part);
            let continued = self.next_rest(after);
            self.end_text(continued).color(palette::NOT_DRAWN).end()?;
            rest = after;
        }
        self.text.written = written;
        Ok(())
    }

    fn next_rest(&self, rest: &[u8]) -> Option<u64> {
        (!rest.is_empty()).then_some(self.text.rests + 1)
    }

    /// Appends the prepared text, in quotes.
    pub(super) fn text(&mut self) -> &mut Self {
        self.buffer.extend_from_slice(b" \"");
        self.buffer.extend_from_slice(&self.text.written[..self.text.head]);
        self.end_text(self.text.rest)
    }

    /// Ends a text, with the number of its continuation if it has one.
    fn end_text(&mut self, rest: Option<u64>) -> &mut Self {
        if let Some(rest) = rest {
            self.buffer.extend_from_slice(b"%+");
            decimal(&mut self.buffer, rest);
        }
        self.buffer.push(b'"');
        self
    }

    pub(super) fn color(&mut self, color: Color) -> &mut Self {
        self.buffer.extend_from_slice(b" \"");
        color.append_to(&mut self.buffer);
        self.buffer.push(b'"');
        self
    }

    /// Ends the line.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.buffer.push(b'\n');
        if self.buffer.len() >= CHUNK { self.write() } else { Ok(()) }
    }

    /// Writes the buffered lines.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.write()?;
        self.out.flush()
    }

    fn write(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_nine_decimals_and_is_written_again_when_it_changes() {
        let mut lines = Lines::new(Vec::new());
        for nanos in [0, 0, 999_999_999, 1_000_000_000, 12_000_000_400, u64::MAX] {
            lines.at(Nanos(nanos), "8").alias(alias("t", 17_u32)).end().unwrap();
        }
        lines.flush().unwrap();
        assert_eq!(
            String::from_utf8(lines.out).unwrap(),
            "8 0.000000000 t17\n8 0.000000000 t17\n8 0.999999999 t17\n8 1.000000000 t17\n8 12.000000400 t17\n\
             8 18446744073.709551615 t17\n"
        );
    }
}
