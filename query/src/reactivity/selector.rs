//! How a user selects events: `NAME`, `NAME(VALUE)` or `NAME(field=VALUE)`, optionally followed by `@THREAD`, or `@LWP` where no user
//! thread has that number or name.
//!
//! ```text
//! IRQ(24)   irq_handler_entry(irq=24)   USER_EVENT(received_msg)@daemon   received_msg@1
//! ```
//! `plan` translates a selector to a condition on events.

use std::{fmt, str::FromStr};

use crate::{Error, ThreadRef};

/// Selects events by their whole name, a parameter, and the user thread or LWP that was executing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    pub(crate) name: String,
    pub(crate) condition: Option<Condition>,
    pub(crate) thread: Option<ThreadRef>,
}

/// A condition on a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    /// Its name; `None` is the first parameter.
    pub(crate) field: Option<String>,
    /// A number, a text, or the name of a number: as it was written, without quotes.
    pub(crate) value: String,
    /// Whether it was quoted; then it is never a number.
    pub(crate) quoted: bool,
}

impl FromStr for Selector {
    type Err = Error;

    fn from_str(text: &str) -> Result<Selector, Error> {
        let wrong = |found: &str| {
            let expected =
                "expected NAME, NAME(VALUE) or NAME(field=VALUE), optionally followed by @THREAD or @LWP";
            Error::argument(format!("selector `{text}`: {expected}, found {found}"))
        };
        let name_end = text.find(['(', '@']).unwrap_or(text.len());
        let (name, rest) = text.split_at(name_end);
        if name.is_empty() {
            return Err(wrong("no name"));
        }
        let (condition, rest) = match rest.strip_prefix('(') {
            None => (None, rest),
            Some(inner) => {
                let close = inner.find(")@").or_else(|| inner.ends_with(')').then(|| inner.len() - 1));
                let close = close.ok_or_else(|| wrong("no closing parenthesis"))?;
                let condition = parse_condition(&inner[..close]).ok_or_else(|| wrong("no value"))?;
                (Some(condition), &inner[close + 1..])
            }
        };
        let thread = match rest.strip_prefix('@') {
            Some("") => return Err(wrong("nothing after @")),
            Some(thread) => Some(thread.parse()?),
            None => None,
        };
        Ok(Selector { name: name.to_string(), condition, thread })
    }
}

/// `VALUE` or `field=VALUE`, where VALUE may be a JSON string.
fn parse_condition(text: &str) -> Option<Condition> {
    let (field, value) = match text.split_once('=') {
        Some((field, value)) if !text.starts_with('"') && !field.is_empty() => (Some(field.trim()), value),
        _ => (None, text),
    };
    let value = value.trim();
    if value.is_empty() {
        return None;
    }
    let unquoted: Option<String> = value.starts_with('"').then(|| serde_json::from_str(value).ok()).flatten();
    let quoted = unquoted.is_some();
    let value = unquoted.unwrap_or_else(|| as_listed(value).to_string());
    Some(Condition { field: field.map(String::from), value, quoted })
}

/// A value may be copied from a listing: `24(eth0)` is a number with its name. Only the number is kept.
fn as_listed(value: &str) -> &str {
    match value.split_once('(') {
        Some((number, name)) if name.ends_with(')') && number.parse::<i64>().is_ok() => number,
        _ => value,
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(Condition { field, value, quoted }) = &self.condition {
            f.write_str("(")?;
            if let Some(field) = field {
                write!(f, "{field}=")?;
            }
            if *quoted {
                write!(f, "{})", serde_json::Value::from(value.as_str()))?;
            } else {
                write!(f, "{value})")?;
            }
        }
        self.thread.as_ref().map_or(Ok(()), |thread| write!(f, "@{thread}"))
    }
}

#[cfg(test)]
mod tests {
    use sigmund_model::Thread;

    use super::*;

    fn selector(text: &str) -> Selector {
        let selector: Selector = text.parse().unwrap();
        assert_eq!(selector.to_string().parse::<Selector>().unwrap(), selector);
        selector
    }

    #[test]
    fn a_selector_has_a_name_a_value_and_a_thread() {
        assert_eq!(selector("sched_switch").name, "sched_switch");
        let irq = selector("IRQ(24)").condition.unwrap();
        assert_eq!((irq.field, irq.value.as_str()), (None, "24"));
        let irq = selector("irq_handler_entry(irq=24)").condition.unwrap();
        assert_eq!((irq.field.as_deref(), irq.value.as_str()), (Some("irq"), "24"));
        let event = selector("USER_EVENT(received_msg)@daemon");
        assert_eq!(event.thread, Some(ThreadRef::Name("daemon".into())));
        assert_eq!(event.condition.unwrap().value, "received_msg");
        assert_eq!(selector("received_msg@1(daemon)").thread, Some(ThreadRef::Number(Thread(1))));
        let quoted = selector(r#"open(path="a=b c")@2"#);
        assert_eq!(quoted.condition.unwrap().value, "a=b c");
    }

    #[test]
    fn an_invalid_selector_is_rejected_with_the_reason() {
        for (text, found) in [
            ("", "no name"),
            ("(24)", "no name"),
            ("IRQ(24", "no closing parenthesis"),
            ("IRQ()", "no value"),
            ("IRQ(irq=)", "no value"),
            ("IRQ(24)@", "nothing after @"),
            ("IRQ(24)x", "no closing parenthesis"),
        ] {
            let error = text.parse::<Selector>().unwrap_err().to_string();
            assert!(error.ends_with(&format!("found {found}")), "{text}: {error}");
        }
    }
}
