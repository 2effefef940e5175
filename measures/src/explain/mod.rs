//! `--explain`: why some instances of a span take longer than others.

mod bands;
mod braids;
mod doubtful;
mod means;
mod walked;

use crate::{
    Answer, Column, History, Instance, Instances, LeftOut, Measure, Needs, Piece, Request, Slice, Sliced,
    Value, What, percent,
};

pub use braids::BRAIDS;

use doubtful::Doubtful;
use walked::{Apart, Band, Walked};

/// Where the time of a span goes, by the length of its instances.
pub(crate) const EXPLAIN: Measure = Measure {
    name: "explain",
    question: "Why is my p99 slow?",
    heading: crate::measure::headings::LATE,
    subject: crate::measure::Subject::RequiredOrPair("SPAN"),
    lists_cases: true,
    is_of_one_level: false,
    definition: include_str!("../definitions/explain.md"),
    needs: Needs { spans: true, only_named: true, marks: true, ..Needs::WALK },
    computed: start,
};

/// The name of the band that shows the differences.
const DIFFERENCE: &str = "99-100 minus 0-50";

const NONE_ASKED: &str = "expected the name of a span or function, or FROM and TO, found none";

fn start(request: &Request) -> Box<dyn Sliced> {
    Box::new(Explain::new(request))
}

struct Explain {
    request: Request,
    pass: Pass,
    left_out: LeftOut,
}

impl Explain {
    fn new(request: &Request) -> Explain {
        let pass = Pass::Finding(Instances::asked(request));
        Explain { request: request.clone(), pass, left_out: LeftOut::default() }
    }

    fn walk(&mut self, found: Vec<Instance>, touching: &[u32], history: &History) {
        self.pass = Pass::Walking(Box::new(Walked::new((found, touching), &self.request, history)));
    }
}

/// The slices are added several times, once for each pass. The bands depend on the lengths of all instances and on
/// which of them touch a gap: those instances are counted separately, and without them others move to other bands. If
/// walking finds more of them, all remaining instances are walked once more.
enum Pass {
    /// Finds the instances; `None` if the request asks for none.
    Finding(Option<Instances>),
    /// Finds the instances that touch a gap. Only if the trace has gaps.
    Doubting(Doubtful),
    Walking(Box<Walked>),
}

impl Sliced for Explain {
    fn needs(&self) -> Option<Needs> {
        match &self.pass {
            Pass::Finding(instances) => Some(instances.as_ref()?.needs(&self.request)),
            Pass::Doubting(_) => Some(Needs::WAY_BACK),
            Pass::Walking(_) => Some(Needs::WALK),
        }
    }

    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        match &mut self.pass {
            Pass::Finding(None) => return Err(NONE_ASKED.to_string()),
            Pass::Finding(Some(instances)) => instances.add(history, slice, &self.request),
            Pass::Doubting(doubtful) => doubtful.add(history, slice, &self.request),
            Pass::Walking(walked) => walked.add(history, slice, self.request.by(history)),
        }
        Ok(())
    }

    fn is_done(&mut self, history: &History) -> Result<bool, String> {
        match &mut self.pass {
            Pass::Walking(walked) => return Ok(walked.is_done()),
            Pass::Finding(instances) => {
                let Some(mut found) = instances.take() else { return Ok(true) };
                if !found.is_done(history, &self.request) {
                    *instances = Some(found);
                    return Ok(false);
                }
                let found = found.finish(history, &self.request)?;
                self.left_out = found.left_out;
                let found = found.instances;
                if history.gaps.is_empty() {
                    self.walk(found, &[], history);
                } else {
                    self.pass = Pass::Doubting(Doubtful::new(found));
                }
            }
            Pass::Doubting(doubtful) => {
                let (found, touching) = std::mem::take(doubtful).finish();
                self.walk(found, &touching, history);
            }
        }
        Ok(false)
    }

    fn finish(self: Box<Self>, history: &History) -> Result<Answer, String> {
        let Pass::Walking(walked) = self.pass else { return Ok(Answer::new(columns())) };
        let (bands, gaps, cut) = walked.finish(history, self.request.by(history));
        let mut rows = Rows { answer: Answer::new(columns()) };
        if let [(_, median), _, _, (_, slow), ..] = bands.as_slice() {
            rows.difference(slow, median);
        }
        for (name, band) in &bands {
            rows.band(name, band);
        }
        rows.apart("touches a gap", &gaps);
        rows.apart("cut off", &cut);
        rows.answer.notes.extend(self.left_out.note());
        Ok(rows.answer)
    }
}

