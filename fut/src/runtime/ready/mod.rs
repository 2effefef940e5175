//! Where ready threads wait, and which LWP takes which next: the policies.

mod deque;
mod idle;
mod shared_queue;

pub(super) use deque::{Deque, Steal};
pub(super) use idle::{Fences, Idle, Woke};
pub(super) use shared_queue::SharedQueue;
