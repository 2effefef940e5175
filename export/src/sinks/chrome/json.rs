//! JSON (RFC 8259), appended to bytes.

use std::io::Write;

/// The largest number up to which every one is exact for readers that know 64-bit floating point only.
const EXACT: u64 = 1 << 53;

/// What can be appended.
pub(super) trait Json {
    fn put(&mut self, text: &str);
    fn number(&mut self, number: u64);
    fn signed(&mut self, number: i64);
    fn float(&mut self, number: f64);
    /// Microseconds, with three digits for the nanoseconds if there are some.
    fn micros(&mut self, nanos: u64);
    /// A text in quotes.
    fn text(&mut self, text: &str);
    /// The same, without the quotes.
    fn escaped(&mut self, text: &str);
}

impl Json for Vec<u8> {
    #[inline]
    fn put(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }

    /// Larger ones than 2^53 become texts, so that all readers keep their last digits.
    #[inline]
    fn number(&mut self, number: u64) {
        if number <= EXACT {
            self.put(itoa::Buffer::new().format(number));
        } else {
            quoted(self, itoa::Buffer::new().format(number));
        }
    }

    #[inline]
    fn signed(&mut self, number: i64) {
        if number.unsigned_abs() <= EXACT {
            self.put(itoa::Buffer::new().format(number));
        } else {
            quoted(self, itoa::Buffer::new().format(number));
        }
    }

    /// JSON has no infinity, and nothing that is no number: these become texts.
    fn float(&mut self, number: f64) {
        let quote = if number.is_finite() { "" } else { "\"" };
        write!(self, "{quote}{number}{quote}").expect("a Vec takes everything");
    }

    #[inline]
    fn micros(&mut self, nanos: u64) {
        self.put(itoa::Buffer::new().format(nanos / 1000));
        let rest = nanos % 1000;
        if rest != 0 {
            let digits = [rest / 100, rest / 10 % 10, rest % 10].map(|digit| b'0' + digit as u8);
            self.push(b'.');
            self.extend_from_slice(&digits);
        }
    }

    #[inline]
    fn text(&mut self, text: &str) {
        self.push(b'"');
        self.escaped(text);
        self.push(b'"');
    }

    #[inline]
    fn escaped(&mut self, text: &str) {
        let mut from = 0;
        for (at, byte) in text.bytes().enumerate() {
            if byte >= b' ' && byte != b'"' && byte != b'\\' {
                continue;
            }
            self.put(&text[from..at]);
            escape(self, byte);
            from = at + 1;
        }
        self.put(&text[from..]);
    }
}

fn quoted(out: &mut Vec<u8>, digits: &str) {
    out.push(b'"');
    out.put(digits);
    out.push(b'"');
}

#[cold]
fn escape(out: &mut Vec<u8>, byte: u8) {
    match byte {
        b'"' => out.put("\\\""),
        b'\\' => out.put("\\\\"),
        b'\n' => out.put("\\n"),
        b'\t' => out.put("\\t"),
        b'\r' => out.put("\\r"),
        control => write!(out, "\\u{control:04x}").expect("a Vec takes everything"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut bytes = Vec::new();
        write(&mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn texts_are_escaped_where_they_must_be() {
        let text = "a \"b\" \\ \n\t\r\u{1}\u{1f} ü🦀\u{7f}";
        assert_eq!(written(|out| out.text(text)), "\"a \\\"b\\\" \\\\ \\n\\t\\r\\u0001\\u001f ü🦀\u{7f}\"");
        assert_eq!(written(|out| out.text("")), "\"\"");
    }

    #[test]
    fn numbers_keep_all_their_digits() {
        assert_eq!(written(|out| out.number(9_007_199_254_740_992)), "9007199254740992");
        assert_eq!(written(|out| out.number(u64::MAX)), "\"18446744073709551615\"");
        assert_eq!(written(|out| out.signed(-3)), "-3");
        assert_eq!(written(|out| out.signed(i64::MIN)), "\"-9223372036854775808\"");
        assert_eq!(written(|out| out.float(0.25)), "0.25");
        assert_eq!(written(|out| out.float(f64::NEG_INFINITY)), "\"-inf\"");
        let micros = |nanos| written(|out| out.micros(nanos));
        assert_eq!([micros(0), micros(1), micros(1000), micros(1_234_050)], ["0", "0.001", "1", "1234.050"]);
    }
}
