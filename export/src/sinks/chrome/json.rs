//! Appends JSON (RFC 8259) to bytes. `serde_json` escapes texts; this module decides which numbers are written as
//! texts.

/// Integers up to this one are exact for readers with only 64-bit floating point.
const MAX_EXACT: u64 = 1 << 53;

/// Appends parts of a document.
pub(super) trait Json {
    fn put(&mut self, text: &str);
    fn number(&mut self, number: u64);
    fn signed(&mut self, number: i64);
    fn float(&mut self, number: f64);
    /// Microseconds, with three digits for the nanoseconds if there are some.
    fn micros(&mut self, nanos: u64);
    /// A text, escaped and in quotes.
    fn text(&mut self, text: &str);
    /// A text in quotes that ends with `suffix`, which needs no escapes.
    fn text_with(&mut self, text: &str, suffix: &str);
}

impl Json for Vec<u8> {
    #[inline]
    fn put(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }

    /// Numbers above 2^53 become texts, so that no reader rounds them.
    #[inline]
    fn number(&mut self, number: u64) {
        if number <= MAX_EXACT {
            self.put(itoa::Buffer::new().format(number));
        } else {
            quoted(self, itoa::Buffer::new().format(number));
        }
    }

    #[inline]
    fn signed(&mut self, number: i64) {
        if number.unsigned_abs() <= MAX_EXACT {
            self.put(itoa::Buffer::new().format(number));
        } else {
            quoted(self, itoa::Buffer::new().format(number));
        }
    }

    /// JSON has no infinity and no NaN; they become texts.
    fn float(&mut self, number: f64) {
        if number.is_finite() {
            serde_json::to_writer(self, &number).expect("writing to a Vec does not fail");
        } else {
            self.text(&number.to_string());
        }
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
        serde_json::to_writer(self, text).expect("writing to a Vec does not fail");
    }

    #[inline]
    fn text_with(&mut self, text: &str, suffix: &str) {
        self.text(text);
        self.pop();
        self.put(suffix);
        self.push(b'"');
    }
}

fn quoted(out: &mut Vec<u8>, digits: &str) {
    out.push(b'"');
    out.put(digits);
    out.push(b'"');
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
        assert_eq!(written(|out| out.text_with("\\", " name")), "\"\\\\ name\"");
    }

    #[test]
    fn numbers_keep_all_their_digits() {
        assert_eq!(written(|out| out.number(9_007_199_254_740_992)), "9007199254740992");
        assert_eq!(written(|out| out.number(u64::MAX)), "\"18446744073709551615\"");
        assert_eq!(written(|out| out.signed(-3)), "-3");
        assert_eq!(written(|out| out.signed(i64::MIN)), "\"-9223372036854775808\"");
        assert_eq!(written(|out| out.float(0.25)), "0.25");
        assert_eq!(written(|out| out.float(1e300)), "1e+300");
        assert_eq!(written(|out| out.float(f64::NEG_INFINITY)), "\"-inf\"");
        let micros = |nanos| written(|out| out.micros(nanos));
        assert_eq!([micros(0), micros(1), micros(1000), micros(1_234_050)], ["0", "0.001", "1", "1234.050"]);
    }
}
