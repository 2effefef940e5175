//! Detects that all user threads are blocked, and finds out which thread waits for which.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    fmt,
    io::Write,
    sync::{
        Arc,
        atomic::{Ordering, fence},
    },
};

use sigmund_model::{Printable, Thread};

use super::{
    lwp,
    pool::Shared,
    thread::{Doing, Parked, ThreadRef, slab},
    waits::{Holder, WaitKind},
};

/// The function that is called when a deadlock is detected.
pub(super) type Handler = Arc<dyn Fn(&Deadlock) + Send + Sync>;

/// All user threads of a runtime were blocked at one moment, and nothing that the runtime knows of will unpark one of
/// them: no timer, descriptor, future or blocking call, and neither a plain thread nor a thread of another runtime that
/// holds a lock for which one of them waits.
///
/// In general it is unknown whether a plain thread would unpark one for another reason. Two cases are taken as a sign
/// that it would, and then no deadlock is reported: one of the user threads waits for a channel that a thread outside
/// the runtime has made; or one of them waits for something other than a lock, and a thread outside the runtime has unparked it there
/// before.
///
/// The readers that hold a [`RwLock`](crate::sync::RwLock) are not known.
#[derive(Clone, Debug)]
pub struct Deadlock {
    blocked: Vec<BlockedThread>,
}

/// A user thread that is blocked.
#[derive(Clone, Debug)]
pub struct BlockedThread {
    /// Its number.
    pub thread: Thread,
    /// Its name, truncated to 32 bytes; empty if it has none.
    pub name: String,
    /// What it waits for.
    pub kind: WaitKind,
    /// Address of the object. For [`WaitKind::Join`] the number of the thread, for [`WaitKind::Scope`] the number of
    /// the team.
    pub address: usize,
    /// The user thread that it waits for, if that is known.
    pub holder: Option<Thread>,
}

impl Deadlock {
    /// Inspects all threads of a runtime whose workers all sleep. During the inspection, threads outside the runtime
    /// may unpark one of its threads, which then runs and ends. So each parked thread is held meanwhile
    /// ([`HeldThreads`]), and all threads are inspected twice: a reported state was true of all of them at one moment,
    /// between the two inspections.
    pub(super) fn find(shared: &'static Shared) -> Option<Deadlock> {
        let no_blocking_calls = || shared.in_blocking.load(Ordering::Relaxed) == 0;
        let first = inspect(shared).filter(|look| !look.blocked.is_empty() && no_blocking_calls())?;
        let mut held = HeldThreads::default();
        // A thread that joins is not parked. It waits for a thread that is held, or for one that joins another one. See
        // `may_let_go`.
        for wait in first.blocked.iter().filter(|wait| wait.kind != WaitKind::Join) {
            if !held.hold(wait.block) {
                return None;
            }
        }
        let second = inspect(shared).filter(|look| look.blocked == first.blocked && no_blocking_calls())?;
        let holders: Vec<Holder> = second.blocked.iter().map(|wait| wait.holder(&held)).collect();
        if holders.iter().any(|holder| second.may_let_go(*holder)) {
            return None;
        }
        let of_all = second.blocked.iter().zip(holders);
        let mut blocked: Vec<BlockedThread> = of_all.map(|(wait, holder)| wait.describe(holder)).collect();
        if held.give_back() == AnyUnparked::Yes {
            return None;
        }
        blocked.sort_by_key(|t| t.thread);
        Some(Deadlock { blocked })
    }

    /// Whether the same threads are blocked on the same objects.
    pub(super) fn is_as(&self, other: &Deadlock) -> bool {
        let what = |thread: &BlockedThread| (thread.thread, thread.kind, thread.address);
        self.blocked.iter().map(what).eq(other.blocked.iter().map(what))
    }

    /// The blocked threads, ordered by number.
    pub fn threads(&self) -> &[BlockedThread] {
        &self.blocked
    }

    /// Threads that wait for each other in a cycle, beginning with the smallest number; empty if there is no cycle.
    pub fn cycle(&self) -> Vec<Thread> {
        let waits_for: HashMap<Thread, Thread> =
            self.blocked.iter().filter_map(|t| Some((t.thread, t.holder?))).collect();
        let chain = |start| std::iter::successors(Some(start), |thread| waits_for.get(thread).copied());
        // No thread is visited twice: each walk stops at a thread that was visited before. The map has the start of the
        // walk that visited it.
        let mut walked: HashMap<Thread, Thread> = HashMap::new();
        let mut smallest: Option<Thread> = None;
        for start in self.blocked.iter().map(|t| t.thread) {
            let end = chain(start).find(|thread| match walked.entry(*thread) {
                Entry::Occupied(_) => true,
                Entry::Vacant(new) => {
                    new.insert(start);
                    false
                }
            });
            // The walk has stopped at a thread that it visited itself: it has found a cycle.
            if let Some(inside) = end.filter(|end| walked[end] == start) {
                let ring = chain(inside).skip(1).take_while(|thread| *thread != inside);
                smallest = smallest.into_iter().chain(ring).chain([inside]).min();
            }
        }
        let ring = |first| chain(first).skip(1).take_while(move |thread| *thread != first);
        smallest.map_or_else(Vec::new, |first| std::iter::once(first).chain(ring(first)).collect())
    }
}

