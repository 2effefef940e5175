//! The thread that waits for the world: for time, for quanta to end, and for descriptors to be ready.
use std::{io, time::{Duration, Instant}};
use super::{pool::Shared, thread::ThreadRef};

pub(super) struct Reactor { quantum: Option<Duration> }
pub(super) struct Timer;
impl Reactor {
    pub(super) fn new(quantum: Option<Duration>) -> Reactor { Reactor { quantum } }
    pub(super) fn start(&self, _shared: &'static Shared) -> io::Result<()> { let _ = self.quantum; Ok(()) }
    pub(super) fn add_timer(&self, _shared: &'static Shared, _deadline: Instant, _thread: ThreadRef) -> Timer { Timer }
    pub(super) fn remove_timer(&self, _timer: Timer) {}
    pub(super) fn is_expected(&self) -> bool { false }
    pub(super) fn shut_down(&self) {}
}
