//! Facts from removed parts of a trace about user threads that still live: their names, creation, last state and open
//! spans.
//!
//! The recorder keeps these facts in one file for each user trace, beside the first part that is kept. Each time it
//! removes parts, it reads them and the previous file, and writes the next file ([`carry_over`]). The traced program
//! does not take part in this. The owners are ordered in the file, so the recorder keeps only those owners in memory of
//! which the removed parts have events.
//!
//! ```text
//! part 3 (removed) ──────┐
//! carried to part 3 ─────┴─▶ carried to part 4     part 4   part 5 …
//! ```
//!
//! A file is a header and packets, like a user trace:
//!
//! ```text
//! CARRIED_LWPS     {u64 gap} {u32 lwp, u32 0, u64 sequence, u64 lost, u64 gap}…      one packet, the first
//! CARRIED_THREADS  {u8 0: thread, 1: LWP} {u64 number} {text name} {u64 created} {u64 created by}
//!                  {u64 mounted, u32 LWP} {u64 left, u8 reason, u8 kind, u64 on} {u64 ready}
//!                  {u32 spans} {u32 code, u32 lwp, u64 address, u64 since}…           an owner, repeated
//! CARRIED_END      {u64 owners} {u64 owners left out for want of room}                one packet, the last
//! ```
//! A tick of 0 means none.
//!
//! The snapshot of a flight recorder has packets of kind `CARRIED_THREADS`, too, and so has a program's own recording.
//! They describe the user threads that lived when the snapshot was taken, or when the recording began, with their
//! names, since the events of their creation may be missing. The ticks of these packets say when that was.
//!
//! The file contains facts instead of states: when a thread was last mounted, when it left its LWP, and when it was
//! made ready. Of each kind of fact only the latest counts, so the packets of different LWPs can be read in any order.
//! A state follows from these facts ([`Carried::state`]).

mod digest;
mod file;

use std::collections::BTreeMap;

use sigmund_model::{LeaveReason, Lwp, Thread, Ticks, Wait};

pub use digest::{Changes, Digest};
pub(super) use file::decode_owners;
#[cfg(all(feature = "runtime", feature = "drain"))]
pub(crate) use file::encode_owners;
pub use file::{CarriedFile, CarriedSummary, carry_over};

/// The owner of facts that are carried over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CarriedOwner {
    /// A user thread.
    Thread(Thread),
    /// An LWP. Its facts are the spans that it opened while it carried no user thread.
    Lwp(Lwp),
}

/// The facts about one owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// The name of the thread; empty if it has none, or if its creation was not recorded.
    pub name: Box<str>,
    /// When it was created.
    pub created: Option<Ticks>,
    /// The user thread that created it.
    pub created_by: Option<Thread>,
    /// When it was last mounted, and on which LWP.
    pub mounted: Option<(Ticks, Lwp)>,
    /// When it last left an LWP, why, and what it waits for.
    pub left: Option<(Ticks, LeaveReason, Wait)>,
    /// When it was last made ready.
    pub ready: Option<Ticks>,
    /// Its open spans and functions, the outermost first.
    pub spans: Vec<CarriedSpan>,
}

/// An open span or function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarriedSpan {
    /// The code of the event that began it.
    pub code: u32,
    /// The address in that event.
    pub address: u64,
    /// When it began.
    pub since: Ticks,
    /// The LWP on which it began.
    pub lwp: Lwp,
}

/// The state of a user thread that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CarriedState {
    /// It was created, and waits for its first dispatch.
    New,
    /// It waits in a ready queue.
    Ready,
    /// This LWP carries it.
    Mounted(Lwp),
    /// It is blocked, and waits for this.
    Blocked(Wait),
    /// It is on no LWP, for an unknown reason.
    Unmounted,
    /// Events were lost that may have changed its state.
    Unknown,
}

/// Until when events were lost: for each LWP that lives, and for all LWPs together that have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CarriedLwps {
    lwps: BTreeMap<Lwp, LastPacket>,
    /// The end of the last gap of all LWPs that have ended.
    gap: Ticks,
}

/// The last packet of an LWP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LastPacket {
    sequence: u64,
    lost: u64,
    /// The end of the LWP's last gap.
    gap: Ticks,
}

impl CarriedLwps {
    /// The end of the last gap of any LWP.
    fn last_gap(&self) -> Ticks {
        self.lwps.values().map(|last| last.gap).fold(self.gap, Ticks::max)
    }

    fn gap_of(&self, lwp: Lwp) -> Ticks {
        self.lwps.get(&lwp).map_or(self.gap, |last| last.gap)
    }
}

impl Carried {
    /// The state that follows from these facts; `None` if the thread has ended.
    pub fn state(&self, lwps: &CarriedLwps) -> Option<CarriedState> {
        let mounted = self.mounted.filter(|(tick, _)| self.left.is_none_or(|(left, ..)| left <= *tick));
        if let Some((tick, lwp)) = mounted {
            let is_known = tick >= lwps.gap_of(lwp);
            return Some(if is_known { CarriedState::Mounted(lwp) } else { CarriedState::Unknown });
        }
        // The thread may have been made ready while it was about to block.
        let mounted = self.mounted.map_or(Ticks(0), |(tick, _)| tick);
        let ready = self.ready.filter(|ready| *ready > mounted);
        let left = self.left.map_or(Ticks(0), |(tick, ..)| tick);
        let last = left.max(ready.unwrap_or_default()).max(self.created.unwrap_or_default());
        Some(match self.left {
            Some((_, LeaveReason::Exit, _)) => return None,
            _ if last < lwps.last_gap() => CarriedState::Unknown,
            Some((_, LeaveReason::Yield | LeaveReason::Quantum, _)) => CarriedState::Ready,
            Some((_, LeaveReason::Block, _)) | None if ready.is_some() => CarriedState::Ready,
            Some((_, LeaveReason::Block, wait)) => CarriedState::Blocked(wait),
            Some((tick, LeaveReason::Unknown, _)) if ready.is_some_and(|ready| ready > tick) => {
                CarriedState::Ready
            }
            Some((_, LeaveReason::Unknown, _)) => CarriedState::Unmounted,
            None if self.created.is_some() => CarriedState::New,
            None => CarriedState::Unknown,
        })
    }