/// The threads of a runtime, all of which are blocked.
struct Inspection {
    blocked: Vec<Wait>,
    /// Threads of other runtimes.
    elsewhere: HashSet<Thread>,
}

/// A blocked thread, as read from its block.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Wait {
    block: ThreadRef,
    thread: Thread,
    kind: WaitKind,
    address: usize,
}

/// The state of the user thread to which a thread block belongs.
enum Block {
    /// No thread, or a thread that never runs again because its runtime was dropped.
    Free,
    /// A thread of another runtime.
    Elsewhere(Thread),
    /// Blocked without a deadline. It does not wait for I/O or a future, nor for an action that a plain thread may
    /// take.
    Blocked(Wait),
    /// A thread that is not blocked, or that a deadline or event will unpark.
    NotBlocked,
}

/// `None` if a thread is not blocked, or will be unparked by a deadline or an outside event.
fn inspect(shared: &'static Shared) -> Option<Inspection> {
    let mut look = Inspection { blocked: Vec::new(), elsewhere: HashSet::new() };
    for block in slab::all() {
        match read(block, shared) {
            Block::Free => {}
            Block::Elsewhere(thread) => {
                look.elsewhere.insert(thread);
            }
            Block::Blocked(wait) => look.blocked.push(wait),
            Block::NotBlocked => return None,
        }
    }
    Some(look)
}

fn read(block: ThreadRef, shared: &'static Shared) -> Block {
    // Blocks are reused: the values are valid only if the thread's number is the same before and after reading them.
    for _ in 0..8 {
        let thread = block.id();
        let doing = block.doing();
        if doing == Doing::Nothing {
            return Block::Free;
        }
        let Some(runtime) = block.runtime() else { return Block::Free };
        let is_ours = std::ptr::eq(runtime, shared);
        let is_left_behind = !is_ours && runtime.is_shut_down();
        let (waits, address) = (block.waits(), block.waits().address());
        let kind = waits.kind().filter(|kind| {
            // A future is usually woken from outside the runtime; I/O always is, by the kernel.
            let from_outside = matches!(kind, WaitKind::Io | WaitKind::Future);
            doing == Doing::Blocked && !from_outside && !waits.is_timed() && !waits.may_be_fed()
        });
        // Acquire: pairs with the Release fence in `begin`; the second read of the number comes after the others.
        fence(Ordering::Acquire);
        if block.id() != thread || thread.0 == 0 {
            continue;
        }
        return match kind {
            _ if is_left_behind => Block::Free,
            _ if !is_ours => Block::Elsewhere(thread),
            Some(kind) => Block::Blocked(Wait { block, thread, kind, address }),
            None => Block::NotBlocked,
        };
    }
    Block::NotBlocked
}

impl Wait {
    /// The holder of the object for which the thread waits. The thread must be held, or must join another one.
    fn holder(&self, held: &HeldThreads) -> Holder {
        if held.threads.contains(&self.block) {
            // SAFETY: it is parked and held, so it stays blocked, and its stack keeps borrowing what it waits for.
            unsafe { self.block.waits().holder() }
        } else {
            Holder::UserThread(Thread(self.address as u64))
        }
    }

    fn describe(&self, holder: Holder) -> BlockedThread {
        let Wait { block, thread, kind, address } = *self;
        let holder = match holder {
            Holder::UserThread(thread) => Some(thread),
            Holder::NotKnown | Holder::PlainThread => None,
        };
        BlockedThread { thread, name: block.name_tag(), kind, address, holder }
    }
}

impl Inspection {
    /// Whether the holder is a thread outside the runtime, whose state is unknown here.
    fn may_let_go(&self, holder: Holder) -> bool {
        match holder {
            Holder::NotKnown => false,
            Holder::UserThread(thread) => self.elsewhere.contains(&thread),
            Holder::PlainThread => true,
        }
    }
}

