//! Finds the column that a text is compared with while it is being typed, or the argument that it is for.

/// The purpose of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Compared<'t> {
    /// The column or argument.
    pub(super) name: &'t str,
    /// The part of the text that was typed so far.
    pub(super) begin: &'t str,
    /// Whether it is an argument: `thread => 'cl`.
    pub(super) is_argument: bool,
}

/// Words that may be between a column and the text: `name NOT LIKE 'a`, `state IN ('a', 'b`.
const WORDS: [&str; 5] = ["like", "ilike", "glob", "in", "not"];

/// The purpose of the text at the end: `… state = 'bl`. `None` if there is none.
pub(super) fn compared(typed: &str) -> Option<Compared<'_>> {
    if typed.matches('\'').count().is_multiple_of(2) {
        return None;
    }
    let (before, begin) = typed.rsplit_once('\'')?;
    let before = without_list(before.trim_end());
    let is_argument = before.ends_with("=>");
    let mut before = before.trim_end_matches(['=', '!', '<', '>']).trim_end();
    while let Some(rest) = without_word(before) {
        before = rest;
    }
    // In `"by" => 'na`, the name is quoted because BY is a word of SQL.
    let name = last_word(before.strip_suffix('"').unwrap_or(before));
    (!name.is_empty()).then_some(Compared { name, begin, is_argument })
}

/// Removes the parenthesis of a list, and the texts before the last one: `state IN ('a', ` becomes `state IN`.
fn without_list(before: &str) -> &str {
    let mut rest = before;
    while let Some(list) = rest.strip_suffix(',') {
        let text = list.trim_end().strip_suffix('\'').and_then(|text| text.rsplit_once('\''));
        let Some((first, _)) = text else { return before };
        rest = first.trim_end();
    }
    let list = rest.strip_suffix('(').map(str::trim_end);
    list.filter(|list| last_word(list).eq_ignore_ascii_case("in")).unwrap_or(before)
}

fn without_word(before: &str) -> Option<&str> {
    let word = last_word(before);
    let is_one = WORDS.iter().any(|known| word.eq_ignore_ascii_case(known));
    is_one.then(|| before[..before.len() - word.len()].trim_end())
}

fn last_word(text: &str) -> &str {
    text.rsplit(|c: char| !is_of_name(c)).next().unwrap_or_default()
}

pub(super) fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_is_before_the_comparison() {
        for (typed, name, begin) in [
            ("SELECT * FROM thread_states WHERE state = 'bl", "state", "bl"),
            ("WHERE a = 'x' AND end_reason<>'", "end_reason", ""),
            ("WHERE state IN ('", "state", ""),
            ("WHERE state not in('active', 'st", "state", "st"),
            ("WHERE a = 'b' AND name LIKE 'wo", "name", "wo"),
            ("WHERE name NOT GLOB 'wo", "name", "wo"),
            ("SELECT '", "SELECT", ""),
        ] {
            let expected = Compared { name, begin, is_argument: false };
            assert_eq!(compared(typed), Some(expected), "{typed}");
        }
        for typed in ["WHERE a = 'x' AND st", "SELECT duration('", "SELECT ('a', '"] {
            assert_eq!(compared(typed), None, "{typed}");
        }
        let argument = Compared { name: "thread", begin: "cl", is_argument: true };
        assert_eq!(compared("FROM states(\"by\" => 'name', thread => 'cl"), Some(argument));
        let by = Compared { name: "by", begin: "na", is_argument: true };
        assert_eq!(compared("FROM states(thread => 'cl', \"by\" => 'na"), Some(by));
    }
}
