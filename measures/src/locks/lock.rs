//! Which lock a request is for, whether the request is selected, and its wait and hold.

use sigmund_model::{
    EndReason,
    names::{KERNEL_LOCK, has_waits_only},
};

use crate::{History, Interval, LockRequest, Request, Words, groups::Owner, numbering::number};

/// A lock. Its address is one of a process, or of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lock {
    pub(crate) process: Option<u32>,
    pub(crate) object: i64,
}

/// All locks, in the order in which they first occur; and for each request, the number of its lock.
pub(crate) fn locks(history: &History) -> (Vec<Lock>, Vec<u32>) {
    let requests = &history.locks;
    // The process of each requester is looked up only once.
    let (owners, owner_of) = number(requests.len(), |place| requests[place].owner());
    let processes: Vec<Option<u32>> =
        owners.into_iter().map(|owner| owner.and_then(|owner| owner.process(history))).collect();
    number(requests.len(), |place| {
        let is_of_kernel = requests[place].is_of_kernel(&history.words);
        let process = processes[owner_of[place] as usize].filter(|_| !is_of_kernel);
        Lock { process, object: requests[place].object }
    })
}

impl LockRequest {
    /// The thread or LWP that made it.
    pub(crate) fn owner(&self) -> Option<Owner> {
        Owner::new(self.thread, self.lwp)
    }

    /// Whether it is for a lock of the kernel.
    pub(crate) fn is_of_kernel(&self, words: &Words) -> bool {
        words.text(self.kind).starts_with(KERNEL_LOCK)
    }

    /// Whether no event shows who released the lock. A wakeup may show it.
    pub(crate) fn has_waker(&self, history: &History) -> bool {
        has_waits_only(history.words.text(self.kind))
    }

    /// From the request until the lock was acquired, or the wait was over. Of length 0 if that is unknown.
    pub(crate) fn waiting(&self) -> Interval {
        Interval::new(self.tick, self.tick.saturating_add(self.wait.unwrap_or(0)))
    }

    /// The time in which it was held; `None` if that was not recorded.
    pub(crate) fn holding(&self) -> Option<Interval> {
        let acquired = self.waiting().to;
        Some(Interval::new(acquired, acquired.saturating_add(self.hold?)))
    }

    /// Whether it is known that it was acquired.
    pub(crate) fn is_acquired(&self) -> bool {
        self.hold.is_some() || self.end == EndReason::Unseen
    }
}

/// Selects requests by their threads, LWPs and CPUs, and by the lock in question.
#[derive(Debug)]
pub(crate) struct Selection<'r> {
    request: &'r Request,
    object: Option<i64>,
}

impl<'r> Selection<'r> {
    pub(crate) fn new(request: &'r Request) -> Selection<'r> {
        let object = request.subject.as_deref().and_then(|subject| match subject.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok().map(|address| address as i64),
            None => subject.parse().ok(),
        });
        Selection { request, object }
    }

    pub(crate) fn has(&self, history: &History, lock: &LockRequest) -> bool {
        let subject = &self.request.subject;
        let is_asked = match (subject, self.object) {
            (None, _) => true,
            (_, Some(object)) => lock.object == object,
            (Some(name), None) => lock.call_site.is_some_and(|site| is_at(history.words.text(site), name)),
        };
        let of_thread = self.request.has_thread_or_none(lock.thread);
        is_asked && of_thread && self.request.has_place(lock.lwp, lock.cpu)
    }
}

/// Whether a call site (`NAME at FILE:LINE`, or `NAME`) has this name.
fn is_at(site: &str, name: &str) -> bool {
    site.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(" at "))
}
