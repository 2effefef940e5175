//! Splits a text into statements, which are separated by semicolons.

use super::compared::is_of_name;

/// The statements of a text, without their semicolons and surrounding white space. Empty ones are left out.
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
            block if block.starts_with("/*") => comment(block).map(|end| &block[end..]),
            _ => None,
        };
        let Some(after) = after else { return rest.is_empty() };
        rest = after.trim_start();
    }
}

/// The positions of the semicolons that end statements.
fn ends(text: &str) -> Vec<usize> {
    let (mut ends, mut at) = (Vec::new(), 0);
    while let Some(found) = text[at..].find([';', '\'', '"', '`', '-', '/', '$']) {
        at += found;
        let rest = &text[at..];
        at += match &rest[..1] {
            ";" => {
                ends.push(at);
                1
            }
            "-" if rest.starts_with("--") => rest.find('\n').map_or(rest.len(), |end| end + 1),
            "-" => 1,
            "/" if rest.starts_with("/*") => comment(rest).unwrap_or(rest.len()),
            "/" => 1,
            // A name may contain a dollar sign: `a$b`.
            "$" if text[..at].ends_with(is_of_name) => 1,
            "$" => dollar_quoted(rest),
            quote => rest[1..].find(quote).map_or(rest.len(), |end| end + 2),
        };
    }
    ends
}

/// The length of the comment at the beginning of a text. Comments may be nested. `None` if it has no end.
fn comment(text: &str) -> Option<usize> {
    let (mut open, mut at) = (1, 2);
    while let Some(found) = text[at..].find(['*', '/']) {
        at += found;
        let rest = &text[at..];
        at += match rest {
            _ if rest.starts_with("/*") => {
                open += 1;
                2
            }
            _ if rest.starts_with("*/") => {
                open -= 1;
                2
            }
            _ => 1,
        };
        if open == 0 {
            return Some(at);
        }
    }
    None
}

/// The length of a text in dollar quotes (`$$it's$$`, `$a$it's$a$`). 1 if there is no such text here, for example for a
/// parameter.
fn dollar_quoted(text: &str) -> usize {
    let Some(name) = text[1..].find(|c: char| !is_of_name(c)) else { return 1 };
    if !text[1 + name..].starts_with('$') || text[1..].starts_with(|c: char| c.is_ascii_digit()) {
        return 1;
    }
    let quote = &text[..name + 2];
    text[quote.len()..].find(quote).map_or(text.len(), |end| end + 2 * quote.len())
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
        assert_eq!(
            each("/* a /* b; */ c; */ SELECT 1; SELECT 2"),
            ["/* a /* b; */ c; */ SELECT 1", "SELECT 2"]
        );
        let dollars = "SELECT $$it's; $$, $a$;$$;$a$, $x, $1; SELECT `a;b`";
        assert_eq!(each(dollars), ["SELECT $$it's; $$, $a$;$$;$a$, $x, $1", "SELECT `a;b`"]);
        assert_eq!(each("SELECT x$a$; SELECT 2"), ["SELECT x$a$", "SELECT 2"]);
        assert_eq!(each("SELECT $é$; SELECT '€;'/2; $"), ["SELECT $é$; SELECT '€;'/2; $"]);
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
