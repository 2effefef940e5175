//! The steps of a walk, by the rules in the documentation of `walk`.

use sigmund_model::{LwpState, ThreadState};

use super::{
    Actor, Link, MOST_JUMPS, Paused, Piece, Walks, What,
    paused::{Cut, Woken},
    wait::{self, Waker},
};
use crate::{History, Interval, LwpStay, ThreadStay};

/// A walk in a slice of time.
///
/// It needs the rows of states just before its tick. So it has to be in a slice that begins before its tick. If a row
/// has the beginning of a piece, the piece is made as a whole, even if it begins before the slice.
pub(super) struct Walk<'w, 'h, F> {
    history: &'h History,
    walks: &'w mut Walks<'h>,
    /// The begin of the slice.
    begin: i64,
    at: Paused,
    each: F,
}

/// A wait of the actor that contains the current tick of the walk, or ends at it.
struct Wait {
    interval: Interval,
    /// The LWP or thread whose wakeup ends it.
    target: Actor,
    lwp: Option<u32>,
    cpu: Option<u32>,
    /// What the wait counts as if the waker is unknown.
    what: What,
    /// Whether the actor was runnable after it.
    is_over: bool,
}

impl<'w, 'h, F: FnMut(&Piece, bool)> Walk<'w, 'h, F> {
    pub(super) fn new(walks: &'w mut Walks<'h>, at: Paused, begin: i64, each: F) -> Self {
        Walk { history: walks.searches.history, walks, begin, at, each }
    }

    /// Runs to the end of the walk, or to the beginning of the slice. Returns where the walk is then.
    pub(super) fn run(mut self) -> Paused {
        self.resume();
        while self.is_inside() {
            self.step();
        }
        self.at
    }

    /// Runs until the walk is at an earlier tick, or the slice has no more of it. Returns where the walk is then.
    pub(super) fn run_to_earlier(mut self) -> Paused {
        let now = self.at.tick;
        self.resume();
        while self.at.tick == now && self.is_inside() {
            self.step();
        }
        self.at
    }

    fn is_inside(&self) -> bool {
        self.at.tick > self.at.until && self.at.tick > self.begin
    }

    /// Ends the wait that was open at the beginning of the later slice.
    fn resume(&mut self) {
        if let Some(woken) = self.at.woken
            && woken.wakeup.tick >= self.begin
        {
            self.at.woken = None;
            self.woken(woken);
            self.at.jumps = 0;
        }
    }

    /// Goes to an earlier tick, or to another actor.
    fn step(&mut self) {
        let since = self.created();
        let (tick, jumps) = (self.at.tick, self.at.jumps);
        match self.at.actor {
            _ if since == Some(tick) => self.go_on_with_creator(),
            Actor::Thread(thread) => self.thread(thread, since),
            Actor::Lwp(lwp) => self.lwp(lwp, since),
        }
        if self.at.tick < tick {
            self.at.jumps = 0;
        } else if self.at.jumps == jumps || self.at.jumps > MOST_JUMPS {
            self.piece(self.at.until, self.own_lwp(), None, What::Unknown);
        }
    }

    /// When the actor was created, but not later than the current tick; `None` if its creator is unknown.
    fn created(&self) -> Option<i64> {
        self.history.names.created(self.at.actor).map(|(tick, _)| tick.min(self.at.tick))
    }

    fn go_on_with_creator(&mut self) {
        if let Some((_, creator)) = self.history.names.created(self.at.actor) {
            self.jump(creator, Link::Created(self.at.actor));
        }
    }

