//! A question for a measure in words: names and values of arguments, as SQL has them and as other processes get them.

use std::fmt;

use datafusion::{
    common::{Result, plan_err},
    error::DataFusionError,
};
use sigmund_measures::{By, Measure};
use sigmund_model::{Cpu, Lwp};

use super::MeasureOptions;
use crate::{Error, Filter, Selector, ThreadList};

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
    /// When the filter selects events or a level, which measures do not support.
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
        let threads: Vec<String> = filter.threads.iter().map(|thread| escaped(&thread.to_string())).collect();
        let (from_event, to_event) =
            options.pair.as_ref().map(|(from, to)| (from.to_string(), to.to_string())).unzip();
        let arguments = [
            ("thread", (!threads.is_empty()).then(|| threads.join(","))),
            ("lwp", list(filter.lwps.iter().map(|lwp| lwp.0).collect())),
            ("cpu", list(filter.cpus.iter().map(|cpu| cpu.0).collect())),
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

    /// What the words mean.
    ///
    /// # Errors
    /// What is expected, if it is something else.
    pub fn parse(&self) -> Result<(Filter, MeasureOptions)> {
        let measure = self.measure.name;
        let (mut filter, mut options) = (Filter::default(), MeasureOptions::default());
        let (mut from_event, mut to_event) = (None, None);
        for (name, text) in &self.arguments {
            let wrong = |expected: &str| {
                DataFusionError::Plan(format!("{measure}: {name}: expected {expected}, found {text}"))
            };
            let numbers = || -> Result<Vec<u32>> {
                text.split(',').map(|n| n.trim().parse().map_err(|_| wrong("numbers"))).collect()
            };
            match name.as_str() {
                "thread" => filter.threads = text.parse::<ThreadList>().map_err(external)?.0,
                "lwp" => filter.lwps = numbers()?.into_iter().map(Lwp).collect(),
                "cpu" => filter.cpus = numbers()?.into_iter().map(Cpu).collect(),
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
                _ => {
                    return plan_err!(
                        "{measure}: expected thread, lwp, cpu, from, to, by, worst, of, from_event or to_event, \
                         found {name}"
                    );
                }
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

/// A thread as one of a list.
fn escaped(thread: &str) -> String {
    thread.replace('\\', "\\\\").replace(',', "\\,")
}

fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

#[cfg(test)]
mod tests {
    use sigmund_measures::named;

    use super::*;

    #[test]
    fn words_mean_what_was_asked() {
        let filter = Filter {
            threads: r"15,a\,b\\,name:4".parse::<ThreadList>().unwrap().0,
            lwps: vec![Lwp(7), Lwp(8)],
            cpus: vec![Cpu(0)],
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
        let asked = Asked::new(named("states").unwrap(), &filter, &options).unwrap();
        let (filter_again, options_again) = asked.parse().unwrap();
        assert_eq!(filter_again.threads, filter.threads);
        assert_eq!((&filter_again.lwps, &filter_again.cpus), (&filter.lwps, &filter.cpus));
        assert_eq!((filter_again.from, filter_again.to), (filter.from, filter.to));
        assert_eq!((options_again.by, options_again.worst), (options.by, options.worst));
        assert_eq!(options_again.pair, options.pair);
        let events = Filter { events: vec!["sched_switch".parse().unwrap()], ..Filter::default() };
        assert!(Asked::new(named("states").unwrap(), &events, &options).is_err());
    }
}
