//! `--reactivity`: the latency from an event to its handling, and what caused it.

mod caused;
mod pairs;

use crate::{
    Actor, Answer, Column, Context, Distribution, History, Measure, Needs, Piece, Request, Source, Totals,
    Value, Walks, What, fold_walks, percent, wait_context,
};

pub use pairs::Pair;
pub(crate) use pairs::pairs;

/// How long from FROM to TO, and why.
pub(crate) const REACTIVITY: Measure = Measure {
    name: "reactivity",
    question: "How long does it take from an event to its treatment, and why?",
    heading: crate::measure::headings::LATE,
    subject: crate::measure::Subject::Pair,
    definition: "Pairs of a FROM and a TO event. Forward from FROM a set grows: it begins with the thread (or LWP without one) of \
        FROM; in an interrupt, with its handler and the softirqs after it, before another interrupt and the next switch of \
        the CPU; where the handler is not traced, with what the CPU woke at that tick. It grows by each wakeup or unpark that a \
        member makes; an LWP adds the thread that it carries. A member leaves when it waits again; the event by \
        which it begins to wait is still one of a member. The first TO event of a member, before the next FROM of the same key, makes a pair that is `caused`. The other FROM events take, in their order, \
        the next TO event that is left: `next`. Events without one are `unmatched`. The causes are the walk back from TO to \
        FROM (see critical-path): `running` is that of the thread of TO, `another running` that of those that it waited \
        for; while it waited for an interrupt, what the waking CPU was in is `interrupt` or `softirq`. Over all pairs the \
        causes sum to the lengths, exactly. Of the filters, the window is of both events, the others of TO.",
    needs: Needs::ALL,
    answer,
};

fn answer(history: &History, request: &Request) -> Result<Answer, String> {
    let (pairs, count) = self::pairs(history, request);
    let mut columns = vec![
        Column::text("row", "pairs, unmatched or cause."),
        Column::text("what", "Which pairs: all, caused or next; or what took the time."),
        Column::text("culprit", "Who or what took the time."),
    ];
    columns.extend(Distribution::columns());
    columns.push(Column::percent("percent", "Of the FROM events; of a cause, of the length of all pairs."));
    let mut answer = Answer::new(columns);
    if count == 0 {
        return Ok(answer);
    }
    let mut row =
        |row: &'static str, what: &'static str, culprit: Option<String>, cells: Vec<Value>, part, whole| {
            let mut cells: Vec<Value> =
                vec![row.into(), what.into(), culprit.into()].into_iter().chain(cells).collect();
            cells.push(Value::Fraction(percent(part, whole)));
            answer.push(cells);
        };
    let lengths = |is_in: fn(&Pair) -> bool| -> Distribution {
        pairs.iter().filter(|pair| is_in(pair)).map(|pair| pair.interval.ticks()).collect()
    };
    let all = lengths(|_| true);
    let (caused, next) = (lengths(|pair| pair.is_caused), lengths(|pair| !pair.is_caused));
    for (what, lengths) in [("all", &all), ("caused", &caused), ("next", &next)] {
        row("pairs", what, None, lengths.cells(), lengths.count() as i64, count as i64);
    }
    let unmatched = count - pairs.len();
    let only = |count: Value, total: Value| {
        let rest = std::iter::repeat_n(Value::Null, Distribution::columns().len() - 2);
        [count, total].into_iter().chain(rest).collect()
    };
    row("unmatched", "from", None, only(unmatched.into(), Value::Null), unmatched as i64, count as i64);
    let totals = fold_walks(
        history,
        &pairs,
        || Totals::new(history, request.by(history)),
        |walks, totals, pair| each_cause(history, walks, pair, |cause, piece| totals.add(cause, piece, None)),
        Totals::merge,
    );
    for (key, sum) in totals.finish() {
        let cells = only(sum.count.into(), sum.ticks.into());
        row("cause", key.cause, key.culprit, cells, sum.ticks, all.total());
    }
    Ok(answer)
}

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

/// Each pair with the causes of its latency, the longest first; as many as are asked for.
///
/// # Errors
/// None so far.
pub fn reactivity_pairs(history: &History, request: &Request) -> Result<Answer, String> {
    let mut columns = vec![
        Column::instant("from_tick", "FROM."),
        Column::instant("to_tick", "TO."),
        Column::length("dur_tick", "From the one to the other; the causes sum to it."),
        Column::text("pairing", "caused or next."),
        Column::count("from_cpu", "The CPU of FROM."),
        Column::count("thread", "The user thread of TO."),
        Column::count("lwp", "The LWP of TO."),
    ];
    for cause in CAUSES {
        let name = format!("{}_tick", cause.to_lowercase().replace(' ', "_"));
        columns.push(Column { name: name.into(), ..Column::length("", "The part of it that this took.") });
    }
    columns.push(Column::text("culprit", "Who or what took most of it, other than its own running."));
    let mut answer = Answer::new(columns);
    let (mut pairs, _) = self::pairs(history, request);
    pairs.sort_by_key(|pair| (-pair.interval.ticks(), pair.from));
    if request.worst > 0 {
        pairs.truncate(request.worst);
    }
    let mut walks = Walks::new(history);
    for pair in pairs {
        let (from, to) = (&history.marks[pair.from], &history.marks[pair.to]);
        let pairing = if pair.is_caused { "caused" } else { "next" };
        let mut row = vec![pair.interval.from.into(), pair.interval.to.into(), pair.interval.ticks().into()];
        row.extend([Value::from(pairing), from.cpu.into(), to.thread.into(), to.lwp.into()]);
        let mut sums = [0; CAUSES.len()];
        let mut totals = Totals::new(history, request.by(history));
        each_cause(history, &mut walks, &pair, |cause, piece| {
            if let Some(place) = CAUSES.iter().position(|name| *name == cause) {
                sums[place] += piece.interval.ticks();
            }
            totals.add(cause, piece, None);
        });
        row.extend(sums.map(Value::from));
        let culprit = totals.finish().into_iter().find(|(key, _)| key.cause != "running");
        row.push(culprit.and_then(|(key, _)| key.culprit).into());
        answer.push(row);
    }
    Ok(answer)
}

/// Calls `each` with the parts of the walk back from TO to FROM, and what each is called.
fn each_cause<'h>(
    history: &'h History,
    walks: &mut Walks<'h>,
    pair: &Pair,
    mut each: impl FnMut(&'static str, &Piece),
) {
    let by_kind =
        |place| if wait_context(history, place) == Context::Softirq { "softirq" } else { "interrupt" };
    let Some(actor) = pair.actor else {
        let nobody = Piece {
            interval: pair.interval,
            actor: Actor::Lwp(0),
            lwp: None,
            cpu: None,
            what: What::Unknown,
            link: None,
        };
        return if pair.interval.ticks() > 0 {
            each("unknown", &nobody)
        };
    };
    walks.each_piece(actor, pair.interval, |piece| match piece.what {
        What::Interrupt(place) => each(by_kind(place), &piece),
        What::Running if piece.actor != actor => each("another running", &piece),
        // The interrupts of the waking CPU meanwhile.
        What::WaitingFor(Source::Interrupt(place)) => {
            let cpu = history.interrupts[place as usize].cpu;
            for (interval, inside) in history.innermost.of(cpu.into()).partition(piece.interval) {
                match inside {
                    Some(place) => {
                        each(by_kind(*place), &Piece { interval, what: What::Interrupt(*place), ..piece });
                    }
                    None => each(piece.what.name(), &Piece { interval, ..piece }),
                }
            }
        }
        _ => each(piece.what.name(), &piece),
    });
}
