//! A question for a measure as names and values of arguments. SQL has questions in this form, and other processes
//! receive them in it.

use std::fmt;

use datafusion::{
    common::{Result, plan_err},
    error::DataFusionError,
};
use sigmund_measures::{ALL, By, Measure, named};
use sigmund_model::{Cpu, Level};
use sigmund_sql::nearest;

use super::{MeasureOptions, described, table_function::in_sql};
use crate::{Error, Filter, LwpList, Numbered, ProcessList, Reference, ReferenceList, Selector, ThreadList};

/// A question for a measure.
#[derive(Clone)]
pub struct Asked {
    /// The measure.
    pub measure: &'static Measure,
    /// The names and values of its arguments; a name occurs once.
    pub arguments: Vec<(String, String)>,
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.measure.name, self.arguments)
    }
}

impl Asked {
    /// The words of a filter and options.
    ///
    /// # Errors
    /// When the filter selects events, which measures do not support.
    pub fn new(
        measure: &'static Measure,
        filter: &Filter,
        options: &MeasureOptions,
    ) -> std::result::Result<Asked, Error> {
        super::refuse_events(measure.name, filter)?;
        let list = |numbers: Vec<u32>| {
            let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
            (!numbers.is_empty()).then(|| numbers.join(","))
        };
        let (from_event, to_event) =
            options.pair.as_ref().map(|(from, to)| (from.to_string(), to.to_string())).unzip();
        let arguments = [
            ("thread", listed(&filter.threads)),
            ("lwp", listed(&filter.lwps)),
            ("process", listed(&filter.processes)),
            ("cpu", list(filter.cpus.iter().map(|cpu| cpu.0).collect())),
            ("level", filter.level.map(|level| level.name().to_string())),
            ("from", filter.from.map(|from| from.to_string())),
            ("to", filter.to.map(|to| to.to_string())),
            ("by", options.by.map(|by| by.name().to_string())),
            ("worst", (options.worst > 0).then(|| options.worst.to_string())),
            ("of", options.subject.clone()),
            ("from_event", from_event),
            ("to_event", to_event),
        ];
        let arguments = arguments.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?)));
        Ok(Asked { measure, arguments: arguments.collect() })
    }

    /// The filter and options that the arguments mean.
    ///
    /// # Errors
    /// When an argument is not as expected; the message gives what is expected.
    pub fn parse(&self) -> Result<(Filter, MeasureOptions)> {
        let measure = self.measure.name;
        let external = |error| in_sql(self.measure, error);
        let (mut filter, mut options) = (Filter::default(), MeasureOptions::default());
        let (mut from_event, mut to_event) = (None, None);
        for (place, (name, text)) in self.arguments.iter().enumerate() {
            if self.arguments[..place].iter().any(|(other, _)| other == name) {
                return plan_err!("{measure}: expected {name} once, found it twice");
            }
            refuse_unused(self.measure, name, &[]).map_err(external)?;
            let wrong = |expected: &str| {
                DataFusionError::Plan(format!("{measure}: {name}: expected {expected}, found {text}"))
            };
            let numbers = || -> Result<Vec<u32>> {
                text.split(',').map(|n| n.trim().parse().map_err(|_| wrong("numbers"))).collect()
            };
            match name.as_str() {
                "thread" => filter.threads = text.parse::<ThreadList>().map_err(external)?.0,
                "lwp" => filter.lwps = text.parse::<LwpList>().map_err(external)?.0,
                "process" => filter.processes = text.parse::<ProcessList>().map_err(external)?.0,
                "cpu" => filter.cpus = numbers()?.into_iter().map(Cpu).collect(),
                "level" => {
                    let text = if text.eq_ignore_ascii_case("kernel") { "kern" } else { text };
                    let is_named = |level: &Level| level.name().eq_ignore_ascii_case(text);
                    let level =
                        Level::ALL.iter().copied().find(is_named).ok_or_else(|| wrong("USER or KERN"))?;
                    filter.level = Some(level);
                }
                "from" => filter.from = Some(text.parse().map_err(external)?),
                "to" => filter.to = Some(text.parse().map_err(external)?),
                "by" => {
                    let by =
                        By::from_name(text).ok_or_else(|| wrong("thread, lwp, process, name or pattern"))?;
                    options.by = Some(by);
                }
                "worst" => options.worst = text.parse().map_err(|_| wrong("a number"))?,
                "of" => options.subject = Some(text.clone()),
                "from_event" => from_event = Some(text.parse::<Selector>().map_err(external)?),
                "to_event" => to_event = Some(text.parse::<Selector>().map_err(external)?),
                _ => return plan_err!("{measure}: {name} is not known here"),
            }
        }
        options.pair = match (from_event, to_event) {
            (None, None) => None,
            (Some(from), Some(to)) => Some((from, to)),
            (Some(_), None) => return plan_err!("{measure}: expected to_event with from_event, found none"),
            (None, Some(_)) => return plan_err!("{measure}: expected from_event with to_event, found none"),
        };
        if options.pair.is_some() && options.subject.is_some() {
            return plan_err!("{measure}: expected of, or from_event and to_event, found both");
        }
        Ok((filter, options))
    }
}

