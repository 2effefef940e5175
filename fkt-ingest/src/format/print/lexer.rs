//! The tokens of a `print fmt`: C without statements.

/// One token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    /// Its bits, and whether its type is unsigned (`1U`, `0xffffffffffffffff`).
    Number(i64, bool),
    /// A string literal with its escapes resolved.
    Text(String),
    /// An operator or bracket.
    Mark(&'a str),
}

/// Operators of more than one character, the longest first.
const LONG_MARKS: [&str; 11] = ["->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "++", "--"];

/// Splits a text into tokens; `None` if it has something that is not C.
pub(super) fn tokens(mut text: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    loop {
        text = text.trim_start();
        let Some(first) = text.chars().next() else { return Some(tokens) };
        let (token, rest) = match first {
            '"' => string(text)?,
            '\'' => character(text)?,
            '0'..='9' => number(text)?,
            'a'..='z' | 'A'..='Z' | '_' => word(text),
            _ => mark(text)?,
        };
        tokens.push(token);
        text = rest;
    }
}

fn word(text: &str) -> (Token<'_>, &str) {
    let (word, rest) = split_while(text, |c| c.is_ascii_alphanumeric() || c == '_');
    (Token::Word(word), rest)
}

fn number(text: &str) -> Option<(Token<'_>, &str)> {
    let (word, rest) = split_while(text, |c| c.is_ascii_alphanumeric());
    let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
    let number = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None if digits.len() > 1 && digits.starts_with('0') => u64::from_str_radix(digits, 8).ok()?,
        None => digits.parse().ok()?,
    };
    let unsigned = word[digits.len()..].contains(['u', 'U']) || number > i64::MAX as u64;
    Some((Token::Number(number as i64, unsigned), rest))
}

fn string(text: &str) -> Option<(Token<'_>, &str)> {
    let mut chars = text.char_indices().skip(1);
    let mut string = String::new();
    loop {
        match chars.next()? {
            (at, '"') => return Some((Token::Text(string), &text[at + 1..])),
            (_, '\\') => string.push(escape(chars.next()?.1)),
            (_, c) => string.push(c),
        }
    }
}

fn character(text: &str) -> Option<(Token<'_>, &str)> {
    let mut chars = text.char_indices().skip(1);
    let (_, first) = chars.next()?;
    let character = if first == '\\' { escape(chars.next()?.1) } else { first };
    let (end, quote) = chars.next()?;
    (quote == '\'').then(|| (Token::Number(i64::from(u32::from(character)), false), &text[end + 1..]))
}

fn escape(c: char) -> char {
    match c {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        '0' => '\0',
        other => other,
    }
}

fn mark(text: &str) -> Option<(Token<'_>, &str)> {
    let len = match LONG_MARKS.iter().find(|mark| text.starts_with(**mark)) {
        Some(mark) => mark.len(),
        None if text.starts_with(|c: char| "()[]{},?:;.&|^~!+-*/%<>=".contains(c)) => 1,
        None => return None,
    };
    Some((Token::Mark(&text[..len]), &text[len..]))
}

fn split_while(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_numbers_texts_and_operators_are_distinguished() {
        let found = tokens(r#"REC->x>>0x10, 1ULL"a\"\n" '\n' 010"#).unwrap();
        let expected = [
            Token::Word("REC"),
            Token::Mark("->"),
            Token::Word("x"),
            Token::Mark(">>"),
            Token::Number(16, false),
            Token::Mark(","),
            Token::Number(1, true),
            Token::Text("a\"\n".to_owned()),
            Token::Number(10, false),
            Token::Number(8, false),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_not_c_is_refused() {
        assert_eq!(tokens("a $ b"), None);
        assert_eq!(tokens("\"open"), None);
        assert_eq!(tokens("99999999999999999999"), None);
    }
}
