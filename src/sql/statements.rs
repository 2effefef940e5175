//! Statements of a text, separated by semicolons.

/// The statements of a text, without their semicolons and the space around them; none is empty.
pub(super) fn each(text: &str) -> Vec<&str> {
    let (mut statements, mut begin) = (Vec::new(), 0);
    for end in ends(text) {
        statements.push(&text[begin..end]);
        begin = end + 1;
    }
    statements.push(&text[begin..]);
    statements.into_iter().map(str::trim).filter(|statement| !is_blank(statement)).collect()
}

/// Whether a statement is complete: it ends with a semicolon, outside of quotes and comments.
pub(super) fn is_complete(text: &str) -> bool {
    ends(text).last().is_some_and(|end| is_blank(&text[end + 1..]))
}

/// Whether a text has only white space and comments.
fn is_blank(text: &str) -> bool {
    let mut rest = text.trim_start();
    loop {
        let after = match rest {
            line if line.starts_with("--") => Some(line.split_once('\n').map_or("", |(_, after)| after)),
            block => {
                block.strip_prefix("/*").and_then(|block| block.split_once("*/")).map(|(_, after)| after)
            }
        };
        let Some(after) = after else { return rest.is_empty() };
        rest = after.trim_start();
    }
}

/// The positions of the semicolons that end statements.
fn ends(text: &str) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        match character {
            ';' => ends.push(at),
            '\'' | '"' => while characters.next().is_some_and(|(_, c)| c != character) {},
            '-' if characters.next_if(|(_, c)| *c == '-').is_some() => {
                while characters.next().is_some_and(|(_, c)| c != '\n') {}
            }
            '/' if characters.next_if(|(_, c)| *c == '*').is_some() => {
                let mut last = ' ';
                for (_, c) in characters.by_ref() {
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
            }
            _ => {}
        }
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn semicolons_in_quotes_and_comments_do_not_end_a_statement() {
        let text = "SELECT ';', \"a;b\" -- no; end\n; /* ; */ SELECT 2;\n-- the end\n";
        assert_eq!(each(text), ["SELECT ';', \"a;b\" -- no; end", "/* ; */ SELECT 2"]);
        assert_eq!(each(" ;; /* nothing */ -- at all\n; -- no end"), [""; 0]);
        assert_eq!(each("/* without end"), ["/* without end"]);
        assert_eq!(each("SELECT 'it''s;'"), ["SELECT 'it''s;'"]);
        assert!(
            is_complete("SELECT 1;")
                && is_complete("SELECT 1; -- done\n /* so */")
                && is_complete("SELECT ';' ;\n")
        );
        for open in ["SELECT 1", "SELECT ';", "SELECT 1 -- ;", "SELECT 1; SELECT", "/* ;"] {
            assert!(!is_complete(open), "{open}");
        }
    }
}
