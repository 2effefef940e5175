//! The wakeup that ended a wait, and its waker.

use super::{Actor, Source};
use crate::{Context, History, Interrupt, Interval, Searches, Wakeup};

/// The waker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waker {
    Actor(Actor),
    Interrupt(Source),
    Nobody,
}

/// The wakeup that ended a wait.
pub(super) fn ended_by<'h>(searches: &mut Searches<'h>, target: Actor, wait: Interval) -> Option<&'h Wakeup> {
    let history = searches.history;
    let of_target = match target {
        Actor::Thread(thread) => searches.unparks.of(thread),
        Actor::Lwp(lwp) => searches.wakings.of(lwp.into()),
    };
    let mut last = None;
    let mut place = of_target.count_from(wait.to);
    let of_target = of_target.track;
    while let Some((interval, row)) = place.checked_sub(1).and_then(|place| of_target.get(place)) {
        let Some(wakeup) = history.wakeups.get(*row as usize).filter(|_| interval.from >= wait.from) else {
            break;
        };
        match wakeup.latency {
            Some(_) if interval.to >= wait.to => return Some(wakeup),
            None if interval.from == wait.to => last = last.or(Some(wakeup)),
            _ => {}
        }
        place -= 1;
    }
    last
}

/// The waker of `target`.
pub(super) fn waker(searches: &mut Searches<'_>, target: Actor, wakeup: &Wakeup) -> Waker {
    let history = searches.history;
    match wakeup.context {
        Context::Irq | Context::Softirq | Context::Nmi => Waker::Interrupt(source(history, wakeup)),
        Context::Idle => Waker::Nobody,
        Context::Task | Context::Unknown => {
            let of_lwp = |lwp: u32| match searches.mounted.of(lwp.into()).at(wakeup.tick) {
                Some((_, thread)) => Actor::Thread(*thread),
                None => Actor::Lwp(lwp),
            };
            let lwp = wakeup.waker_lwp.filter(|lwp| *lwp != 0).map(of_lwp);
            match wakeup.waker_thread.map(Actor::Thread).or(lwp) {
                Some(actor) if actor != target => Waker::Actor(actor),
                _ => Waker::Nobody,
            }
        }
    }
}

/// The interrupt whose handler made a wakeup.
fn source(history: &History, wakeup: &Wakeup) -> Source {
    interrupt_of(history, wakeup).map_or(Source::Context(wakeup.context), Source::Interrupt)
}

/// The place of the interrupt that made a wakeup, if its handler is known to have been running.
pub(crate) fn interrupt_of(history: &History, wakeup: &Wakeup) -> Option<u32> {
    let (_, place) = history.innermost.of(wakeup.cpu?.into()).at(wakeup.tick)?;
    (context(history, &history.interrupts[*place as usize]) == wakeup.context).then_some(*place)
}

/// The context in which a handler runs.
pub(crate) fn context(history: &History, interrupt: &Interrupt) -> Context {
    match history.words.text(interrupt.kind) {
        "softirq" => Context::Softirq,
        "nmi" => Context::Nmi,
        _ => Context::Irq,
    }
}
