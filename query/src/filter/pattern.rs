//! How a user names events: part of a name, or a regular expression.

use std::{fmt, str::FromStr};

use regex::Regex;
use sigmund_model::names;

use crate::Error;

/// Part of an event's name, with its case; or a regular expression, if it holds one of `\.+*?()|[]{}^$`.
///
/// It matches an event by any of the names of the event: `CONTEXT_SWITCH` fits `sched_switch`, which the paper calls
/// `KERN_CONTEXT_SWITCH`.
#[derive(Clone, Debug)]
pub struct EventPattern(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Part(String),
    Regex(Regex),
}

impl EventPattern {
    /// Whether the pattern matches an event of this name.
    pub fn fits(&self, event: &str) -> bool {
        names::synonyms(event).into_iter().any(|name| match &self.0 {
            Kind::Part(part) => name.contains(part.as_str()),
            Kind::Regex(regex) => regex.is_match(name),
        })
    }
}

impl fmt::Display for EventPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Kind::Part(part) => part,
            Kind::Regex(regex) => regex.as_str(),
        })
    }
}

impl FromStr for EventPattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<EventPattern, Error> {
        if !text.contains(['\\', '.', '+', '*', '?', '(', ')', '|', '[', ']', '{', '}', '^', '$']) {
            return Ok(EventPattern(Kind::Part(text.to_string())));
        }
        let regex = Regex::new(text).map_err(|e| {
            Error::argument(format!("event `{text}`: expected part of a name or a regular expression: {e}"))
        })?;
        Ok(EventPattern(Kind::Regex(regex)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_part_of_either_name_or_a_regular_expression() {
        let fits = |pattern: &str, event| pattern.parse::<EventPattern>().unwrap().fits(event);
        assert!(fits("CONTEXT_SWITCH", "sched_switch"));
        assert!(fits("CONTEXT_SWITCH", "USER_CONTEXT_SWITCH"));
        assert!(fits("sched_", "KERN_CONTEXT_SWITCH"));
        assert!(!fits("context_switch", "USER_CONTEXT_SWITCH"));
        assert!(fits("^IRQ$", "irq_handler_entry"));
        assert!(!fits("^IRQ$", "irq_handler_exit"));
        assert!(fits("^sched_(switch|waking)$", "sched_waking"));
        assert!("sched_(".parse::<EventPattern>().is_err());
    }
}