/// The category of a piece: a word for what its actor did.
pub(crate) fn category(piece: &Piece) -> &'static str {
    match piece.what {
        What::Running => "active",
        What::Interrupt(_) => "interrupted",
        What::WaitingForCpu => "stalled",
        What::WaitingForLwp => "ready",
        What::WaitingFor(_) => "waiting",
        What::BlockedOn { .. } => "blocked",
        What::InSystemCall(_) => "in-kernel",
        What::Mounted => "mounted",
        What::Unknown => "unknown",
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::text("band", "Which instances, by their length."),
        Column::text("category", "What took the time; `duration` is all of it."),
        Column::text(
            "who",
            "Whether its own thread (itself) or one that it waited for (another) spent the time.",
        ),
        Column::text(
            "waits_for",
            "What was waited for at that time, and its main holder; NULL if nothing, or if it is not known.",
        ),
        Column::text("culprit", "Who or what took the time; NULL for itself, and for differences."),
        Column::count("instances", "How many instances are in the band."),
        Column::length("total_tick", "The time in all instances of the band; NULL for differences."),
        Column::length(
            "mean_tick",
            "The time in one instance, rounded: the rows of a band sum to its duration.",
        ),
        Column::percent("percent", "Of the duration of the band."),
    ]
}

struct Rows {
    answer: Answer,
}

impl Rows {
    fn push(
        &mut self,
        band: &str,
        (category, who, waits_for): (&'static str, Option<&'static str>, Option<String>),
        rest: [Value<'static>; 5],
    ) {
        let mut row = vec![Value::from(band.to_string()), category.into(), who.into(), waits_for.into()];
        row.extend(rest);
        self.answer.push(row);
    }

    fn band(&mut self, name: &str, band: &Band) {
        if band.instances == 0 {
            return;
        }
        let totals: Vec<i128> = band.sums.iter().map(|(_, ticks)| i128::from(*ticks)).collect();
        let means = means::divided(&totals, band.instances as i128);
        let mut row = |of, culprit: Option<String>, total: i64, mean: i64| {
            let share = Value::Fraction(percent(total, band.duration));
            let rest = [culprit.into(), band.instances.into(), total.into(), mean.into(), share];
            self.push(name, of, rest);
        };
        row(("duration", None, None), None, band.duration, means.iter().sum());
        for ((key, total), mean) in band.sums.iter().zip(means) {
            let of = (key.cause, Some(who(key.is_own)), key.waits_for.clone());
            row(of, key.culprit.clone(), *total, mean);
        }
    }

    /// Adds rows with how much longer each category takes in the slow band than in the other.
    fn difference(&mut self, slow: &Band, other: &Band) {
        if slow.instances == 0 || other.instances == 0 {
            return;
        }
        let differences = means::differences(slow, other);
        let duration: i64 = differences.iter().map(|(_, ticks)| ticks).sum();
        let instances = slow.instances;
        let mut row = |of, ticks: i64| {
            let share = Value::Fraction(percent(ticks, duration));
            let rest = [Value::Null, instances.into(), Value::Null, ticks.into(), share];
            self.push(DIFFERENCE, of, rest);
        };
        row(("duration", None, None), duration);
        for ((cause, is_own, waits_for), ticks) in differences {
            row((cause, Some(who(is_own)), waits_for.map(str::to_string)), ticks);
        }
    }

    fn apart(&mut self, name: &str, Apart { count, ticks: total }: &Apart) {
        let (count, total) = (*count, *total);
        if count == 0 {
            return;
        }
        let mean = total / count as i64;
        self.push(
            name,
            ("duration", None, None),
            [Value::Null, count.into(), total.into(), mean.into(), Value::Fraction(100.0)],
        );
    }
}

fn who(is_own: bool) -> &'static str {
    if is_own { "itself" } else { "another" }
}
