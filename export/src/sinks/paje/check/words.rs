//! The words of a line, split as pj_dump does.

use super::{FaultKind, LineFault};

/// The words of a line; a quoted text is one word. A comment begins with `#`.
pub(super) fn split(line: &str) -> Result<Vec<&str>, LineFault> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let (word, after) = match rest.strip_prefix('"') {
            Some(text) => text.split_once('"').ok_or_else(|| {
                let begin: String = text.chars().take(20).collect();
                (FaultKind::Fields, format!("expected a quote after {begin:?}, found the end of the line"))
            })?,
            None => rest.split_at(rest.find([' ', '\t', '\r', '#']).unwrap_or(rest.len())),
        };
        words.push(word);
        rest = after.trim_start();
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_text_may_contain_blanks_and_hashes() {
        let words = split("6\t0.5 t1 \"1 # main\" \"\" a\\b \" \" # comment").unwrap();
        assert_eq!(words, ["6", "0.5", "t1", "1 # main", "", "a\\b", " "]);
        assert_eq!(split("").unwrap(), [""; 0]);
        assert_eq!(split("7 \"open").unwrap_err().0, FaultKind::Fields);
    }
}
