//! What a user thread is doing, as viewers name it.

use sigmund_model::{ThreadState, WaitKind};

/// A state of a user thread; if it is blocked, one for each kind of thing it can be blocked for.
///
/// All of them are numbered, so that a format can have a name, a region or a colour for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DetailedState(u8);

/// By [`WaitKind`].
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
];

const STATES: usize = ThreadState::ALL.len();

impl DetailedState {
    /// So many there are.
    pub const COUNT: usize = STATES + BLOCKED.len();

    /// A state; `blocked_for` counts if that is [`ThreadState::Blocked`].
    #[inline]
    pub fn new(state: ThreadState, blocked_for: Option<WaitKind>) -> DetailedState {
        match blocked_for.filter(|_| state == ThreadState::Blocked) {
            Some(kind) => DetailedState((STATES - 1) as u8 + kind.number()),
            None => DetailedState(state as u8),
        }
    }

    /// The one with this number.
    ///
    /// # Panics
    /// If there are not so many.
    pub fn at(index: usize) -> DetailedState {
        assert!(
            index < DetailedState::COUNT,
            "a user thread does {} things, not {index}",
            DetailedState::COUNT
        );
        DetailedState(index as u8)
    }

    /// All of them: first the states, then those of a blocked thread.
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

    /// What it is blocked for, if that is known.
    pub fn blocked_for(self) -> Option<WaitKind> {
        self.index().checked_sub(STATES).map(|place| WaitKind::ALL[place])
    }

    /// `active`, `blocked`, `blocked (mutex)`.
    #[inline]
    pub fn name(self) -> &'static str {
        match self.index().checked_sub(STATES) {
            Some(place) => BLOCKED[place],
            None => ThreadState::ALL[self.index()].name(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_a_number_and_a_name_of_its_own_and_says_what_it_was_made_of() {
        for state in ThreadState::ALL.iter().copied() {
            let doing = DetailedState::new(state, None);
            assert_eq!((doing.state(), doing.blocked_for(), doing.name()), (state, None, state.name()));
        }
        for kind in WaitKind::ALL.iter().copied() {
            let doing = DetailedState::new(ThreadState::Blocked, Some(kind));
            assert_eq!((doing.state(), doing.blocked_for()), (ThreadState::Blocked, Some(kind)));
            assert_eq!(doing.name(), format!("blocked ({})", kind.name()));
            assert_eq!(
                DetailedState::new(ThreadState::Ready, Some(kind)),
                DetailedState::new(ThreadState::Ready, None)
            );
        }
        assert!(
            DetailedState::all()
                .enumerate()
                .all(|(index, doing)| doing == DetailedState::at(index) && doing.index() == index)
        );
    }
}
