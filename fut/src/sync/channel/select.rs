//! Waiting for the first of several operations on channels that is possible.
//!
//! 1. All operations are tried, without waiting, in a random order: so none that stays possible starves, whatever else the
//!    program selects in between.
//! 2. If none is possible, a waiter for each enters the list of its channel; the protocol of the choice is that of
//!    `selection.rs`. A waiter does not enter a list while its operation is possible (rule 1 of
//!    `core.rs` holds): then the thread withdraws, and tries all again. So it never completes an operation
//!    while another side may select one of its waiters.
//! 3. Two waiters of one selection never match each other.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use super::{
    super::{
        deadline_after,
        rt::{LeaveQueue, Parker, WaitKind, WaitsFor, checkpoint, yield_now},
        wait_list::Waiter,
    },
    Receiver, RecvError, SendError, Sender,
    core::{Core, NotReceived, NotSent, Slot},
    selection::{Choice, Selection},
};

/// Number of selections so far: the seeds of their orders.
static SELECTIONS: AtomicU64 = AtomicU64::new(0);

/// How long to wait for an operation.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    Forever,
    /// Not at all.
    Now,
    Within(Duration),
    Until(Instant),
}

/// An operation that was entered, or not.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub enum Entered {
    /// It is possible, so its waiter was not entered.
    Possible,
    /// Its waiter is in the list; it becomes possible at this time, if there is one.
    Waiting(Option<Instant>),
}

/// An operation on a channel, with the waiter for it. Only those here: [`select`] relies on what they do.
pub trait Operation: private::Sealed {
    /// Completes it if that is possible without waiting. Its waiter is in no list.
    fn try_now(&mut self) -> bool;
    /// Enters its waiter, unless it is possible.
    fn enter(&self, choice: Choice) -> Entered;
    /// Removes its waiter, if it is in the list.
    fn leave(&self);
    /// It was selected, and left: stores its result.
    fn finish(&mut self);
    /// The address that identifies the channel in a trace.
    fn address(&self) -> usize;
    /// Whether a plain thread has made the channel.
    fn is_from_outside(&self) -> bool;
}

mod private {
    pub trait Sealed {}
}

impl<T> private::Sealed for Receive<'_, T> {}
impl<T> private::Sealed for Send<'_, T> {}

/// Receiving.
pub struct Receive<'a, T> {
    core: &'a Core<T>,
    waiter: Waiter<Slot<T>>,
    result: Option<Result<T, RecvError>>,
}

/// Sending a value.
pub struct Send<'a, T> {
    core: &'a Core<T>,
    waiter: Waiter<Slot<T>>,
    result: Option<Result<(), SendError<T>>>,
}

impl<T> Receiver<T> {
    #[doc(hidden)]
    pub fn __receive(&self) -> Receive<'_, T> {
        Receive { core: self.core(), waiter: Waiter::new(Parker::here(), Slot::new(None)), result: None }
    }
}

impl<T> Sender<T> {
    #[doc(hidden)]
    pub fn __send(&self, value: T) -> Send<'_, T> {
        Send { core: self.core(), waiter: Waiter::new(Parker::here(), Slot::new(Some(value))), result: None }
    }
}

impl<T> Receive<'_, T> {
    /// The result, if it was completed.
    pub fn take(self) -> Option<Result<T, RecvError>> {
        self.result
    }
}

impl<T> Send<'_, T> {
    /// The result, if it was completed. If not, the value is dropped.
    pub fn take(self) -> Option<Result<(), SendError<T>>> {
        self.result
    }
}

impl<T> Operation for Receive<'_, T> {
    fn try_now(&mut self) -> bool {
        self.result = match self.core.try_recv() {
            Ok(value) => Some(Ok(value)),
            Err(NotReceived::Disconnected) => Some(Err(RecvError)),
            Err(NotReceived::Empty) => None,
        };
        self.result.is_some()
    }

    fn enter(&self, choice: Choice) -> Entered {
        // SAFETY: the waiter is not moved before `leave` has returned: `select` borrows the operation until then.
        unsafe { self.core.enter_receiver(&self.waiter, choice) }
    }

    fn leave(&self) {
        self.core.leave_receivers(&self.waiter);
    }

    fn finish(&mut self) {
        self.result = Some(self.waiter.payload().value.take().ok_or(RecvError));
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self.core).addr()
    }

    fn is_from_outside(&self) -> bool {
        self.core.is_from_outside()
    }
}

