//! Instances of what a question is about: a span or a function, by its name, or a pair of events.

use sigmund_model::EndReason;

use crate::{Actor, History, Interval, Request, Span, reactivity::pairs};

/// So many names are proposed instead of one that does not occur.
const MOST_PROPOSED: usize = 3;

/// An instance that overlaps the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    /// Whose it is.
    pub(crate) actor: Actor,
    /// From its begin to its end, not cut to the window.
    pub(crate) interval: Interval,
    /// What ended it.
    pub(crate) end: EndReason,
}

/// The instances of the span, function or pair of events that the request names; `None` if it names none.
///
/// A pair is of the thread (or LWP) of its TO event; pairs whose TO event has neither are left out.
///
/// # Errors
/// When the trace has no span or function of this name at all.
pub(crate) fn asked_instances(history: &History, request: &Request) -> Result<Option<Vec<Instance>>, String> {
    if request.is_of_pairs {
        let instance = |pair: crate::Pair| {
            Some(Instance { actor: pair.actor?, interval: pair.interval, end: EndReason::Returned })
        };
        return Ok(Some(pairs(history, request).0.into_iter().filter_map(instance).collect()));
    }
    request.subject.as_ref().map(|subject| instances(history, request, subject)).transpose()
}

/// Those that overlap the window, of the selected threads, LWPs and CPUs (by where they began), in the order of time.
///
/// # Errors
/// When the trace has no span or function of this name at all.
fn instances(history: &History, request: &Request, subject: &str) -> Result<Vec<Instance>, String> {
    let window = request.extent(history);
    let (mut occurs, mut found) = (false, Vec::new());
    let name = history.words.get(subject);
    for span in history.spans.iter().filter(|span| name.is_some() && span.name == name) {
        occurs = true;
        let is_inside = span.interval.clipped(window).is_some();
        let actor = span.thread.map(Actor::Thread).or(span.lwp.map(Actor::Lwp));
        if let (Some(actor), true, true) = (actor, is_inside, is_selected(history, request, span)) {
            found.push(Instance { actor, interval: span.interval, end: span.end });
        }
    }
    if occurs { Ok(found) } else { Err(unknown_name(history, subject)) }
}

fn is_selected(history: &History, request: &Request, span: &Span) -> bool {
    let is_of_thread = match span.thread {
        Some(thread) => request.has_thread(thread),
        None => request.threads.is_none(),
    };
    if !is_of_thread || (request.lwps.is_none() && request.cpus.is_none()) {
        return is_of_thread;
    }
    let stay = span.lwp.and_then(|lwp| history.lwps.of(lwp.into()).at(span.interval.from));
    request.has_place(span.lwp, stay.and_then(|(_, stay)| stay.cpu))
}

/// The error for a name that no span or function has, with the nearest names.
pub(crate) fn unknown_name(history: &History, subject: &str) -> String {
    let mut is_name = vec![false; history.words.iter().count()];
    let places = history.words.iter().enumerate().map(|(place, (word, _))| (word, place));
    let places: crate::map::Map<_, _> = places.collect();
    for name in history.spans.iter().filter_map(|span| span.name) {
        if let Some(place) = places.get(&name) {
            is_name[*place] = true;
        }
    }
    let names = history.words.iter().zip(is_name).filter(|(_, is_name)| *is_name);
    let mut names: Vec<&str> = names.map(|((_, name), _)| name).collect();
    let asked = subject.to_lowercase();
    let shared =
        |name: &str| name.to_lowercase().chars().zip(asked.chars()).take_while(|(a, b)| a == b).count();
    let contains = |name: &str| name.to_lowercase().contains(&asked);
    names.sort_by_key(|name| (!contains(name), std::cmp::Reverse(shared(name)), *name));
    names.truncate(MOST_PROPOSED);
    let found = match names.as_slice() {
        [] => "the trace has no spans".to_string(),
        names => format!("the trace has {}", names.join(", ")),
    };
    format!("expected the name of a span or function, found `{subject}`; {found}")
}
