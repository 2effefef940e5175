//! The state of a user thread, with the kind of wait of a blocked one.

use sigmund_model::{ThreadState, WaitKind};

/// A state of a user thread; for blocked threads, one for each kind of wait.
///
/// States are numbered, so a format can have a table of names, regions or colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DetailedState(u8);

/// Names of blocked states, by [`WaitKind`].
const BLOCKED: [&str; WaitKind::ALL.len()] = [
    "blocked (mutex)",
    "blocked (rwlock-read)",
    "blocked (rwlock-write)",
    "blocked (condvar)",
    "blocked (semaphore)",
    "blocked (barrier)",
    "blocked (channel)",
    "blocked (channel-space)",
    "blocked (once-cell)",
    "blocked (join)",
    "blocked (sleep)",
    "blocked (io)",
    "blocked (scope)",
    "blocked (park)",
    "blocked (future)",
    "blocked (notify)",
    "blocked (select)",
];

const STATES: usize = ThreadState::ALL.len();

impl DetailedState {
    /// Number of detailed states.
    pub const COUNT: usize = STATES + BLOCKED.len();

    /// From a state; `blocked_for` is ignored unless it is [`ThreadState::Blocked`].
    #[inline]
    pub fn new(state: ThreadState, blocked_for: Option<WaitKind>) -> DetailedState {
        match blocked_for.filter(|_| state == ThreadState::Blocked) {
            Some(kind) => DetailedState((STATES - 1) as u8 + kind.number()),
            None => DetailedState(state as u8),
        }
    }

    /// From its number.
    ///
    /// # Panics
    /// If `index` is not below [`COUNT`](Self::COUNT).
    pub fn at(index: usize) -> DetailedState {
        assert!(index < DetailedState::COUNT, "detailed state {index} of {}", DetailedState::COUNT);
        DetailedState(index as u8)
    }

    /// All of them: first the states, then the blocked states with a known kind of wait.
    pub fn all() -> impl ExactSizeIterator<Item = DetailedState> {
        (0..DetailedState::COUNT as u8).map(DetailedState)
    }

    /// Its number, from 0 on.
    #[inline]
    pub fn index(self) -> usize {
        self.0.into()
    }

    /// The state.
    pub fn state(self) -> ThreadState {
        ThreadState::ALL.get(self.index()).copied().unwrap_or(ThreadState::Blocked)
    }

    /// The kind of wait, if it is blocked and the kind is known.
    pub fn blocked_for(self) -> Option<WaitKind> {
        self.index().checked_sub(STATES).map(|index| WaitKind::ALL[index])
    }

    /// `active`, `blocked`, `blocked (mutex)`.
    #[inline]
    pub fn name(self) -> &'static str {
        match self.index().checked_sub(STATES) {
            Some(index) => BLOCKED[index],
            None => ThreadState::ALL[self.index()].name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_name_and_parts_of_each_state_are_consistent() {
        for state in ThreadState::ALL.iter().copied() {
            let detailed = DetailedState::new(state, None);
            assert_eq!(
                (detailed.state(), detailed.blocked_for(), detailed.name()),
                (state, None, state.name())
            );
        }
        for kind in WaitKind::ALL.iter().copied() {
            let detailed = DetailedState::new(ThreadState::Blocked, Some(kind));
            assert_eq!((detailed.state(), detailed.blocked_for()), (ThreadState::Blocked, Some(kind)));
            assert_eq!(detailed.name(), format!("blocked ({})", kind.name()));
            assert_eq!(
                DetailedState::new(ThreadState::Ready, Some(kind)),
                DetailedState::new(ThreadState::Ready, None)
            );
        }
        assert!(
            DetailedState::all()
                .enumerate()
                .all(|(index, detailed)| detailed == DetailedState::at(index) && detailed.index() == index)
        );
    }
}
