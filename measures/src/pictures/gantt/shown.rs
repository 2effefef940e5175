//! What a column of a timeline shows.

use sigmund_model::{LwpState, ThreadState};

use crate::Level;

/// The number of things that a column can show.
pub(super) const SHOWN: usize = Shown::ALL.len();

/// What a column shows. The states are those of both levels. If several have the largest share, the first of these is
/// shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shown {
    Active,
    Stalled,
    InKernel,
    Ready,
    Blocked,
    Stopped,
    Off,
    Unknown,
    /// Alive, but on no LWP or CPU that is selected.
    NotSelected,
    NotThere,
}

impl Shown {
    pub(super) const ALL: [Shown; 10] = [
        Shown::Active,
        Shown::Stalled,
        Shown::InKernel,
        Shown::Ready,
        Shown::Blocked,
        Shown::Stopped,
        Shown::Off,
        Shown::Unknown,
        Shown::NotSelected,
        Shown::NotThere,
    ];

    pub(super) fn letter(self) -> char {
        match self {
            Shown::Active => 'A',
            Shown::Stalled => 's',
            Shown::InKernel => 'k',
            Shown::Ready => 'r',
            Shown::Blocked => 'b',
            Shown::Stopped => 't',
            Shown::Off => 'o',
            Shown::Unknown => '?',
            Shown::NotSelected => '-',
            Shown::NotThere => '.',
        }
    }

    /// Its words in the legend.
    pub(super) fn name(self, level: Level) -> &'static str {
        match (self, level) {
            (Shown::Active, Level::Threads) => "active",
            (Shown::Active, Level::Lwps) => "running",
            (Shown::Stalled, Level::Threads) => "stalled",
            (Shown::Stalled, Level::Lwps) => "runnable",
            (Shown::InKernel, Level::Threads) => "in kernel",
            (Shown::InKernel, Level::Lwps) => "sleeping",
            (Shown::Ready, _) => "ready",
            (Shown::Blocked, _) => "blocked",
            (Shown::Stopped, _) => "stopped",
            (Shown::Off, _) => "not active, reason unknown",
            (Shown::Unknown, _) => "unknown",
            (Shown::NotSelected, _) => "not in the filter",
            (Shown::NotThere, _) => "not alive",
        }
    }

    /// Whether it is a state at a selected place, so that it has a share.
    pub(super) fn is_state(self) -> bool {
        !matches!(self, Shown::NotSelected | Shown::NotThere)
    }

    /// What is drawn for this state at a place that may be not selected.
    pub(super) fn selected(self, is_selected: bool) -> Shown {
        if self == Shown::NotThere || is_selected { self } else { Shown::NotSelected }
    }

    pub(super) fn of_thread(state: ThreadState) -> Shown {
        match state {
            ThreadState::Active => Shown::Active,
            ThreadState::Stalled => Shown::Stalled,
            ThreadState::InKernel => Shown::InKernel,
            ThreadState::New | ThreadState::Ready => Shown::Ready,
            ThreadState::Blocked => Shown::Blocked,
            ThreadState::Stopped => Shown::Stopped,
            ThreadState::OffCpu | ThreadState::Unmounted => Shown::Off,
            ThreadState::Mounted | ThreadState::Unknown => Shown::Unknown,
            ThreadState::Exited => Shown::NotThere,
        }
    }

    pub(super) fn of_lwp(state: LwpState) -> Shown {
        match state {
            LwpState::Running => Shown::Active,
            LwpState::Runnable => Shown::Stalled,
            LwpState::Sleeping | LwpState::DiskSleep | LwpState::Idle => Shown::InKernel,
            LwpState::Stopped => Shown::Stopped,
            LwpState::OffCpu => Shown::Off,
            LwpState::Unknown => Shown::Unknown,
            LwpState::Exited => Shown::NotThere,
        }
    }
}

/// The state with the largest share; of equal ones the first.
pub(super) fn largest(shares: &[i64; SHOWN]) -> Shown {
    let mut largest = Shown::Active;
    for shown in Shown::ALL {
        if shares[shown as usize] > shares[largest as usize] {
            largest = shown;
        }
    }
    largest
}
