//! The words and signs of a metadata text.

use nom::branch::alt;
use nom::bytes::complete::{is_not, tag, take_till, take_until, take_while, take_while1};
use nom::character::complete::{char, multispace1, one_of, satisfy};
use nom::combinator::{map_opt, opt, recognize, value};
use nom::multi::{many0, many0_count};
use nom::sequence::{delimited, pair, preceded, terminated};
use nom::{IResult, Parser};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Word(&'a str),
    Number(u64),
    /// The text between quotes, with its escapes.
    Text(&'a str),
    /// `:=`, `...`, or a single character.
    Sign(&'a str),
    End,
}

/// Blanks and comments between tokens. An unterminated comment is an error of the next token.
pub(super) fn blanks(text: &str) -> IResult<&str, ()> {
    let block = delimited(tag("/*"), take_until("*/"), tag("*/"));
    let line = preceded(tag("//"), take_till(|c| c == '\n'));
    value((), many0_count(alt((multispace1, block, line)))).parse(text)
}

/// The token at the start of the text.
pub(super) fn token(text: &str) -> IResult<&str, Token<'_>> {
    if text.is_empty() {
        return Ok((text, Token::End));
    }
    alt((word, number, quoted, sign)).parse(text)
}

fn word(text: &str) -> IResult<&str, Token<'_>> {
    let first = satisfy(|c| c.is_ascii_alphabetic() || c == '_');
    let rest = take_while(|c: char| c.is_ascii_alphanumeric() || c == '_');
    recognize(pair(first, rest)).map(Token::Word).parse(text)
}

/// Decimal, `0x`, `0b`, or octal with a leading 0; C's suffixes are ignored.
fn number(text: &str) -> IResult<&str, Token<'_>> {
    let digits = |text| take_while1(|c: char| c.is_ascii_hexdigit()).parse(text);
    let hex = map_opt(preceded(alt((tag("0x"), tag("0X"))), digits), |d| u64::from_str_radix(d, 16).ok());
    let binary = map_opt(preceded(alt((tag("0b"), tag("0B"))), digits), |d| u64::from_str_radix(d, 2).ok());
    let plain = map_opt(take_while1(|c: char| c.is_ascii_digit()), |digits: &str| {
        let octal = digits.len() > 1 && digits.starts_with('0');
        u64::from_str_radix(digits, if octal { 8 } else { 10 }).ok()
    });
    let suffix = take_while(|c| matches!(c, 'u' | 'U' | 'l' | 'L'));
    terminated(alt((hex, binary, plain)), suffix).map(Token::Number).parse(text)
}

fn quoted(text: &str) -> IResult<&str, Token<'_>> {
    let escaped = recognize(pair(char('\\'), satisfy(|_| true)));
    let inside = recognize(many0(alt((is_not("\\\""), escaped))));
    preceded(opt(char('L')), delimited(char('"'), inside, char('"'))).map(Token::Text).parse(text)
}

fn sign(text: &str) -> IResult<&str, Token<'_>> {
    let single = recognize(one_of("{}[]<>();:,=*.-+"));
    alt((tag(":="), tag("..."), single)).map(Token::Sign).parse(text)
}

/// A text with its escapes replaced: `\"`, `\\`, `\n`, `\t`; for others, the character itself.
pub(super) fn unescaped(quoted: &str) -> String {
    let mut text = String::with_capacity(quoted.len());
    let mut chars = quoted.chars();
    while let Some(c) = chars.next() {
        text.push(match (c, if c == '\\' { chars.next() } else { None }) {
            (_, Some('n')) => '\n',
            (_, Some('t')) => '\t',
            (_, Some(other)) => other,
            (c, None) => c,
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_words_numbers_quotes_and_signs() {
        let mut text = "/* CTF 1.8 */ a_1 := 0x1F 017u 0b101 // end\n \"x \\\" y\" 0 ... 30;";
        let mut found = Vec::new();
        loop {
            text = blanks(text).unwrap().0;
            let (rest, next) = token(text).unwrap();
            text = rest;
            if next == Token::End {
                break;
            }
            found.push(next);
        }
        use Token::{Number, Sign, Text, Word};
        let expected = [
            Word("a_1"),
            Sign(":="),
            Number(31),
            Number(15),
            Number(5),
            Text("x \\\" y"),
            Number(0),
            Sign("..."),
            Number(30),
            Sign(";"),
        ];
        assert_eq!(found, expected);
        assert_eq!(unescaped("x \\\" y\\n"), "x \" y\n");
        assert!(token("\"no end").is_err());
    }
}
