//! Instances of the subject of a question: of a span or function with a given name, or of a pair of events.

use std::{collections::BTreeSet, ops::Range};

use sigmund_model::EndReason;

use crate::{Actor, History, Interval, Needs, Request, Slice, Span, Word, reactivity::Pairs};

/// The number of existing names that an error proposes for an unknown name.
const MOST_PROPOSED: usize = 3;

/// An instance that overlaps the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    /// The user thread or LWP that it belongs to.
    pub(crate) actor: Actor,
    /// From its begin to its end, not cut to the window.
    pub(crate) interval: Interval,
    /// What ended it.
    pub(crate) end: EndReason,
}

/// The instances that were found.
pub(crate) struct FoundInstances {
    /// Sorted by their ends.
    pub(crate) instances: Vec<Instance>,
    pub(crate) left_out: LeftOut,
}

/// The number of pairs that are left out because their TO event is of no user thread or LWP. No walk can begin there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeftOut(usize);

impl LeftOut {
    /// The note for readers of the answer.
    pub(crate) fn note(self) -> Option<String> {
        let LeftOut(count) = self;
        let pairs = if count == 1 { "pair is" } else { "pairs are" };
        (count > 0).then(|| {
            format!("{count} {pairs} left out: the TO event is of no user thread or LWP (`--reactivity` counts them).")
        })
    }
}

/// Collects the instances of the span, function or pair of events that a request names, slice by slice.
///
/// They are the instances that overlap the window, of the selected threads, LWPs and CPUs. A span counts for the LWP
/// and CPU on which it began; these are unknown if it began before the window. A pair belongs to the thread or LWP of
/// its TO event. Pairs whose TO event has neither are left out, and counted.
pub(crate) enum Instances {
    Spans { found: Vec<Instance>, names: SpanNames },
    Pairs(Pairs),
}

impl Instances {
    /// `None` if the request names none.
    pub(crate) fn asked(request: &Request) -> Option<Instances> {
        if request.is_of_pairs {
            return Some(Instances::Pairs(Pairs::default()));
        }
        request.subject.as_ref()?;
        Some(Instances::Spans { found: Vec::new(), names: SpanNames::default() })
    }

    /// The tables needed to find them.
    pub(crate) fn needs(&self, request: &Request) -> Needs {
        match self {
            Instances::Spans { .. } => {
                Needs { spans: true, only_named: true, lwp_states: request.cpus.is_some(), ..Needs::NONE }
            }
            Instances::Pairs(_) => Needs::PAIRS,
        }
    }

    pub(crate) fn add(&mut self, history: &History, slice: Slice, request: &Request) {
        match self {
            Instances::Spans { found, names } => {
                names.add(history, slice, request);
                let instances = spans(history, request);
                found.extend(instances.filter_map(|(span, inside)| {
                    let is_here = slice.begins(inside) && is_on_cpu(history, request, slice, span);
                    is_here.then(|| instance(span)).flatten()
                }));
            }
            Instances::Pairs(pairs) => pairs.add(history, slice, request),
        }
    }

    /// To be called after all slices were added: whether all have been found. If not, all slices have to be added once
    /// more; only pairs need this.
    pub(crate) fn is_done(&mut self, history: &History, request: &Request) -> bool {
        match self {
            Instances::Spans { .. } => true,
            Instances::Pairs(pairs) => pairs.is_done(history, request),
        }
    }

    /// The instances, sorted by their ends. To be called after all slices.
    ///
    /// # Errors
    /// When no span or function has this name.
    pub(crate) fn finish(self, history: &History, request: &Request) -> Result<FoundInstances, String> {
        let (mut instances, without_actor) = match self {
            Instances::Spans { found, names } => {
                names.check(history, request)?;
                (found, 0)
            }
            Instances::Pairs(pairs) => {
                let pairs = pairs.finish().pairs;
                let without_actor = pairs.iter().filter(|pair| pair.actor.is_none()).count();
                let instance = |pair: crate::reactivity::Pair| {
                    Some(Instance { actor: pair.actor?, interval: pair.interval, end: EndReason::Returned })
                };
                (pairs.into_iter().filter_map(instance).collect(), without_actor)
            }
        };
        instances
            .sort_unstable_by_key(|instance| (instance.interval.to, instance.interval.from, instance.actor));
        Ok(FoundInstances { instances, left_out: LeftOut(without_actor) })
    }
}

