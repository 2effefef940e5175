//! Ready queues, idle LWPs, and homes of pinned threads.

mod deque;
mod home;
mod idle;
mod next;
mod own_queues;
mod shared_queue;

pub(super) use deque::{Owner, Thief};
pub(super) use home::{Home, SleepEvent, Wakeup};
pub(super) use idle::{Bell, Fences, Idle, Look, Poll, Watch, Woke};
pub(super) use next::{NextOwner, NextThief, next};
pub(super) use own_queues::{OwnQueue, OwnQueues};
pub(super) use shared_queue::SharedQueue;
