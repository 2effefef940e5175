//! The command that prints the whole answer to a question. Its arguments are quoted for a shell.

use std::path::Path;

use sigmund_query::{ProcessRef, ReferenceList};
use sigmund_schemata::{Asked, Question};

use crate::output::{quoted, quoted_path};

/// The command whose output is the whole answer.
pub(super) fn command(trace: &Path, question: &Question, processes: &[ProcessRef]) -> String {
    let trace = quoted_path(trace);
    let (measure, by, worst, subject, pair) = match &question.asked {
        Asked::Sql(query) => return format!("sigmund sql {trace} {}", quoted(&query.text)),
        Asked::Measure { measure, by, worst, subject, pair } => (measure, by, worst, subject, pair),
    };
    let mut command = format!("sigmund -f {trace}");
    command += &format!(" --{}", measure.name);
    pair.iter().for_each(|(from, to)| command += &format!(" {} {}", quoted(&from.text), quoted(&to.text)));
    subject.iter().for_each(|subject| command += &of_flag(subject));
    by.iter().for_each(|by| command += &format!(" --by {}", by.name()));
    if *worst > 0 {
        command += &format!(" --worst {worst}");
    }
    if !processes.is_empty() {
        let processes = ReferenceList(processes.to_vec()).to_string();
        command += " --process";
        command += &of_flag(&processes);
    }
    command
}

/// The value of a flag. If it begins with -, it is attached with `=`; otherwise it would be taken for another flag.
fn of_flag(value: &str) -> String {
    let before = if value.starts_with('-') { "=" } else { " " };
    format!("{before}{}", quoted(value))
}

#[cfg(test)]
mod tests {
    use sigmund_schemata::Schema;

    use super::*;

    fn of(trace: &str, question: &str) -> String {
        let text = format!("name = \"a\"\nabout = \"A.\"\n[[question]]\ntext = \"What?\"\n{question}");
        command(Path::new(trace), &Schema::parse("my.toml", &text).unwrap().questions[0], &[])
    }

    #[test]
    fn the_command_asks_what_the_question_asks() {
        let pair = "from = \"sched_waking\"\nto = \"received(\\\"x\\\")\"";
        let by = |measure: &str| of("t.supertrace", &format!("measure = \"{measure}\"\n{pair}"));
        let words = "sched_waking 'received(\"x\")'";
        assert_eq!(by("reactivity"), format!("sigmund -f t.supertrace --reactivity {words}"));
        assert_eq!(by("explain"), format!("sigmund -f t.supertrace --explain {words}"));
        assert_eq!(by("critical-path"), format!("sigmund -f t.supertrace --critical-path {words}"));
        assert_eq!(
            of("t.supertrace", "measure = \"latency\"\nby = \"lwp\"\nworst = 3"),
            "sigmund -f t.supertrace --latency --by lwp --worst 3"
        );
    }

    #[test]
    fn its_arguments_are_words_of_a_shell() {
        let subject = |subject: &str| of("t", &format!("measure = \"explain\"\nsubject = \"{subject}\""));
        assert_eq!(subject("it's"), r"sigmund -f t --explain 'it'\''s'");
        assert_eq!(subject("-x"), "sigmund -f t --explain=-x");
        assert_eq!(of("a b.supertrace", "measure = \"states\""), "sigmund -f 'a b.supertrace' --states");
        assert_eq!(of("-t", "sql = \"SELECT 'a'\""), r"sigmund sql ./-t 'SELECT '\''a'\'''");
    }
}
