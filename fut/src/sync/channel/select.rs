//! Waiting until the first of several operations on channels is possible.
//!
//! 1. All operations are tried, without waiting, in a random order. So no operation that stays possible starves,
//!    whatever else the program selects in between.
//! 2. If none is possible, a waiter for each operation enters the list of its channel. `selection.rs` describes how one
//!    of them is chosen. A waiter does not enter a list while its operation is possible (so rule 1 of `core.rs` holds).
//!    In that case the thread withdraws, and tries all operations again. So it never completes an operation while
//!    another side may select one of its waiters. (A message of a channel of time that becomes due after step 1 ends
//!    the wait as soon as it begins.)
//! 3. Two waiters of the same selection never match each other.

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

/// Number of selections so far. It is the seed of the order in which a selection tries its operations.
static SELECTIONS: AtomicU64 = AtomicU64::new(0);

/// How long to wait for an operation.
#[derive(Clone, Copy, Debug)]
pub enum Limit {
    Forever,
    /// Do not wait.
    Now,
    Within(Duration),
    Until(Instant),
}

/// Whether the waiter of an operation was entered.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub enum Entered {
    /// The operation is possible, so its waiter was not entered.
    Possible,
    /// The waiter is in the list. If there is a time, the operation becomes possible then.
    Waiting(Option<Instant>),
}

/// An operation on a channel, with the waiter for it. Only this crate implements it: [`select`] relies on the behaviour
/// of the operations.
pub trait Operation: private::Sealed {
    /// Completes the operation if that is possible without waiting. Its waiter must be in no list.
    fn try_now(&mut self) -> bool;
    /// Enters the waiter, unless the operation is possible.
    fn enter(&self, choice: Choice) -> Entered;
    /// Removes the waiter, if it is in the list.
    fn leave(&self);
    /// Stores the result. Called when the operation was selected, and its waiter has left the list.
    fn finish(&mut self);
    /// The address that identifies the channel in a trace.
    fn address(&self) -> usize;
    /// Whether a thread outside of the runtime has made the channel.
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
    /// The result, if the operation was completed.
    pub fn take(self) -> Option<Result<T, RecvError>> {
        self.result
    }
}

impl<T> Send<'_, T> {
    /// The result, if the operation was completed. If not, the value is dropped.
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
    // Models use a fixed order. loom does not explore orders that differ between executions.
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
            // An operation may have become possible in time, and the thread have run late.
            Outcome::TimedOut => return operations.iter_mut().any(|operation| operation.try_now()),
        }
    }
}

/// Shuffles by the method of Fisher and Yates. The random numbers are those of SplitMix64 (Steele, Lea and Flood,
/// 2014).
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

/// How waiting for all operations ended. No waiter is in a list any more at that point.
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
    let outcome = wait_for_selection(&selection, operations, address, due, deadline.is_some(), is_possible);
    // Rule 3 of `selection.rs`. Nothing between the creation of the selection and this point panics.
    operations.iter().for_each(|operation| operation.leave());
    match outcome {
        Some(index) => Outcome::Selected(index),
        None if !is_possible && deadline.is_some_and(|at| Instant::now() >= at) => Outcome::TimedOut,
        None => Outcome::TryAgain,
    }
}

/// Waits until an operation is selected. `None`: the thread has withdrawn.
fn wait_for_selection(
    selection: &Selection,
    operations: &[&mut dyn Operation],
    address: usize,
    due: Option<Instant>,
    is_limited: bool,
    is_possible: bool,
) -> Option<usize> {
    let here = Parker::here();
    let is_fed = operations.iter().any(|operation| operation.is_from_outside());
    let on = WaitsFor { kind: WaitKind::Select, address, holder: None, is_fed };
    let leave = || {
        // From now on no operation is selected, unless one was before.
        let _withdrawn = selection.withdraw();
        operations.iter().for_each(|operation| operation.leave());
    };
    let leave: LeaveQueue<'_> = &leave;
    let _in_queue = here.in_queue(&leave);
    let mut has_left = is_possible;
    // Without a limit, `due` is of a channel of time, which `try_now` has just compared with the clock: the first wait need not.
    let mut is_later = !is_limited;
    loop {
        if let Some(index) = selection.selected() {
            return Some(index);
        }
        match due {
            _ if is_possible && selection.withdraw() => return None,
            _ if is_possible => continue,
            None => here.park(&on),
            Some(at) if std::mem::take(&mut is_later) || Instant::now() < at => here.park_until(&on, at),
            // As in the waits of a single operation, a limit of 0 still lets others run.
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
/// - `recv(receiver) -> pattern => arm`: the pattern gets a `Result<T, RecvError>`. For a disconnected channel this is
///   always possible.
/// - `send(sender, value) -> pattern => arm`: the pattern gets a `Result<(), SendError<T>>`. The value is computed
///   before the wait, and dropped if another operation is selected (as in Go; crossbeam computes it afterwards).
/// - `default => arm`: selected if no operation is possible now. `default(timeout) => arm`: selected if none is
///   possible in time. It must come last.
///
/// If several operations are possible, one of them is chosen at random. In traces, a wait for several is of the kind
/// [`WaitKind::Select`](crate::WaitKind::Select).
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
        // The operations, and the values that they borrow, no longer exist when an arm is evaluated.
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
