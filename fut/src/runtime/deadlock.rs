//! Telling that all user threads are blocked, and who waits for whom.

use std::{collections::HashMap, fmt, sync::Arc};

use sigmund_model::Thread;

use super::{
    pool::Shared,
    thread::{Doing, ThreadRef, slab},
    waits::WaitKind,
};

/// What is called when a deadlock is found.
pub(super) type Handler = Arc<dyn Fn(&Deadlock) + Send + Sync>;

/// All user threads of a runtime are blocked, and no timer, descriptor or blocking call will unpark one.
#[derive(Clone, Debug)]
pub struct Deadlock {
    blocked: Vec<BlockedThread>,
}

/// A user thread that is blocked.
#[derive(Clone, Debug)]
pub struct BlockedThread {
    /// Its number.
    pub thread: Thread,
    /// Its name; empty if it has none.
    pub name: String,
    /// What it waits for.
    pub kind: WaitKind,
    /// Where that is; for [`WaitKind::Join`] the number of the thread, for [`WaitKind::Scope`] that of the team.
    pub address: usize,
    /// The user thread that it waits for, if it waits for one.
    pub holder: Option<Thread>,
}

impl Deadlock {
    /// Looks at all threads of a runtime whose workers all sleep.
    pub(super) fn find(shared: &'static Shared) -> Option<Deadlock> {
        if shared.in_blocking.load(std::sync::atomic::Ordering::Relaxed) > 0 {
            return None;
        }
        let ours =
            |thread: &ThreadRef| thread.doing() != Doing::Nothing && std::ptr::eq(thread.shared(), shared);
        let threads: Vec<ThreadRef> = slab::all().into_iter().filter(ours).collect();
        if threads.is_empty() || threads.iter().any(|thread| thread.doing() != Doing::Blocked) {
            return None;
        }
        // With a deadline, or waiting for the world: it will go on by itself.
        let goes_on = |t: &ThreadRef| t.waits().is_timed() || t.waits().kind() == Some(WaitKind::Io);
        if threads.iter().any(goes_on) {
            return None;
        }
        let mut blocked: Vec<BlockedThread> = threads.into_iter().map(blocked).collect();
        blocked.sort_by_key(|t| t.thread);
        Some(Deadlock { blocked })
    }

    /// The blocked threads, in the order of their numbers.
    pub fn threads(&self) -> &[BlockedThread] {
        &self.blocked
    }

    /// Threads that wait for each other in a ring, beginning with the one of the smallest number; empty if there is
    /// no such ring.
    pub fn cycle(&self) -> Vec<Thread> {
        let waits_for: HashMap<Thread, Thread> =
            self.blocked.iter().filter_map(|t| Some((t.thread, t.holder?))).collect();
        for start in self.blocked.iter().map(|t| t.thread) {
            let chain = || std::iter::successors(Some(start), |thread| waits_for.get(thread).copied());
            if let Some(len) = chain().skip(1).take(waits_for.len()).position(|thread| thread == start) {
                return chain().take(len + 1).collect();
            }
        }
        Vec::new()
    }
}

fn blocked(thread: ThreadRef) -> BlockedThread {
    let (kind, address) = (thread.waits().kind().unwrap_or(WaitKind::Io), thread.waits().address());
    let holder = match kind {
        WaitKind::Join => Some(address as u64),
        // SAFETY: the thread is blocked, and all who could unpark it are too.
        _ => unsafe { thread.waits().holder() },
    };
    // SAFETY: it has not ended, and none of those who could make it end runs.
    let name = unsafe { thread.name() }.unwrap_or("").to_string();
    BlockedThread { thread: thread.id(), name, kind, address, holder: holder.map(Thread) }
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "all {} user threads are blocked, and nothing will unpark one:", self.blocked.len())?;
        let name = |thread: Thread| {
            let named = self.blocked.iter().find(|t| t.thread == thread && !t.name.is_empty());
            named.map_or_else(String::new, |t| format!(" \"{}\"", t.name))
        };
        for t in self.blocked.iter().take(50) {
            write!(f, "  thread {}{} waits for ", t.thread, name(t.thread))?;
            match (t.kind, t.holder) {
                (WaitKind::Join, Some(other)) => writeln!(f, "the end of thread {other}{}", name(other))?,
                (kind, Some(holder)) => {
                    let held_by = name(holder);
                    writeln!(f, "{} {:#x}, held by thread {holder}{held_by}", kind.name(), t.address)?;
                }
                (kind, None) => writeln!(f, "{} {:#x}", kind.name(), t.address)?,
            }
        }
        if self.blocked.len() > 50 {
            writeln!(f, "  and {} more", self.blocked.len() - 50)?;
        }
        let cycle = self.cycle();
        if let Some(first) = cycle.first() {
            let ring: Vec<String> = cycle.iter().chain([first]).map(Thread::to_string).collect();
            writeln!(f, "  they wait for each other: {}", ring.join(" → "))?;
        }
        Ok(())
    }
}

/// What happens if the program does not choose.
pub(super) fn say(deadlock: &Deadlock) {
    eprint!("fut: deadlock: {deadlock}");
}
