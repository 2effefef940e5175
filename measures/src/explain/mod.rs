//! `--explain`: why some instances of a span take longer than others.

mod bands;
mod means;

use rayon::prelude::*;
use sigmund_model::EndReason;

use crate::{
    Actor, Answer, Column, History, Instance, Key, Measure, Needs, Piece, Request, Totals, Value, What,
    asked_instances, fold_walks, percent, walk_back,
};

use bands::Bands;

/// Where the time of a span goes, by the length of its instances.
pub(crate) const EXPLAIN: Measure = Measure {
    name: "explain",
    question: "Why is my p99 slow?",
    heading: crate::measure::headings::LATE,
    subject: crate::measure::Subject::RequiredOrPair("SPAN"),
    definition: "For each instance of a span or function, or pair of a FROM and a TO event (see reactivity), that begins and ends \
        in the window: the walk back from its end to its \
        begin (see critical-path), summed by category. Categories of its own thread are `active`, `interrupted` (by which \
        interrupt), `stalled` (who had the CPU), `ready` (what the LWPs carried), `waiting` (for which interrupt), `blocked` (on \
        what, and who held it), `in-kernel` (in which call) and `mounted`; who is `itself`. Where it waited for somebody who \
        woke it, the time is of what that one did: the same categories with who `another`. Instances are in bands by \
        their length: 0-50 up to the median, 50-90 up to the 90th percentile, 99-100 from the 99th percentile on, 90-99 \
        what is between (nearest rank; of instances of equal length the earlier counts as shorter), and the slowest ten once \
        more (or as many as are asked for). mean_tick is the total divided by the instances of the band, rounded such that the \
        rows of a band sum to its row `duration`. The first rows are the differences between 99-100 and 0-50: their \
        mean_tick sums to the row `duration` among them, too. Counted apart, without categories: instances that touch a \
        gap (a part of the walk is unknown, or the end is missing), and those cut off by the window or the end of the trace.",
    needs: Needs::ALL,
    answer,
};

/// The band of the differences.
const DIFFERENCE: &str = "99-100 minus 0-50";

/// The instances of a span that are complete, their sums by band, and the lengths of the others.
struct Banded {
    whole: Vec<Instance>,
    summed: Vec<(String, Band)>,
    gaps: Vec<i64>,
    cut: Vec<i64>,
}

fn banded(history: &History, request: &Request) -> Result<Banded, String> {
    let Some(instances) = asked_instances(history, request)? else {
        return Err("expected the name of a span or function, or FROM and TO, found none".to_string());
    };
    let window = request.extent(history);
    let (mut whole, mut gaps, mut cut) = (Vec::new(), Vec::new(), Vec::new());
    for instance in instances {
        let Instance { interval, end, .. } = instance;
        if interval.from < window.from || window.to < interval.to || end == EndReason::TraceEnd {
            cut.push(interval.ticks());
        } else if matches!(end, EndReason::Returned | EndReason::Exit) {
            whole.push(instance);
        } else {
            gaps.push(interval.ticks());
        }
    }
    let slowest = if request.worst > 0 { request.worst } else { 10 };
    // Mostly all walks are known, and one pass is enough. If some touch a gap, the bands of the rest change, and these are
    // walked again.
    let summed = loop {
        let bands = Bands::of(whole.len(), slowest);
        let (summed, unknown) = sums(history, request, &whole, &bands);
        if unknown.is_empty() {
            break summed;
        }
        gaps.extend(unknown.iter().map(|place| whole[*place].interval.ticks()));
        let mut is_unknown = vec![false; whole.len()];
        unknown.into_iter().for_each(|place| is_unknown[place] = true);
        let mut is_unknown = is_unknown.into_iter();
        whole.retain(|_| is_unknown.next() == Some(false));
    };
    Ok(Banded { whole, summed, gaps, cut })
}

fn answer(history: &History, request: &Request) -> Result<Answer, String> {
    let Banded { summed, gaps, cut, .. } = banded(history, request)?;
    let mut rows = Rows { answer: Answer::new(columns()) };
    if let [(_, median), _, _, (_, slow), ..] = summed.as_slice() {
        rows.difference(slow, median);
    }
    for (name, band) in &summed {
        rows.band(name, band);
    }
    rows.apart("touches a gap", &gaps);
    rows.apart("cut off", &cut);
    Ok(rows.answer)
}

/// The walks of two instances, piece by piece in the order of time: of the longest one of the band 0-50 (the median), and of the
/// slowest of all. No rows if no instance is complete.
///
/// # Errors
/// As the measure `explain`.
pub fn explain_braids(history: &History, request: &Request) -> Result<Answer, String> {
    let mut answer = Answer::new(vec![
        Column::text("instance", "Which instance: `median` or `slowest`."),
        Column::instant("ts_tick", "When it begins."),
        Column::length("dur_tick", "How long it lasts."),
        Column::text("category", "What took the time, as in explain."),
        Column::count("thread", "The user thread that the time was spent by; NULL for an LWP without one."),
        Column::count("lwp", "The LWP that it was on, or is."),
        Column::count("cpu", "The CPU that it was on, or waited for."),
    ]);
    let whole = banded(history, request)?.whole;
    let order = by_length(&whole);
    let median = Bands::of(whole.len(), 1).each().next().map_or(0, |(_, band)| band.end);
    let chosen = [("median", median.checked_sub(1)), ("slowest", order.len().checked_sub(1))];
    for (name, place) in chosen {
        let Some(place) = place else { continue };
        let Instance { actor, interval, .. } = whole[order[place]];
        for piece in walk_back(history, actor, interval) {
            let thread = if let Actor::Thread(thread) = piece.actor { Some(thread) } else { None };
            answer.push(vec![
                name.into(),
                piece.interval.from.into(),
                piece.interval.ticks().into(),
                category(&piece).into(),
                thread.into(),
                piece.lwp.into(),
                piece.cpu.into(),
            ]);
        }
    }
    Ok(answer)
}

