//! The states of user threads and LWPs in a common form for both levels, and the time that interrupts took from them.

use sigmund_model::{LwpState, ThreadState, WaitKind};

use crate::{
    History, Interrupt, Interval, Level, Request, Searches, Slice, ThreadStay, carried::Carried,
    groups::Owner, map::Map,
};

/// A state of a user thread or of an LWP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum State {
    Thread(ThreadState),
    Lwp(LwpState),
}

impl State {
    pub(crate) fn name(self) -> &'static str {
        match self {
            State::Thread(state) => state.name(),
            State::Lwp(state) => state.name(),
        }
    }

    /// Whether it executes, or is interrupted.
    pub(crate) fn is_on_cpu(self) -> bool {
        matches!(self, State::Thread(ThreadState::Active) | State::Lwp(LwpState::Running))
    }

    /// Whether it may or may not execute: events are missing, or there is no kernel trace.
    pub(crate) fn may_be_on_cpu(self) -> bool {
        matches!(
            self,
            State::Thread(ThreadState::Mounted | ThreadState::Unknown) | State::Lwp(LwpState::Unknown)
        )
    }

    pub(crate) fn is_unknown(self) -> bool {
        matches!(self, State::Thread(ThreadState::Unknown) | State::Lwp(LwpState::Unknown))
    }
}

/// A state, and its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stay {
    pub(crate) state: State,
    /// From its beginning to its end, not cut to the slice. For an LWP that counts while it carries selected threads:
    /// cut to such a time.
    pub(crate) whole: Interval,
    /// The LWP itself, or the LWP that the user thread was mounted on.
    pub(crate) lwp: Option<u32>,
    /// The CPU that the LWP was on, or in whose run queue it was. For user threads, only if they are active or stalled,
    /// or if the request selects CPUs.
    pub(crate) cpu: Option<u32>,
    pub(crate) waits_for: Option<WaitKind>,
    pub(crate) object: i64,
}

impl ThreadStay {
    /// The CPU that its LWP was on, or left.
    pub(crate) fn cpu(&self, history: &History, interval: Interval) -> Option<u32> {
        history.lwps.of(self.lwp?.into()).at(interval.from)?.1.cpu
    }
}

/// The selected user threads that have states, or the selected LWPs, sorted by number. If the request is about LWPs and
/// selects user threads, these are the LWPs that carried one of them.
pub(crate) fn asked_owners(history: &History, request: &Request) -> Vec<Owner> {
    let names = &history.names;
    let mut owners: Vec<Owner> = match request.level(history) {
        Level::Threads => {
            let threads = history.threads.keys().filter(|thread| request.has_thread(*thread));
            threads.filter(|thread| names.threads.contains(*thread)).map(Owner::Thread).collect()
        }
        Level::Lwps => {
            let lwps =
                history.lwps.keys().map(|lwp| lwp as u32).filter(|lwp| *lwp != 0 && request.has_lwp(*lwp));
            let carried = Carried::new(history, request);
            let lwps = lwps.filter(|lwp| names.lwps.contains(*lwp) && carried.has(*lwp));
            lwps.map(Owner::Lwp).collect()
        }
    };
    owners.sort_unstable();
    owners
}

/// All selected user threads or LWPs, with states or without.
pub(crate) fn named_owners(history: &History, request: &Request) -> Vec<Owner> {
    let names = &history.names;
    match request.level(history) {
        Level::Threads => {
            let threads = names.threads.numbers().filter(|thread| request.has_thread(*thread));
            threads.map(Owner::Thread).collect()
        }
        Level::Lwps => {
            let lwps = names.lwps.numbers().filter(|lwp| *lwp != 0 && request.has_lwp(*lwp));
            lwps.map(Owner::Lwp).collect()
        }
    }
}

/// Calls `each` with the states of a user thread or LWP at selected places, cut to the window. The state `exited` is
/// left out. For LWPs, if user threads are selected, only the parts in which they carried one of these.
pub(crate) fn each_stay<'h>(
    searches: &mut Searches<'h>,
    owner: Owner,
    request: &Request,
    window: Interval,
    mut each: impl FnMut(&mut Searches<'h>, Interval, Stay),
) {
    let history = searches.history;
    match owner {
        Owner::Thread(thread) => {
            for (interval, whole, stay) in history.threads.of(thread).within_whole(window) {
                let needs_cpu = matches!(stay.state, ThreadState::Active | ThreadState::Stalled);
                let lwp = stay.lwp.filter(|_| needs_cpu || request.cpus.is_some());
                let of_lwp = lwp.and_then(|lwp| searches.lwps.of(lwp.into()).at(interval.from));
                let cpu = of_lwp.and_then(|(_, stay)| stay.cpu);
                if stay.state != ThreadState::Exited && request.has_place(stay.lwp, cpu) {
                    let (state, waits_for) = (State::Thread(stay.state), stay.waits_for);
                    each(
                        searches,
                        interval,
                        Stay { state, whole, lwp: stay.lwp, cpu, waits_for, object: stay.object },
                    );
                }
            }
        }
        Owner::Lwp(lwp) => {
            let carried = searches.carried.take().unwrap_or_else(|| Carried::new(history, request));
            for (interval, whole, stay) in history.lwps.of(lwp.into()).within_whole(window) {
                if stay.state != LwpState::Exited && request.has_place(Some(lwp), stay.cpu) {
                    let (state, cpu, waits_for, object) = (State::Lwp(stay.state), stay.cpu, None, 0);
                    carried.each_part(lwp, interval, |part, run| {
                        let whole = Interval::new(whole.from.max(run.from), whole.to.min(run.to));
                        each(searches, part, Stay { state, whole, lwp: Some(lwp), cpu, waits_for, object });
                    });
                }
            }
            searches.carried = Some(carried);
        }
    }
}

