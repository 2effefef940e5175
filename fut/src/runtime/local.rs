//! Variables local to a user thread, like `std::thread_local!` for kernel threads.

use std::{any::Any, collections::HashMap, error::Error, fmt, mem};

use super::{
    discard::discard,
    park::{here, try_here},
    thread::ThreadRef,
};

/// The variables of one user thread, by the address of their [`UserLocal`].
#[derive(Default)]
pub(super) struct Locals {
    values: HashMap<usize, Local>,
    /// The keys of the values that exist, in the order of their creation.
    made: Vec<usize>,
}

enum Local {
    Alive(Box<dyn Any>),
    /// The thread is ending, and has dropped the value.
    Destroyed,
}

/// A variable of which each user thread has its own value. Declared with [`user_local!`](crate::user_local).
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

    /// Calls `act` with the value of the calling user thread. The value is created at the first use and dropped when
    /// the thread ends. `act` may block: the value stays with its thread.
    ///
    /// When a thread ends, its values are dropped in reverse order of creation. A destructor may use other variables,
    /// which may create their values. It must not use a variable whose value was already dropped, as with
    /// `std::thread_local!`.
    ///
    /// # Panics
    /// Outside a runtime; in the destructor of the value, and in the destructors that run after it when the thread
    /// ends.
    #[track_caller]
    pub fn with<R>(&'static self, act: impl FnOnce(&T) -> R) -> R {
        match self.of(here("fut::UserLocal::with")) {
            // SAFETY: values are boxed, and stay until the thread has ended.
            Ok(value) => act(unsafe { &*value }),
            Err(error) => panic!("fut::UserLocal::with: {error}"),
        }
    }

    /// Like [`with`](UserLocal::with), but returns an error where that panics.
    ///
    /// # Errors
    /// In the cases in which `with` panics.
    pub fn try_with<R>(&'static self, act: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        let value = self.of(try_here().ok_or(AccessError::OutsideOfRuntime)?)?;
        // SAFETY: values are boxed, and stay until the thread has ended.
        Ok(act(unsafe { &*value }))
    }

    /// The value of `thread`, which is the calling thread.
    fn of(&'static self, thread: ThreadRef) -> Result<*const T, AccessError> {
        if let Some(found) = self.find(thread)? {
            return Ok(found);
        }
        // The initialiser may use other variables, or this one.
        let value: Box<dyn Any> = Box::new((self.init)());
        if let Some(made_by_init) = self.find(thread)? {
            return Ok(made_by_init);
        }
        // SAFETY: only the thread itself calls this, and the borrow ends before any other code runs.
        let locals = unsafe { &mut *thread.locals() }.get_or_insert_default();
        locals.made.push(self.key());
        locals.values.insert(self.key(), Local::Alive(value));
        Ok(self.find(thread)?.expect("it was inserted above"))
    }

    fn find(&'static self, thread: ThreadRef) -> Result<Option<*const T>, AccessError> {
        // SAFETY: only the thread itself calls this, and the borrow ends before any other code runs.
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
    /// The caller is not a user thread.
    OutsideOfRuntime,
    /// The thread is ending, and the value was already dropped.
    Destroyed,
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AccessError::OutsideOfRuntime => "only user threads have values, and the caller is not one",
            AccessError::Destroyed => "the value was already dropped, because its user thread is ending",
        })
    }
}

impl Error for AccessError {}

/// Drops the variables of a thread that is ending.
///
/// # Safety
/// The thread itself calls this, after the code of its body has ended.
pub(super) unsafe fn drop_all(thread: ThreadRef) {
    // Destructors may create values of other variables, but no value that was already dropped. So the loop terminates.
    while let Some(value) = take_last(thread) {
        // A panic of the destructor is discarded: the thread's result is already final.
        discard(value);
    }
    // SAFETY: only the thread itself calls this; the remaining entries hold no values.
    unsafe { *thread.locals() = None };
}

fn take_last(thread: ThreadRef) -> Option<Local> {
    // SAFETY: only the thread itself calls this; the borrow ends before the value is dropped.
    let locals = unsafe { &mut *thread.locals() }.as_mut()?;
    let key = locals.made.pop()?;
    Some(mem::replace(locals.values.get_mut(&key)?, Local::Destroyed))
}

/// Declares variables local to a user thread; see [`UserLocal`].
#[macro_export]
macro_rules! user_local {
    ($($(#[$meta:meta])* $vis:vis static $name:ident : $ty:ty = $init:expr);* $(;)?) => { $(
        $(#[$meta])*
        $vis static $name: $crate::UserLocal<$ty> = $crate::UserLocal::new(|| $init);
    )* };
}
