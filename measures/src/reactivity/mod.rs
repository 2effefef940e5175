//! `--reactivity`: the latency from an event to its handling, and what caused it.

mod causes;
mod handlers;
mod listed;
mod membership;
mod pairs;
mod reach;

use crate::{
    Answer, Column, Distribution, History, Measure, Needs, Request, Slice, Sliced, Value,
    distribution::Lengths, percent,
};

use causes::Causes;
pub use listed::reactivity_pairs;
pub use membership::ends_membership;
pub(crate) use pairs::Pair;
pub(crate) use pairs::Pairs;

/// How long it takes from FROM to TO, and why.
pub(crate) const REACTIVITY: Measure = Measure {
    name: "reactivity",
    question: "How long does it take from an event to its treatment, and why?",
    heading: crate::measure::headings::LATE,
    subject: crate::measure::Subject::Pair,
    lists_cases: true,
    is_of_one_level: false,
    definition: include_str!("../definitions/reactivity.md"),
    needs: NEEDS,
    computed: start,
};

/// What both passes need: spans are not needed.
const NEEDS: Needs = Needs { marks: true, ..Needs::WALK };

fn start(request: &Request) -> Box<dyn Sliced> {
    if request.worst > 0 {
        return Box::new(listed::Listed::new(request));
    }
    Box::new(Reactivity { request: request.clone(), pass: Pass::Finding(Pairs::default()) })
}

struct Reactivity {
    request: Request,
    pass: Pass,
}

/// In the first pass, all slices are searched for pairs. In the second, their latencies are explained.
enum Pass {
    Finding(Pairs),
    Walking(Box<Latency>),
}

/// The latencies of all pairs, and their causes.
struct Latency {
    /// The number of FROM events without a TO event.
    unmatched: usize,
    caused: Lengths,
    next: Lengths,
    causes: Causes,
}

impl Sliced for Reactivity {
    fn needs(&self) -> Option<Needs> {
        match self.pass {
            Pass::Finding(_) => Some(Needs::PAIRS),
            Pass::Walking(_) => Some(Needs::WALK),
        }
    }

    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        match &mut self.pass {
            Pass::Finding(pairs) => pairs.add(history, slice, &self.request),
            Pass::Walking(latency) => latency.causes.add(history, slice, self.request.by(history)),
        }
        Ok(())
    }

    fn is_done(&mut self, history: &History) -> Result<bool, String> {
        let Pass::Finding(pairs) = &mut self.pass else { return Ok(true) };
        if !pairs.is_done(history, &self.request) {
            return Ok(false);
        }
        let found = std::mem::take(pairs).finish();
        let (mut caused, mut next) = (Lengths::default(), Lengths::default());
        for pair in &found.pairs {
            if pair.is_caused { &mut caused } else { &mut next }.push(pair.interval.ticks());
        }
        let (unmatched, causes) = (found.unmatched, Causes::of_all(found.pairs));
        self.pass = Pass::Walking(Box::new(Latency { unmatched, caused, next, causes }));
        Ok(false)
    }

    fn finish(self: Box<Self>, history: &History) -> Result<Answer, String> {
        let mut columns = vec![
            Column::text("row", "pairs, unmatched or cause."),
            Column::text("what", "Which pairs: all, caused or next; or what took the time."),
            Column::text("culprit", "Who or what took the time."),
        ];
        columns.extend(Distribution::columns());
        columns.push(Column::percent(
            "percent",
            "Percentage of the FROM events (those of selected pairs, and unmatched ones); for a cause, of \
             the length of all pairs.",
        ));
        let mut answer = Answer::new(columns);
        match self.pass {
            Pass::Walking(latency) if latency.count() > 0 => {
                latency.rows(&mut answer, history, &self.request)
            }
            _ => {}
        }
        Ok(answer)
    }
}

impl Latency {
    /// The number of FROM events, without those of pairs that are not selected.
    fn count(&self) -> usize {
        self.caused.count() + self.next.count() + self.unmatched
    }

    fn rows(self, answer: &mut Answer, history: &History, request: &Request) {
        let count = self.count();
        let Latency { unmatched, caused, next, causes } = self;
        let mut row = |row: &'static str,
                       what: &'static str,
                       culprit: Option<String>,
                       cells: Vec<Value<'static>>,
                       part,
                       whole| {
            let mut cells: Vec<Value<'_>> =
                vec![row.into(), what.into(), culprit.into()].into_iter().chain(cells).collect();
            cells.push(Value::Fraction(percent(part, whole)));
            answer.push(cells);
        };
        let mut all = caused.clone();
        all.merge(next.clone());
        let [all, caused, next] = [all, caused, next].map(Distribution::from);
        for (what, lengths) in [("all", &all), ("caused", &caused), ("next", &next)] {
            row("pairs", what, None, lengths.cells(), lengths.count() as i64, count as i64);
        }
        let total = all.total();
        let only = |count: Value<'static>, total: Value<'static>| {
            let rest = std::iter::repeat_n(Value::Null, Distribution::columns().len() - 2);
            [count, total].into_iter().chain(rest).collect()
        };
        row("unmatched", "from", None, only(unmatched.into(), Value::Null), unmatched as i64, count as i64);
        let causes = causes.finish(history, request.by(history));
        for (key, sum) in causes.into_values().flatten() {
            let cells = only(sum.count.into(), sum.ticks.into());
            row("cause", key.cause, key.culprit, cells, sum.ticks, total);
        }
        // Only the first rows have lengths.
        if request.with_lengths {
            answer.distributions = vec![all, caused, next];
        }
    }
}
