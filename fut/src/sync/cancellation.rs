//! Cancellation, as tokio-util's: a tree of tokens. A token is cancelled by dropping the only sender of a channel, which
//! disconnects its receivers; so `select!` can wait for it, too.

use std::{
    convert::Infallible,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::Duration,
};

use super::channel::{self, Receiver, RecvTimeoutError, Sender};

/// Tells threads to stop. Clones are the same token; [children](CancellationToken::child_token) are cancelled with it.
///
/// ```
/// # let runtime = fut::Runtime::builder().lwps(1).build()?;
/// # runtime.run(|| {
/// use fut::sync::CancellationToken;
///
/// let token = CancellationToken::new();
/// let worker = {
///     let token = token.child_token();
///     fut::spawn(move || token.cancelled())
/// };
/// token.cancel();
/// worker.join().unwrap();
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct CancellationToken {
    node: Arc<Node>,
}

/// Cancels its token when it is dropped.
#[must_use = "without its guard, the token is cancelled at once"]
#[derive(Debug)]
pub struct DropGuard {
    /// `None` if it was disarmed.
    token: Option<CancellationToken>,
}

struct Node {
    /// Disconnected when the token is cancelled.
    cancelled: Receiver<Infallible>,
    /// No user thread switches and no code of the program runs under this lock.
    state: Mutex<State>,
}

struct State {
    /// `None` if it is cancelled.
    sender: Option<Sender<Infallible>>,
    children: Vec<Weak<Node>>,
}

impl CancellationToken {
    /// A token without a parent, which is not cancelled.
    pub fn new() -> CancellationToken {
        let (sender, cancelled) = channel::bounded(0);
        let state = Mutex::new(State { sender: Some(sender), children: Vec::new() });
        CancellationToken { node: Arc::new(Node { cancelled, state }) }
    }

    /// A token that is cancelled together with this one, at once if this one is. Cancelling it leaves this one alone.
    pub fn child_token(&self) -> CancellationToken {
        let child = CancellationToken::new();
        let mut state = self.node.state();
        let is_cancelled = state.sender.is_none();
        if !is_cancelled {
            if state.children.len() == state.children.capacity() {
                // Before it grows: children that were dropped leave.
                state.children.retain(|child| child.strong_count() > 0);
            }
            state.children.push(Arc::downgrade(&child.node));
        }
        drop(state);
        if is_cancelled {
            child.cancel();
        }
        child
    }

    /// Cancels it and its descendants, and wakes all threads that wait for one of them.
    pub fn cancel(&self) {
        let mut nodes = vec![Arc::clone(&self.node)];
        while let Some(node) = nodes.pop() {
            let mut state = node.state();
            let sender = state.sender.take();
            let children = std::mem::take(&mut state.children);
            drop(state);
            // Wakes those who wait.
            drop(sender);
            nodes.extend(children.iter().filter_map(Weak::upgrade));
        }
    }

    /// Whether it is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.node.state().sender.is_none()
    }

    /// Waits until it is cancelled.
    pub fn cancelled(&self) {
        // Nothing is ever sent, so this ends with the channel.
        let _disconnected = self.node.cancelled.recv();
    }

    /// Waits until it is cancelled, at most for `timeout`. Returns whether it is.
    pub fn cancelled_timeout(&self, timeout: Duration) -> bool {
        matches!(self.node.cancelled.recv_timeout(timeout), Err(RecvTimeoutError::Disconnected))
    }

    /// A channel that is disconnected when the token is cancelled, for [`select!`](crate::select). A clone of it is also
    /// disconnected when the last clone of the token is dropped.
    ///
    /// ```
    /// # let runtime = fut::Runtime::builder().lwps(1).build()?;
    /// # runtime.run(|| {
    /// # use fut::sync::{CancellationToken, channel};
    /// let token = CancellationToken::new();
    /// let (_sender, requests) = channel::unbounded::<u32>();
    /// token.cancel();
    /// let stopped = fut::select! {
    ///     recv(requests) -> _ => false,
    ///     recv(token.receiver()) -> _ => true,
    /// };
    /// assert!(stopped);
    /// # });
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn receiver(&self) -> &Receiver<Infallible> {
        &self.node.cancelled
    }

    /// A guard that cancels it when it is dropped, also by a panic.
    pub fn drop_guard(self) -> DropGuard {
        DropGuard { token: Some(self) }
    }
}

impl DropGuard {
    /// Returns the token, which is not cancelled.
    pub fn disarm(mut self) -> CancellationToken {
        self.token.take().expect("only this function takes it")
    }
}

impl Node {
    fn state(&self) -> MutexGuard<'_, State> {
        // Each critical section leaves the state consistent, so poisoning is ignored.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for DropGuard {
    fn drop(&mut self) {
        if let Some(token) = &self.token {
            token.cancel();
        }
    }
}

impl Default for CancellationToken {
    fn default() -> CancellationToken {
        CancellationToken::new()
    }
}

impl fmt::Debug for CancellationToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancellationToken").field("is_cancelled", &self.is_cancelled()).finish()
    }
}
