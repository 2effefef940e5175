//! Translates the kernel's `print fmt` to a format for human output: `irq={irq} name={name}`.
//!
//! Only a format that names its fields one by one is translated: `"pid=%d", REC->pid`. One that computes (flags,
//! symbols, addresses) cannot be translated, and is left out.

/// The format for human output; empty if the original computes something.
pub(super) fn readable_format(print_fmt: &str, known: impl Fn(&str) -> bool) -> String {
    translate(print_fmt, known).unwrap_or_default()
}

fn translate(print_fmt: &str, known: impl Fn(&str) -> bool) -> Option<String> {
    let (quoted, arguments) = print_fmt.strip_prefix('"')?.split_once('"')?;
    let mut arguments = arguments.strip_prefix(',').unwrap_or(arguments).split(',').map(str::trim);
    let mut readable_format = String::new();
    let mut rest = quoted;
    while let Some((before, conversion)) = rest.split_once('%') {
        readable_format.push_str(before);
        let end = conversion.find(|c: char| c.is_alphabetic() && !matches!(c, 'l' | 'h' | 'z' | 'L'))?;
        let kind = conversion.get(end..=end)?;
        let plain = conversion.get(..end)?.chars().all(|c| matches!(c, 'l' | 'h' | 'z' | 'L'));
        let argument = arguments.next()?;
        let field = match kind {
            "d" | "u" | "i" if plain => argument.strip_prefix("REC->")?,
            "s" if plain => argument
                .strip_prefix("__get_str(")
                .and_then(|a| a.strip_suffix(')'))
                .or_else(|| argument.strip_prefix("REC->"))?,
            _ => return None,
        };
        if !known(field) {
            return None;
        }
        readable_format.push_str(&format!("{{{field}}}"));
        rest = conversion.get(end + 1..)?;
    }
    readable_format.push_str(rest);
    let nothing_left = arguments.all(str::is_empty);
    (nothing_left && !readable_format.contains('\\')).then_some(readable_format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_that_names_its_fields_is_translated_and_one_that_computes_is_not() {
        let irq = "\"irq=%d name=%s\", REC->irq, __get_str(name)";
        assert_eq!(readable_format(irq, |_| true), "irq={irq} name={name}");
        let softirq = "\"vec=%u [action=%s]\", REC->vec, __print_symbolic(REC->vec, { 0, \"HI\" })";
        assert_eq!(readable_format(softirq, |_| true), "");
        assert_eq!(readable_format("\"%lx\", REC->ip", |_| true), "");
        assert_eq!(readable_format("\"pid=%d\", REC->pid", |_| false), "");
    }
}