/// The instances of the named span that end in a slice. Only for requests that select no CPUs: only then is it known at
/// once whether an instance is selected.
pub(crate) fn ending_in(history: &History, slice: Slice, request: &Request) -> Vec<Instance> {
    let ending = spans(history, request).filter(|(_, inside)| slice.owns(*inside));
    ending.filter_map(|(span, _)| instance(span)).collect()
}

/// The range of the instances that end in a slice. `instances` are sorted by their ends.
pub(crate) fn those_ending_in(instances: &[Instance], slice: Slice) -> Range<u32> {
    let ended_by = |tick| instances.partition_point(|instance| instance.interval.to <= tick) as u32;
    let first = if slice.is_earliest() { 0 } else { ended_by(slice.interval.from) };
    let last = if slice.is_latest() { instances.len() as u32 } else { ended_by(slice.interval.to) };
    first..last
}

/// The spans with the requested name, of the selected threads and LWPs, each with its part inside of the window.
fn spans<'h>(
    history: &'h History,
    request: &'h Request,
) -> impl Iterator<Item = (&'h Span, Interval)> + use<'h> {
    let window = request.extent(history);
    let name = request.subject.as_ref().and_then(|subject| history.words.get(subject));
    let named = history.spans.iter().filter(move |span| name.is_some() && span.name == name);
    named.filter_map(move |span| {
        let is_of_thread = request.has_thread_or_none(span.thread);
        let is_of_lwp = request.lwps.is_none() || span.lwp.is_some_and(|lwp| request.has_lwp(lwp));
        let inside = span.interval.clipped(window)?;
        (is_of_thread && is_of_lwp).then_some((span, inside))
    })
}

fn instance(span: &Span) -> Option<Instance> {
    let actor = span.thread.map(Actor::Thread).or(span.lwp.map(Actor::Lwp))?;
    Some(Instance { actor, interval: span.interval, end: span.end })
}

/// Whether a span began on a selected CPU. The slice has to contain its beginning.
fn is_on_cpu(history: &History, request: &Request, slice: Slice, span: &Span) -> bool {
    if request.cpus.is_none() {
        return true;
    }
    let stay = span.lwp.filter(|_| slice.window.from <= span.interval.from);
    let stay = stay.and_then(|lwp| history.lwps.of(lwp.into()).at(span.interval.from));
    request.has_place(span.lwp, stay.and_then(|(_, stay)| stay.cpu))
}

/// The names of the spans in all slices. Collected until the requested name occurs.
#[derive(Default)]
pub(crate) struct SpanNames {
    occurs: bool,
    names: BTreeSet<Word>,
}

impl SpanNames {
    pub(crate) fn add(&mut self, history: &History, slice: Slice, request: &Request) {
        let asked = request.subject.as_ref().and_then(|subject| history.words.get(subject));
        for span in history.spans.iter().filter(|span| span.interval.clipped(slice.interval).is_some()) {
            if self.occurs {
                self.names.clear();
                return;
            }
            self.occurs = asked.is_some() && span.name == asked;
            self.names.extend(span.name);
        }
    }

    /// # Errors
    /// When the requested name did not occur in the window, and is not known to occur outside of it.
    pub(crate) fn check(self, history: &History, request: &Request) -> Result<(), String> {
        match &request.subject {
            Some(subject) if !self.occurs => {
                let is_whole = request.window == Interval::ALL;
                if request.is_subject_known || (!is_whole && history.words.get(subject).is_some()) {
                    return Ok(());
                }
                let names = self.names.iter().map(|name| history.words.text(*name));
                Err(no_such_name(if is_whole { "trace" } else { "window" }, names.collect(), subject))
            }
            _ => Ok(()),
        }
    }
}

/// The error for a name that no span or function has, with the nearest names that exist.
fn no_such_name(of: &str, mut names: Vec<&str>, subject: &str) -> String {
    let asked = subject.to_lowercase();
    let shared =
        |name: &str| name.to_lowercase().chars().zip(asked.chars()).take_while(|(a, b)| a == b).count();
    let contains = |name: &str| name.to_lowercase().contains(&asked);
    names.sort_by_key(|name| (!contains(name), std::cmp::Reverse(shared(name)), *name));
    names.truncate(MOST_PROPOSED);
    let found = match names.as_slice() {
        [] => format!("the {of} has no spans"),
        names => format!("the {of} has {}", names.join(", ")),
    };
    format!("expected the name of a span or function, found `{subject}`; {found}")
}
