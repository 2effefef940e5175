//! The current user threads of this process, read from their blocks without stopping them.

use std::ptr;

use sigmund_model::Thread;

use super::{
    pool::Shared,
    thread::{Doing, ThreadRef, slab},
    waits::WaitKind,
};

/// A user thread that existed during the call of [`live_threads`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveThread {
    /// Its number.
    pub thread: Thread,
    /// Its name, truncated to 32 bytes; empty if it has none.
    pub name: String,
    /// Its state at that moment.
    pub state: LiveState,
    /// The LWP that carries it, or carried it last.
    pub lwp: Option<u32>,
}

/// The state of a user thread at the moment when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LiveState {
    /// It was created, and waits for its first dispatch.
    New,
    /// It waits in a ready queue.
    Ready,
    /// An LWP carries it.
    Mounted,
    /// It is blocked.
    Blocked {
        /// What it waits for.
        kind: WaitKind,
        /// Address of the object. For [`WaitKind::Join`] the number of the thread, for [`WaitKind::Io`] the number of
        /// the descriptor, for [`WaitKind::Scope`] the number of the team.
        address: usize,
        /// The user thread that held the object when this one began to wait.
        holder: Option<Thread>,
    },
}

/// All user threads of this process, of all its runtimes, ordered by number. Threads may be created, move and end
/// during the call: each was in the returned state at some moment during the call, but not all at the same moment.
pub fn live_threads() -> Vec<LiveThread> {
    let mut live: Vec<LiveThread> = slab::all().into_iter().filter_map(look_at).collect();
    live.sort_by_key(|live| live.thread);
    live
}

/// Like [`live_threads`], but only the threads of one runtime.
pub(super) fn of_runtime(shared: &'static Shared) -> Vec<LiveThread> {
    let ours = |thread: &ThreadRef| {
        thread.doing() != Doing::Nothing && ptr::eq(thread.shared(), shared) && !thread.is_ended()
    };
    let mut live: Vec<LiveThread> = slab::all().into_iter().filter(ours).filter_map(look_at).collect();
    live.sort_by_key(|live| live.thread);
    live
}

fn look_at(thread: ThreadRef) -> Option<LiveThread> {
    // Blocks are reused: the values are valid only if the thread's number is the same before and after reading them.
    for _ in 0..8 {
        let id = thread.id();
        let state = match thread.doing() {
            Doing::Nothing => return None,
            Doing::New => LiveState::New,
            Doing::Ready => LiveState::Ready,
            Doing::Mounted => LiveState::Mounted,
            Doing::Blocked => {
                let waits = thread.waits();
                let Some(kind) = waits.kind() else { continue };
                let address = waits.address();
                let holder =
                    if kind == WaitKind::Join { Some(Thread(address as u64)) } else { waits.held_by() };
                LiveState::Blocked { kind, address, holder }
            }
        };
        let lwp = thread.last_lwp();
        let live = LiveThread { thread: id, name: thread.name_tag(), state, lwp: (lwp != 0).then_some(lwp) };
        // Acquire: pairs with the Release fence in `begin`; the second read of the number comes after the others.
        std::sync::atomic::fence(std::sync::atomic::Ordering::Acquire);
        if thread.id() == id && id.0 != 0 {
            return Some(live);
        }
    }
    None
}
