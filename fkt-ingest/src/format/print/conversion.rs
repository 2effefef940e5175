//! printf's conversions: `%-8.3lld`.

use std::fmt::Write;

use super::value::truncate;
use crate::format::machine::Machine;

/// A piece of a format string: plain text or a conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Conversion(Conversion),
}

/// One conversion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Conversion {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    pub(super) width: Option<Size>,
    pub(super) precision: Option<Size>,
    pub(super) length: Length,
    /// `d`, `s`, `p`, …
    pub(super) kind: char,
    /// The letters after a `p`: `S`, `I6c`.
    pub(super) extension: String,
}

/// A width or a precision: in the format, or a separate argument (`*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Fixed(usize),
    Argument,
}

/// `hh`, `h`, nothing, `l` (and `z`, `t`), `ll`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Length {
    Char,
    Short,
    #[default]
    Int,
    Long,
    LongLong,
}

impl Length {
    /// Size in bytes of a number that is passed with this length.
    pub(super) fn size(self, machine: Machine) -> u8 {
        match self {
            Length::Char => 1,
            Length::Short => 2,
            Length::Int => 4,
            Length::Long => machine.long_size,
            Length::LongLong => 8,
        }
    }
}

/// Largest width or precision; no line of the kernel is wider.
const MAX_SIZE: usize = 4096;

/// Splits a format string into pieces; `None` if a conversion is not one of C's.
pub(super) fn pieces(format: &str) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('%') {
        text.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            text.push('%');
            rest = after;
            continue;
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        let (conversion, after) = conversion(after)?;
        pieces.push(Piece::Conversion(conversion));
        rest = after;
    }
    text.push_str(rest);
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Some(pieces)
}

fn conversion(mut text: &str) -> Option<(Conversion, &str)> {
    let mut conversion = Conversion::default();
    loop {
        match text.chars().next()? {
            '-' => conversion.left = true,
            '+' => conversion.plus = true,
            ' ' => conversion.space = true,
            '#' => conversion.alternate = true,
            '0' => conversion.zero = true,
            _ => break,
        }
        text = &text[1..];
    }
    (conversion.width, text) = size(text);
    if let Some(after) = text.strip_prefix('.') {
        (conversion.precision, text) = size(after);
        conversion.precision = conversion.precision.or(Some(Size::Fixed(0)));
    }
    const LENGTHS: [(&str, Length); 8] = [
        ("hh", Length::Char),
        ("h", Length::Short),
        ("ll", Length::LongLong),
        ("l", Length::Long),
        ("L", Length::LongLong),
        ("j", Length::LongLong),
        ("z", Length::Long),
        ("t", Length::Long),
    ];
    if let Some((word, length)) = LENGTHS.iter().find(|(word, _)| text.starts_with(word)) {
        conversion.length = *length;
        text = &text[word.len()..];
    }
    conversion.kind = text.chars().next().filter(|kind| "diuxXocsp".contains(*kind))?;
    text = &text[1..];
    if conversion.kind == 'p' {
        let len = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
        let len = super::pointer::extension_len(&text[..len]);
        conversion.extension = text[..len].to_owned();
        text = &text[len..];
    }
    Some((conversion, text))
}

fn size(text: &str) -> (Option<Size>, &str) {
    if let Some(rest) = text.strip_prefix('*') {
        return (Some(Size::Argument), rest);
    }
    let len = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(len);
    (digits.parse().ok().map(Size::Fixed), rest)
}

impl Conversion {
    /// The same conversion with its width and precision filled in.
    pub(super) fn sized(&self, width: Option<i64>, precision: Option<i64>) -> Conversion {
        let mut sized = self.clone();
        if let Some(width) = width {
            sized.left |= width < 0;
            sized.width = Some(Size::Fixed(width.unsigned_abs() as usize));
        }
        if let Some(precision) = precision {
            sized.precision = usize::try_from(precision).ok().map(Size::Fixed);
        }
        sized
    }

    /// Writes a number by this conversion.
    pub(super) fn number(&self, bits: i64, machine: Machine, out: &mut String) {
        if self.kind == 'c' {
            let text = char::from(bits as u8).to_string();
            return self.pad("", &text, false, out);
        }
        let signed = matches!(self.kind, 'd' | 'i');
        let value = truncate(bits, self.length.size(machine), signed);
        let mut digits = match self.kind {
            'd' | 'i' => value.unsigned_abs().to_string(),
            'x' => format!("{value:x}"),
            'X' => format!("{value:X}"),
            'o' => format!("{value:o}"),
            _ => (value as u64).to_string(),
        };
        if let Some(precision) = fixed(self.precision) {
            let zeros = precision.saturating_sub(digits.len());
            digits.insert_str(0, &"0".repeat(zeros));
        }
        let prefix = match self.kind {
            'd' | 'i' if value < 0 => "-",
            'd' | 'i' if self.plus => "+",
            'd' | 'i' if self.space => " ",
            'x' if self.alternate && value != 0 => "0x",
            'X' if self.alternate && value != 0 => "0X",
            'o' if self.alternate => "0",
            _ => "",
        };
        self.pad(prefix, &digits, self.zero && self.precision.is_none(), out);
    }

    /// Writes a text by this conversion: cut at the precision, padded to the width.
    pub(super) fn text(&self, text: &str, out: &mut String) {
        let text = match fixed(self.precision) {
            Some(precision) => text.get(..text.floor_char_boundary(precision)).unwrap_or(text),
            None => text,
        };
        self.pad("", text, false, out);
    }

    fn pad(&self, prefix: &str, body: &str, zeros: bool, out: &mut String) {
        let missing = fixed(self.width).unwrap_or(0).saturating_sub(prefix.len() + body.len());
        // Writing to a String cannot fail.
        let _ = match (self.left, zeros) {
            (true, _) => write!(out, "{prefix}{body}{:missing$}", ""),
            (false, true) => write!(out, "{prefix}{:0<missing$}{body}", ""),
            (false, false) => write!(out, "{:missing$}{prefix}{body}", ""),
        };
    }

    /// The width, if the format contains it.
    pub(super) fn fixed_width(&self) -> Option<usize> {
        fixed(self.width)
    }
}

fn fixed(size: Option<Size>) -> Option<usize> {
    match size {
        Some(Size::Fixed(size)) => Some(size.min(MAX_SIZE)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(format: &str, bits: i64) -> String {
        let mut out = String::new();
        for piece in pieces(format).unwrap() {
            match piece {
                Piece::Text(text) => out.push_str(&text),
                Piece::Conversion(c) => c.number(bits, Machine::little_64(true), &mut out),
            }
        }
        out
    }

    #[test]
    fn numbers_are_written_as_c_writes_them() {
        assert_eq!(printed("%d|%5d|%-5d|%05d|%+d", -7), "-7|   -7|-7   |-0007|-7");
        assert_eq!(printed("%x %#x %08llx %X", 0xbeef), "beef 0xbeef 0000beef BEEF");
        assert_eq!(printed("%u %hhu %hd %lu", -1), "4294967295 255 -1 18446744073709551615");
        assert_eq!(printed("100%% %.3d %#o %c", 65), "100% 065 0101 A");
    }

    #[test]
    fn what_c_has_not_is_refused() {
        assert_eq!(pieces("%y"), None);
        assert_eq!(pieces("50%"), None);
    }
}
