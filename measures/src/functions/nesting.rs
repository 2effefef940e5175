//! Spans and functions as they nest: of each what is its own, and what is that of those inside of it.

use crate::map::Map;

use sigmund_model::{LwpState, ThreadState};

use crate::{History, Interval, Span, groups::Owner};

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

pub(super) fn walk(history: &History, window: Interval, visitor: &mut impl Visitor) {
    let (owners, order) = by_owner(history, window);
    let mut open_of_key = vec![0_u32; keys(history)];
    let mut stack: Vec<Open<'_>> = Vec::new();
    let mut rest = order.as_slice();
    while let Some((first, _)) = rest.first() {
        let count = rest.partition_point(|(owner, _)| owner == first);
        let (of_owner, others) = rest.split_at(count);
        rest = others;
        let owner = owners[*first as usize];
        let mut activity = None;
        for (_, place) in of_owner {
            let span = &history.spans[*place as usize];
            // Those that are not around it have ended.
            while stack
                .last()
                .is_some_and(|open| open.span.depth >= span.depth || open.span.interval.to < span.interval.to)
            {
                close(&mut stack, &mut open_of_key, visitor);
            }
            let Some(part) = span.interval.clipped(window) else { continue };
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
            close(&mut stack, &mut open_of_key, visitor);
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

/// The owners, and the spans in the window, each with its owner: owner by owner, of each in the order of the history.
fn by_owner(history: &History, window: Interval) -> (Vec<Owner>, Vec<(u32, u32)>) {
    let (mut owners, mut numbers): (Vec<Owner>, Map<Owner, u32>) = (Vec::new(), Map::default());
    let mut order = Vec::with_capacity(history.spans.len());
    for (place, span) in history.spans.iter().enumerate() {
        let Some(owner) = Owner::new(span.thread, span.lwp) else { continue };
        if span.interval.clipped(window).is_none() {
            continue;
        }
        let number = *numbers.entry(owner).or_insert_with(|| {
            owners.push(owner);
            owners.len() as u32 - 1
        });
        order.push((number, place as u32));
    }
    order.sort_unstable();
    (owners, order)
}

/// When one owner was active.
#[derive(Debug, Default)]
struct Activity {
    /// Stretches in which that is known: whether it was, and the ticks active and known before it.
    parts: Vec<(Interval, bool, i64, i64)>,
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
        let (active, known) = self.until(i64::MAX);
        self.parts.push((interval, is_active, active, known));
    }

    /// The ticks active and known before a tick.
    fn until(&self, tick: i64) -> (i64, i64) {
        // Mostly asked about the end.
        let next = match self.parts.last() {
            Some((last, ..)) if last.from < tick => self.parts.len(),
            _ => self.parts.partition_point(|(interval, ..)| interval.from < tick),
        };
        let Some((interval, is_active, active, known)) = next.checked_sub(1).map(|place| self.parts[place])
        else {
            return (0, 0);
        };
        let ticks = Interval::new(interval.from, interval.to.min(tick)).ticks();
        (active + if is_active { ticks } else { 0 }, known + ticks)
    }

    /// How long it was active in an interval; `None` if that is not known of all of it.
    fn within(&self, interval: Interval) -> Option<i64> {
        let ((active, known), (active_then, known_then)) =
            (self.until(interval.from), self.until(interval.to));
        (known_then - known == interval.ticks()).then_some(active_then - active)
    }
}