/// Parked threads that cannot run as long as this value exists: nothing else makes them ready, and the objects that
/// they wait for stay borrowed by their stacks. An unpark in the meantime leaves a token.
#[derive(Default)]
struct HeldThreads {
    threads: HashSet<ThreadRef>,
}

/// Whether a thread was unparked while it was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
enum AnyUnparked {
    Yes,
    No,
}

impl HeldThreads {
    /// Returns `false` if the thread is not parked. The caller then checks whether the block still belongs to the same
    /// thread.
    #[must_use]
    fn hold(&mut self, thread: ThreadRef) -> bool {
        thread.hold() && self.threads.insert(thread)
    }

    /// Releases the threads: they may run again.
    fn give_back(&mut self) -> AnyUnparked {
        let mut any = AnyUnparked::No;
        for thread in self.threads.drain() {
            match thread.park() {
                Parked::Waiting => {}
                Parked::TokenTaken => {
                    lwp::make_ready(thread);
                    any = AnyUnparked::Yes;
                }
            }
        }
        any
    }
}

impl Drop for HeldThreads {
    fn drop(&mut self) {
        let _ = self.give_back();
    }
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "all {} user threads are blocked, and nothing known to this runtime will unpark one:",
            self.blocked.len()
        )?;
        let name = |thread: Thread| {
            // The blocked threads are ordered by number.
            let place = self.blocked.binary_search_by_key(&thread, |t| t.thread).ok();
            let named = place.map(|place| &self.blocked[place]).filter(|t| !t.name.is_empty());
            named.map_or_else(String::new, |t| format!(" \"{}\"", Printable(&t.name)))
        };
        for t in self.blocked.iter().take(50) {
            write!(f, "  thread {}{} waits for ", t.thread, name(t.thread))?;
            match (t.kind, t.holder) {
                (WaitKind::Join, Some(other)) => writeln!(f, "the end of thread {other}{}", name(other))?,
                (kind, Some(holder)) => {
                    let held_by = name(holder);
                    writeln!(f, "{} {:#x}, held by thread {holder}{held_by}", kind.name(), t.address)?;
                }
                // Whoever parks waits for no object.
                (kind, None) if t.address == 0 => writeln!(f, "{}", kind.name())?,
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

/// The default handler: prints the report to stderr.
pub(super) fn print_report(deadlock: &Deadlock) {
    // Several lines; the names in them are escaped. An error of stderr is ignored.
    let _ = std::io::stderr().write_all(format!("fut: deadlock: {deadlock}").as_bytes());
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::{sync::mpsc, thread, time::Duration};

    use super::*;

    /// Each thread with the one that it waits for.
    fn deadlock(waits: impl IntoIterator<Item = (u64, Option<u64>)>) -> Deadlock {
        let blocked = |(thread, holder): (u64, Option<u64>)| BlockedThread {
            thread: Thread(thread),
            name: String::new(),
            kind: WaitKind::Join,
            address: 0,
            holder: holder.map(Thread),
        };
        Deadlock { blocked: waits.into_iter().map(blocked).collect() }
    }

    fn cycle(waits: &[(u64, Option<u64>)]) -> Vec<u64> {
        deadlock(waits.iter().copied()).cycle().into_iter().map(|thread| thread.0).collect()
    }

    // 1 → 2 → 9 → 8 → 9    3 → 5 → 4 → 3    6 → nobody
    #[test]
    fn the_cycle_with_the_smallest_number_begins_with_it() {
        let ring = [(3, Some(5)), (4, Some(3)), (5, Some(4))];
        let tail = [(1, Some(2)), (2, Some(9)), (6, None), (8, Some(9)), (9, Some(8))];
        assert_eq!(cycle(&ring), [3, 5, 4]);
        assert_eq!(cycle(&tail), [8, 9]);
        assert_eq!(cycle(&[ring.as_slice(), &tail].concat()), [3, 5, 4]);
        assert_eq!(cycle(&[(1, Some(1))]), [1]);
        assert_eq!(cycle(&[(1, Some(2)), (2, None), (3, Some(7))]), Vec::<u64>::new());
    }

    #[test]
    fn the_report_of_a_long_chain_takes_time_in_proportion_to_it() {
        const THREADS: u64 = 200_000;
        let chain = deadlock((1..=THREADS).map(|n| (n, (n < THREADS).then_some(n + 1))));
        let (send, report) = mpsc::channel();
        thread::spawn(move || send.send(chain.to_string()));
        // Following the chain from each of its threads takes 2 * 10^10 steps.
        let report = report.recv_timeout(Duration::from_secs(20)).expect("a report in time");
        assert!(report.starts_with("all 200000 user threads are blocked"), "{report}");
    }
}
