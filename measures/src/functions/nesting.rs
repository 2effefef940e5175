//! Walks spans and functions as they nest. Separates the own time of each from the time of the spans inside of it.

use sigmund_model::{LwpState, ThreadState};

use crate::{
    History, Interval, Slice, Span,
    groups::Owner,
    map::Map,
    near,
    numbering::{ByNumber, number},
    parallel,
};

/// A span after all spans inside of it were visited.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nested<'h> {
    pub(super) span: &'h Span,
    /// The number that the visitor gave it.
    pub(super) tag: u32,
    /// The part in the window.
    pub(super) wall: i64,
    /// The part of `wall` in no span directly inside of it.
    pub(super) self_wall: i64,
    /// The part of the wall time in which its thread was active, if known.
    pub(super) active: Option<i64>,
    /// The part of `active` in no span directly inside of it, if known.
    pub(super) self_active: Option<i64>,
    /// Whether it is inside of no other span of the same name and kind.
    pub(super) is_outermost: bool,
}

/// Receives all spans that touch the window, owner by owner. Each span begins before the spans inside of it, and ends
/// after them.
pub(super) trait Visitor {
    /// A span begins. `around` is the visitor's number for the span directly around it. Returns the visitor's number
    /// for this span.
    fn begin(&mut self, around: Option<u32>, owner: Owner, span: &Span) -> u32;
    /// A span ends.
    fn end(&mut self, nested: Nested<'_>);
}

/// A number for the name and kind of a span, less than [`keys`].
pub(super) fn key(span: &Span) -> usize {
    span.name.map_or(0, |name| name.place() + 1) * 2 + usize::from(span.is_function)
}

/// The number of keys: one for each name and kind.
fn keys(history: &History) -> usize {
    (history.words.len() + 1) * 2
}

/// A span that began before the slice, and its sums from later slices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Later {
    span: Span,
    wall: i64,
    of_insides: i64,
    active: Option<i64>,
    active_of_insides: Option<i64>,
}

/// The spans of each owner that began before the slice.
pub(super) type LaterSpans = Map<Owner, Vec<Later>>;

struct Open<'h> {
    span: &'h Span,
    tag: u32,
    known: Later,
    is_outermost: bool,
}

/// The spans in a slice, owner by owner.
struct Owned<'h> {
    history: &'h History,
    slice: Slice,
    /// Whether a span counts only if it begins in the slice, even if that is before the window.
    at_begin: bool,
    /// The owner of each span. `None` if the span is not in the slice, or has no owner.
    owners: Vec<Option<Owner>>,
    spans: ByNumber,
}

/// Visits all spans, in parallel for several owners. Returns the visitors, each of which received some of the owners,
/// and the spans that began before the slice.
pub(super) fn walk<V: Visitor + Send>(
    history: &History,
    (slice, at_begin): (Slice, bool),
    later: &LaterSpans,
    new: impl Fn() -> V + Sync + Send,
) -> (Vec<V>, LaterSpans) {
    let owned = Owned::new(history, slice, at_begin);
    let numbers: Vec<u32> = (0..owned.owners.len() as u32).collect();
    let start = || (new(), vec![0_u32; keys(history)], LaterSpans::default());
    let visitors = parallel::fold(&numbers, start, |(visitor, open_of_key, before), number| {
        owned.walk(*number, open_of_key, visitor, later, before);
    });
    let mut all = LaterSpans::default();
    let visitors = visitors.into_iter().map(|(visitor, _, before)| {
        all.extend(before);
        visitor
    });
    (visitors.collect(), all)
}

