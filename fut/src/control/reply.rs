//! An answer: single facts and one table. Also their encoding as lines.

use std::fmt::Write;

use super::{GREETING, request::shown};

/// Limits for reading an answer. Answers of this version have at most 10 columns and some 100 000 rows. Without limits,
/// each byte of an answer could become a cell, which takes 32 times as much memory.
const MOST_COLUMNS: usize = 16;
const MOST_ROWS: usize = 200_000;

/// An answer of a traced process. It is self-describing: it can be displayed without knowing the request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// Single facts, by name.
    pub facts: Vec<(String, Cell)>,
    /// Names of the columns of the table; empty if there is none.
    pub columns: Vec<String>,
    /// Its rows; each has as many cells as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// A value in an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value.
    Nothing,
    /// A count, an id or a mask.
    Number(u64),
    /// Seconds or per cent.
    Fraction(f64),
    /// A name or other text.
    Text(String),
}

impl From<u64> for Cell {
    fn from(number: u64) -> Cell {
        Cell::Number(number)
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Cell {
        Cell::Number(number.into())
    }
}

impl From<usize> for Cell {
    fn from(number: usize) -> Cell {
        Cell::Number(number as u64)
    }
}

impl From<f64> for Cell {
    fn from(fraction: f64) -> Cell {
        Cell::Fraction(fraction)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.into())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Nothing, Into::into)
    }
}

impl Reply {
    /// A fact, by its name.
    pub fn fact(&self, name: &str) -> Option<&Cell> {
        self.facts.iter().find(|(key, _)| key == name).map(|(_, cell)| cell)
    }

    /// A fact that is a number.
    pub fn number(&self, name: &str) -> Option<u64> {
        if let Some(Cell::Number(number)) = self.fact(name) { Some(*number) } else { None }
    }

    pub(super) fn add_fact(&mut self, name: &str, value: impl Into<Cell>) {
        self.facts.push((name.into(), value.into()));
    }

    /// The answer as lines of text.
    pub(super) fn encode(answer: &Result<Reply, String>) -> String {
        let mut text = String::new();
        match answer {
            Ok(reply) => reply.encode_to(&mut text),
            Err(message) => text += &format!("{GREETING} error\t{}\n", escaped(message)),
        }
        text += "end\n";
        text
    }

    fn encode_to(&self, text: &mut String) {
        *text += &format!("{GREETING} ok\n");
        for (name, value) in &self.facts {
            *text += &format!("fact\t{}\t", escaped(name));
            value.encode_to(text);
            text.push('\n');
        }
        if self.columns.is_empty() {
            return;
        }
        let columns: Vec<String> = self.columns.iter().map(|name| escaped(name)).collect();
        *text += &format!("columns\t{}\n", columns.join("\t"));
        for row in &self.rows {
            text.push_str("row");
            for cell in row {
                text.push('\t');
                cell.encode_to(text);
            }
            text.push('\n');
        }
    }

    /// Parses the lines of an answer. The outer error means that they are not an answer, the inner error that the
    /// process refused the request.
    pub(super) fn decode(text: &str) -> Result<Result<Reply, String>, String> {
        let Some(body) = text.strip_suffix("end\n") else {
            return Err(format!("the answer was cut off after {} bytes", text.len()));
        };
        let mut lines = body.lines();
        let first = lines.next().unwrap_or_default();
        let status = first.strip_prefix(GREETING).and_then(|rest| rest.strip_prefix(' '));
        match status.map(|status| status.split_once('\t').unwrap_or((status, ""))) {
            Some(("ok", "")) => {}
            Some(("error", message)) => return Ok(Err(unescaped(message))),
            _ => return Err(format!("expected `{GREETING} ok` or an error, found {}", shown(first))),
        }
        let mut reply = Reply::default();
        for line in lines {
            reply
                .decode_line(line)
                .ok_or_else(|| format!("expected a fact, columns or a row, found {}", shown(line)))?;
        }
        Ok(Ok(reply))
    }

