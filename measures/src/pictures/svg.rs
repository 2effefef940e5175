//! Elements of SVG pictures, which refer to no other file.

/// A text escaped for an element or an attribute of XML 1.0; characters that XML does not allow are replaced.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            character if character.is_control() => escaped.push('\u{fffd}'),
            character => escaped.push(character),
        }
    }
    escaped
}

/// A picture of this size with this content.
pub(super) fn document(width: usize, height: usize, content: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n{content}</svg>\n"
    )
}

/// A text; `anchor` is start, middle or end.
pub(super) fn text(x: f64, y: f64, anchor: &str, text: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>\n", escape(text))
}

/// A thin grey line.
pub(super) fn rule((x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> String {
    format!("<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#bbb\"/>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_end_what_they_are_in() {
        assert_eq!(
            escape("a<b>&\"'\u{1b}\n\u{ffff}é"),
            "a&lt;b&gt;&amp;&quot;&#39;\u{fffd}\u{fffd}\u{fffd}é"
        );
    }
}
