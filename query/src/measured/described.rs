//! What the catalog shows about the measures: arguments, definitions and columns of their table functions.

use sigmund_measures::{ALL, Answer, Column, Measure, Request, Subject, columns_to_compare};
use sigmund_sql::{Described, DescribedArgument, DescribedFunction, SuperTrace, describe_columns};

use super::{
    MeasureOptions,
    batch::to_batch,
    table_function::{COMPARE, nothing, of_host},
};

/// Descriptions of the table functions that [`register_measures`](super::register_measures) adds to this session.
pub fn measure_functions(trace: &SuperTrace) -> Vec<DescribedFunction> {
    ALL.iter().map(|measure| described(measure, trace)).chain([comparing(trace)]).collect()
}

fn comparing(trace: &SuperTrace) -> DescribedFunction {
    let own = [
        ("measure", "The measure, by the name of its function ('states'); 'summary' if none is given."),
        ("a", "Required: the name of a super-trace of this session, or of a host of its fleet."),
        ("b", "Required: the name of another."),
    ];
    DescribedFunction {
        name: COMPARE.to_string(),
        sentence:
            "What differs between two super-traces in a measure, and by more than the spread inside each?"
                .to_string(),
        definition: "The answers for both super-traces, with rows matched by their texts. Lengths are in \
            nanoseconds, sums are per second. This function also takes the arguments of the measure, except \
            worst. The columns of the measure that name a row come first."
            .to_string(),
        arguments: own.map(|(name, sentence)| DescribedArgument::new(name, sentence)).into(),
        columns: in_sql(columns_to_compare(&Answer::new(Vec::new())), (trace, None)),
        columns_of_cases: Vec::new(),
    }
}

/// The columns of a measure's answer for a trace with or without user threads. They depend on the options `by` and
/// `worst`.
pub fn measure_columns(measure: &Measure, has_threads: bool, options: &MeasureOptions) -> Vec<Column> {
    let is_of_span = matches!(
        measure.subject,
        Subject::Required(_) | Subject::RequiredOrPair(_) | Subject::OptionalOrPair(_)
    );
    let request = Request {
        by: options.by,
        worst: options.worst,
        subject: is_of_span.then(|| "span".to_string()),
        is_of_pairs: measure.subject == Subject::Pair,
        ..Request::default()
    };
    let nothing = nothing(has_threads, &request);
    measure.answer(&nothing, &request).map(|answer| answer.columns).unwrap_or_default()
}

fn described(measure: &Measure, trace: &SuperTrace) -> DescribedFunction {
    let columns = |worst| {
        let options = MeasureOptions { worst, ..MeasureOptions::default() };
        measure_columns(measure, trace.has_threads(), &options)
    };
    let of_host = (trace, trace.hosts().first().map(|(name, _)| *name));
    let (columns, of_cases) = (columns(0), columns(1));
    let of_cases = if of_cases == columns { Vec::new() } else { of_cases };
    DescribedFunction {
        name: measure.name.replace('-', "_"),
        sentence: measure.question.to_string(),
        definition: measure.definition_in_lines(),
        arguments: arguments_in(measure, trace),
        columns: in_sql(columns, of_host),
        columns_of_cases: in_sql(of_cases, of_host),
    }
}

/// Adds the columns that SQL has in addition: nanoseconds beside ticks, and the host of a fleet.
fn in_sql(columns: Vec<Column>, (trace, host): (&SuperTrace, Option<&str>)) -> Vec<Described> {
    if columns.is_empty() {
        return Vec::new();
    }
    let rows = to_batch(&Answer::new(columns), trace.tick_hz(), trace.first_tick());
    let rows = rows.map_err(Into::into).and_then(|rows| of_host(host, rows));
    rows.map(|rows| describe_columns(&rows.schema())).unwrap_or_default()
}

const FILTERS_AND_OPTIONS: [(&str, &str); 9] = [
    ("thread", "User threads by number, name or pattern (client/*), separated by commas."),
    ("lwp", "LWPs by tid, name or pattern (kworker/*), separated by commas."),
    (
        "process",
        "Processes by pid, name or pattern, separated by commas: their user threads; their LWPs if they have none.",
    ),
    ("cpu", "CPUs by number, separated by commas."),
    ("level", "'user': rows are of user threads; 'kern': of LWPs."),
    ("from", "Start of the window: a tick, or a length after the first event ('1.5ms')."),
    ("to", "End of the window, likewise."),
    ("\"by\"", "What each row describes: 'thread', 'lwp', 'process', 'name' or 'pattern'."),
    ("worst", "A number: list that many of the worst cases."),
];

