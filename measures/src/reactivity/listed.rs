//! Each pair with the causes of its latency.

use super::{Pair, Pairs, causes::Causes};
use crate::{Actor, Answer, Column, History, Needs, Request, Slice, Sliced, Value, sliced};

/// The causes, in the order of the columns of [`reactivity_pairs`].
const CAUSES: [&str; 11] = [
    "interrupt",
    "softirq",
    "waiting for a CPU",
    "waiting for an LWP",
    "running",
    "another running",
    "in system call",
    "blocked",
    "waiting for an interrupt",
    "mounted",
    "unknown",
];

/// Each pair with the causes of its latency, the longest first; as many as the request asks for.
///
/// # Errors
/// None so far.
pub fn reactivity_pairs(history: &History, request: &Request) -> Result<Answer, String> {
    sliced::whole(Box::new(Listed::new(request)), history, request)
}

/// The state of the computation that lists pairs.
pub(super) struct Listed {
    request: Request,
    finding: Option<Pairs>,
    /// The longest first.
    pairs: Vec<Pair>,
    causes: Causes,
}

impl Listed {
    pub(super) fn new(request: &Request) -> Listed {
        Listed {
            request: request.clone(),
            finding: Some(Pairs::default()),
            pairs: Vec::new(),
            causes: Causes::of_each(&[]),
        }
    }
}

impl Sliced for Listed {
    fn needs(&self) -> Option<Needs> {
        Some(if self.finding.is_some() { Needs::PAIRS } else { Needs::WALK })
    }

    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        match &mut self.finding {
            Some(pairs) => pairs.add(history, slice, &self.request),
            None => self.causes.add(history, slice, self.request.by(history)),
        }
        Ok(())
    }

    fn is_done(&mut self, history: &History) -> Result<bool, String> {
        let Some(mut pairs) = self.finding.take() else { return Ok(true) };
        if !pairs.is_done(history, &self.request) {
            self.finding = Some(pairs);
            return Ok(false);
        }
        self.pairs = pairs.finish().pairs;
        // They are sorted by their FROM events so far.
        self.pairs.sort_by_key(|pair| -pair.interval.ticks());
        if self.request.worst > 0 {
            self.pairs.truncate(self.request.worst);
        }
        self.causes = Causes::of_each(&self.pairs);
        Ok(false)
    }

    fn finish(self: Box<Self>, history: &History) -> Result<Answer, String> {
        let mut columns = vec![
            Column::instant("from_tick", "FROM."),
            Column::instant("to_tick", "TO."),
            Column::length("dur_tick", "The time from FROM to TO; the causes sum to it."),
            Column::text("pairing", "caused or next."),
            Column::count("from_cpu", "The CPU of FROM."),
            Column::count(
                "thread",
                "The user thread of TO; if TO is a caused switch or wakeup, the thread switched in or woken.",
            ),
            Column::count("lwp", "The LWP of TO, likewise."),
            Column::text("name", "The name of that user thread, or of the LWP if it carries none."),
        ];
        for cause in CAUSES {
            let name = format!("{}_tick", cause.to_lowercase().replace(' ', "_"));
            columns.push(Column { name: name.into(), ..Column::length("", "The part due to this cause.") });
        }
        columns
            .push(Column::text("culprit", "Who or what took most of the time, other than its own running."));
        let mut answer = Answer::new(columns);
        let mut causes = self.causes.finish(history, self.request.by(history));
        for (number, pair) in (0..).zip(&self.pairs) {
            let causes = causes.remove(&number).unwrap_or_default();
            let pairing = if pair.is_caused { "caused" } else { "next" };
            let Pair { interval, from_cpu, thread, lwp, .. } = *pair;
            let actor = thread.map(Actor::Thread).or(lwp.map(Actor::Lwp));
            let name = actor.and_then(|actor| actor.name(history)).map(str::to_string);
            let mut row = vec![interval.from.into(), interval.to.into(), interval.ticks().into()];
            row.extend([Value::from(pairing), from_cpu.into(), thread.into(), lwp.into(), name.into()]);
            let of_cause = |cause| causes.iter().filter(move |(key, _)| key.cause == cause);
            let sums = CAUSES.map(|cause| of_cause(cause).map(|(_, sum)| sum.ticks).sum::<i64>());
            row.extend(sums.map(Value::from));
            let culprit = causes.iter().find(|(key, _)| key.cause != "running");
            row.push(culprit.and_then(|(key, _)| key.culprit.clone()).into());
            answer.push(row);
        }
        Ok(answer)
    }
}
