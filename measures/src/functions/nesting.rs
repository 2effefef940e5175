//! Spans and functions as they nest: of each what is its own, and what is that of those inside of it.

use sigmund_model::{LwpState, ThreadState};

use crate::{
    History, Interval, Span,
    collect::collect,
    groups::Owner,
    near,
    numbering::{ByNumber, number},
};

/// A span whose insides are known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Nested<'h> {
    pub(super) span: &'h Span,
    /// What the visitor called it.
    pub(super) tag: u32,
    /// The part in the window.
    pub(super) wall: i64,
    /// The part of that in no span directly inside of it.
    pub(super) self_wall: i64,
    /// The part of the wall time in which its thread was active, if known.
    pub(super) active: Option<i64>,
    /// The part of that in no span directly inside of it, if known.
    pub(super) self_active: Option<i64>,
    /// Whether it is inside of none of the same name and kind.
    pub(super) is_outermost: bool,
}

/// Sees all spans that touch the window, owner by owner: each before those inside of it, and again after them.
pub(super) trait Visitor {
    /// One that begins, with what the visitor called the span directly around it; the answer is what it is called.
    fn begin(&mut self, around: Option<u32>, owner: Owner, span: &Span) -> u32;
    /// One that ends.
    fn end(&mut self, nested: Nested<'_>);
}

/// A number for the name and kind of a span, less than [`keys`].
pub(super) fn key(span: &Span) -> usize {
    span.name.map_or(0, |name| name.place() + 1) * 2 + usize::from(span.is_function)
}

/// How many names and kinds there are.
fn keys(history: &History) -> usize {
    (history.words.len() + 1) * 2
}

struct Open<'h> {
    span: &'h Span,
    tag: u32,
    wall: i64,
    of_insides: i64,
    active: Option<i64>,
    active_of_insides: Option<i64>,
    is_outermost: bool,
}

/// The spans in a window, owner by owner.
struct Owned<'h> {
    history: &'h History,
    window: Interval,
    /// `None` of spans that are not in the window, or nobody's.
    owners: Vec<Option<Owner>>,
    spans: ByNumber,
}

/// Visits all spans, those of several owners at once: visitors, each of which saw some of the owners.
pub(super) fn walk<V: Visitor + Send>(
    history: &History,
    window: Interval,
    new: impl Fn() -> V + Sync + Send,
) -> Vec<V> {
    let owned = Owned::new(history, window);
    let numbers: Vec<u32> = (0..owned.owners.len() as u32).collect();
    let start = || (new(), vec![0_u32; keys(history)]);
    let visitors = collect(&numbers, start, |(visitor, open_of_key), number| {
        owned.walk(*number, open_of_key, visitor);
    });
    visitors.into_iter().map(|(visitor, _)| visitor).collect()
}

/// Visits all spans, one owner after the other.
pub(super) fn walk_in_turn(history: &History, window: Interval, visitor: &mut impl Visitor) {
    let owned = Owned::new(history, window);
    let mut open_of_key = vec![0_u32; keys(history)];
    for number in 0..owned.owners.len() as u32 {
        owned.walk(number, &mut open_of_key, visitor);
    }
}

impl<'h> Owned<'h> {
    fn new(history: &'h History, window: Interval) -> Owned<'h> {
        let (owners, numbers) = number(history.spans.len(), |place| {
            let span = &history.spans[place];
            Owner::new(span.thread, span.lwp).filter(|_| span.interval.clipped(window).is_some())
        });
        Owned { history, window, spans: ByNumber::new(owners.len(), &numbers), owners }
    }

    fn walk(&self, number: u32, open_of_key: &mut [u32], visitor: &mut impl Visitor) {
        let Some(owner) = self.owners[number as usize] else { return };
        let history = self.history;
        let mut stack: Vec<Open<'_>> = Vec::new();
        let mut activity = None;
        for place in self.spans.of(number) {
            let span = &history.spans[*place as usize];
            // Those that are not around it have ended.
            while stack
                .last()
                .is_some_and(|open| open.span.depth >= span.depth || open.span.interval.to < span.interval.to)
            {
                close(&mut stack, open_of_key, visitor);
            }
            let Some(part) = span.interval.clipped(self.window) else { continue };
            let active = span
                .active
                .filter(|_| part == span.interval)
                .or_else(|| activity.get_or_insert_with(|| Activity::of(history, owner)).within(part));
            let tag = visitor.begin(stack.last().map(|around| around.tag), owner, span);
            let open = &mut open_of_key[key(span)];
            *open += 1;
            stack.push(Open {
                span,
                tag,
                wall: part.ticks(),
                of_insides: 0,
                active,
                active_of_insides: Some(0),
                is_outermost: *open == 1,
            });
        }
        while !stack.is_empty() {
            close(&mut stack, open_of_key, visitor);
        }
    }
}

/// Ends the innermost.
fn close(stack: &mut Vec<Open<'_>>, open_of_key: &mut [u32], visitor: &mut impl Visitor) {
    let Some(Open { span, tag, wall, of_insides, active, active_of_insides, is_outermost }) = stack.pop()
    else {
        return;
    };
    open_of_key[key(span)] -= 1;
    if let Some(around) = stack.last_mut() {
        around.of_insides += wall;
        around.active_of_insides = around.active_of_insides.zip(active).map(|(sum, active)| sum + active);
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

/// When one owner was active.
#[derive(Debug, Default)]
struct Activity {
    /// Stretches in which that is known: whether it was, and the ticks active and known before it.
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

    /// The ticks active and known before a tick.
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

    /// How long it was active in an interval; `None` if that is not known of all of it.
    fn within(&mut self, interval: Interval) -> Option<i64> {
        let ((active, known), (active_then, known_then)) =
            (self.until(interval.from), self.until(interval.to));
        (known_then - known == interval.ticks()).then_some(active_then - active)
    }
}
