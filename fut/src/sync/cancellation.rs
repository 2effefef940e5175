//! Cancellation, like tokio-util's: a tree of tokens. A token is cancelled by dropping the only sender of a channel.
//! This disconnects the receivers of the channel, so `select!` can also wait for it.
//!
//! 1. A node refers to its children weakly, so that they can end, and to its parent strongly.
//! 2. When the last clone of a token is dropped, its node leaves the tree: its children become children of its parent.
//!    So cancelling reaches all descendants, and a chain of tokens whose ancestors are gone does not grow.
//! 3. Two locks are taken in the order from ancestor to descendant, that is, the older node first. What was read before
//!    both were held is read again.

#[cfg(not(loom))]
use std::sync::{Mutex, MutexGuard};
use std::{
    convert::Infallible,
    fmt,
    sync::{Arc, PoisonError, Weak},
    time::Duration,
};

#[cfg(loom)]
use loom::sync::{Mutex, MutexGuard};

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
    handle: Arc<Handle>,
}

/// Cancels its token when it is dropped.
#[must_use = "without its guard, the token is cancelled at once"]
#[derive(Debug)]
pub struct DropGuard {
    /// `None` if the guard was disarmed.
    token: Option<CancellationToken>,
}

/// What the clones of a token share. Dropped with the last clone.
struct Handle {
    node: Arc<Node>,
}

struct Node {
    /// Disconnected when the token is cancelled.
    cancelled: Receiver<Infallible>,
    /// While this lock is held, no user thread switches, and no code of the program runs.
    state: Mutex<State>,
}

struct State {
    /// `None` if the token is cancelled.
    sender: Option<Sender<Infallible>>,
    /// A node whose token exists, or is just being dropped.
    parent: Option<Arc<Node>>,
    children: Vec<Weak<Node>>,
}

impl CancellationToken {
    /// A token without a parent, which is not cancelled.
    pub fn new() -> CancellationToken {
        CancellationToken::below(None)
    }

    fn below(parent: Option<Arc<Node>>) -> CancellationToken {
        let (sender, cancelled) = channel::bounded(0);
        let state = Mutex::new(State { sender: Some(sender), parent, children: Vec::new() });
        CancellationToken { handle: Arc::new(Handle { node: Arc::new(Node { cancelled, state }) }) }
    }

    /// A token that is cancelled together with this one; at once if this one is cancelled already. Cancelling the new
    /// token does not cancel this one.
    pub fn child_token(&self) -> CancellationToken {
        let node = &self.handle.node;
        let child = CancellationToken::below(Some(Arc::clone(node)));
        let mut state = node.state();
        let is_cancelled = state.sender.is_none();
        if !is_cancelled {
            state.adopt([Arc::downgrade(&child.handle.node)]);
        }
        drop(state);
        if is_cancelled {
            child.cancel();
        }
        child
    }

    /// Cancels the token and its descendants, and wakes all threads that wait for one of them.
    pub fn cancel(&self) {
        cancel_all(vec![Arc::clone(&self.handle.node)]);
    }

    /// Whether the token is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.handle.node.state().sender.is_none()
    }

    /// Waits until the token is cancelled.
    pub fn cancelled(&self) {
        // Nothing is ever sent, so this returns when the channel is disconnected.
        let _disconnected = self.handle.node.cancelled.recv();
    }

    /// Waits until the token is cancelled, at most for `timeout`. Returns whether it is cancelled.
    pub fn cancelled_timeout(&self, timeout: Duration) -> bool {
        matches!(self.handle.node.cancelled.recv_timeout(timeout), Err(RecvTimeoutError::Disconnected))
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
        &self.handle.node.cancelled
    }

    /// A guard that cancels the token when it is dropped, including by a panic.
    pub fn drop_guard(self) -> DropGuard {
        DropGuard { token: Some(self) }
    }
}

impl DropGuard {
    /// Returns the token without cancelling it.
    pub fn disarm(mut self) -> CancellationToken {
        self.token.take().expect("only this function takes it")
    }
}

/// Cancels these nodes and their descendants.
fn cancel_all(mut nodes: Vec<Arc<Node>>) {
    while let Some(node) = nodes.pop() {
        let mut state = node.state();
        let (sender, parent) = (state.sender.take(), state.parent.take());
        let children = std::mem::take(&mut state.children);
        drop(state);
        // Wakes the threads that wait.
        drop(sender);
        drop(parent);
        nodes.extend(children.iter().filter_map(Weak::upgrade));
    }
}

impl Node {
    fn state(&self) -> MutexGuard<'_, State> {
        // Each critical section leaves the state consistent, so poisoning is ignored.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rule 2: the token of this node is gone. The children of the node become children of its parent.
    fn leave_tree(&self) {
        loop {
            let parent = self.state().parent.clone();
            let Some(parent) = parent else { return self.free_children() };
            let mut above = parent.state();
            let mut own = self.state();
            // Meanwhile the parent may have left the tree, too, or this node may have been cancelled.
            if !own.parent.as_ref().is_some_and(|now| Arc::ptr_eq(now, &parent)) {
                continue;
            }
            if above.sender.is_none() {
                // The thread that cancels the parent will come to this node, or has been here. So the children are
                // cancelled instead of moved.
                let children = own.children.iter().filter_map(Weak::upgrade).collect();
                drop((above, own));
                return cancel_all(children);
            }
            own.parent = None;
            let children = own.move_children(Some(&parent));
            above.adopt(children);
            return;
        }
    }

    fn free_children(&self) {
        let mut own = self.state();
        let _have_no_parent = own.move_children(None);
    }
}

impl State {
    /// Takes the children out, and makes `parent` their parent.
    fn move_children(&mut self, parent: Option<&Arc<Node>>) -> Vec<Weak<Node>> {
        let children = std::mem::take(&mut self.children);
        for child in children.iter().filter_map(Weak::upgrade) {
            child.state().parent = parent.map(Arc::clone);
        }
        children
    }

    fn adopt(&mut self, children: impl IntoIterator<Item = Weak<Node>>) {
        for child in children {
            if self.children.len() == self.children.capacity() {
                // Before the list grows, children that were dropped are removed. If these were few, the list grows
                // nevertheless; otherwise one of the next children would search it again.
                self.children.retain(|child| child.strong_count() > 0);
                if self.children.len() > self.children.capacity() / 2 {
                    self.children.reserve(self.children.len());
                }
            }
            self.children.push(child);
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.node.leave_tree();
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