    fn thread(&mut self, thread: u64, created: Option<i64>) {
        let track = self.walks.searches.threads.of(thread);
        let Some((interval, stay)) = track.before(self.at.tick) else {
            let hole = track.hole_before(self.at.tick);
            return self.unknown(hole.max(created.unwrap_or(i64::MIN)));
        };
        let since = interval.from.max(created.unwrap_or(i64::MIN));
        match (stay.state, stay.lwp) {
            (ThreadState::Active, lwp) => self.on_cpu(lwp, since),
            (ThreadState::Stalled, lwp) => {
                let (since, cpu) = self.place(lwp, since);
                self.piece(since, lwp, cpu, What::WaitingForCpu);
            }
            (ThreadState::New | ThreadState::Ready, _) => self.piece(since, None, None, What::WaitingForLwp),
            (ThreadState::Blocked, _) => {
                let what = What::BlockedOn { kind: stay.waits_for, object: stay.object };
                let is_over = interval.to == self.at.tick && thread_runs(track.at(self.at.tick));
                let interval = Interval { from: since, ..interval };
                let target = Actor::Thread(thread);
                self.wait(Wait { interval, target, lwp: None, cpu: None, what, is_over });
            }
            (ThreadState::InKernel | ThreadState::Stopped, Some(lwp)) => {
                let is_over = interval.to == self.at.tick && thread_runs(track.at(self.at.tick));
                self.asleep(lwp, Interval { from: since, ..interval }, is_over);
            }
            (ThreadState::Mounted, lwp) => self.piece(since, lwp, None, What::Mounted),
            (_, lwp) => self.piece(since, lwp, None, What::Unknown),
        }
    }

    fn lwp(&mut self, lwp: u32, created: Option<i64>) {
        let track = self.walks.searches.lwps.of(lwp.into());
        let Some((interval, stay)) = track.before(self.at.tick) else {
            let hole = track.hole_before(self.at.tick);
            return self.unknown(hole.max(created.unwrap_or(i64::MIN)));
        };
        let since = interval.from.max(created.unwrap_or(i64::MIN));
        match stay.state {
            LwpState::Running => self.on_cpu(Some(lwp), since),
            LwpState::Runnable => self.piece(since, Some(lwp), stay.cpu, What::WaitingForCpu),
            LwpState::Sleeping | LwpState::DiskSleep | LwpState::Idle | LwpState::Stopped => {
                let is_over = interval.to == self.at.tick && lwp_runs(track.at(self.at.tick));
                self.asleep(lwp, Interval { from: since, ..interval }, is_over);
            }
            LwpState::OffCpu | LwpState::Exited | LwpState::Unknown => {
                self.piece(since, Some(lwp), None, What::Unknown);
            }
        }
    }

    /// It is running: on this CPU, and before that on another.
    fn on_cpu(&mut self, lwp: Option<u32>, since: i64) {
        let (since, cpu) = self.place(lwp, since);
        let Some(number) = cpu else {
            return self.piece(since, lwp, cpu, What::Running);
        };
        let until = since.max(self.at.until).max(self.begin);
        while self.at.tick > until {
            let interrupts = self.walks.searches.innermost.of(number.into());
            match interrupts.before(self.at.tick) {
                Some((interval, place)) => {
                    // If the later slice had a part of this interrupt, this is another part of it, unless the interrupt
                    // ends here.
                    if interval.to <= self.at.tick {
                        self.at.cut = None;
                    }
                    self.part(Cut::Interrupt, since.max(interval.from), lwp, cpu, What::Interrupt(*place));
                }
                None => {
                    let hole = interrupts.hole_before(self.at.tick);
                    self.part(Cut::Running, since.max(hole), lwp, cpu, What::Running);
                }
            }
        }
    }

    /// The CPU that an LWP was on, or waited for, just before the current tick; and since when, but not before `since`.
    fn place(&mut self, lwp: Option<u32>, since: i64) -> (i64, Option<u32>) {
        let stay = lwp.and_then(|lwp| self.walks.searches.lwps.of(lwp.into()).before(self.at.tick));
        stay.map_or((since, None), |(interval, stay)| (since.max(interval.from), stay.cpu))
    }

    fn asleep(&mut self, lwp: u32, interval: Interval, is_over: bool) {
        let call = self.walks.searches.calls.of(lwp.into()).before(self.at.tick);
        let name = call.map(|(_, place)| self.history.syscalls[*place as usize].name);
        let stay = self.walks.searches.lwps.of(lwp.into()).before(self.at.tick);
        let cpu = stay.and_then(|(_, stay)| stay.cpu);
        let what = What::InSystemCall(name);
        self.wait(Wait { interval, target: Actor::Lwp(lwp), lwp: Some(lwp), cpu, what, is_over });
    }

