//! Untrusted text, made safe to print for people: characters that a terminal would interpret or hide are shown as
//! escapes. For human output only; CSV, JSON and similar formats keep the text unchanged, under their own rules.

use std::fmt::{self, Display, Write};

/// Displays the inner value, but writes each character that a terminal interprets, or that hides or reorders others, as
/// an escape of a Rust string: `\n`, `\u{1b}`, `\u{202e}`. All other characters are kept, including letters of every
/// script. It does not allocate.
///
/// ```
/// use sigmund_model::Printable;
///
/// assert_eq!(Printable("worker é 中").to_string(), "worker é 中");
/// assert_eq!(Printable("a\x1b]0;mine\x07\n").to_string(), r"a\u{1b}]0;mine\u{7}\n");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Printable<T>(pub T);

impl<T: Display> Display for Printable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl Write for Escaping<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(is_unprintable) {
            let (plain, from) = rest.split_at(at);
            self.0.write_str(plain)?;
            let mut chars = from.chars();
            if let Some(unprintable) = chars.next() {
                write!(self.0, "{}", unprintable.escape_default())?;
            }
            rest = chars.as_str();
        }
        self.0.write_str(rest)
    }
}

/// Whether a character is shown as an escape.
///
/// U+200C and U+200D, the zero-width non-joiner and joiner, stay: Persian, Hindi and emoji are spelt with them.
fn is_unprintable(c: char) -> bool {
    match c {
        ' '..='~' => false,
        // C0, DEL, C1.
        _ if c.is_control() => true,
        // Marks, embeddings, overrides and isolates of the bidirectional algorithm: they reorder the characters around
        // them.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        // Line and paragraph separators.
        '\u{2028}' | '\u{2029}' => true,
        // Invisible characters: two names could look the same.
        '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
        | '\u{200b}' => true,
        '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' => true,
        // Interlinear annotations; tags.
        '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_shown_as_an_escape() {
        let shown = |text: &str| Printable(text).to_string();
        assert_eq!(shown("\x1b[31m\x07\x08\x7f\t\r\n\0"), r"\u{1b}[31m\u{7}\u{8}\u{7f}\t\r\n\u{0}");
        assert_eq!(shown("\u{80}\u{9b}31m\u{9f}"), r"\u{80}\u{9b}31m\u{9f}");
        assert_eq!(shown("\u{202e}exe.txt\u{2069}\u{200f}"), r"\u{202e}exe.txt\u{2069}\u{200f}");
        assert_eq!(shown("a\u{2028}b\u{2029}c\u{feff}"), r"a\u{2028}b\u{2029}c\u{feff}");
        assert_eq!(shown("pay\u{200b}pal\u{e0041}"), r"pay\u{200b}pal\u{e0041}");
    }

    #[test]
    fn letters_signs_and_their_joiners_stay() {
        for text in ["", "work/6", r"C:\x", "é 中文 ελ नमस्ते", "می\u{200c}خواهم", "👩\u{200d}💻", "\u{a0}"]
        {
            assert_eq!(Printable(text).to_string(), text);
        }
    }

    #[test]
    fn no_character_that_is_left_is_a_control() {
        let all: String = (0..=0x10_ffff).filter_map(char::from_u32).collect();
        let shown = Printable(&all).to_string();
        assert!(!shown.contains(|c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c)));
        assert_eq!(Printable(&shown).to_string(), shown, "what is printable stays as it is");
    }

    #[test]
    fn what_is_formatted_from_parts_is_escaped_in_all_of_them() {
        let name = "a\nb";
        assert_eq!(Printable(format_args!("{name:>5}|{}\t", 7)).to_string(), r"  a\nb|7\t");
    }
}
