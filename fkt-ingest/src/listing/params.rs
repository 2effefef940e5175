//! Parameters in a cell: `15`, `24(eth0)`, `received_msg`, `next_pid=6152 prev_comm="my prog"`.

use std::borrow::Cow;

/// One parameter as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ListedParam<'l> {
    /// Name of its field; empty if none was written.
    pub(super) field: &'l str,
    pub(super) number: Option<i64>,
    pub(super) text: Option<Cow<'l, str>>,
}

/// Reads a cell. It cannot fail: what is not a number is a text.
pub(super) fn parse(cell: &str) -> Vec<ListedParam<'_>> {
    tokens(cell).map(param).collect()
}

/// Splits at blanks and commas that are outside of quotes and parentheses.
fn tokens(cell: &str) -> impl Iterator<Item = &str> {
    let mut rest = cell;
    std::iter::from_fn(move || {
        let (token, after) = rest.split_at(end_of_token(rest));
        let mut chars = after.chars();
        // The separator.
        chars.next();
        let is_end = rest.is_empty();
        rest = chars.as_str();
        (!is_end).then_some(token)
    })
    .filter(|token| !token.is_empty())
}

/// The length of the first token, which ends before a separator.
fn end_of_token(text: &str) -> usize {
    let (mut quoted, mut escaped, mut depth) = (false, false, 0_u32);
    for (at, c) in text.char_indices() {
        let separates = (c.is_whitespace() || c == ',') && !quoted && depth == 0;
        if separates {
            return at;
        }
        match c {
            '"' if !escaped => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

fn param(token: &str) -> ListedParam<'_> {
    let (field, value) = match token.split_once('=') {
        Some((field, value)) if is_name(field) => (field, value),
        _ => ("", token),
    };
    let (number, text) = value_of(value);
    ListedParam { field, number, text }
}

fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn value_of(value: &str) -> (Option<i64>, Option<Cow<'_, str>>) {
    if let Some(number) = number(value) {
        return (Some(number), None);
    }
    if let Some((before, name)) = value.split_once('(')
        && let (Some(number), Some(name)) = (number(before), name.strip_suffix(')'))
    {
        return (Some(number), Some(unquoted(name)));
    }
    if value == "?" { (None, None) } else { (None, Some(unquoted(value))) }
}

/// Decimal, or hexadecimal with `0x`; wide unsigned values keep their bits.
fn number(text: &str) -> Option<i64> {
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok().map(|n| n as i64);
    }
    text.parse::<i64>().ok().or_else(|| text.parse::<u64>().ok().map(|n| n as i64))
}

fn unquoted(text: &str) -> Cow<'_, str> {
    if text.len() >= 2 && text.starts_with('"') && text.ends_with('"') {
        let within = &text[1..text.len() - 1];
        return serde_json::from_str(text).map_or(Cow::Borrowed(within), Cow::Owned);
    }
    Cow::Borrowed(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(cell: &str) -> Vec<(String, Option<i64>, Option<String>)> {
        let printed = |p: ListedParam<'_>| (p.field.to_owned(), p.number, p.text.map(Cow::into_owned));
        parse(cell).into_iter().map(printed).collect()
    }

    #[test]
    fn the_papers_parameters() {
        assert_eq!(printed("15"), [("".into(), Some(15), None)]);
        assert_eq!(printed("24(eth0)"), [("".into(), Some(24), Some("eth0".into()))]);
        assert_eq!(printed("8(work/6)"), [("".into(), Some(8), Some("work/6".into()))]);
        assert_eq!(printed("received_msg"), [("".into(), None, Some("received_msg".into()))]);
    }

    #[test]
    fn named_fields_and_quoted_texts() {
        let expected = [
            ("prev_comm".into(), None, Some("my \"prog\"".into())),
            ("next_pid".into(), Some(6152), None),
            ("addr".into(), Some(-1), None),
        ];
        assert_eq!(printed(r#"prev_comm="my \"prog\"" next_pid=6152 addr=0xffffffffffffffff"#), expected);
    }

    #[test]
    fn a_backslash_does_not_change_the_next_parameter() {
        assert_eq!(
            printed(r#"C:\ "a b""#),
            [("".into(), None, Some(r"C:\".into())), ("".into(), None, Some("a b".into())),]
        );
    }

    #[test]
    fn nothing_is_no_parameter() {
        assert_eq!(printed(""), []);
        assert_eq!(printed("  "), []);
    }
}
