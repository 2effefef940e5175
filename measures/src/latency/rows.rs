//! States, with what is known of their beginnings; and which of them a slice can decide.
//!
//! The states before the end of a wait show how it began. So for each user thread or LWP, some states of a slice are
//! **kept** for the slice before: the first ones, up to a state after which nothing earlier matters. There they come
//! after the slice's own states.

use sigmund_model::{EndReason, LwpState, ThreadState};

use crate::{History, Interval, LwpStay, Series, Slice, ThreadStay, Track, Wakeup};

/// A state.
#[derive(Clone, Copy, Debug)]
pub(super) struct At<S> {
    pub(super) interval: Interval,
    pub(super) stay: S,
    /// For an LWP that counts while it carries selected user threads: whether it counts. This is decided just before it
    /// runs, and for other states when they begin.
    pub(super) is_asked: bool,
    /// The wakeup that led to the dispatch with which it begins.
    pub(super) wake: Option<Wakeup>,
    /// For a user thread on an LWP: the CPU of the LWP when the state begins.
    pub(super) cpu: Option<u32>,
    /// For a user thread that was unparked when the state begins: since when it counts as woken.
    pub(super) unparked: Option<Since>,
    /// For a user thread whose LWP was dispatched when the state begins: when the LWP was woken.
    pub(super) carrier: Option<i64>,
    /// For a user thread on an LWP: whether it is unknown if the LWP is on a CPU, because events are missing. Without
    /// kernel events, nothing of the LWP is missing.
    pub(super) is_doubted: bool,
}

/// Since when a user thread counts as woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Since {
    Tick(i64),
    /// Since the wakeup of its poller, if the poller has been awake since before the slice; otherwise since the tick
    /// `otherwise`.
    Poller {
        lwp: u32,
        otherwise: i64,
    },
}

/// States of a level.
pub(super) trait Stay: Copy {
    /// Whether what came before this state cannot matter for the states after it.
    fn is_reset(self) -> bool;
    fn end(self) -> Option<EndReason>;
}

impl Stay for LwpStay {
    fn is_reset(self) -> bool {
        self.state != LwpState::Runnable
    }

    fn end(self) -> Option<EndReason> {
        self.end
    }
}

impl Stay for ThreadStay {
    fn is_reset(self) -> bool {
        matches!(self.state, ThreadState::Active | ThreadState::Unknown)
    }

    fn end(self) -> Option<EndReason> {
        self.end
    }
}

/// States whose waits can be decided, and states that are kept for the previous slice.
pub(super) struct Decided<S> {
    /// The end of the state just before these states, and what ended it.
    pub(super) before: Option<(i64, EndReason)>,
    pub(super) states: Vec<At<S>>,
    pub(super) kept: Vec<At<S>>,
}

impl<S: Stay> Decided<S> {
    /// `own` are the states that begin in a slice, `later` those that later slices kept. `goes_on` if there is a state
    /// just before `own`.
    pub(super) fn new(mut own: Vec<At<S>>, later: &[At<S>], goes_on: bool) -> Decided<S> {
        if !goes_on {
            own.extend_from_slice(later);
            return Decided { before: None, states: own, kept: Vec::new() };
        }
        let Some(reset) = own.iter().position(|at| at.stay.is_reset()) else {
            own.extend_from_slice(later);
            return Decided { before: None, states: Vec::new(), kept: own };
        };
        let At { interval, stay, .. } = own[reset];
        let mut states = own.split_off(reset + 1);
        states.extend_from_slice(later);
        Decided { before: stay.end().map(|end| (interval.to, end)), states, kept: own }
    }
}

/// The states of a track that begin in a slice, and whether there is a state just before them.
pub(super) fn own<'t, S>(
    track: Track<'t, S>,
    slice: Slice,
) -> (impl Iterator<Item = (Interval, &'t S)> + use<'t, S>, bool) {
    let first = track.count_before(slice.interval.from);
    let goes_on = match (first.checked_sub(1).and_then(|last| track.get(last)), track.get(first)) {
        (Some((last, _)), Some((first, _))) => last.to == first.from,
        (Some((last, _)), None) => last.to >= slice.interval.to,
        (None, _) => false,
    };
    let own = (first..track.len()).filter_map(move |place| track.get(place));
    (own.take_while(move |(interval, _)| interval.from < slice.interval.to), goes_on)
}

/// The wakeups of LWPs by the kernel.
pub(super) struct Kernel<'w> {
    /// The wakeups of each LWP that led to a dispatch; each lasts to the dispatch.
    pub(super) lwps: &'w Series<u32>,
    pub(super) slice: Slice,
}

/// When an LWP was woken, if it has neither slept nor carried a user thread since.
pub(super) enum Polled {
    /// At this tick.
    At(i64),
    /// Unknown; or it has slept or carried a user thread since.
    Never,
    /// Before the slice.
    Before,
}

impl Kernel<'_> {
    /// Finds when a poller was woken: an LWP that unparked a user thread at a tick while it carried no user thread
    /// itself. The kernel had woken it for the event.
    pub(super) fn poller(&self, history: &History, lwp: u32, tick: i64) -> Polled {
        let wakes = self.lwps.of(lwp.into());
        let woken = wakes.count_to(tick).checked_sub(1).and_then(|last| wakes.get(last));
        let from = woken.map_or(self.slice.interval.from, |(woken, _)| woken.to);
        let is_first = from == i64::MIN;
        if is_first {
            return Polled::Never;
        }
        let since = Interval::new(from, tick);
        let mut states = history.lwps.of(lwp.into()).partition(since);
        let is_awake = states.all(|(_, stay)| {
            stay.is_some_and(|stay| matches!(stay.state, LwpState::Running | LwpState::Runnable))
        });
        let has_carried = history.mounted.of(lwp.into()).within(since).any(|(part, _)| part.ticks() > 0);
        match (is_awake && !has_carried, woken) {
            (false, _) => Polled::Never,
            (true, Some((woken, _))) => Polled::At(woken.from),
            (true, None) => Polled::Before,
        }
    }
}
