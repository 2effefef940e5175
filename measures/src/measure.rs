//! All measures, by name.

use crate::{
    Answer, History, Needs, Request, active_time, breakdown, critical_path, critical_sections, explain,
    functions, interrupts, latency, locks, noise, quanta, reactivity,
    sliced::{self, Sliced},
    states, summary, switch_cost,
};

/// What a measure is about, apart from threads and time. The text is the placeholder in the command's help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Nothing else.
    None,
    /// A name may be given.
    Optional(&'static str),
    /// A name must be given.
    Required(&'static str),
    /// A name or two events must be given.
    RequiredOrPair(&'static str),
    /// A name or two events may be given. Without these, the question is about one user thread or LWP.
    OptionalOrPair(&'static str),
    /// Two events, which the history has as marks, must be given.
    Pair,
}

/// Headings of measures, in the order of the command's help.
pub(crate) mod headings {
    pub(crate) const TIME: &str = "Where the time went";
    pub(crate) const LATE: &str = "Why it was late";
    pub(crate) const WAY: &str = "What was in the way";
    pub(crate) const SCHEDULING: &str = "How it schedules";
}

/// A question that can be asked of any trace.
#[derive(Clone, Copy)]
pub struct Measure {
    /// Its name: the flag of the command, and the table function of SQL (with `_` for `-`).
    pub name: &'static str,
    /// The question that it answers, in a user's words.
    pub question: &'static str,
    /// The kind of question: a heading in the command's help.
    pub heading: &'static str,
    /// Whether a name may or must be given.
    pub subject: Subject,
    /// Whether it can list single cases or parts, as many as [`Request::worst`].
    pub lists_cases: bool,
    /// Whether each row is of user threads, or each of LWPs. Other measures also count LWPs that carry no user threads.
    pub is_of_one_level: bool,
    /// Its exact definition in Markdown: paragraphs, and lists with items that begin with `- `.
    pub definition: &'static str,
    /// The tables that it needs.
    pub needs: Needs,
    /// Begins to compute it.
    pub(crate) computed: fn(&Request) -> Box<dyn Sliced>,
}

impl Measure {
    /// The definition with each paragraph and each list item in one line, ready to be wrapped to any width.
    pub fn definition_in_lines(&self) -> String {
        let (mut lines, mut was_empty) = (String::new(), false);
        for line in self.definition.lines() {
            let begins = line.is_empty() || was_empty || line.starts_with("- ");
            if !lines.is_empty() {
                lines.push(if begins { '\n' } else { ' ' });
            }
            lines.push_str(line.trim_start());
            was_empty = line.is_empty();
        }
        lines
    }

    /// The answer for a whole history.
    ///
    /// # Errors
    /// When the request is not valid for this measure; the message has the reason.
    pub fn answer(&self, history: &History, request: &Request) -> Result<Answer, String> {
        sliced::whole(self.start(request), history, request)
    }

    /// Begins to compute the answer, slice by slice.
    pub fn start(&self, request: &Request) -> Box<dyn Sliced> {
        (self.computed)(request)
    }

    /// The tables that its first pass needs for this request.
    pub fn first_needs(&self, request: &Request) -> Needs {
        self.start(request).needs().unwrap_or(self.needs)
    }
}

impl std::fmt::Debug for Measure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Measure").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Every measure, in the order of the command's help.
pub const ALL: &[Measure] = &[
    summary::SUMMARY,
    active_time::ACTIVE_TIME,
    states::STATES,
    breakdown::BREAKDOWN,
    functions::FUNCTIONS,
    latency::LATENCY,
    reactivity::REACTIVITY,
    explain::EXPLAIN,
    critical_path::CRITICAL_PATH,
    locks::LOCKS,
    critical_sections::CRITICAL_SECTIONS,
    interrupts::INTERRUPTS,
    noise::NOISE,
    quanta::QUANTA,
    switch_cost::SWITCH_COST,
];

/// The measure of this name.
pub fn named(name: &str) -> Option<&'static Measure> {
    ALL.iter().find(|measure| measure.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_has_a_line_for_each_paragraph_and_point() {
        let definition = "One\nparagraph.\n\n- A\n  point.\n- Another.\n\nThe\nend.\n";
        // None of ours: a test that reaches what computes one takes seconds to compile.
        let measure = Measure {
            name: "none",
            question: "None?",
            heading: headings::TIME,
            subject: Subject::None,
            lists_cases: false,
            is_of_one_level: false,
            definition,
            needs: Needs::default(),
            computed: |_| unreachable!(),
        };
        assert_eq!(measure.definition_in_lines(), "One paragraph.\n\n- A point.\n- Another.\n\nThe end.");
    }
}