impl<T> Operation for Send<'_, T> {
    fn try_now(&mut self) -> bool {
        let value = &mut self.waiter.payload().value;
        self.result = match self.core.send_now(value) {
            Ok(()) => Some(Ok(())),
            Err(NotSent::Disconnected) => value.take().map(|value| Err(SendError(value))),
            Err(NotSent::Full) => None,
        };
        self.result.is_some()
    }

    fn enter(&self, choice: Choice) -> Entered {
        // SAFETY: as for receiving.
        unsafe { self.core.enter_sender(&self.waiter, choice) }
    }

    fn leave(&self) {
        self.core.leave_senders(&self.waiter);
    }

    fn finish(&mut self) {
        self.result = Some(self.waiter.payload().value.take().map_or(Ok(()), |value| Err(SendError(value))));
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self.core).addr()
    }

    fn is_from_outside(&self) -> bool {
        self.core.is_from_outside()
    }
}

/// Completes one of the operations; `false` if none was possible in time.
pub fn select(operations: &mut [&mut dyn Operation], limit: Limit) -> bool {
    checkpoint();
    let deadline = match limit {
        Limit::Forever | Limit::Now => None,
        Limit::Within(timeout) => deadline_after(timeout),
        Limit::Until(deadline) => Some(deadline),
    };
    let address = operations.first().map_or(0, |first| first.address());
    // Models have one order: one that differs between executions is none of the interleavings.
    if !cfg!(loom) {
        shuffle(operations, SELECTIONS.fetch_add(1, Ordering::Relaxed));
    }
    loop {
        if operations.iter_mut().any(|operation| operation.try_now()) {
            return true;
        }
        if matches!(limit, Limit::Now) {
            return false;
        }
        match wait(operations, address, deadline) {
            Outcome::Selected(index) => {
                operations[index].finish();
                return true;
            }
            Outcome::TryAgain => {}
            Outcome::TimedOut => return false,
        }
    }
}

