//! `--critical-path`: the chain of work and waits that determined the end of a span, a function or a thread.

use crate::{
    Actor, Answer, Column, History, Instance, Interval, Level, Link, Measure, Needs, Piece, Request, Value,
    What, asked_instances, percent, sum_walks, walk_back,
};

/// The causes that make up the critical paths of all instances.
pub(crate) const CRITICAL_PATH: Measure = Measure {
    name: "critical-path",
    question: "What decided when it ended?",
    heading: crate::measure::headings::LATE,
    subject: crate::measure::Subject::OptionalOrPair("SPAN"),
    definition: "For each instance of a span or function, or pair of a FROM and a TO event (cut to the window), or \
        for the life of the one selected thread or LWP in the window: the walk back from its end to its begin. Where \
        its thread ran, waited for a CPU or for an LWP, that is on the path; where it waited for somebody who woke it, \
        what that one did before is on the path instead, across both levels. The path of each instance is as long as the \
        instance, to the tick. `running`: by who ran. `waiting for a CPU`: by who had it; a wait counts once for each stretch \
        of a culprit in it. `waiting for an LWP`: by what the LWPs of the process carried meanwhile, each LWP alike, \
        scaled to the wait. `waiting for an interrupt`, `interrupt`: by the interrupt. `blocked`, `in system call`: nobody is \
        known to have ended the wait; by the object (and who held it) or the call. `mounted`: on an LWP, whose state the \
        trace does not have. `unknown`: events are missing.",
    needs: Needs::ALL,
    answer,
};

fn answer(history: &History, request: &Request) -> Result<Answer, String> {
    let by = request.by(history);
    let instances = chosen(history, request)?;
    let length = instances.iter().map(|instance| instance.interval.ticks()).sum();
    let walk = |instance: &Instance| (instance.actor, instance.interval);
    let totals = sum_walks(history, by, &instances, walk, |_, piece, totals| {
        totals.add(piece.what.name(), piece, None);
    });
    let mut answer = Answer::new(vec![
        Column::text("cause", "What was done, or waited for."),
        Column::text(
            "culprit",
            "Who ran, had the CPU or the LWP; the interrupt, the object or the system call.",
        ),
        Column::count("count", "How many pieces of the paths."),
        Column::length("total_tick", "Their length; over all rows, that of the instances."),
        Column::percent("percent", "Of the length of the instances."),
    ]);
    for (key, sum) in totals.finish() {
        answer.push(vec![
            key.cause.into(),
            key.culprit.into(),
            sum.count.into(),
            sum.ticks.into(),
            Value::Fraction(percent(sum.ticks, length)),
        ]);
    }
    Ok(answer)
}

/// The critical paths of the longest instances, as many as `request.worst` (at least one), piece by piece in the order of
/// time.
///
/// # Errors
/// When the request names no span or function that occurs, no pair of events, and not one thread or LWP either.
pub fn critical_path_chains(history: &History, request: &Request) -> Result<Answer, String> {
    let mut answer = Answer::new(vec![
        Column::count("instance", "Which instance: 1 is the longest."),
        Column::instant("ts_tick", "When it begins."),
        Column::length("dur_tick", "How long it lasts."),
        Column::count("thread", "The user thread on the path; NULL for an LWP without one."),
        Column::count("lwp", "The LWP that it was on, or is."),
        Column::count("cpu", "The CPU that it was on, or waited for."),
        Column::text("what", "What it did."),
        Column::text("why", "Why the path is at this thread: whom it woke later, and from what, or created."),
        Column::text("culprit", "Who or what took the time; of a wait those that had most of it."),
    ]);
    let mut longest = chosen(history, request)?;
    longest.sort_by_key(|instance| (-instance.interval.ticks(), instance.interval, instance.actor));
    longest.truncate(request.worst.max(1));
    for (number, instance) in longest.into_iter().enumerate() {
        for piece in walk_back(history, instance.actor, instance.interval) {
            let thread = if let Actor::Thread(thread) = piece.actor { Some(thread) } else { None };
            answer.push(vec![
                (number + 1).into(),
                piece.interval.from.into(),
                piece.interval.ticks().into(),
                thread.into(),
                piece.lwp.into(),
                piece.cpu.into(),
                piece.what.name().into(),
                piece.link.map(|link| why(history, link)).into(),
                culprits(history, request, &piece).into(),
            ]);
        }
    }
    Ok(answer)
}

/// The intervals whose paths are asked for.
fn chosen(history: &History, request: &Request) -> Result<Vec<Instance>, String> {
    let window = request.extent(history);
    let mut found = match asked_instances(history, request)? {
        Some(instances) => instances,
        None => vec![life(history, request)?],
    };
    for instance in &mut found {
        instance.interval =
            instance.interval.clipped(window).unwrap_or(Interval::new(window.from, window.from));
    }
    Ok(found)
}

/// The life of the one selected thread or LWP.
fn life(history: &History, request: &Request) -> Result<Instance, String> {
    let expected = |count: usize| {
        format!("expected the name of a span or function, or one user thread or LWP, found {count} of these")
    };
    let of = |actor, interval| Instance { actor, interval, end: sigmund_model::EndReason::Exit };
    match (&request.threads, &request.lwps, request.level(history)) {
        (Some(threads), _, _) if threads.len() == 1 => {
            let life = threads.first().and_then(|thread| Some((*thread, history.names.threads.get(thread)?)));
            let (thread, life) = life.ok_or_else(|| expected(0))?;
            Ok(of(Actor::Thread(thread), life.interval))
        }
        (None, Some(lwps), Level::Lwps) if lwps.len() == 1 => {
            let life = lwps.first().and_then(|lwp| Some((*lwp, history.names.lwps.get(lwp)?)));
            let (lwp, life) = life.ok_or_else(|| expected(0))?;
            Ok(of(Actor::Lwp(lwp), life.interval))
        }
        (Some(threads), _, _) => Err(expected(threads.len())),
        (None, Some(lwps), _) => Err(expected(lwps.len())),
        (None, None, _) => Err(expected(0)),
    }
}

fn why(history: &History, link: Link) -> String {
    match link {
        Link::Created(created) => format!("created {}", created.label(history)),
        Link::Woke { woken, wait, .. } => match wait {
            What::BlockedOn { kind, object } => {
                format!("woke {} from {}", woken.label(history), crate::object_label(history, kind, object))
            }
            What::InSystemCall(Some(call)) => {
                format!("woke {} from {}", woken.label(history), history.words.text(call))
            }
            _ => format!("woke {}", woken.label(history)),
        },
    }
}

/// The most culprits listed of one wait.
const MOST_CULPRITS: usize = 3;

fn culprits(history: &History, request: &Request, piece: &Piece) -> Option<String> {
    if matches!(piece.what, What::Running | What::Mounted) {
        return None;
    }
    let by = request.by(history);
    let blames = piece.blames(history, by);
    let label = |blame: crate::Blame| blame.label(history, by).unwrap_or_default();
    if let [(blame, _)] = blames.as_slice() {
        return Some(label(*blame));
    }
    let share = |ticks| percent(ticks, piece.interval.ticks()).round();
    let most = blames.iter().take(MOST_CULPRITS);
    let most: Vec<_> = most.map(|(blame, ticks)| format!("{} {} %", label(*blame), share(*ticks))).collect();
    Some(most.join(", "))
}
