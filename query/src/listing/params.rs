//! Parameters as text that can be read back.
//!
//! ```text
//! params := param (" " param)*
//! param  := value                     the field has no name
//!         | name "=" value            it has one
//! value  := number | number "(" text ")" | text | "?"      "?" could not be read
//! number := 24 | -1 | 0xffff | 1.5 | true | false
//! text   := a word, or a JSON string in double quotes
//! ```
//! A text is quoted when it is empty, would read as a number or as `?`, or holds a blank, a control character or
//! one of `"=,()`. `fkt_ingest::Listing` reads this back; it takes `1.5`, `true` and `false` as texts.

use std::fmt::Write;

use sigmund_model::{FieldType, Param, Thread, names};
use sigmund_sql::ThreadNames;

use super::{EventRow, declarations::Declared};

/// Appends all parameters of an event.
pub(crate) fn push(out: &mut String, row: &EventRow<'_>, ty: Option<&Declared<'_>>, threads: &ThreadNames) {
    for (index, param) in row.params().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        out.push_str(ty.map_or("", |ty| ty.label(index)));
        let ty = field_type(row, ty, index);
        push_value(out, param, ty, threads);
    }
}

/// What is printed before the value of a field with this name: `NAME=`; nothing if it has none.
pub(super) fn label(name: &str) -> String {
    let mut label = String::new();
    if !name.is_empty() {
        push_text(&mut label, name);
        label.push('=');
    }
    label
}

/// The type of a parameter. The parameter of a user switch in a listing is a thread, although it is not declared.
pub(crate) fn field_type(row: &EventRow<'_>, ty: Option<&Declared<'_>>, index: usize) -> FieldType {
    let field = ty.and_then(|ty| ty.fields.get(index));
    let unnamed = field.is_none_or(|f| f.name.is_empty());
    if unnamed && index == 0 && row.name == names::USER_CONTEXT_SWITCH {
        return FieldType::Thread;
    }
    field.map_or(FieldType::I64, |f| f.ty)
}

/// The name of a number: the recorded one, or the name of the thread with this number.
pub(crate) fn number_name<'a>(param: Param<'a>, ty: FieldType, threads: &'a ThreadNames) -> Option<&'a str> {
    let thread =
        || param.number.filter(|_| ty == FieldType::Thread).and_then(|n| threads.name(Thread(n as u64)));
    param.text.or_else(thread)
}

fn push_value(out: &mut String, param: Param<'_>, ty: FieldType, threads: &ThreadNames) {
    match (param.number, param.text) {
        (None, None) => out.push('?'),
        (None, Some(text)) => push_text(out, text),
        (Some(number), _) => {
            push_number(out, number, ty);
            if let Some(name) = number_name(param, ty, threads) {
                push_name(out, name);
            }
        }
    }
}

fn push_number(out: &mut String, number: i64, ty: FieldType) {
    let written = match ty {
        FieldType::U64 => return push_integer(out, number as u64),
        FieldType::Pointer => return push_address(out, number as u64),
        FieldType::F64 => write!(out, "{:?}", f64::from_bits(number as u64)),
        FieldType::Bool => write!(out, "{}", number != 0),
        _ => return push_integer(out, number),
    };
    written.expect("a String takes everything");
}

/// Appends `0x7f3c`.
fn push_address(out: &mut String, address: u64) {
    out.push_str("0x");
    let digits = (64 - address.leading_zeros()).div_ceil(4).max(1);
    for digit in (0..digits).rev() {
        out.push(char::from(b"0123456789abcdef"[(address >> (4 * digit) & 15) as usize]));
    }
}

/// Appends a whole number.
pub(crate) fn push_integer(out: &mut String, number: impl itoa::Integer) {
    out.push_str(itoa::Buffer::new().format(number));
}

/// Appends a thread as a cell: `15`, `8(work/6)`, or `?`. The name may contain anything except a tab or the end of a
/// line.
pub(crate) fn push_thread(out: &mut String, thread: Option<Thread>, threads: &ThreadNames) {
    let Some(thread) = thread else { return out.push('?') };
    push_integer(out, thread.0);
    if let Some(name) = threads.name(thread) {
        out.push('(');
        push_cell(out, name);
        out.push(')');
    }
}

/// Appends a text that fills a cell. It is quoted only if it would break the line.
pub(crate) fn push_cell(out: &mut String, text: &str) {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    if !is_plain && text.contains(char::is_control) { push_quoted(out, text) } else { out.push_str(text) }
}

fn push_name(out: &mut String, name: &str) {
    out.push('(');
    push_text(out, name);
    out.push(')');
}

/// Appends a text, quoted if it could be parsed as something else.
fn push_text(out: &mut String, text: &str) {
    let special = |c: char| c.is_whitespace() || c.is_control() || "\"=,()".contains(c);
    let is_plain = text.bytes().all(|byte| PLAIN[usize::from(byte)]);
    if text.is_empty() || (!is_plain && text.contains(special)) || reads_as_value(text) {
        push_quoted(out, text);
    } else {
        out.push_str(text);
    }
}

/// A text of only these bytes is plain and needs no check of each character.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = b'!';
    while byte <= b'~' {
        plain[byte as usize] = !matches!(byte, b'"' | b'=' | b',' | b'(' | b')');
        byte += 1;
    }
    plain
};

fn push_quoted(out: &mut String, text: &str) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

/// Whether an unquoted text would be parsed as a number or as `?`.
fn reads_as_value(text: &str) -> bool {
    // A number begins with one of these; `inf` and `nan` count as numbers.
    let begins = text.as_bytes().first();
    let may_be_number = begins.is_some_and(|byte| {
        byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'i' | b'I' | b'n' | b'N')
    });
    matches!(text, "?" | "true" | "false")
        || text.starts_with("0x")
        || (may_be_number && text.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_could_be_parsed_as_something_else_is_quoted() {
        let text = |text: &str| {
            let mut out = String::new();
            push_text(&mut out, text);
            out
        };
        for plain in ["received_msg", "work/6", "a\\b", "é"] {
            assert_eq!(text(plain), plain);
        }
        assert_eq!(text("my prog"), r#""my prog""#);
        assert_eq!(text("a\tb\n\"c\""), r#""a\tb\n\"c\"""#);
        for taken in ["", "15", "24(eth0)", "f(x)", "a,b", "?", "a=b", "0x1", "true", "1e3"] {
            assert_eq!(text(taken), format!("\"{taken}\""));
        }
    }

    #[test]
    fn values_print_in_their_type() {
        let threads = ThreadNames::default();
        let value = |number, text, ty| {
            let mut out = String::new();
            push_value(&mut out, Param { number, text }, ty, &threads);
            out
        };
        assert_eq!(value(Some(24), Some("eth0"), FieldType::I64), "24(eth0)");
        assert_eq!(value(Some(24), Some("my (card)"), FieldType::I64), "24(\"my (card)\")");
        assert_eq!(value(Some(-1), None, FieldType::U64), "18446744073709551615");
        for address in [0, 1, 15, 16, 0x7fff_0120, i64::MAX, i64::MIN, -1] {
            assert_eq!(value(Some(address), None, FieldType::Pointer), format!("{:#x}", address as u64));
        }
        assert_eq!(value(Some(1.5f64.to_bits() as i64), None, FieldType::F64), "1.5");
        assert_eq!(value(Some(1), None, FieldType::Bool), "true");
        assert_eq!(value(None, None, FieldType::Text), "?");
    }
}
