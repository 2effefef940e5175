//! Converts any name to a valid name of Pajé, and back. [`read`] describes the replacements.

/// Maximum length of a written form that is not divided, in bytes.
pub(super) const MAX_PART: usize = 3000;

/// The written form of the empty name. It is not a valid percent-encoding: `m` is not a hexadecimal digit.
const EMPTY: &str = "%empty";

/// Whether commas are replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Commas {
    Kept,
    Replaced,
}

/// Appends a name's written form.
pub(super) fn write(out: &mut Vec<u8>, name: &str, commas: Commas) {
    if name.is_empty() {
        out.extend_from_slice(EMPTY.as_bytes());
    }
    let mut rest = name;
    while let Some(at) = rest.bytes().position(|byte| may_need_replacement(byte, commas)) {
        let (before, after) = rest.split_at(at);
        out.extend_from_slice(before.as_bytes());
        let mut chars = after.chars();
        let Some(c) = chars.next() else { break };
        rest = chars.as_str();
        write_char(out, c, commas);
    }
    out.extend_from_slice(rest.as_bytes());
}

/// Whether a character that begins with this byte may have to be replaced.
fn may_need_replacement(byte: u8, commas: Commas) -> bool {
    // U+0080 to U+009F begin with 0xC2.
    matches!(byte, 0..0x20 | b'"' | b'%' | 0x7f | 0xc2) || (byte == b',' && commas == Commas::Replaced)
}

fn write_char(out: &mut Vec<u8>, c: char, commas: Commas) {
    let mut bytes = [0; 4];
    let bytes = c.encode_utf8(&mut bytes).as_bytes();
    let replaced = matches!(c, '"' | '%') || c.is_control() || (c == ',' && commas == Commas::Replaced);
    if !replaced {
        return out.extend_from_slice(bytes);
    }
    for byte in bytes {
        out.extend_from_slice(&[b'%', hex_digit(byte >> 4), hex_digit(byte & 15)]);
    }
}

/// The name with this written form; `None` if the form is not valid.
///
/// A quoted string in Pajé ends at the next quote or at the end of the line; there is no escape. So characters that
/// would end it are percent-encoded as in a URL (RFC 3986, 2.1): `%` and two hexadecimal digits for each byte of the
/// UTF-8.
///
/// | in a name | written |
/// |---|---|
/// | `"` and `%` | `%22` and `%25` |
/// | control characters (U+0000 to U+001F, U+007F to U+009F): a newline | `%0A` |
/// | the empty name (pj_dump 1.3.6 misreads `""`) | `%empty` |
/// | `,` in a container's name and in a parameter | `%2C` |
/// | anything else | unchanged |
///
/// Commas are replaced because pj_dump prints its table without quotes, so only the last column may contain a comma.
///
/// ViTE 1.2 stops at a line of more than 4096 bytes. A written form of more than 3000 bytes is divided: the first part
/// ends with `%+` and a number, and the declared value of that number is its continuation:
///
/// ```text
///   0 … "aaaaaaaa%+7"                               the first part of the name
///   5 vr7 R "7 aaaaaaaa%+8" "0.000 0.000 0.000"     its continuation, also divided; declared before its use
///   5 vr8 R "8 aaa" "0.000 0.000 0.000"             the last part
/// ```
///
/// Join the parts of a name before reading it.
pub fn read(written: &str) -> Option<String> {
    if written == EMPTY {
        return Some(String::new());
    }
    let mut bytes = Vec::with_capacity(written.len());
    let mut rest = written.as_bytes();
    while let [first, after @ ..] = rest {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let [high, low, after @ ..] = after else { return None };
        bytes.push(hex_value(*high)? << 4 | hex_value(*low)?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

/// Divides a written form into a part that fits into a line, and the rest. No character and no replacement is divided.
pub(super) fn cut(written: &[u8]) -> (&[u8], &[u8]) {
    if written.len() <= MAX_PART {
        return (written, &[]);
    }
    let mut at = MAX_PART;
    while is_continuation(written[at]) {
        at -= 1;
    }
    if let Some(back) = written[at - 2..at].iter().rev().position(|byte| *byte == b'%') {
        at -= back + 1;
    }
    written.split_at(at)
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

fn hex_digit(value: u8) -> u8 {
    b"0123456789ABCDEF"[usize::from(value)]
}

fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(name: &str, commas: Commas) -> String {
        let mut out = Vec::new();
        write(&mut out, name, commas);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_breaks_a_quoted_string_is_replaced_and_comes_back() {
        let cases = [
            ("work/6", "work/6"),
            ("a \"quoted\" name", "a %22quoted%22 name"),
            ("two\nlines\tand a tab", "two%0Alines%09and a tab"),
            ("100% back\\slash # {brace}", "100%25 back\\slash # {brace}"),
            ("\u{1}\u{7f}\u{85}", "%01%7F%C2%85"),
            ("Ünïcode \u{1F980}", "Ünïcode \u{1F980}"),
            (" ", " "),
            ("", "%empty"),
            ("%empty", "%25empty"),
        ];
        for (name, expected) in cases {
            assert_eq!(written(name, Commas::Kept), expected);
            assert_eq!(read(expected).as_deref(), Some(name));
        }
        assert_eq!(written("f(a, b)", Commas::Kept), "f(a, b)");
        assert_eq!(written("f(a, b)", Commas::Replaced), "f(a%2C b)");
        assert_eq!(read("f(a%2C b)").as_deref(), Some("f(a, b)"));
    }

    #[test]
    fn what_is_no_written_form_is_no_name() {
        for wrong in ["%", "%4", "%zz", "cut%+7", "%ff"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_cut_splits_neither_a_character_nor_a_replacement() {
        for lead in 0..8 {
            for unit in ["\n", "\"", "\u{85}", "ü", "\u{1F980}", "x"] {
                let whole = written(&("x".repeat(lead) + &unit.repeat(5000)), Commas::Kept);
                let mut rest = whole.as_bytes();
                while !rest.is_empty() {
                    let (part, after) = cut(rest);
                    assert!((MAX_PART - 4..=MAX_PART).contains(&part.len()) || after.is_empty());
                    assert!(std::str::from_utf8(part).is_ok());
                    assert!(!part.ends_with(b"%") && !part[..part.len() - 1].ends_with(b"%"));
                    rest = after;
                }
            }
        }
    }
}
