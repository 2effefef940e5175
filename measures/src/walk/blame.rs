//! The culprit of a piece: who or what took the time.

use sigmund_model::WaitKind;

use super::{
    Actor, Piece, Source, What,
    labels::Labels,
    waits::{Culprits, Waits},
};
use crate::{By, Context, Culprit, Group, History, Interval, Word};

/// Who or what took the time of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Blame {
    /// The actor that the question is about: nobody else took its time.
    Itself,
    /// A user thread, or an LWP without one: it ran, or had the CPU or the LWP.
    Who(Actor),
    /// The idle task: the CPU had not yet reacted to the wakeup of the waiting LWP.
    Idle,
    /// An LWP that carried no user thread, and slept.
    LwpAsleep,
    /// An LWP that carried no user thread, and waited for a CPU.
    LwpStalled,
    /// An LWP on a CPU that carried no user thread: the runtime itself.
    LwpWithoutThread,
    /// An interrupt, by its kind, number and handler.
    Interrupt(Word, Option<i64>, Option<Word>),
    /// An interrupt of which only the context is known.
    Context(&'static str),
    /// An object, and who held it when the wait began, if known.
    Object(Option<WaitKind>, i64, Option<Actor>),
    /// A system call.
    Call(Word),
    /// Not known.
    Unknown,
}

impl Blame {
    /// The culprit of a piece; `None` for waits for a CPU or an LWP, which have many.
    pub(crate) fn of(history: &History, piece: &Piece, is_own: bool) -> Option<Blame> {
        Some(match piece.what {
            What::WaitingForCpu | What::WaitingForLwp => return None,
            What::Running | What::Mounted if is_own => Blame::Itself,
            What::Running | What::Mounted => Blame::Who(piece.actor),
            What::Interrupt(place) | What::WaitingFor(Source::Interrupt(place)) => {
                let interrupt = &history.interrupts[place as usize];
                Blame::Interrupt(interrupt.kind, interrupt.number, interrupt.name)
            }
            What::WaitingFor(Source::Context(context)) => Blame::Context(Context::name(context)),
            What::BlockedOn { kind, object } => {
                // A point in time is no object.
                let object = if matches!(kind, Some(WaitKind::Sleep | WaitKind::Park)) { 0 } else { object };
                Blame::Object(kind, object, holder(history, piece, object))
            }
            What::InSystemCall(Some(call)) => Blame::Call(call),
            What::InSystemCall(None) | What::Unknown => Blame::Unknown,
        })
    }

    /// In an answer by LWP, an LWP is named instead of its user thread.
    pub(super) fn at_level(self, by: By, piece: &Piece) -> Blame {
        match (self, piece.lwp) {
            (Blame::Who(_), Some(lwp)) if by == By::Lwp => Blame::Who(Actor::Lwp(lwp)),
            _ => self,
        }
    }

    /// A culprit with the same [label](Blame::label) in an answer with this grouping. Usually it is the same for all
    /// culprits with that label, so that there are few different ones.
    pub(super) fn representative(self, history: &History, by: By) -> Blame {
        if !matches!(by, By::Name | By::Pattern) {
            return self;
        }
        let of_actor = |actor| match actor {
            Actor::Thread(thread) => Actor::Thread(history.names.threads.namesake(thread).unwrap_or(thread)),
            Actor::Lwp(lwp) => Actor::Lwp(history.names.lwps.namesake(lwp).unwrap_or(lwp)),
        };
        match self {
            Blame::Who(actor) => Blame::Who(of_actor(actor)),
            Blame::Object(kind, object, holder) => Blame::Object(kind, object, holder.map(of_actor)),
            other => other,
        }
    }

    /// Text for people: `15(work/6)`, `idle`, `irq 24(virtio0-input.0)`, `mutex 0x10 held by 15(work/6)`, `futex`.
    /// `None` for the actor itself. Threads and LWPs are grouped.
    pub fn label(self, history: &History, by: By) -> Option<String> {
        Some(match self {
            Blame::Itself => return None,
            Blame::Who(actor) => group(history, by, actor),
            Blame::Idle => Culprit::Idle.label(history),
            Blame::LwpAsleep => "LWP asleep".into(),
            Blame::LwpStalled => "LWP stalled".into(),
            Blame::LwpWithoutThread => "LWP without a thread".into(),
            Blame::Interrupt(kind, number, name) => {
                let kind = history.words.text(kind);
                let name = name.map(|name| history.words.text(name));
                match (number, name) {
                    (Some(number), Some(name)) => format!("{kind} {number}({name})"),
                    (Some(number), None) => format!("{kind} {number}"),
                    (None, Some(name)) => format!("{kind} {name}"),
                    (None, None) => kind.to_string(),
                }
            }
            Blame::Context(context) => context.into(),
            Blame::Object(kind, object, holder) => {
                let mut text = object_label(history, kind, object);
                if let Some(holder) = holder {
                    text.push_str(" held by ");
                    text.push_str(&group(history, by, holder));
                }
                text
            }
            Blame::Call(call) => history.words.text(call).to_string(),
            Blame::Unknown => "unknown".into(),
        })
    }
}

impl Piece {
    /// The culprits with their ticks, the largest first; the ticks sum to the length of the piece.
    pub fn blames(&self, history: &History, by: By) -> Vec<(Blame, i64)> {
        if let Some(blame) = Blame::of(history, self, false) {
            return vec![(blame.at_level(by, self), self.interval.ticks())];
        }
        let (mut waits, mut labels) = (Waits::default(), Labels::default());
        waits.push(history, (), self, 1);
        let mut culprits = Culprits::new(usize::MAX);
        let by = if by == By::Lwp { By::Lwp } else { By::Thread };
        culprits.add_slice(history, (by, &mut labels), Interval::ALL, waits, std::iter::once);
        let all = culprits.finish(history, (by, &mut labels));
        all.into_iter().flat_map(|((), largest)| largest.blames(history, &labels)).collect()
    }

    /// The process of its actor.
    pub(super) fn pid(&self, history: &History) -> Option<u32> {
        match self.actor {
            Actor::Thread(thread) => history.names.threads.get(thread)?.pid,
            Actor::Lwp(lwp) => history.names.lwps.get(lwp)?.pid,
        }
    }
}

/// The holder of the object that a thread waited for, at the beginning of the wait.
pub(super) fn holder(history: &History, piece: &Piece, object: i64) -> Option<Actor> {
    let Actor::Thread(thread) = piece.actor else { return None };
    let waits = history.lock_waits.of(thread);
    let (_, place) = waits.before(piece.interval.to)?;
    let request = history.locks.get(*place as usize).filter(|request| request.object == object)?;
    request.holder.map(Actor::Thread).or(request.holder_lwp.map(Actor::Lwp))
}

fn group(history: &History, by: By, actor: Actor) -> String {
    let group = match actor {
        Actor::Thread(thread) => Group::of_thread(history, by, thread),
        Actor::Lwp(lwp) => Group::of_lwp(history, by, lwp),
    };
    Culprit::Group(group).label(history)
}

/// `mutex 0x10`, `join 15(work/6)`, `io 7`, `sleep`.
pub(crate) fn object_label(history: &History, kind: Option<WaitKind>, object: i64) -> String {
    let name = kind.map_or("object", WaitKind::name);
    match kind {
        _ if object == 0 => kind.map_or("unknown", WaitKind::name).into(),
        Some(WaitKind::Join) => format!("{name} {}", history.names.thread_label(object as u64)),
        Some(WaitKind::Io) => format!("{name} {object}"),
        Some(WaitKind::Sleep) => name.into(),
        _ => format!("{name} {object:#x}"),
    }
}
