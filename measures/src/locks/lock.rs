//! Which lock a request is for, whether it is asked about, and its wait and hold.

use crate::map::Map;

use sigmund_model::EndReason;

use crate::{History, Interval, LockRequest, Request, groups::Owner};

/// A lock: addresses are those of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Lock {
    pub(crate) process: Option<u32>,
    pub(crate) object: i64,
}

/// All locks, numbered as they occur.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    numbers: Map<Lock, u32>,
    /// The processes of those who ask.
    processes: Map<Option<Owner>, Option<u32>>,
    locks: Vec<Lock>,
}

impl Locks {
    pub(crate) fn number(&mut self, history: &History, request: &LockRequest) -> u32 {
        let process = self.process(history, request);
        let lock = Lock { process, object: request.object };
        let next = self.locks.len() as u32;
        *self.numbers.entry(lock).or_insert_with(|| {
            self.locks.push(lock);
            next
        })
    }

    fn process(&mut self, history: &History, request: &LockRequest) -> Option<u32> {
        let owner = request.owner();
        *self.processes.entry(owner).or_insert_with(|| owner.and_then(|owner| owner.process(history)))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.locks.len()
    }

    pub(crate) fn lock(&self, number: u32) -> Lock {
        self.locks[number as usize]
    }
}

impl LockRequest {
    /// Who made it.
    pub(crate) fn owner(&self) -> Option<Owner> {
        Owner::new(self.thread, self.lwp)
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
        let Request { threads, cpus, subject, .. } = self.request;
        let is_asked = match (subject, self.object) {
            (None, _) => true,
            (_, Some(object)) => lock.object == object,
            (Some(name), None) => lock.call_site.is_some_and(|site| is_at(history.words.text(site), name)),
        };
        let of_thread = match lock.thread {
            Some(thread) => self.request.has_thread(thread),
            None => threads.is_none(),
        };
        let cpu = || history.lwps.of(lock.lwp?.into()).at(lock.tick)?.1.cpu;
        is_asked && of_thread && self.request.has_place(lock.lwp, if cpus.is_some() { cpu() } else { None })
    }
}

/// Whether a call site, as `NAME at FILE:LINE` or `NAME`, is that of this name.
fn is_at(site: &str, name: &str) -> bool {
    site.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(" at "))
}
