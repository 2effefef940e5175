//! Variables of which each user thread has its own, as `std::thread_local!` has them for threads.

use std::{any::Any, collections::HashMap, error::Error, fmt, mem};

use super::{
    discard::discard,
    park::{here, try_here},
    thread::ThreadRef,
};

/// The variables of one user thread, by the address of their key.
#[derive(Default)]
pub(super) struct Locals {
    values: HashMap<usize, Local>,
    /// The keys of those that are alive, in the order in which they were made.
    made: Vec<usize>,
}

enum Local {
    Alive(Box<dyn Any>),
    /// The thread ends, and has dropped it.
    Destroyed,
}

/// A variable of which each user thread has its own. Made by [`user_local!`](crate::user_local).
///
/// ```
/// use std::cell::Cell;
///
/// fut::user_local! {
///     static REQUEST: Cell<u32> = Cell::new(0);
/// }
///
/// let runtime = fut::Runtime::builder().lwps(2).build()?;
/// runtime.run(|| {
///     REQUEST.with(|request| request.set(7));
///     fut::spawn(|| REQUEST.with(|request| assert_eq!(request.get(), 0))).join().unwrap();
///     REQUEST.with(|request| assert_eq!(request.get(), 7));
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct UserLocal<T: 'static> {
    init: fn() -> T,
}

impl<T: 'static> UserLocal<T> {
    #[doc(hidden)]
    pub const fn new(init: fn() -> T) -> UserLocal<T> {
        UserLocal { init }
    }

    /// Does something with the value of the calling user thread, which is made at the first use and dropped when
    /// the thread ends. `act` may block: the value stays with its thread.
    ///
    /// When a thread ends, its values are dropped, the one that was made last first. A destructor may use others, also
    /// such as it makes by that, but none that was dropped already, as with `std::thread_local!`.
    ///
    /// # Panics
    /// Outside of a runtime; in the destructor of the value, and in those that run after it when the thread ends.
    #[track_caller]
    pub fn with<R>(&'static self, act: impl FnOnce(&T) -> R) -> R {
        match self.of(here("fut::UserLocal::with")) {
            // SAFETY: values are boxed, and stay until the thread has ended.
            Ok(value) => act(unsafe { &*value }),
            Err(error) => panic!("fut::UserLocal::with: {error}"),
        }
    }

    /// As [`with`](UserLocal::with), also where there may be no value.
    ///
    /// # Errors
    /// Where that panics.
    pub fn try_with<R>(&'static self, act: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        let value = self.of(try_here().ok_or(AccessError::OutsideOfRuntime)?)?;
        // SAFETY: values are boxed, and stay until the thread has ended.
        Ok(act(unsafe { &*value }))
    }

    /// The value of `thread`, which is the calling one.
    fn of(&'static self, thread: ThreadRef) -> Result<*const T, AccessError> {
        if let Some(found) = self.find(thread)? {
            return Ok(found);
        }
        // May use other variables, or this one.
        let value: Box<dyn Any> = Box::new((self.init)());
        if let Some(made_by_init) = self.find(thread)? {
            return Ok(made_by_init);
        }
        // SAFETY: only the thread itself comes here, and the borrow ends before anything else runs.
        let locals = unsafe { &mut *thread.locals() }.get_or_insert_default();
        locals.made.push(self.key());
        locals.values.insert(self.key(), Local::Alive(value));
        Ok(self.find(thread)?.expect("it was put in just now"))
    }

    fn find(&'static self, thread: ThreadRef) -> Result<Option<*const T>, AccessError> {
        // SAFETY: only the thread itself comes here, and the borrow ends before anything else runs.
        let locals = unsafe { &*thread.locals() };
        match locals.as_ref().and_then(|locals| locals.values.get(&self.key())) {
            Some(Local::Alive(value)) => Ok(value.downcast_ref::<T>().map(std::ptr::from_ref)),
            Some(Local::Destroyed) => Err(AccessError::Destroyed),
            None => Ok(None),
        }
    }

    fn key(&'static self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// Why there is no value of a [`UserLocal`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessError {
    /// Only user threads have values.
    OutsideOfRuntime,
    /// The thread is about to end, and the value was dropped.
    Destroyed,
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AccessError::OutsideOfRuntime => "only a user thread has a value, and this is none",
            AccessError::Destroyed => "the value was dropped, because its user thread ends",
        })
    }
}

impl Error for AccessError {}

/// Drops the variables of a thread that ends.
///
/// # Safety
/// The thread itself calls this, and runs nothing of its user's any more.
pub(super) unsafe fn drop_all(thread: ThreadRef) {
    // Destructors may make others, but not again what was dropped. So this ends.
    while let Some(value) = take_last(thread) {
        // Whoever panics while it is dropped has nobody to tell: the thread's own result is known already.
        discard(value);
    }
    // SAFETY: only the thread itself comes here; nothing of its user's is in it any more.
    unsafe { *thread.locals() = None };
}

fn take_last(thread: ThreadRef) -> Option<Local> {
    // SAFETY: only the thread itself comes here; the borrow ends before the value is dropped.
    let locals = unsafe { &mut *thread.locals() }.as_mut()?;
    let key = locals.made.pop()?;
    Some(mem::replace(locals.values.get_mut(&key)?, Local::Destroyed))
}

/// Declares variables of which each user thread has its own; see [`UserLocal`].
#[macro_export]
macro_rules! user_local {
    ($($(#[$meta:meta])* $vis:vis static $name:ident : $ty:ty = $init:expr;)*) => { $(
        $(#[$meta])*
        $vis static $name: $crate::UserLocal<$ty> = $crate::UserLocal::new(|| $init);
    )* };
}