/// The interrupts in a stretch on a CPU that continues before the slice, and the time that each took in later slices.
pub(crate) type TakenLater = Vec<(Interrupt, i64)>;

/// Sums the time that each interrupt took from one stretch on a CPU. Each interrupt is counted once, even if others
/// were inside of it, or if it and the stretch cross the border of a slice.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// Interrupts that have not ended yet, by their places. There are as many as are nested.
    open: Vec<(u32, i64)>,
    /// The time that interrupts took in later slices, for interrupts that are in this slice, too.
    later: TakenLater,
    /// Interrupts that began before this tick may have taken more time in the slice before.
    border: i64,
}

impl Taken {
    /// Begins a stretch. If it continues in a later slice, `later` is what interrupts took there.
    pub(crate) fn begin(&mut self, slice: Slice, stretch: Interval, later: TakenLater) {
        self.border = if slice.goes_on_before(stretch) { slice.interval.from } else { i64::MIN };
        self.later = later;
    }

    /// Adds the time that interrupts took from a part of the stretch. Parts have to come in time order. Returns the
    /// number of ticks. Calls `each` with the interrupts that have ended, and the ticks of each.
    pub(crate) fn add(
        &mut self,
        searches: &mut Searches<'_>,
        cpu: Option<u32>,
        part: Interval,
        mut each: impl FnMut(&Interrupt, i64),
    ) -> i64 {
        let (Some(cpu), history) = (cpu, searches.history) else { return 0 };
        let mut sum = 0;
        for (piece, place) in searches.innermost.of(cpu.into()).within(part) {
            sum += piece.ticks();
            if let Some((_, ticks)) = self.open.iter_mut().rev().find(|(open, _)| open == place) {
                *ticks += piece.ticks();
                continue;
            }
            let border = self.border;
            self.open.retain(|(place, ticks)| {
                let interrupt = &history.interrupts[*place as usize];
                let goes_on = interrupt.interval.to > piece.from || interrupt.interval.from < border;
                if !goes_on {
                    each(interrupt, *ticks);
                }
                goes_on
            });
            let interrupt = &history.interrupts[*place as usize];
            let later = self.later.iter().position(|(later, _)| later == interrupt);
            let later = later.map_or(0, |place| self.later.swap_remove(place).1);
            self.open.push((*place, piece.ticks() + later));
        }
        sum
    }

    /// Ends the stretch. Calls `each` with the remaining interrupts. Interrupts that may have taken more time in the
    /// slice before are returned instead, with their ticks.
    pub(crate) fn finish(&mut self, history: &History, mut each: impl FnMut(&Interrupt, i64)) -> TakenLater {
        let here = self.open.drain(..).map(|(place, ticks)| (history.interrupts[place as usize], ticks));
        let mut before = Vec::new();
        for (interrupt, ticks) in here.chain(self.later.drain(..)) {
            if interrupt.interval.from < self.border {
                before.push((interrupt, ticks));
            } else {
                each(&interrupt, ticks);
            }
        }
        before
    }
}

/// What is known of stays that continue before a slice, by owner.
#[derive(Debug)]
pub(crate) struct OpenStays<T>(Map<Owner, T>);

impl<T> Default for OpenStays<T> {
    fn default() -> OpenStays<T> {
        OpenStays(Map::default())
    }
}

impl<T: Clone + Default> OpenStays<T> {
    /// What later slices know of a stay.
    pub(crate) fn later(&self, slice: Slice, owner: Owner, stay: Interval) -> T {
        let known = slice.goes_on_after(stay).then(|| self.0.get(&owner)).flatten();
        known.cloned().unwrap_or_default()
    }

    /// Keeps what is known of a stay that continues before the slice.
    pub(crate) fn keep(&mut self, owner: Owner, known: T) {
        self.0.insert(owner, known);
    }

    /// Whether something is known of a stay of this owner.
    pub(crate) fn has(&self, owner: Owner) -> bool {
        self.0.contains_key(&owner)
    }

    /// Adds the stays of another.
    pub(crate) fn extend(&mut self, other: OpenStays<T>) {
        self.0.extend(other.0);
    }
}