impl<'h> Owned<'h> {
    fn new(history: &'h History, slice: Slice, at_begin: bool) -> Owned<'h> {
        let (owners, numbers) = number(history.spans.len(), |place| {
            let span = &history.spans[place];
            Owner::new(span.thread, span.lwp).filter(|_| span.interval.clipped(slice.interval).is_some())
        });
        Owned { history, slice, at_begin, spans: ByNumber::new(owners.len(), &numbers), owners }
    }

    fn walk(
        &self,
        number: u32,
        open_of_key: &mut [u32],
        visitor: &mut impl Visitor,
        later: &LaterSpans,
        before: &mut LaterSpans,
    ) {
        let Some(owner) = self.owners[number as usize] else { return };
        let history = self.history;
        let later = later.get(&owner).map_or(&[][..], Vec::as_slice);
        let mut stack: Vec<Open<'_>> = Vec::new();
        let mut activity = None;
        for place in self.spans.of(number) {
            let span = &history.spans[*place as usize];
            // Open spans that are not around this one have ended.
            while stack
                .last()
                .is_some_and(|open| open.span.depth >= span.depth || open.span.interval.to < span.interval.to)
            {
                self.close(owner, &mut stack, open_of_key, visitor, before);
            }
            // A span before the window has no length in it.
            let Some(in_window) = span.interval.clipped(self.slice.window) else { continue };
            let part = in_window.clipped(self.slice.interval);
            let is_whole = in_window == span.interval && part == Some(in_window);
            let active = span.active.filter(|_| is_whole).or_else(|| {
                let Some(part) = part else { return Some(0) };
                activity.get_or_insert_with(|| Activity::of(history, owner)).within(part)
            });
            let mut known = Later {
                span: *span,
                wall: part.map_or(0, Interval::ticks),
                of_insides: 0,
                active,
                active_of_insides: Some(0),
            };
            if let Some(later) = later.iter().find(|later| later.span == *span) {
                known.wall += later.wall;
                known.of_insides = later.of_insides;
                known.active = both(known.active, later.active);
                known.active_of_insides = later.active_of_insides;
            }
            let tag = visitor.begin(stack.last().map(|around| around.tag), owner, span);
            let open = &mut open_of_key[key(span)];
            *open += 1;
            stack.push(Open { span, tag, known, is_outermost: *open == 1 });
        }
        while !stack.is_empty() {
            self.close(owner, &mut stack, open_of_key, visitor, before);
        }
    }

    /// Ends the innermost open span. If it began before the slice, it is kept instead.
    fn close(
        &self,
        owner: Owner,
        stack: &mut Vec<Open<'_>>,
        open_of_key: &mut [u32],
        visitor: &mut impl Visitor,
        before: &mut LaterSpans,
    ) {
        let Some(Open { span, tag, mut known, is_outermost }) = stack.pop() else { return };
        open_of_key[key(span)] -= 1;
        let is_begun = self.slice.interval.contains(span.interval.from)
            || (self.slice.is_earliest() && !self.at_begin)
            || self.slice.interval.from == i64::MIN;
        if !is_begun {
            before.entry(owner).or_default().push(known);
            return;
        }
        // For a whole span, the table has the active time.
        if span.interval.clipped(self.slice.window) == Some(span.interval) {
            known.active = span.active.or(known.active);
        }
        let Later { wall, of_insides, active, active_of_insides, .. } = known;
        if let Some(around) = stack.last_mut() {
            around.known.of_insides += wall;
            around.known.active_of_insides = both(around.known.active_of_insides, active);
        }
        visitor.end(Nested {
            span,
            tag,
            wall,
            self_wall: wall - of_insides,
            active,
            self_active: active.zip(active_of_insides).map(|(active, insides)| active - insides),
            is_outermost,
        });
    }
}

/// The sum, if both parts are known.
fn both(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one.zip(other).map(|(one, other)| one + other)
}

/// The times in which one owner was active.
#[derive(Debug, Default)]
struct Activity {
    /// Intervals whose activity is known: the interval, whether the owner was active, and the active and the known
    /// ticks before it.
    parts: Vec<(Interval, bool, i64, i64)>,
    /// Where the last search ended.
    hint: usize,
}

impl Activity {
    fn of(history: &History, owner: Owner) -> Activity {
        let mut activity = Activity::default();
        match owner {
            Owner::Thread(thread) => {
                for (interval, stay) in history.threads.of(thread).iter() {
                    if !matches!(stay.state, ThreadState::Unknown | ThreadState::Mounted) {
                        activity.push(interval, stay.state == ThreadState::Active);
                    }
                }
            }
            Owner::Lwp(lwp) => {
                for (interval, stay) in history.lwps.of(lwp.into()).iter() {
                    if stay.state != LwpState::Unknown {
                        activity.push(interval, stay.state == LwpState::Running);
                    }
                }
            }
        }
        activity
    }

    fn push(&mut self, interval: Interval, is_active: bool) {
        let (active, known) = self.parts.last().map_or((0, 0), |(last, was_active, active, known)| {
            (active + if *was_active { last.ticks() } else { 0 }, known + last.ticks())
        });
        self.parts.push((interval, is_active, active, known));
    }

    /// The active and the known ticks before a tick.
    fn until(&mut self, tick: i64) -> (i64, i64) {
        self.hint = near(&self.parts, |(interval, ..)| interval.from < tick, self.hint);
        let Some((interval, is_active, active, known)) =
            self.hint.checked_sub(1).map(|place| self.parts[place])
        else {
            return (0, 0);
        };
        let ticks = Interval::new(interval.from, interval.to.min(tick)).ticks();
        (active + if is_active { ticks } else { 0 }, known + ticks)
    }

    /// The active ticks in an interval; `None` if the activity is not known in all of it.
    fn within(&mut self, interval: Interval) -> Option<i64> {
        let ((active, known), (active_then, known_then)) =
            (self.until(interval.from), self.until(interval.to));
        (known_then - known == interval.ticks()).then_some(active_then - active)
    }
}
