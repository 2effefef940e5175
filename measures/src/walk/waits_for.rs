//! What was waited for while a piece of a walk passed.

use sigmund_model::WaitKind;

use super::{Actor, Link, Piece, What, blame, object_label};
use crate::{Blame, History, Word};

/// What was waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum WaitsFor {
    /// An object. Locks and semaphores are given by their address. Others are given by their kind alone, because each
    /// request may have its own object.
    Object(Option<WaitKind>, i64),
    /// The return of a system call.
    Call(Word),
    /// Several objects that are not among the largest.
    Others,
}

impl WaitsFor {
    fn object(kind: Option<WaitKind>, object: i64) -> WaitsFor {
        use WaitKind::{Mutex, RwLockRead, RwLockWrite, Semaphore};
        let is_shared = matches!(kind, Some(Mutex | RwLockRead | RwLockWrite | Semaphore));
        WaitsFor::Object(kind, if is_shared { object } else { 0 })
    }

    /// What the target of a link's wakeup waited for.
    pub(super) fn of_link(link: Option<Link>) -> Option<WaitsFor> {
        match link? {
            Link::Woke { wait: What::BlockedOn { kind, object }, .. } => Some(WaitsFor::object(kind, object)),
            Link::Woke { wait: What::InSystemCall(call), .. } => call.map(WaitsFor::Call),
            Link::Woke { .. } | Link::Created(_) => None,
        }
    }

    /// What was waited for during a piece, and who held it, as far as the history shows it.
    ///
    /// If the actor is blocked, it is what the actor waits for. If the actor is ready, it is the lock that it was given
    /// or is about to request again. Otherwise it is what the actor waited for that this actor woke later, unless this
    /// actor is the one that the walk began with.
    pub(super) fn of(history: &History, piece: &Piece, is_own: bool) -> Option<(WaitsFor, Option<Actor>)> {
        let of_link = || {
            let waits_for = WaitsFor::of_link(piece.link).filter(|_| !is_own)?;
            Some((waits_for, Some(piece.actor).filter(|_| waits_for.is_held())))
        };
        match piece.what {
            What::BlockedOn { kind, object } => {
                Some((WaitsFor::object(kind, object), blame::holder(history, piece, object)))
            }
            What::WaitingForLwp => of_lock(history, piece).or_else(of_link),
            What::Unknown => None,
            _ => of_link(),
        }
    }

    /// Whether it is a lock, which has a holder.
    fn is_held(self) -> bool {
        use WaitKind::{Mutex, RwLockRead, RwLockWrite};
        matches!(self, WaitsFor::Object(Some(Mutex | RwLockRead | RwLockWrite), _))
    }

    /// The culprit of a piece. If it is the object itself, which is already named as what was waited for, the holder is
    /// given instead.
    pub(super) fn culprit(self, blame: Blame) -> Blame {
        match (self, blame) {
            (WaitsFor::Object(kind, object), Blame::Object(of, other, holder))
                if (kind, object) == (of, other) =>
            {
                holder.map_or(Blame::Itself, Blame::Who)
            }
            _ => blame,
        }
    }

    /// For people: `mutex 0x10 held by work`, `condvar`, `read`.
    pub(super) fn label(self, history: &History, holder: Option<&str>, others: usize) -> String {
        match self {
            WaitsFor::Object(kind, object) => {
                let label = object_label(history, kind, object);
                holder.map_or_else(|| label.clone(), |holder| format!("{label} held by {holder}"))
            }
            WaitsFor::Call(call) => history.words.text(call).to_string(),
            WaitsFor::Others => format!("{others} others"),
        }
    }
}

/// The lock that an actor waited for at the end of a piece, and its first holder. Only if the acquisition was recorded.
fn of_lock(history: &History, piece: &Piece) -> Option<(WaitsFor, Option<Actor>)> {
    let Actor::Thread(thread) = piece.actor else { return None };
    let (_, place) = history.lock_waits.of(thread).before(piece.interval.to)?;
    let asked = history.locks.get(*place as usize)?;
    let kind = WaitKind::from_name(history.words.text(asked.kind))?;
    let holder = asked.holder.map(Actor::Thread).or(asked.holder_lwp.map(Actor::Lwp));
    Some((WaitsFor::object(Some(kind), asked.object), holder))
}