/// Places of instances, the shortest first.
fn by_length(instances: &[Instance]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..instances.len()).collect();
    order.par_sort_unstable_by_key(|place| {
        let Instance { interval, actor, .. } = instances[*place];
        (interval.ticks(), interval, actor, *place)
    });
    order
}

/// What the instances of each band sum to, and the places of those of which a part is unknown.
fn sums(
    history: &History,
    request: &Request,
    instances: &[Instance],
    bands: &Bands,
) -> (Vec<(String, Band)>, Vec<usize>) {
    let by = request.by(history);
    let order = by_length(instances);
    // The bands of each, in the order of time: walks are quicker near each other.
    let mut bands_of = vec![0_u8; instances.len()];
    for (number, (_, band)) in bands.each().enumerate() {
        order[band.clone()].iter().for_each(|place| bands_of[*place] |= 1 << number);
    }
    let count = bands.each().count();
    let places: Vec<usize> = (0..instances.len()).collect();
    let (totals, mut unknown, _) = fold_walks(
        history,
        &places,
        || ((0..count).map(|_| Totals::new(history, by)).collect::<Vec<_>>(), Vec::new(), Vec::new()),
        |walks, (totals, unknown, pieces), place| {
            let Instance { actor, interval, .. } = instances[*place];
            pieces.clear();
            walks.each_piece(actor, interval, |piece| pieces.push(piece));
            if pieces.iter().any(|piece: &Piece| piece.what == What::Unknown) {
                unknown.push(*place);
            }
            // Once one is unknown, the sums are not used.
            if unknown.is_empty() {
                let bands = bands_of[*place];
                for (_, totals) in totals.iter_mut().enumerate().filter(|(band, _)| bands >> band & 1 == 1) {
                    pieces.iter().for_each(|piece| totals.add(category(piece), piece, Some(actor)));
                }
            }
        },
        |(totals, unknown, _), (other_totals, mut other_unknown, _)| {
            totals.iter_mut().zip(other_totals).for_each(|(totals, other)| totals.merge(other));
            unknown.append(&mut other_unknown);
        },
    );
    unknown.sort_unstable();
    if !unknown.is_empty() {
        return (Vec::new(), unknown);
    }
    let summed = bands.each().zip(totals).map(|((name, band), totals)| {
        let instances = order[band.clone()].iter().map(|place| &instances[*place]);
        (name.to_string(), Band::new(instances, totals))
    });
    (summed.collect(), unknown)
}

/// A word for what the actor of a piece did.
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

/// Instances of similar length.
struct Band {
    instances: usize,
    duration: i64,
    sums: Vec<(Key, i64)>,
}

impl Band {
    fn new<'i>(instances: impl ExactSizeIterator<Item = &'i Instance>, totals: Totals<'_>) -> Band {
        let count = instances.len();
        let duration = instances.map(|instance| instance.interval.ticks()).sum();
        let sums = totals.finish().into_iter().map(|(key, sum)| (key, sum.ticks)).collect();
        Band { instances: count, duration, sums }
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::text("band", "Which instances, by their length."),
        Column::text("category", "What took the time; `duration` is all of it."),
        Column::text(
            "who",
            "Whether that was done by its own thread (itself) or by one that it waited for (another).",
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
    fn push(&mut self, band: &str, category: &'static str, who: Option<&'static str>, rest: [Value; 5]) {
        let mut row = vec![Value::from(band.to_string()), category.into(), who.into()];
        row.extend(rest);
        self.answer.push(row);
    }

    fn band(&mut self, name: &str, band: &Band) {
        if band.instances == 0 {
            return;
        }
        let totals: Vec<i128> = band.sums.iter().map(|(_, ticks)| i128::from(*ticks)).collect();
        let means = means::divided(&totals, band.instances as i128);
        let mut row = |category, who, culprit: Option<String>, total: i64, mean: i64| {
            let share = Value::Fraction(percent(total, band.duration));
            let rest = [culprit.into(), band.instances.into(), total.into(), mean.into(), share];
            self.push(name, category, who, rest);
        };
        row("duration", None, None, band.duration, means.iter().sum());
        for ((key, total), mean) in band.sums.iter().zip(means) {
            row(key.cause, Some(who(key.is_own)), key.culprit.clone(), *total, mean);
        }
    }

    /// How much longer each category takes in the slow band than in the other.
    fn difference(&mut self, slow: &Band, other: &Band) {
        if slow.instances == 0 || other.instances == 0 {
            return;
        }
        let differences = means::differences(slow, other);
        let duration: i64 = differences.iter().map(|(_, ticks)| ticks).sum();
        let instances = slow.instances;
        let mut row = |category, who, ticks: i64| {
            let share = Value::Fraction(percent(ticks, duration));
            let rest = [Value::Null, instances.into(), Value::Null, ticks.into(), share];
            self.push(DIFFERENCE, category, who, rest);
        };
        row("duration", None, duration);
        for ((cause, is_own), ticks) in differences {
            row(cause, Some(who(is_own)), ticks);
        }
    }

    fn apart(&mut self, name: &str, lengths: &[i64]) {
        if lengths.is_empty() {
            return;
        }
        let (count, total) = (lengths.len(), lengths.iter().sum::<i64>());
        let mean = total / count as i64;
        self.push(
            name,
            "duration",
            None,
            [Value::Null, count.into(), total.into(), mean.into(), Value::Fraction(100.0)],
        );
    }
}

fn who(is_own: bool) -> &'static str {
    if is_own { "itself" } else { "another" }
}