    /// Adds later facts. Of each kind of fact, the later one counts.
    pub fn join(&mut self, later: Carried) {
        let has_ended = matches!(self.left, Some((_, LeaveReason::Exit, _)));
        if has_ended && later.created > self.left.map(|(tick, ..)| tick) {
            // The number now belongs to another thread.
            *self = Carried::default();
        }
        if !later.name.is_empty() {
            self.name = later.name;
        }
        self.created = self.created.max(later.created);
        self.created_by = later.created_by.or(self.created_by);
        self.mount(later.mounted);
        self.leave(later.left);
        self.ready = self.ready.max(later.ready);
    }

    fn mount(&mut self, mounted: Option<(Ticks, Lwp)>) {
        let tick = |mounted: Option<(Ticks, Lwp)>| mounted.map(|(tick, _)| tick);
        if tick(mounted) >= tick(self.mounted) {
            self.mounted = mounted;
        }
    }

    fn leave(&mut self, left: Option<(Ticks, LeaveReason, Wait)>) {
        let tick = |left: Option<(Ticks, LeaveReason, Wait)>| left.map(|(tick, ..)| tick);
        if tick(left) >= tick(self.left) {
            self.left = left;
        }
    }
}

#[cfg(test)]
mod tests {
    use sigmund_model::WaitKind;

    use super::*;

    const LWP: Lwp = Lwp(70);

    fn at(tick: u64) -> Option<Ticks> {
        Some(Ticks(tick))
    }

    fn left(tick: u64, reason: LeaveReason) -> Option<(Ticks, LeaveReason, Wait)> {
        let wait = Wait { kind: Some(WaitKind::Mutex), on: Some(0xbeef) };
        Some((Ticks(tick), reason, if reason == LeaveReason::Block { wait } else { Wait::default() }))
    }

    #[test]
    fn a_state_follows_from_the_latest_facts() {
        use CarriedState::{Blocked, Mounted, New, Ready, Unmounted};
        let blocked = Blocked(Wait { kind: Some(WaitKind::Mutex), on: Some(0xbeef) });
        let mounted = |tick| Some((Ticks(tick), LWP));
        let facts =
            |created, mounted, left, ready| Carried { created, mounted, left, ready, ..Carried::default() };
        for (facts, expected) in [
            (facts(at(1), None, None, None), Some(New)),
            (facts(at(1), None, None, at(2)), Some(Ready)),
            (facts(at(1), mounted(3), None, at(2)), Some(Mounted(LWP))),
            (facts(None, mounted(3), left(4, LeaveReason::Block), at(2)), Some(blocked)),
            // Made ready while it was about to block.
            (facts(None, mounted(3), left(5, LeaveReason::Block), at(4)), Some(Ready)),
            (facts(None, mounted(3), left(4, LeaveReason::Block), at(6)), Some(Ready)),
            (facts(None, mounted(3), left(4, LeaveReason::Yield), None), Some(Ready)),
            (facts(None, mounted(3), left(4, LeaveReason::Unknown), None), Some(Unmounted)),
            (facts(None, mounted(5), left(4, LeaveReason::Block), None), Some(Mounted(LWP))),
            (facts(at(1), mounted(3), left(4, LeaveReason::Exit), None), None),
        ] {
            assert_eq!(facts.state(&CarriedLwps::default()), expected, "{facts:?}");
        }
    }

    #[test]
    fn facts_before_a_gap_leave_the_state_unknown_but_for_a_thread_on_another_lwp() {
        let last = LastPacket { gap: Ticks(50), ..LastPacket::default() };
        let lwps = CarriedLwps { lwps: [(LWP, last)].into(), gap: Ticks(0) };
        let on = |lwp| Carried { mounted: Some((Ticks(40), lwp)), ..Carried::default() }.state(&lwps);
        assert_eq!(on(LWP), Some(CarriedState::Unknown));
        assert_eq!(on(Lwp(71)), Some(CarriedState::Mounted(Lwp(71))));
        let blocked = |tick| Carried { left: left(tick, LeaveReason::Block), ..Carried::default() };
        assert_eq!(blocked(40).state(&lwps), Some(CarriedState::Unknown));
        assert!(matches!(blocked(60).state(&lwps), Some(CarriedState::Blocked(_))));
    }

    #[test]
    fn facts_can_be_joined_in_any_order() {
        let early = Carried {
            created: at(1),
            name: "a".into(),
            mounted: Some((Ticks(2), LWP)),
            ..Carried::default()
        };
        let late = Carried {
            left: left(9, LeaveReason::Block),
            mounted: Some((Ticks(7), LWP)),
            ..Carried::default()
        };
        let joined = |first: &Carried, second: &Carried| {
            let mut joined = first.clone();
            joined.join(second.clone());
            joined
        };
        assert_eq!(joined(&early, &late), joined(&late, &early));
        // A number that is used again.
        let ended = Carried { left: left(9, LeaveReason::Exit), ..early.clone() };
        let again = Carried { created: at(12), name: "b".into(), ..Carried::default() };
        assert_eq!(joined(&ended, &again), again);
    }
}
