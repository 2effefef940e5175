//! Plans and sessions of DataFusion that futures can hold without a cost for who compiles them.

use std::{any::Any, fmt, marker::PhantomData, ops::Deref};

/// A value behind an object whose type says that threads can share it.
///
/// Whether the future of an `async_trait` function is `Send` is decided by all that it holds. rustc (1.95) looks through the
/// whole of a plan or a session for that, anew in each such function, for 4 to 8 s; behind the object, it need not look. (Nothing
/// of ours changes that for the functions of DataFusion and Ballista: these are most of 400 s of the 2970 that the units of a first
/// build with its tests take.)
pub(crate) struct Opaque<T> {
    value: Box<dyn Any + Send + Sync>,
    of_type: PhantomData<fn() -> T>,
}

impl<T: Send + Sync + 'static> Opaque<T> {
    pub(crate) fn new(value: T) -> Opaque<T> {
        Opaque { value: Box::new(value), of_type: PhantomData }
    }
}

impl<T: 'static> Deref for Opaque<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.downcast_ref().expect("`new` is given a value of this type")
    }
}

impl<T: fmt::Debug + 'static> fmt::Debug for Opaque<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
