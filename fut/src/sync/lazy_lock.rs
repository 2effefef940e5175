//! A value that is computed at its first use.

use std::{
    fmt,
    ops::Deref,
    sync::{Mutex, PoisonError},
};

use super::OnceCell;
use crate::model_check::const_unless_loom;

/// A value that is computed by the first user thread that needs it, like `std::sync::LazyLock`. The other threads wait
/// for it. The function that computes the value may block its user thread.
///
/// ```
/// # let runtime = fut::Runtime::builder().lwps(1).build()?;
/// # runtime.run(|| {
/// use fut::sync::LazyLock;
///
/// static TABLE: LazyLock<Vec<u32>> = LazyLock::new(|| (0..4).map(|n| n * n).collect());
///
/// assert_eq!(TABLE[3], 9);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct LazyLock<T, F = fn() -> T> {
    cell: OnceCell<T>,
    /// `None` once the function was called.
    init: Mutex<Option<F>>,
}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    const_unless_loom! {
        /// A value that `init` computes.
        pub fn new(init: F) -> LazyLock<T, F> {
            LazyLock { cell: OnceCell::new(), init: Mutex::new(Some(init)) }
        }
    }

    /// Computes the value, if it was not computed yet.
    ///
    /// # Panics
    /// If the function panics, now or earlier. It is not called twice.
    pub fn force(this: &LazyLock<T, F>) -> &T {
        this.cell.get_or_init(|| {
            // The lock is released before the function is called.
            let init = this.init.lock().unwrap_or_else(PoisonError::into_inner).take();
            let init = init.expect("the function of a fut::sync::LazyLock panicked earlier");
            init()
        })
    }
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    fn deref(&self) -> &T {
        LazyLock::force(self)
    }
}

impl<T: Default> Default for LazyLock<T> {
    fn default() -> LazyLock<T> {
        LazyLock::new(T::default)
    }
}

impl<T: fmt::Debug, F> fmt::Debug for LazyLock<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LazyLock").field(&self.cell).finish()
    }
}