    fn wait(&mut self, wait: Wait) {
        let Wait { interval, target, lwp, cpu, what, is_over } = wait;
        let ended_by =
            if is_over { wait::ended_by(&mut self.walks.searches, target, interval) } else { None };
        let Some(wakeup) = ended_by else {
            return self.piece(interval.from, lwp, cpu, what);
        };
        let runnable = match target {
            Actor::Lwp(_) => What::WaitingForCpu,
            Actor::Thread(_) => What::WaitingForLwp,
        };
        let wakeup = *wakeup;
        self.piece(wakeup.tick, lwp, wakeup.target_cpu.or(cpu), runnable);
        if self.at.tick <= self.at.until {
            return;
        }
        let woken = Woken { wakeup, target, since: interval.from, lwp, cpu, what };
        if wakeup.tick < self.begin {
            self.at.woken = Some(woken);
        } else {
            self.woken(woken);
        }
    }

    /// Handles the wait before a wakeup. The walk is at the wakeup.
    fn woken(&mut self, woken: Woken) {
        let Woken { wakeup, target, since, lwp, cpu, what } = woken;
        match wait::waker(&mut self.walks.searches, target, &wakeup) {
            Waker::Actor(_) if what.is_for_the_kernel() => {
                if let Some(end) = what.asked_end().filter(|end| (since..self.at.tick).contains(end)) {
                    self.piece(end, lwp, cpu, What::WaitingForLwp);
                }
                if self.at.tick > self.at.until {
                    self.piece(since, lwp, cpu, what);
                }
            }
            Waker::Actor(actor) if actor != self.at.actor => {
                self.jump(actor, Link::Woke { woken: self.at.actor, since, wait: what });
            }
            Waker::Interrupt(source) => self.piece(since, lwp, cpu, What::WaitingFor(source)),
            Waker::Nobody | Waker::Actor(_) => self.piece(since, lwp, cpu, what),
        }
    }

    fn jump(&mut self, actor: Actor, link: Link) {
        self.at.actor = actor;
        self.at.link = Some(link);
        self.at.jumps += 1;
    }

    /// A hole in the states, which begins at `since`, as far as this slice has it.
    fn unknown(&mut self, since: i64) {
        self.part(Cut::Unknown, since, self.own_lwp(), None, What::Unknown);
    }

    fn own_lwp(&self) -> Option<u32> {
        if let Actor::Lwp(lwp) = self.at.actor { Some(lwp) } else { None }
    }

    /// Adds a piece from `since` to the current tick, and moves the walk to `since`.
    fn piece(&mut self, since: i64, lwp: Option<u32>, cpu: Option<u32>, what: What) {
        self.at.cut = None;
        self.push(since, lwp, cpu, what, false);
    }

    /// Adds a piece from `since` to the current tick. If `since` is before the slice, the piece begins with the slice,
    /// because its real beginning is not known yet.
    fn part(&mut self, cut: Cut, since: i64, lwp: Option<u32>, cpu: Option<u32>, what: What) {
        let goes_on = self.at.cut == Some(cut);
        let is_cut = since < self.begin && self.at.until < self.begin;
        self.at.cut = is_cut.then_some(cut);
        self.push(since.max(self.begin), lwp, cpu, what, goes_on);
    }

    fn push(&mut self, since: i64, lwp: Option<u32>, cpu: Option<u32>, what: What, goes_on: bool) {
        let interval = Interval { from: since.max(self.at.until), to: self.at.tick };
        if interval.from < interval.to {
            let Paused { actor, link, .. } = self.at;
            (self.each)(&Piece { interval, actor, lwp, cpu, what, link }, goes_on);
            self.at.tick = interval.from;
        }
    }
}

fn thread_runs(next: Option<(Interval, &ThreadStay)>) -> bool {
    use ThreadState::{Active, Mounted, Ready, Stalled};
    next.is_some_and(|(_, stay)| matches!(stay.state, Active | Ready | Stalled | Mounted))
}

fn lwp_runs(next: Option<(Interval, &LwpStay)>) -> bool {
    next.is_some_and(|(_, stay)| matches!(stay.state, LwpState::Running | LwpState::Runnable))
}
