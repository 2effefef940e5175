//! Futures on user threads and plain threads. The waker of a future unparks the thread.
//!
//! The waker sets a flag, and then unparks the thread. The thread takes the flag; if it is not set, the thread parks
//! and looks again (rule 6 of [`super`]). A waker may outlive the call, and even the thread: it holds the flag, and
//! threads are never freed.

use std::{
    future::IntoFuture,
    pin::pin,
    task::{Context, Poll, Wake, Waker},
};

use super::rt::{Parker, WaitKind, WaitsFor, checkpoint, yield_now};
use crate::model_check::atomic::{AtomicBool, Ordering};

/// Runs a future to its end on the calling thread, and returns its result. While the future is not ready, a user thread
/// is blocked, and its LWP runs others; a plain thread is parked. Any thread may wake the future.
///
/// A future of another runtime (for example tokio's timers and sockets) needs that runtime: its threads wake this one.
///
/// ```
/// # let runtime = fut::Runtime::builder().lwps(1).build()?;
/// # runtime.run(|| {
/// let three = fut::block_on(async {
///     let one = async { 1 }.await;
///     one + std::future::ready(2).await
/// });
/// assert_eq!(three, 3);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn block_on<F: IntoFuture>(future: F) -> F::Output {
    let mut future = pin!(future.into_future());
    let signal = std::sync::Arc::new(Signal { thread: Parker::here(), woken: AtomicBool::new(false) });
    let waker = Waker::from(std::sync::Arc::clone(&signal));
    let mut context = Context::from_waker(&waker);
    loop {
        checkpoint();
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        signal.wait();
    }
}

/// What a waker and its thread share.
struct Signal {
    thread: Parker,
    woken: AtomicBool,
}

impl Signal {
    fn wait(&self) {
        if self.take() {
            // The future was woken while it was polled. Then it yields, like an asynchronous task.
            return yield_now();
        }
        let address = std::ptr::from_ref(self).addr();
        let on = WaitsFor { kind: WaitKind::Future, address, holder: None, is_fed: false };
        while !self.take() {
            self.thread.park(&on);
        }
    }

    fn take(&self) -> bool {
        // Acquire: pairs with the Release in `wake_by_ref`; makes visible what the future waited for.
        self.woken.swap(false, Ordering::Acquire)
    }
}

impl Wake for Signal {
    fn wake(self: std::sync::Arc<Signal>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &std::sync::Arc<Signal>) {
        // Release: pairs with the Acquire in `take`. If the flag is already set, the thread that has set it does the
        // unpark.
        if !self.woken.swap(true, Ordering::Release) {
            self.thread.unpark();
        }
    }
}
