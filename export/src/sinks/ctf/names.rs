//! Converts any name to a legal name of TSDL, and back.
//!
//! The name of a field must be an identifier: letters, digits and `_`. Every name gets a leading `_`, which readers
//! remove (as in LTTng; otherwise `int` and `event` would be keywords), and each illegal byte becomes `_xHH_`:
//!
//! | name | identifier |
//! |---|---|
//! | `len` | `_len` |
//! | `event` | `_event` |
//! | `my field` | `_my_x20_field` |
//! | `a_x20_b` | `_a_x5f_x20_b` |
//! | (empty) | `__x__` |
//! | the second `len` of an event | `_len_x_2` |
//!
//! A `_` is written `_x5f_` where it would begin one of the forms above, so [`original`] restores every name. Names of
//! events and labels are string literals, with C's escapes.

use std::collections::HashMap;

const EMPTY: &str = "_x__";

/// The identifier of a field, with its leading `_`.
pub(super) fn identifier(name: &str) -> String {
    if name.is_empty() {
        return format!("_{EMPTY}");
    }
    let mut identifier = String::with_capacity(name.len() + 1);
    identifier.push('_');
    let bytes = name.as_bytes();
    for (at, byte) in bytes.iter().enumerate() {
        let ambiguous = *byte == b'_' && begins_a_form(&bytes[at + 1..]);
        match byte {
            b'_' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' if !ambiguous => identifier.push(*byte as char),
            _ => identifier.push_str(&format!("_x{byte:02x}_")),
        }
    }
    identifier
}

/// Whether a `_` before `rest` could be read as the start of a form: `rest` begins with `x` and two of `0-9a-f_`, or
/// with bytes that become `_`.
fn begins_a_form(rest: &[u8]) -> bool {
    let may = |byte: &u8| byte.is_ascii_hexdigit() || !byte.is_ascii_alphanumeric();
    matches!(rest, [b'x', first, rest @ ..] if may(first) && rest.first().is_none_or(may))
}

/// The identifiers of all fields of an event; all are different.
pub(super) fn identifiers<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut taken: HashMap<String, usize> = HashMap::new();
    let unique = |name: &'n str| {
        let identifier = identifier(name);
        let number = taken.entry(identifier.clone()).and_modify(|number| *number += 1).or_insert(1);
        if *number == 1 { identifier } else { format!("{identifier}_x_{number}") }
    };
    names.map(unique).collect()
}

/// The original name of a field, from the identifier as readers show it: without the leading `_`.
///
/// `a_x20_b` is `a b`: each illegal byte was written as `_xHH_`. The second field with the same name ends with `_x_2`,
/// and `_x__` is the empty name.
pub fn original(shown: &str) -> String {
    if shown.strip_prefix(EMPTY).is_some_and(|rest| rest.is_empty() || is_number(rest.as_bytes())) {
        return String::new();
    }
    let mut name = Vec::with_capacity(shown.len());
    let mut rest = shown.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        if is_number(rest) {
            break;
        }
        let escaped = match rest {
            [b'_', b'x', high, low, b'_', behind @ ..] => {
                hex(*high).zip(hex(*low)).map(|(high, low)| (high << 4 | low, behind))
            }
            _ => None,
        };
        let (byte, behind) = escaped.unwrap_or((*first, behind));
        name.push(byte);
        rest = behind;
    }
    String::from_utf8_lossy(&name).into_owned()
}

/// Whether this is the suffix `_x_2` of a second field with the same name.
fn is_number(rest: &[u8]) -> bool {
    rest.strip_prefix(b"_x_")
        .is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

fn hex(digit: u8) -> Option<u8> {
    (digit as char).to_digit(16).map(|digit| digit as u8)
}

/// A string literal. Octal escapes have three digits, so that a following digit is not read as part of them. A NUL
/// would end the string for readers, so it becomes U+2400, the symbol for it.
pub(super) fn literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => literal.extend(['\\', c]),
            '\n' => literal.push_str("\\n"),
            '\t' => literal.push_str("\\t"),
            '\0' => literal.push(SYMBOL_FOR_NUL),
            c if c.is_ascii_control() => literal.push_str(&format!("\\{:03o}", c as u32)),
            c => literal.push(c),
        }
    }
    literal.push('"');
    literal
}

/// Replaces a NUL in texts.
pub(super) const SYMBOL_FOR_NUL: char = '\u{2400}';

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_identifier_is_legal_and_reversible() {
        let names = [
            "len", "my field", "Ü", "a_x20_b", "_x", "_x_", "_x__", "_x_2", "__x20", "_x2 ", "", "9", "_",
            "x",
        ];
        for name in names {
            let identifier = identifier(name);
            assert!(identifier.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric()), "{identifier}");
            assert_eq!(original(&identifier[1..]), name, "{identifier}");
        }
        assert_eq!(identifier("my field"), "_my_x20_field");
        assert_eq!(identifier("max_x"), "_max_x");
    }

    // All names of up to 6 of these characters have different identifiers.
    #[test]
    fn different_names_have_different_identifiers() {
        let alphabet = ['_', 'x', '2', '0', ' ', 'g'];
        let mut seen = HashSet::new();
        let mut names = vec![String::new()];
        for _ in 0..6 {
            let longer = |name: &String| alphabet.map(|c| format!("{name}{c}"));
            let next: Vec<String> = names.iter().flat_map(longer).collect();
            for name in std::mem::replace(&mut names, next) {
                let identifier = identifier(&name);
                assert_eq!(original(&identifier[1..]), name, "{identifier}");
                assert!(seen.insert(identifier));
            }
        }
    }

    #[test]
    fn fields_with_the_same_name_get_different_identifiers() {
        let identifiers = identifiers(["len", "len", "", "", "len_x_2"].into_iter());
        assert_eq!(identifiers, ["_len", "_len_x_2", "__x__", "__x___x_2", "_len_x5f_x_2"]);
        assert_eq!(original("len_x_2"), "len");
        assert_eq!(original("_x___x_2"), "");
    }

    #[test]
    fn a_literal_keeps_its_text() {
        assert_eq!(literal("a \"b\"\n\\\u{1}7 Ü"), r#""a \"b\"\n\\\0017 Ü""#);
    }
}
