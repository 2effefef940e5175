//! The flags of the measures: one flag for each of `sigmund_measures::ALL`, grouped by the kind of question.

use std::path::PathBuf;

use clap::{
    Arg, ArgAction, ArgGroup, ArgMatches, Args, Command, FromArgMatches, ValueHint,
    builder::{PossibleValuesParser, TypedValueParser},
    error::ErrorKind,
    value_parser,
};
use sigmund_measures::{ALL, By, Measure, Subject, named};
use sigmund_query::Selector;

/// The requested measure and its options.
#[derive(Clone, Debug, Default)]
pub(crate) struct MeasureArgs {
    pub(crate) measure: Option<&'static Measure>,
    /// The span, function or lock that it is about.
    pub(crate) subject: Option<String>,
    /// FROM and TO, if it is about pairs of events.
    pub(crate) pair: Option<(Selector, Selector)>,
    pub(crate) by: Option<By>,
    pub(crate) worst: usize,
    pub(crate) strict: bool,
    /// Whether each FROM is paired with the next TO, and nothing is asked about causes.
    pub(crate) next: bool,
    /// Two super-traces to compare.
    pub(crate) compare: Option<(PathBuf, PathBuf)>,
}

impl MeasureArgs {
    /// Whether only the active time of each user thread is requested. There is a separate table for that.
    pub(crate) fn is_plain_active_time(&self) -> bool {
        let is_plain = self.by.is_none() && self.worst == 0 && !self.strict && self.compare.is_none();
        is_plain && self.measure.is_some_and(|measure| measure.name == "active-time")
    }
}

const LATE: &str = "Why it was late";
const OPTIONS: &str = "How to answer";
const NEXT: &str = "With --reactivity: pair each FROM with the next TO event, whatever caused it, and show only their latency";

impl Args for MeasureArgs {
    fn augment_args(command: Command) -> Command {
        let flags = || ALL.iter().filter(|measure| measure.subject != Subject::Pair);
        let command = flags().fold(command, |command, measure| {
            let flag = Arg::new(measure.name)
                .long(measure.name)
                .help(measure.question)
                .long_help(format!("{}\n\n{}", measure.question, measure.definition_in_lines()))
                .help_heading(measure.heading);
            let flag = flag.conflicts_with_all(["list_events", "reactivity"]);
            let (least, most, name) = match measure.subject {
                Subject::None | Subject::Pair => return command.arg(flag.action(ArgAction::SetTrue)),
                Subject::Optional(name) => (0, 1, name),
                Subject::Required(name) => (1, 1, name),
                Subject::OptionalOrPair(name) => (0, 2, name),
                Subject::RequiredOrPair(name) => (1, 2, name),
            };
            let flag = match most {
                2 => flag.value_names([name, "TO"]),
                _ => flag.value_name(name),
            };
            command.arg(flag.num_args(least..=most).action(ArgAction::Set))
        });
        let by = PossibleValuesParser::new(By::ALL.map(By::name)).map(|word| By::from_name(&word));
        command
            .arg(
                Arg::new("next")
                    .long("next")
                    .action(ArgAction::SetTrue)
                    .help_heading(LATE)
                    .requires("reactivity")
                    .conflicts_with_all(["compare", "fleet"])
                    .help(NEXT),
            )
            .group(ArgGroup::new("how").args(flags().map(|measure| measure.name).chain(["compare", "gantt", "reactivity"])).multiple(true))
            .group(ArgGroup::new("measure").args(flags().map(|measure| measure.name)).multiple(false))
            .arg(
                Arg::new("by")
                    .long("by")
                    .value_name("WHAT")
                    .value_parser(by)
                    .help_heading(OPTIONS)
                    .requires("how")
                    .help("A row for each of these; by pattern, worker/1 and worker/2 are both worker/*"),
            )
            .arg(
                Arg::new("worst")
                    .long("worst")
                    .value_name("N")
                    .value_parser(value_parser!(u32))
                    .help_heading(OPTIONS)
                    .requires("how")
                    .help("List the N worst cases one by one, where the measure knows them"),
            )
            .arg(
                Arg::new("compare")
                    .long("compare")
                    .num_args(2)
                    .value_names(["A", "B"])
                    .value_hint(ValueHint::DirPath)
                    .value_parser(value_parser!(PathBuf))
                    .help_heading(OPTIONS)
                    .conflicts_with_all([
                        "trace_file",
                        "list_events",
                        "gantt",
                        "histogram",
                        "svg",
                        "unit",
                        "worst",
                    ])
                    .help("Compare two super-traces: what differs by more than the variation within each; --summary if no other measure is given"),
            )
            .arg(
                Arg::new("strict")
                    .long("strict")
                    .action(ArgAction::SetTrue)
                    .help_heading(OPTIONS)
                    .requires("how")
                    .help("Exit with status 3 if events are missing in the time that was asked about"),
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        MeasureArgs::augment_args(command)
    }
}

impl FromArgMatches for MeasureArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<MeasureArgs, clap::Error> {
        let is_asked = |measure: &&Measure| match measure.subject {
            Subject::Pair => false,
            Subject::None => matches.get_flag(measure.name),
            _ => matches.contains_id(measure.name),
        };
        let paths = matches.get_many::<PathBuf>("compare").unwrap_or_default().cloned().collect::<Vec<_>>();
        let compare = if let [a, b] = paths.as_slice() { Some((a.clone(), b.clone())) } else { None };
        let measure = ALL.iter().find(is_asked);
        let measure = measure.or_else(|| named("summary").filter(|_| compare.is_some()));
        let has_subject = |subject| !matches!(subject, Subject::None | Subject::Pair);
        let subject = measure.filter(|measure| has_subject(measure.subject));
        let subject = subject.and_then(|measure| matches.get_many::<String>(measure.name));
        let subject: Vec<&String> = subject.unwrap_or_default().collect();
        let selector = |text: &str| {
            text.parse::<Selector>()
                .map_err(|error| clap::Error::raw(ErrorKind::ValueValidation, format!("{error}\n")))
        };
        let pair = match subject.as_slice() {
            [from, to] => Some((selector(from)?, selector(to)?)),
            _ => None,
        };
        Ok(MeasureArgs {
            measure,
            subject: subject.first().filter(|_| pair.is_none()).map(|subject| (*subject).clone()),
            pair,
            by: matches.get_one::<Option<By>>("by").copied().flatten(),
            worst: matches.get_one::<u32>("worst").map_or(0, |worst| *worst as usize),
            strict: matches.get_flag("strict"),
            next: matches.get_flag("next"),
            compare,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = MeasureArgs::from_arg_matches(matches)?;
        Ok(())
    }
}
