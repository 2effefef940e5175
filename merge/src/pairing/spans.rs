//! Spans and functions, from begin to end, of one user thread on any LWP, or of an LWP that carries no user thread.
//!
//! They nest. If nested spans have no end of their own, the end of the enclosing span also ends them (`enclosing`).

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sigmund_model::{EndReason, Lwp, Thread, Ticks};

use super::names::{NameId, Names};
use crate::{error::Error, tables::OptionalTable};

/// Maximum number of open spans of one thread; deeper recursion is left out.
const DEEPEST: usize = 1 << 16;

/// The owner of spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    Thread(Thread),
    /// An LWP that carries no user thread.
    Lwp(Lwp),
}

/// Whether this is a span that the program named, or a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpanKind {
    Span,
    Function,
}

impl SpanKind {
    fn name(self) -> &'static str {
        match self {
            SpanKind::Span => "span",
            SpanKind::Function => "function",
        }
    }
}

/// What an event reports about a span or a function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpanEvent<'e> {
    pub(crate) kind: SpanKind,
    /// The address of its declaration, or of the function.
    pub(crate) address: Option<i64>,
    /// `NAME at FILE:LINE`, or `NAME`.
    pub(crate) text: Option<&'e str>,
    /// Whether begin and end have the same name, but different addresses.
    pub(crate) by_name: bool,
}

/// The property that begin and end have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Address(Option<i64>),
    Name(Option<NameId>),
}

#[derive(Clone, Copy, Debug)]
struct OpenSpan {
    since: Ticks,
    lwp: Option<Lwp>,
    kind: SpanKind,
    key: Key,
    name: Option<NameId>,
    source: Option<NameId>,
    active_before: Option<Activity>,
}

/// The active time of an owner so far, and the number of times that its state was unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Activity {
    pub(crate) active: u64,
    pub(crate) doubts: u32,
}

/// The table, and the open spans.
pub(crate) struct Spans {
    rows: OptionalTable,
    names: Names,
    open: HashMap<Owner, Vec<OpenSpan>, RandomState>,
}

impl Spans {
    pub(super) fn new(rows: OptionalTable) -> Spans {
        Spans { rows, names: Names::default(), open: HashMap::default() }
    }

    /// A span or function begins.
    pub(crate) fn begin(
        &mut self,
        owner: Owner,
        lwp: Option<Lwp>,
        event: SpanEvent<'_>,
        activity: Option<Activity>,
        tick: Ticks,
    ) {
        let (name, source) = self.named(&event);
        let key = if event.by_name { Key::Name(name) } else { Key::Address(event.address) };
        let open = self.open.entry(owner).or_default();
        if open.len() < DEEPEST {
            let kind = event.kind;
            open.push(OpenSpan { since: tick, lwp, kind, key, name, source, active_before: activity });
        }
    }

    /// A span or function ends, and those nested in it.
    pub(crate) fn end(
        &mut self,
        owner: Owner,
        event: SpanEvent<'_>,
        activity: Option<Activity>,
        tick: Ticks,
    ) -> Result<(), Error> {
        let (name, _) = self.named(&event);
        let key = if event.by_name { Key::Name(name) } else { Key::Address(event.address) };
        let Some(open) = self.open.get_mut(&owner) else { return Ok(()) };
        let is_it = |span: &OpenSpan| span.kind == event.kind && span.key == key;
        let Some(place) = open.iter().rposition(is_it) else { return Ok(()) };
        let ended: Vec<OpenSpan> = open.drain(place..).collect();
        let around = open.last().map(|span| span.since);
        if open.is_empty() {
            self.open.remove(&owner);
        }
        for (inside, span) in ended.iter().enumerate().rev() {
            let reason = if inside == 0 { EndReason::Returned } else { EndReason::Enclosing };
            let parent = inside.checked_sub(1).map(|parent| ended[parent].since).or(around);
            self.write(owner, span, (place + inside, parent), activity, tick, reason)?;
        }
        Ok(())
    }

    /// All open spans of an owner end.
    pub(crate) fn end_all(
        &mut self,
        owner: Owner,
        activity: Option<Activity>,
        tick: Ticks,
        reason: EndReason,
    ) -> Result<(), Error> {
        if self.open.is_empty() {
            return Ok(());
        }
        let Some(open) = self.open.remove(&owner) else { return Ok(()) };
        for (depth, span) in open.iter().enumerate().rev() {
            let parent = depth.checked_sub(1).map(|parent| open[parent].since);
            self.write(owner, span, (depth, parent), activity, tick.max(span.since), reason)?;
        }
        Ok(())
    }

    /// The owners that have open spans, in order.
    pub(crate) fn owners(&self) -> Vec<Owner> {
        let mut owners: Vec<Owner> = self.open.keys().copied().collect();
        owners.sort_unstable_by_key(|owner| match owner {
            Owner::Thread(thread) => (0, thread.0),
            Owner::Lwp(lwp) => (1, lwp.0.into()),
        });
        owners
    }

    /// The innermost open span or function, as `NAME at FILE:LINE`.
    pub(crate) fn innermost(&self, owner: Owner) -> Option<String> {
        let span = self.open.get(&owner)?.last()?;
        let name = self.names.of(span.name?);
        Some(match span.source {
            Some(source) => format!("{name} at {}", self.names.of(source)),
            None => name.to_string(),
        })
    }

    fn named(&mut self, event: &SpanEvent<'_>) -> (Option<NameId>, Option<NameId>) {
        let Some(text) = event.text else { return (None, None) };
        // An inlined function is followed by the chain of its callers: `sort at sort.c:29, main at sort.c:60`.
        let split = match event.kind {
            SpanKind::Function => text.split_once(" at "),
            SpanKind::Span => text.rsplit_once(" at "),
        };
        let (name, source) =
            match split.map(|(name, source)| (name, source.split(", ").next().unwrap_or(source))) {
                Some((name, source)) if is_source(source) => (name, Some(source)),
                _ => (text, None),
            };
        (self.names.id(name), source.and_then(|source| self.names.id(source)))
    }

    fn write(
        &mut self,
        owner: Owner,
        span: &OpenSpan,
        (depth, parent): (usize, Option<Ticks>),
        activity: Option<Activity>,
        tick: Ticks,
        reason: EndReason,
    ) -> Result<(), Error> {
        let (names, (thread, lwp)) = (
            &self.names,
            match owner {
                Owner::Thread(thread) => (Some(thread), span.lwp),
                Owner::Lwp(lwp) => (None, Some(lwp)),
            },
        );
        let known = span.active_before.zip(activity).filter(|(before, now)| before.doubts == now.doubts);
        let active = known.map(|(before, now)| now.active - before.active);
        // A span of length 0 was active for 0 ticks, whatever is known about its owner.
        let active = active.or((tick == span.since).then_some(0));
        self.rows.row(|mut row| {
            row.count(span.since.0).count(tick.0 - span.since.0).maybe_count(thread.map(|thread| thread.0));
            row.maybe_int(lwp.map(|lwp| lwp.0.into())).text(span.kind.name());
            row.maybe_text(span.name.map(|name| names.of(name))).int(depth as i64).maybe_count(active);
            row.maybe_text(span.source.map(|source| names.of(source))).text(reason.name());
            row.maybe_count(parent.map(|parent| parent.0));
        })
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        self.rows.finish()
    }
}

/// `lu.c:42`
fn is_source(text: &str) -> bool {
    let line = text.rsplit_once(':').map(|(_, line)| line);
    line.is_some_and(|line| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()))
}