    fn decode_line(&mut self, line: &str) -> Option<()> {
        let (kind, rest) = line.split_once('\t')?;
        match kind {
            "fact" => {
                let (name, value) = rest.split_once('\t')?;
                self.facts.push((unescaped(name), Cell::decode(value)?));
            }
            "columns" if self.columns.is_empty() && rest.split('\t').nth(MOST_COLUMNS).is_none() => {
                self.columns = rest.split('\t').map(unescaped).collect();
            }
            "row" if self.rows.len() < MOST_ROWS => {
                // One more than expected, so that a row with too many cells is detected.
                let cells = rest.split('\t').take(self.columns.len() + 1);
                let row: Vec<Cell> = cells.map(Cell::decode).collect::<Option<_>>()?;
                (row.len() == self.columns.len()).then(|| self.rows.push(row))?;
            }
            _ => return None,
        }
        Some(())
    }
}

impl Cell {
    fn encode_to(&self, text: &mut String) {
        // Writing to a `String` does not fail.
        let _ = match self {
            Cell::Nothing => write!(text, "-"),
            Cell::Number(number) => write!(text, "n{number}"),
            Cell::Fraction(fraction) => write!(text, "f{fraction}"),
            Cell::Text(value) => write!(text, "t{}", escaped(value)),
        };
    }

    fn decode(text: &str) -> Option<Cell> {
        let mut rest = text.chars();
        let kind = rest.next()?;
        let rest = rest.as_str();
        match kind {
            '-' if rest.is_empty() => Some(Cell::Nothing),
            'n' => rest.parse().ok().map(Cell::Number),
            'f' => rest.parse().ok().map(Cell::Fraction),
            't' => Some(Cell::Text(unescaped(rest))),
            _ => None,
        }
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\\' => escaped += "\\\\",
            '\t' => escaped += "\\t",
            '\n' => escaped += "\\n",
            '\r' => escaped += "\\r",
            other => escaped.push(other),
        }
    }
    escaped
}

fn unescaped(text: &str) -> String {
    let mut unescaped = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let plain = if character == '\\' { characters.next() } else { Some(character) };
        unescaped.extend(match (character, plain) {
            ('\\', Some('t')) => Some('\t'),
            ('\\', Some('n')) => Some('\n'),
            ('\\', Some('r')) => Some('\r'),
            (_, plain) => plain,
        });
    }
    unescaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everything() -> Reply {
        let mut reply = Reply::default();
        reply.add_fact("mode", "dis\tcard\\n\r\n");
        reply.add_fact("none", Cell::Nothing);
        reply.columns = vec!["a".into(), "b".into()];
        reply.rows.push(vec![Cell::Number(u64::MAX), Cell::Fraction(-0.5)]);
        reply.rows.push(vec![Cell::Text(String::new()), Cell::Text("héé".into())]);
        reply
    }

    #[test]
    fn an_answer_is_read_as_it_was_written() {
        for answer in [Ok(everything()), Ok(Reply::default()), Err("no\nway\t\\".to_string())] {
            let text = Reply::encode(&answer);
            assert_eq!(Reply::decode(&text), Ok(answer), "{text}");
        }
    }

    #[test]
    fn an_answer_that_is_cut_or_changed_anywhere_is_an_error_or_another_answer_but_no_panic() {
        let text = Reply::encode(&Ok(everything()));
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            assert!(Reply::decode(&text[..end]).is_err(), "{:?}", &text[..end]);
        }
        for at in 0..text.len() {
            for byte in [0, b'\t', b'\n', b'\\', b'x', 0xff] {
                let mut bytes = text.clone().into_bytes();
                bytes[at] = byte;
                let _ = std::str::from_utf8(&bytes).map(Reply::decode);
            }
        }
        assert!(Reply::decode("fut-control 1 ok\nrow\tn1\nend\n").is_err(), "a row without columns");
    }
}
