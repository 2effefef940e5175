//! Supports SQLite's `GLOB`: makes it an operator that the parser knows, and translates its patterns.

use datafusion::sql::sqlparser::{
    dialect::GenericDialect,
    tokenizer::{Location, Token, TokenWithSpan, Tokenizer},
};

/// Replaces each `GLOB 'text'` in the query by `SIMILAR TO 'text' ESCAPE 'GLOB'`, which nobody writes otherwise. `None`
/// if there is nothing to replace. Not replaced is a GLOB before anything other than a text, because it may be a name,
/// and before an operand that is more than a text: `GLOB 'a' || b`.
pub(super) fn with_glob(query: &str) -> Option<String> {
    let tokens = Tokenizer::new(&GenericDialect {}, query).tokenize_with_location().ok()?;
    let mut tokens = tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).peekable();
    let (mut text, mut places, mut copied) = (String::new(), Places::new(query), 0);
    while let Some(operator) = tokens.next() {
        let is_glob = matches!(&operator.token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(GLOB));
        let is_text = |token: &TokenWithSpan| matches!(token.token, Token::SingleQuotedString(_));
        if !is_glob || !tokens.peek().is_some_and(|next| is_text(next)) {
            continue;
        }
        let pattern = tokens.next()?;
        if !tokens.peek().is_none_or(|next| ends_operand(&next.token)) {
            continue;
        }
        let [begin, end, after] =
            [operator.span.start, operator.span.end, pattern.span.end].map(|at| places.byte(at));
        // The tokenizer counts places in hint comments (/*!…*/) differently.
        if !query.get(begin..end)?.eq_ignore_ascii_case(GLOB) {
            return None;
        }
        text.push_str(query.get(copied..begin)?);
        text.push_str("SIMILAR TO");
        text.push_str(query.get(end..after)?);
        text.push_str(&format!(" ESCAPE '{GLOB}'"));
        copied = after;
    }
    (copied > 0).then(|| text + &query[copied..])
}

pub(super) const GLOB: &str = "GLOB";

/// Whether a token cannot belong to the operand before it, if that is the operand of an operator like GLOB.
fn ends_operand(token: &Token) -> bool {
    match token {
        Token::Word(word) => !word.value.eq_ignore_ascii_case("collate"),
        Token::EOF | Token::RParen | Token::RBracket | Token::RBrace | Token::Comma | Token::SemiColon => {
            true
        }
        Token::Eq | Token::DoubleEq | Token::Neq => true,
        _ => false,
    }
}

/// Converts places in a text to byte offsets. Places have to be requested in order. Lines and characters of a line are
/// counted from 1.
struct Places<'q> {
    rest: std::str::CharIndices<'q>,
    at: Location,
}

impl Places<'_> {
    fn new(text: &str) -> Places<'_> {
        Places { rest: text.char_indices(), at: Location { line: 1, column: 1 } }
    }

    fn byte(&mut self, place: Location) -> usize {
        while (self.at.line, self.at.column) < (place.line, place.column) {
            match self.rest.next() {
                Some((_, '\n')) => self.at = Location { line: self.at.line + 1, column: 1 },
                Some(_) => self.at.column += 1,
                None => break,
            }
        }
        self.rest.offset()
    }
}

/// Translates a GLOB pattern to a LIKE pattern; `None` if it has classes of characters.
pub(super) fn like_of_glob(glob: &str) -> Option<String> {
    let mut like = String::new();
    for character in glob.chars() {
        match character {
            '[' => return None,
            '*' => like.push('%'),
            '?' => like.push('_'),
            '%' | '_' | '\\' => like.extend(['\\', character]),
            other => like.push(other),
        }
    }
    Some(like)
}

/// Translates a GLOB pattern to a regular expression. As in SQLite, a `]` at the beginning of a class is one of its
/// characters, and a `^` there negates the class.
pub(super) fn regex_of_glob(glob: &str) -> String {
    let mut regex = String::from("(?s)^");
    let mut rest = glob.chars();
    while let Some(character) = rest.next() {
        match character {
            '*' => regex.push_str(".*"),
            '?' => regex.push('.'),
            '[' => match class(rest.as_str()) {
                Some((class, after)) => {
                    regex.push_str(&class);
                    rest = after.chars();
                }
                // As in SQLite, a class without an end matches nothing.
                None => return "[^\\s\\S]".into(),
            },
            other => regex.push_str(&literal(other)),
        }
    }
    regex + "$"
}

/// The class after `[`, as a class of a regular expression, and the rest of the pattern after it. The rules are those
/// of SQLite. The beginning of a range is the character before `-`, and always belongs to the class. If the range ends
/// before it begins, nothing else does.
fn class(glob: &str) -> Option<(String, &str)> {
    let (is_negated, mut rest) = match glob.strip_prefix('^') {
        Some(rest) => (true, rest.chars()),
        None => (false, glob.chars()),
    };
    let mut ranges = Vec::new();
    if let Some(after) = rest.as_str().strip_prefix(']') {
        ranges.push((']', ']'));
        rest = after.chars();
    }
    let mut before = None;
    loop {
        let character = rest.next()?;
        let next = rest.clone().next().filter(|next| *next != ']');
        match (character, before, next) {
            (']', ..) => break,
            ('-', Some(begin), Some(end)) => {
                rest.next();
                before = None;
                ranges.extend((begin <= end).then_some((begin, end)));
            }
            (other, ..) => {
                ranges.push((other, other));
                before = Some(other);
            }
        }
    }
    let shown = |(begin, end): (char, char)| format!("{}-{}", literal(begin), literal(end));
    let ranges: String = ranges.into_iter().map(shown).collect();
    Some((format!("[{}{ranges}]", if is_negated { "^" } else { "" }), rest.as_str()))
}

/// A character as a literal in a regular expression.
fn literal(character: char) -> String {
    if character.is_alphanumeric() || character == ' ' || !character.is_ascii() {
        character.to_string()
    } else {
        format!("\\x{{{:x}}}", u32::from(character))
    }
}