/// The arguments that a measure uses. [`Asked::parse`](super::Asked::parse) refuses others.
pub(super) fn arguments(measure: &Measure) -> Vec<DescribedArgument> {
    let subject = match (measure.subject, measure.name) {
        (Subject::Optional(_), "functions") => Some("Only the span or function of this name."),
        (Subject::Optional(_), "locks") => {
            Some("Only the lock at this address, or those requested at the call site of this name.")
        }
        (Subject::None | Subject::Pair, _) => None,
        (Subject::Optional(_), _) => Some("The span or function that the question is about, by name."),
        (Subject::Required(_), _) => {
            Some("Required: the span or function that the question is about, by name.")
        }
        (Subject::RequiredOrPair(_), _) => Some(
            "The span or function that the question is about, by name. Required, unless from_event and to_event are given.",
        ),
        (Subject::OptionalOrPair(_), _) => Some(
            "The span or function that the question is about, by name. Without it, and without from_event and to_event, \
             one user thread or LWP has to be selected.",
        ),
    };
    let is_of_pairs =
        matches!(measure.subject, Subject::Pair | Subject::RequiredOrPair(_) | Subject::OptionalOrPair(_));
    let pair = [
        (
            "from_event",
            "The FROM event: 'NAME', 'NAME(VALUE)' or 'NAME(field=VALUE)', optionally followed by @THREAD or @LWP.",
        ),
        ("to_event", "The TO event, likewise."),
    ];
    let all = FILTERS_AND_OPTIONS.into_iter().filter(|(name, _)| *name != "worst" || measure.lists_cases);
    let all =
        all.chain(subject.map(|sentence| ("of", sentence))).chain(pair.into_iter().filter(|_| is_of_pairs));
    all.map(|(name, sentence)| DescribedArgument::new(name, sentence)).collect()
}

/// As [`arguments`], with the argument that selects one of several super-traces.
fn arguments_in(measure: &Measure, trace: &SuperTrace) -> Vec<DescribedArgument> {
    let mut arguments = arguments(measure);
    if trace.named().next().is_some() {
        let sentence = "The name of the super-trace to analyse; by default the first one (of a fleet, all).";
        arguments.push(DescribedArgument::new("trace", sentence));
    }
    arguments
}

/// The names of the arguments that a measure uses: `worst` if it lists single cases, `of` if it accepts a name, and so
/// on.
pub fn measure_arguments(measure: &Measure) -> Vec<String> {
    arguments(measure).into_iter().map(|argument| argument.name.trim_matches('"').to_string()).collect()
}

#[cfg(test)]
mod tests {
    use sigmund_measures::By;

    use super::*;

    #[test]
    fn every_measure_has_a_definition_and_columns_with_a_meaning() {
        for measure in ALL {
            assert!(measure.definition.ends_with(".\n"), "{}", measure.name);
            for (by, worst, has_threads) in
                [(None, 0, true), (Some(By::Name), 0, true), (None, 1, true), (None, 0, false)]
            {
                let options = MeasureOptions { by, worst, ..MeasureOptions::default() };
                let columns = measure_columns(measure, has_threads, &options);
                assert!(!columns.is_empty(), "{}: {by:?}, {worst}, {has_threads}", measure.name);
                assert!(columns.iter().all(|column| !column.doc.is_empty()), "{}: {columns:?}", measure.name);
            }
        }
    }

    /// What [`Asked::parse`](super::super::Asked::parse) takes, and only that.
    #[test]
    fn arguments_that_are_described_are_those_that_are_taken() {
        for measure in ALL {
            for argument in arguments(measure) {
                let name = argument.name.trim_matches('"').to_string();
                let value = match name.as_str() {
                    "by" => "name",
                    "level" => "user",
                    "from_event" | "to_event" => continue,
                    _ => "1",
                };
                let asked = super::super::Asked { measure, arguments: vec![(name, value.to_string())] };
                assert!(asked.parse().is_ok(), "{asked:?}");
            }
        }
    }
}