/// Fisher and Yates; the random numbers are those of SplitMix64 (Steele, Lea and Flood, 2014).
fn shuffle(operations: &mut [&mut dyn Operation], seed: u64) {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for last in (1..operations.len()).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut random = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        random = (random ^ (random >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        random ^= random >> 31;
        operations.swap(last, (random % (last as u64 + 1)) as usize);
    }
}

/// How waiting for all operations ended. No waiter is in a list any more.
enum Outcome {
    Selected(usize),
    TryAgain,
    TimedOut,
}

fn wait(operations: &[&mut dyn Operation], address: usize, deadline: Option<Instant>) -> Outcome {
    let selection = Selection::new();
    let (mut due, mut is_possible) = (deadline, false);
    for (index, operation) in operations.iter().enumerate() {
        match operation.enter(selection.choice(index)) {
            Entered::Possible => {
                is_possible = true;
                break;
            }
            Entered::Waiting(at) => due = [due, at].into_iter().flatten().min(),
        }
    }
    let outcome = wait_for_selection(&selection, operations, address, due, is_possible);
    // Rule 3 of the selection. Nothing between its creation and here panics.
    operations.iter().for_each(|operation| operation.leave());
    match outcome {
        Some(index) => Outcome::Selected(index),
        None if !is_possible && deadline.is_some_and(|at| Instant::now() >= at) => Outcome::TimedOut,
        None => Outcome::TryAgain,
    }
}

/// `None`: it was withdrawn.
fn wait_for_selection(
    selection: &Selection,
    operations: &[&mut dyn Operation],
    address: usize,
    due: Option<Instant>,
    is_possible: bool,
) -> Option<usize> {
    let here = Parker::here();
    let is_fed = operations.iter().any(|operation| operation.is_from_outside());
    let on = WaitsFor { kind: WaitKind::Select, address, holder: None, is_fed };
    let leave = || {
        // Then no operation is selected any more, unless one was before.
        let _withdrawn = selection.withdraw();
        operations.iter().for_each(|operation| operation.leave());
    };
    let leave: LeaveQueue<'_> = &leave;
    let _in_queue = here.in_queue(&leave);
    let mut has_left = is_possible;
    loop {
        if let Some(index) = selection.selected() {
            return Some(index);
        }
        match due {
            _ if is_possible && selection.withdraw() => return None,
            _ if is_possible => continue,
            None => here.park(&on),
            Some(at) if Instant::now() < at => here.park_until(&on, at),
            // As for the waits of a single operation: a limit of 0 still lets others run.
            Some(_) if !has_left => yield_now(),
            Some(_) if selection.withdraw() => return None,
            Some(_) => continue,
        }
        has_left = true;
    }
}

/// Waits until one of several channel operations is possible, completes it, and evaluates its arm, as crossbeam's.
///
/// ```
/// # let runtime = fut::Runtime::builder().lwps(1).build()?;
/// # runtime.run(|| {
/// use std::time::Duration;
///
/// use fut::sync::channel::{self, after};
///
/// let (requests, inbox) = channel::bounded(1);
/// let (stop, stopped) = channel::bounded::<()>(0);
/// requests.send("hello").unwrap();
/// let received = fut::select! {
///     recv(inbox) -> request => request.ok(),
///     recv(stopped) -> _ => None,
///     recv(after(Duration::from_secs(60))) -> _ => None,
/// };
/// assert_eq!(received, Some("hello"));
///
/// let sent = fut::select! {
///     send(requests, "next") -> result => result.is_ok(),
///     default => false,
/// };
/// assert!(sent);
/// # drop(stop);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// - `recv(receiver) -> pattern => arm`: the pattern gets a `Result<T, RecvError>`; a disconnected channel is always
///   possible.
/// - `send(sender, value) -> pattern => arm`: a `Result<(), SendError<T>>`. The value is computed before the wait, and
///   dropped if another operation is selected (as in Go; crossbeam computes it afterwards).
/// - `default => arm`: if none is possible now. `default(timeout) => arm`: if none is in time. It comes last.
///
/// If several are possible, one of them is chosen at random. A wait for several is of the kind
/// [`WaitKind::Select`](crate::WaitKind::Select) in traces.
#[macro_export]
macro_rules! select {
    ($($arms:tt)+) => { $crate::__select!(@parse [] $($arms)+) };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __select {
    (@parse [$($done:tt)*] recv($receiver:expr) -> $result:pat => $arm:block, $($rest:tt)*) => {
        $crate::__select!(@parse [$($done)* { operation channel (&$receiver) (channel.__receive()) ($result) $arm }] $($rest)*)
    };
    (@parse [$($done:tt)*] recv($receiver:expr) -> $result:pat => $arm:block $($rest:tt)*) => {
        $crate::__select!(@parse [$($done)* { operation channel (&$receiver) (channel.__receive()) ($result) $arm }] $($rest)*)
    };
    (@parse [$($done:tt)*] recv($receiver:expr) -> $result:pat => $arm:expr, $($rest:tt)*) => {
        $crate::__select!(@parse [$($done)* { operation channel (&$receiver) (channel.__receive()) ($result) { $arm } }] $($rest)*)
    };
    (@parse [$($done:tt)*] recv($receiver:expr) -> $result:pat => $arm:expr) => {
        $crate::__select!(@parse [$($done)* { operation channel (&$receiver) (channel.__receive()) ($result) { $arm } }])
    };
    (@parse [$($done:tt)*] send($sender:expr, $value:expr) -> $result:pat => $arm:block, $($rest:tt)*) => {
        $crate::__select!(@parse [$($done)* { operation channel (&$sender) (channel.__send($value)) ($result) $arm }] $($rest)*)
    };
    (@parse [$($done:tt)*] send($sender:expr, $value:expr) -> $result:pat => $arm:block $($rest:tt)*) => {
        $crate::__select!(@parse [$($done)* { operation channel (&$sender) (channel.__send($value)) ($result) $arm }] $($rest)*)
    };
    (@parse [$($done:tt)*] send($sender:expr, $value:expr) -> $result:pat => $arm:expr, $($rest:tt)*) => {
        $crate::__select!(@parse [$($done)* { operation channel (&$sender) (channel.__send($value)) ($result) { $arm } }] $($rest)*)
    };
    (@parse [$($done:tt)*] send($sender:expr, $value:expr) -> $result:pat => $arm:expr) => {
        $crate::__select!(@parse [$($done)* { operation channel (&$sender) (channel.__send($value)) ($result) { $arm } }])
    };
    (@parse $done:tt default => $arm:expr $(,)?) => {
        $crate::__select!(@run $done ($crate::sync::channel::__select::Limit::Now) ($arm))
    };
    (@parse $done:tt default($timeout:expr) => $arm:expr $(,)?) => {
        $crate::__select!(@run $done ($crate::sync::channel::__select::Limit::Within($timeout)) ($arm))
    };
    (@parse $done:tt) => {
        $crate::__select!(@run $done ($crate::sync::channel::__select::Limit::Forever)
            (::core::unreachable!("one operation was selected")))
    };
    (@run [$({ $operation:ident $channel:ident ($of:expr) ($make:expr) ($result:pat) $arm:block })*] ($limit:expr) ($default:expr)) => {
        // The operations, and what they borrow, are gone when an arm is evaluated.
        match {
            $(
                let $channel = $of;
                let mut $operation = $make;
            )*
            let _ = $crate::sync::channel::__select::select(&mut [$(&mut $operation),*], $limit);
            ($($operation.take(),)*)
        } {
            ($($operation,)*) => {
                $( if let ::core::option::Option::Some(result) = $operation {
                    let $result = result;
                    $arm
                } else )* {
                    $default
                }
            }
        }
    };
}
