//! Which lock a request is for, whether it is asked about, and its wait and hold.

use sigmund_model::{
    EndReason,
    names::{KERNEL_LOCK, has_waits_only},
};

use crate::{History, Interval, LockRequest, Request, Words, groups::Owner, numbering::number};

/// A lock: addresses are those of one process, or of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lock {
    pub(crate) process: Option<u32>,
    pub(crate) object: i64,
}

/// All locks in the order in which they are first asked for, and the number of the lock of each request.
pub(crate) fn locks(history: &History) -> (Vec<Lock>, Vec<u32>) {
    let requests = &history.locks;
    // The process is looked up once for each of those who ask.
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
    /// Who made it.
    pub(crate) fn owner(&self) -> Option<Owner> {
        Owner::new(self.thread, self.lwp)
    }

    /// Whether it is for a lock of the kernel.
    pub(crate) fn is_of_kernel(&self, words: &Words) -> bool {
        words.text(self.kind).starts_with(KERNEL_LOCK)
    }

    /// Whether no event tells who released the lock, but a wakeup may.
    pub(crate) fn has_waker(&self, history: &History) -> bool {
        has_waits_only(history.words.text(self.kind))
    }

    /// From the request until it was acquired, or the wait was over; of length 0 if that is not known.
    pub(crate) fn waiting(&self) -> Interval {
        Interval::new(self.tick, self.tick.saturating_add(self.wait.unwrap_or(0)))
    }

    /// When it was held; `None` where that was not recorded.
    pub(crate) fn holding(&self) -> Option<Interval> {
        let acquired = self.waiting().to;
        Some(Interval::new(acquired, acquired.saturating_add(self.hold?)))
    }

    /// Whether it is known that it was acquired.
    pub(crate) fn is_acquired(&self) -> bool {
        self.hold.is_some() || self.end == EndReason::Unseen
    }
}

/// Which requests count: those of the threads, LWPs and CPUs that are selected, for the lock that is asked about.
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
        let Request { cpus, subject, .. } = self.request;
        let is_asked = match (subject, self.object) {
            (None, _) => true,
            (_, Some(object)) => lock.object == object,
            (Some(name), None) => lock.call_site.is_some_and(|site| is_at(history.words.text(site), name)),
        };
        let of_thread = self.request.has_thread_or_none(lock.thread);
        let cpu = || history.lwps.of(lock.lwp?.into()).at(lock.tick)?.1.cpu;
        is_asked && of_thread && self.request.has_place(lock.lwp, if cpus.is_some() { cpu() } else { None })
    }
}

/// Whether a call site, as `NAME at FILE:LINE` or `NAME`, is that of this name.
fn is_at(site: &str, name: &str) -> bool {
    site.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(" at "))
}
