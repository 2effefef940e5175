//! Stacks: mapped with a guard page, and used again.

use std::{
    io,
    sync::{Mutex, PoisonError},
};

use corosensei::stack::DefaultStack;

pub(super) type Stack = DefaultStack;

/// Stacks that were used and are free.
pub(super) struct Stacks {
    size: usize,
    free: Mutex<Vec<Stack>>,
    keep: usize,
}

impl Stacks {
    pub(super) fn new(size: usize) -> Stacks {
        Stacks { size, free: Mutex::default(), keep: 1024 }
    }

    /// A stack that was used before, or a new one.
    pub(super) fn get(&self) -> io::Result<Stack> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.map_or_else(|| DefaultStack::new(self.size), Ok)
    }

    pub(super) fn give_back(&self, stack: Stack) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < self.keep {
            free.push(stack);
        }
    }
}