/// Refuses options that the measure would ignore. `name` may also be a question that is no measure, such as a drawing.
pub(super) fn refuse_unused_options(name: &str, options: &MeasureOptions) -> std::result::Result<(), Error> {
    let Some(measure) = named(name) else { return Ok(()) };
    let given = [
        ("worst", options.worst > 0),
        ("of", options.subject.is_some()),
        ("from_event", options.pair.is_some()),
    ];
    given
        .into_iter()
        .filter(|(_, is_given)| *is_given)
        .try_for_each(|(name, _)| refuse_unused(measure, name, &[]))
}

/// Refuses an argument that is used neither by the measure nor by the SQL function. `more` has the function's own
/// arguments.
pub(super) fn refuse_unused(measure: &Measure, name: &str, more: &[&str]) -> std::result::Result<(), Error> {
    let arguments = described::arguments(measure);
    // A comparison is of sums and percentiles, so it has no worst cases.
    let is_compared = more.contains(&"measure");
    let of_measure = arguments.iter().map(|argument| argument.name.trim_matches('"'));
    let of_measure = of_measure.filter(|name| !is_compared || *name != "worst");
    let names: Vec<&str> = of_measure.chain(more.iter().copied()).collect();
    if names.contains(&name) {
        return Ok(());
    }
    if name == "worst" && !measure.lists_cases {
        let listing: Vec<&str> =
            ALL.iter().filter(|other| other.lists_cases).map(|other| other.name).collect();
        let text = format!(
            "{}: expected a measure that lists cases ({}), found worst",
            measure.name,
            listing.join(", ")
        );
        return Err(Error::argument(text));
    }
    let near = nearest(name, names.iter().copied());
    let near = near.first().filter(|near| near.len().abs_diff(name.len()) < 3).copied().unwrap_or_default();
    let hint = if near.is_empty() { String::new() } else { format!("; nearest: {near}") };
    let names = names.join(", ");
    Err(Error::argument(format!("{}: expected {names}, found {name}{hint}", measure.name)))
}

/// Threads, LWPs or processes as a list; `None` if there are none.
fn listed<N: Numbered>(all: &[Reference<N>]) -> Option<String> {
    (!all.is_empty()).then(|| ReferenceList(all.to_vec()).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(measure: &str, arguments: &[(&str, &str)]) -> std::result::Result<(), String> {
        let arguments = arguments.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let asked = Asked { measure: named(measure).unwrap(), arguments: arguments.collect() };
        asked.parse().map(drop).map_err(|error| error.to_string())
    }

    #[test]
    fn an_argument_that_a_measure_does_not_use_or_that_is_given_twice_is_refused() {
        for (measure, argument) in [("summary", "of"), ("states", "of"), ("noise", "to_event")] {
            let error = parsed(measure, &[(argument, "1")]).unwrap_err();
            assert!(error.contains(&format!("{measure}: expected thread, ")), "{error}");
            assert!(error.contains(&format!("found {argument}")), "{error}");
        }
        let error = parsed("states", &[("thred", "1")]).unwrap_err();
        assert!(error.contains("found thred; nearest: thread"), "{error}");
        let error = parsed("states", &[("thread", "1"), ("thread", "2")]).unwrap_err();
        assert!(error.contains("states: expected thread once, found it twice"), "{error}");
        for (measure, argument) in
            [("noise", "of"), ("functions", "of"), ("locks", "of"), ("latency", "worst")]
        {
            assert_eq!(parsed(measure, &[(argument, "1")]), Ok(()));
        }
        let options = MeasureOptions { worst: 3, ..MeasureOptions::default() };
        let of_options = refuse_unused_options("states", &options).unwrap_err().to_string();
        for error in [parsed("states", &[("worst", "1")]).unwrap_err(), of_options] {
            assert!(error.contains("states: expected a measure that lists cases (summary, "), "{error}");
        }
        assert!(
            refuse_unused_options("latency", &options).is_ok()
                && refuse_unused_options("gantt", &options).is_ok()
        );
    }

    #[test]
    fn words_mean_what_was_asked() {
        let filter = Filter {
            threads: r"15,a\,b\\,name:4".parse::<ThreadList>().unwrap().0,
            lwps: r"7,8,kworker/*".parse::<LwpList>().unwrap().0,
            processes: "70,server".parse::<ProcessList>().unwrap().0,
            cpus: vec![Cpu(0)],
            level: Some(Level::Kern),
            from: Some("1.5ms".parse().unwrap()),
            to: Some("97615576".parse().unwrap()),
            ..Filter::default()
        };
        let pair = ["IRQ(24)@name:4", r#"open(path="a=b,c")"#].map(|text| text.parse::<Selector>().unwrap());
        let [from, to] = pair;
        let options = MeasureOptions {
            by: Some(By::Name),
            worst: 3,
            pair: Some((from, to)),
            ..MeasureOptions::default()
        };
        let asked = Asked::new(named("reactivity").unwrap(), &filter, &options).unwrap();
        let (filter_again, options_again) = asked.parse().unwrap();
        assert_eq!(filter_again.threads, filter.threads);
        assert_eq!((&filter_again.lwps, &filter_again.cpus), (&filter.lwps, &filter.cpus));
        assert_eq!(filter_again.processes, filter.processes);
        assert_eq!((filter_again.from, filter_again.to), (filter.from, filter.to));
        assert_eq!((options_again.by, options_again.worst), (options.by, options.worst));
        assert_eq!(options_again.pair, options.pair);
        let events = Filter { events: vec!["sched_switch".parse().unwrap()], ..Filter::default() };
        assert!(Asked::new(named("states").unwrap(), &events, &options).is_err());
    }
}
