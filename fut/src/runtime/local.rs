//! Variables of which each user thread has its own, as `std::thread_local!` has them for threads.

use std::{any::Any, collections::HashMap};

use super::{park::here, thread::ThreadRef};

/// The variables of one user thread, by the address of their key.
#[derive(Default)]
pub(super) struct Locals(HashMap<usize, Box<dyn Any>>);

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
    /// # Panics
    /// Outside of a runtime.
    #[track_caller]
    pub fn with<R>(&'static self, act: impl FnOnce(&T) -> R) -> R {
        let thread = here("fut::UserLocal::with");
        let key = std::ptr::from_ref(self).addr();
        let found = |thread: ThreadRef| -> Option<*const T> {
            // SAFETY: only the thread itself comes here, and the borrow ends before anything else runs.
            let locals = unsafe { &*thread.locals() };
            let value = locals.as_ref()?.0.get(&key)?;
            value.downcast_ref::<T>().map(std::ptr::from_ref)
        };
        let value = found(thread).unwrap_or_else(|| {
            // May use other variables, or this one.
            let value: Box<dyn Any> = Box::new((self.init)());
            // SAFETY: as above.
            let locals = unsafe { &mut *thread.locals() };
            locals.get_or_insert_default().0.entry(key).or_insert(value);
            found(thread).expect("it was put in just now")
        });
        // SAFETY: values are boxed, and stay until the thread has ended.
        act(unsafe { &*value })
    }
}

// SAFETY: each user thread sees its own value; what is shared is the function that makes it.
unsafe impl<T> Sync for UserLocal<T> {}

/// Drops the variables of a thread that ends.
///
/// # Safety
/// The thread itself calls this, and runs nothing of its user's any more.
pub(super) unsafe fn drop_all(thread: ThreadRef) {
    // SAFETY: only the thread itself comes here; the borrow ends at once.
    let locals = unsafe { (*thread.locals()).take() };
    if let Some(locals) = locals {
        // Whoever panics while it is dropped has nobody to tell: the thread's own result is known already.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(locals)));
    }
}

/// Declares variables of which each user thread has its own; see [`UserLocal`].
#[macro_export]
macro_rules! user_local {
    ($($(#[$meta:meta])* $vis:vis static $name:ident : $ty:ty = $init:expr;)*) => { $(
        $(#[$meta])*
        $vis static $name: $crate::UserLocal<$ty> = $crate::UserLocal::new(|| $init);
    )* };
}
