//! Encodes answers of measures as texts. The batches of a plan contain pieces of an answer.

use serde::{Deserialize, Serialize};
use sigmund_measures::{Answer, Column, Kind, Value};
use sigmund_query::{Error, ErrorKind, Measured};

/// The number of rows in a piece.
const ROWS: usize = 1000;

/// A piece of an answer about one super-trace. The first piece is the head, or the reason why there is no answer. The
/// rows follow.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Piece {
    Head { columns: Vec<(String, WireKind, String)>, notes: Vec<String>, gaps: usize, rows: usize },
    Rows(Vec<Vec<Cell>>),
    None { is_argument: bool, message: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum WireKind {
    Count,
    Object,
    Length,
    Instant,
    Percent,
    Fraction,
    Text,
}

/// A value. A fraction is encoded by its bits.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Cell {
    Null,
    Number(i64),
    Bits(u64),
    Text(String),
}

/// The pieces of an answer.
pub(crate) fn pieces(measured: Result<Measured, Error>) -> Vec<Piece> {
    let Measured { answer, gaps } = match measured {
        Ok(measured) => measured,
        Err(error) => {
            let is_argument = error.kind() == ErrorKind::Argument;
            return vec![Piece::None { is_argument, message: error.to_string() }];
        }
    };
    let column = |column: &Column| (column.name.to_string(), kind(column.kind), column.doc.to_string());
    let columns = answer.columns.iter().map(column).collect();
    let cells = |row: Vec<Value<'_>>| row.into_iter().map(cell).collect();
    let rows = (0..answer.rows.len())
        .step_by(ROWS)
        .map(|from| answer.rows.range(from..from + ROWS).map(cells).collect());
    let head = Piece::Head { columns, notes: answer.notes.clone(), gaps, rows: answer.rows.len() };
    let pieces = std::iter::once(head).chain(rows.map(Piece::Rows)).collect();
    match answer.rows.check() {
        Ok(()) => pieces,
        Err(message) => vec![Piece::None { is_argument: false, message }],
    }
}

/// Makes an answer of its pieces, which have to be in order.
///
/// # Errors
/// The error that the pieces contain; or when pieces are missing or do not fit together.
pub(crate) fn measured(pieces: Vec<Piece>) -> Result<Measured, Error> {
    let wrong = || Error::elsewhere("expected the pieces of one answer from the cluster, found others");
    let mut pieces = pieces.into_iter();
    let (columns, notes, gaps, rows) = match pieces.next().ok_or_else(wrong)? {
        Piece::Head { columns, notes, gaps, rows } => (columns, notes, gaps, rows),
        Piece::None { is_argument: true, message } => return Err(Error::argument(message)),
        Piece::None { message, .. } => return Err(Error::elsewhere(message)),
        Piece::Rows(_) => return Err(wrong()),
    };
    let columns = columns.into_iter();
    let columns =
        columns.map(|(name, kind, doc)| Column { name: name.into(), kind: kind.into(), doc: doc.into() });
    let mut answer = Answer { notes, ..Answer::new(columns.collect()) };
    for piece in pieces {
        let Piece::Rows(more) = piece else { return Err(wrong()) };
        if more.iter().any(|row| row.len() != answer.columns.len()) {
            return Err(wrong());
        }
        answer.rows.extend(more.into_iter().map(|row| row.into_iter().map(Value::from).collect()));
    }
    if answer.rows.len() != rows { Err(wrong()) } else { Ok(Measured { answer, gaps }) }
}

fn kind(kind: Kind) -> WireKind {
    match kind {
        Kind::Count => WireKind::Count,
        Kind::Object => WireKind::Object,
        Kind::Length => WireKind::Length,
        Kind::Instant => WireKind::Instant,
        Kind::Percent => WireKind::Percent,
        Kind::Fraction => WireKind::Fraction,
        Kind::Text => WireKind::Text,
    }
}

impl From<WireKind> for Kind {
    fn from(kind: WireKind) -> Kind {
        match kind {
            WireKind::Count => Kind::Count,
            WireKind::Object => Kind::Object,
            WireKind::Length => Kind::Length,
            WireKind::Instant => Kind::Instant,
            WireKind::Percent => Kind::Percent,
            WireKind::Fraction => Kind::Fraction,
            WireKind::Text => Kind::Text,
        }
    }
}

fn cell(value: Value<'_>) -> Cell {
    match value {
        Value::Null => Cell::Null,
        Value::Number(number) => Cell::Number(number),
        Value::Fraction(number) => Cell::Bits(number.to_bits()),
        Value::Text(text) => Cell::Text(text.into_owned()),
    }
}

impl From<Cell> for Value<'_> {
    fn from(cell: Cell) -> Self {
        match cell {
            Cell::Null => Value::Null,
            Cell::Number(number) => Value::Number(number),
            Cell::Bits(bits) => Value::Fraction(f64::from_bits(bits)),
            Cell::Text(text) => Value::Text(text.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(measured: Result<Measured, Error>) -> Vec<Piece> {
        let texts =
            pieces(measured).iter().map(|piece| serde_json::to_string(piece).unwrap()).collect::<Vec<_>>();
        texts.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
    }

    #[test]
    fn an_answer_of_many_rows_comes_back_from_its_pieces() {
        let mut answer = Answer::new(vec![
            Column::count("n", "A number."),
            Column::text("name", "A text."),
            Column::percent("p", "A share."),
        ]);
        for row in 0..2500_i64 {
            answer.push(vec![row.into(), Value::Null, (row as f64 / 3.0).into()]);
        }
        answer.notes.push("a note".to_string());
        let sent = || sent(Ok(Measured { answer: answer.clone(), gaps: 3 }));
        assert_eq!(sent().len(), 4);
        let back = measured(sent()).unwrap();
        assert_eq!((back.answer, back.gaps), (answer.clone(), 3));
        for missing in 0..4 {
            let mut pieces = sent();
            pieces.remove(missing);
            assert!(measured(pieces).is_err(), "{missing}");
        }
    }

    #[test]
    fn an_error_keeps_its_kind_and_pieces_that_do_not_fit_are_one() {
        let error = measured(sent(Err(Error::argument("no such thread")))).unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Argument, "no such thread"));
        assert!(measured(Vec::new()).is_err());
        assert!(measured(vec![Piece::Rows(Vec::new())]).is_err());
    }
}
