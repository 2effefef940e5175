//! Channels between user threads, with many senders and many receivers, like crossbeam's.
//!
//! A channel has room for a number of values ([`bounded`]) or for any number ([`unbounded`]). With capacity 0, a sender
//! waits until a receiver takes its value. After all senders were dropped, receivers get the remaining values, and then
//! an error. After all receivers were dropped, sending fails, and the values in the channel are dropped.
//!
//! [`select!`](crate::select) waits for the first of several operations. The channels [`after`], [`tick`] and
//! [`never()`] are made for it.
//!
//! ```
//! # let runtime = fut::Runtime::builder().lwps(2).build()?;
//! # runtime.run(|| {
//! use fut::sync::channel;
//!
//! let (sender, receiver) = channel::bounded(4);
//! let producers: Vec<_> = (0..3)
//!     .map(|n| {
//!         let sender = sender.clone();
//!         fut::spawn(move || sender.send(n).unwrap())
//!     })
//!     .collect();
//! drop(sender);
//! assert_eq!(receiver.iter().sum::<i32>(), 3);
//! # producers.into_iter().for_each(|p| p.join().unwrap());
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```

#[doc(hidden)]
#[path = "select.rs"]
pub mod __select;
mod buffer;
mod core;
mod error;
mod receiver;
mod selection;
mod sender;
mod time;

use std::sync::Arc;

use self::core::Core;
pub use self::{
    error::{RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError},
    receiver::{IntoIter, Iter, Receiver, TryIter},
    sender::Sender,
    time::{after, at, never, tick},
};

/// A channel with room for `capacity` values; with 0, each value is passed directly from a sender to a receiver.
pub fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    pair(capacity)
}

/// A channel without a limit: sending never waits.
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    pair(core::UNBOUNDED)
}

fn pair<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let core = Arc::new(Core::new(capacity));
    (Sender::new(Arc::clone(&core)), Receiver::new(core))
}
