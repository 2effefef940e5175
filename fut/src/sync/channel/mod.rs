//! Channels between user threads: many senders, many receivers, as crossbeam's.
//!
//! A channel has room for a number of values ([`bounded`]) or for any ([`unbounded`]). With room for none, a sender
//! waits until a receiver takes the value from it. When all senders are gone, receivers get what is left, and then an
//! error; when all receivers are gone, sending fails and what was in the channel is dropped.
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

mod core;
mod error;
mod receiver;
mod sender;

use std::sync::Arc;

use self::core::Core;
pub use self::{
    error::{RecvError, RecvTimeoutError, SendError, SendTimeoutError, TryRecvError, TrySendError},
    receiver::{IntoIter, Iter, Receiver, TryIter},
    sender::Sender,
};

/// A channel with room for that many values; with 0, each value goes from hand to hand.
pub fn bounded<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    pair(capacity)
}

/// A channel with room for as many values as there is memory for: sending never waits.
pub fn unbounded<T>() -> (Sender<T>, Receiver<T>) {
    pair(core::UNBOUNDED)
}

fn pair<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let core = Arc::new(Core::new(capacity));
    (Sender::new(Arc::clone(&core)), Receiver::new(core))
}
