//! The steps of a walk: the rules in the module's documentation.

use sigmund_model::{LwpState, ThreadState};

use super::{
    Actor, Link, MOST_JUMPS, Piece, Walks, What,
    wait::{self, Waker},
};
use crate::{History, Interval, LwpStay, ThreadStay};

/// A walk that has reached an actor at a tick.
pub(super) struct Walk<'w, 'h, F> {
    history: &'h History,
    walks: &'w mut Walks<'h>,
    /// Where it ends.
    until: i64,
    actor: Actor,
    tick: i64,
    link: Option<Link>,
    /// Jumps at this tick.
    jumps: u32,
    each: F,
}

/// A wait of the actor that lasts to the current tick of the walk, or longer.
struct Wait {
    interval: Interval,
    /// The LWP or thread whose wakeup ends it.
    target: Actor,
    lwp: Option<u32>,
    cpu: Option<u32>,
    /// What it is if the waker is not known.
    what: What,
    /// Whether the actor was runnable after it.
    is_over: bool,
}

impl<'w, 'h, F: FnMut(Piece)> Walk<'w, 'h, F> {
    pub(super) fn new(walks: &'w mut Walks<'h>, actor: Actor, window: Interval, each: F) -> Self {
        Walk {
            history: walks.searches.history,
            walks,
            until: window.from,
            actor,
            tick: window.to,
            link: None,
            jumps: 0,
            each,
        }
    }

    pub(super) fn run(mut self) {
        while self.tick > self.until {
            let (at, since, jumps) = (self.tick, self.created(), self.jumps);
            match self.actor {
                _ if since == Some(at) => self.go_on_with_creator(),
                Actor::Thread(thread) => self.thread(thread, since),
                Actor::Lwp(lwp) => self.lwp(lwp, since),
            }
            if self.tick < at {
                self.jumps = 0;
            } else if self.jumps == jumps || self.jumps > MOST_JUMPS {
                self.unknown(self.until);
            }
        }
    }

    /// When the actor was created, not after now; `None` if its creator is not known.
    fn created(&self) -> Option<i64> {
        self.walks.created.get(&self.actor).map(|(tick, _)| (*tick).min(self.tick))
    }

    fn go_on_with_creator(&mut self) {
        if let Some((_, creator)) = self.walks.created.get(&self.actor) {
            self.jump(Actor::Thread(*creator), Link::Created(self.actor));
        }
    }

    fn thread(&mut self, thread: u64, created: Option<i64>) {
        let track = self.walks.searches.threads.of(thread);
        let Some((interval, stay)) = track.before(self.tick) else {
            let hole = track.hole_before(self.tick);
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
                let is_over = interval.to == self.tick && thread_runs(track.at(self.tick));
                let interval = Interval { from: since, ..interval };
                let target = Actor::Thread(thread);
                self.wait(Wait { interval, target, lwp: None, cpu: None, what, is_over });
            }
            (ThreadState::InKernel | ThreadState::Stopped, Some(lwp)) => {
                let is_over = interval.to == self.tick && thread_runs(track.at(self.tick));
                self.asleep(lwp, Interval { from: since, ..interval }, is_over);
            }
            (ThreadState::Mounted, lwp) => self.piece(since, lwp, None, What::Mounted),
            (_, lwp) => self.piece(since, lwp, None, What::Unknown),
        }
    }

    fn lwp(&mut self, lwp: u32, created: Option<i64>) {
        let track = self.walks.searches.lwps.of(lwp.into());
        let Some((interval, stay)) = track.before(self.tick) else {
            let hole = track.hole_before(self.tick);
            return self.unknown(hole.max(created.unwrap_or(i64::MIN)));
        };
        let since = interval.from.max(created.unwrap_or(i64::MIN));
        match stay.state {
            LwpState::Running => self.on_cpu(Some(lwp), since),
            LwpState::Runnable => self.piece(since, Some(lwp), stay.cpu, What::WaitingForCpu),
            LwpState::Sleeping | LwpState::DiskSleep | LwpState::Idle | LwpState::Stopped => {
                let is_over = interval.to == self.tick && lwp_runs(track.at(self.tick));
                self.asleep(lwp, Interval { from: since, ..interval }, is_over);
            }
            LwpState::OffCpu | LwpState::Exited | LwpState::Unknown => {
                self.piece(since, Some(lwp), None, What::Unknown);
            }
        }
    }

    /// Running, on this CPU or before that on another.
    fn on_cpu(&mut self, lwp: Option<u32>, since: i64) {
        let (since, cpu) = self.place(lwp, since);
        let since = since.max(self.until);
        let Some(number) = cpu.filter(|_| !self.history.innermost.is_empty()) else {
            return self.piece(since, lwp, cpu, What::Running);
        };
        while self.tick > since {
            let interrupts = self.walks.searches.innermost.of(number.into());
            match interrupts.before(self.tick) {
                Some((interval, place)) => {
                    self.piece(since.max(interval.from), lwp, cpu, What::Interrupt(*place));
                }
                None => {
                    let hole = interrupts.hole_before(self.tick);
                    self.piece(since.max(hole), lwp, cpu, What::Running);
                }
            }
        }
    }

    /// The CPU that an LWP was on, or waited for, just before now, and since when, but not before `since`.
    fn place(&mut self, lwp: Option<u32>, since: i64) -> (i64, Option<u32>) {
        let stay = lwp.and_then(|lwp| self.walks.searches.lwps.of(lwp.into()).before(self.tick));
        stay.map_or((since, None), |(interval, stay)| (since.max(interval.from), stay.cpu))
    }

    fn asleep(&mut self, lwp: u32, interval: Interval, is_over: bool) {
        let call = self.walks.searches.calls.of(lwp.into()).before(self.tick);
        let name = call.map(|(_, place)| self.history.syscalls[*place as usize].name);
        let stay = self.walks.searches.lwps.of(lwp.into()).before(self.tick);
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
        self.piece(wakeup.tick, lwp, wakeup.target_cpu.or(cpu), runnable);
        if self.tick <= self.until {
            return;
        }
        match wait::waker(&mut self.walks.searches, target, wakeup) {
            Waker::Actor(actor) if actor != self.actor => {
                self.jump(actor, Link::Woke { woken: self.actor, since: interval.from, wait: what });
            }
            Waker::Interrupt(source) => self.piece(interval.from, lwp, cpu, What::WaitingFor(source)),
            Waker::Nobody | Waker::Actor(_) => self.piece(interval.from, lwp, cpu, what),
        }
    }

    fn jump(&mut self, actor: Actor, link: Link) {
        self.actor = actor;
        self.link = Some(link);
        self.jumps += 1;
    }

    fn unknown(&mut self, since: i64) {
        let lwp = if let Actor::Lwp(lwp) = self.actor { Some(lwp) } else { None };
        self.piece(since, lwp, None, What::Unknown);
    }

    /// A piece from `since` to now. The walk is at its start then.
    fn piece(&mut self, since: i64, lwp: Option<u32>, cpu: Option<u32>, what: What) {
        let interval = Interval { from: since.max(self.until), to: self.tick };
        if interval.from < interval.to {
            (self.each)(Piece { interval, actor: self.actor, lwp, cpu, what, link: self.link });
            self.tick = interval.from;
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
