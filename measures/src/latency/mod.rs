//! `--latency`: how long LWPs waited for a CPU, and user threads for an LWP.

mod rows;
mod to_user;
mod waits;
mod worst;

use std::{collections::BTreeSet, io};

use sigmund_model::{LwpState, ThreadState};

use crate::{
    Answer, By, Column, Distribution, Group, History, Interval, Level, LwpStay, Measure, Needs, Request,
    Series, SeriesBuilder, Spill, ThreadStay,
    carried::Carried,
    growing::Growing,
    map::Map,
    parallel,
    sliced::{Slice, Sliced},
    tally::{self, Kinds, Tally},
};
use rows::{At, Decided, Kernel, Polled, Since, own};
use waits::{Kind, Wait, Wakes};
use worst::{Listed, Worst};

/// How long LWPs waited for a CPU, and user threads for an LWP.
pub(crate) const LATENCY: Measure = Measure {
    name: "latency",
    question: "How long does my thread wait until it runs, and who had the CPU meanwhile?",
    heading: crate::measure::headings::LATE,
    subject: crate::measure::Subject::None,
    lists_cases: true,
    is_of_one_level: true,
    definition: include_str!("../definitions/latency.md"),
    needs: Needs { wakeups: true, interrupts: true, ..Needs::STATES },
    computed: start,
};

/// The waits so far.
struct Latency {
    request: Request,
    tally: Growing<Kinds<Kind>>,
    worst: Worst,
    uncounted: u64,
    /// States that later slices kept for earlier ones, by LWP and by user thread.
    lwps: Map<u64, Vec<At<LwpStay>>>,
    threads: Map<u64, Vec<At<ThreadStay>>>,
    /// Waits of user threads that an LWP polling outside of user threads unparked, if the wakeup of that LWP is before
    /// the slices so far. With each, its LWP, and the tick at which the wait began if that LWP was not woken.
    pollers: Vec<(u64, Wait, u32, i64)>,
    /// The second pass, if single waits are listed: what is known of them so far.
    listed: Option<Listed>,
}

fn start(request: &Request) -> Box<dyn Sliced> {
    Box::new(Latency {
        request: request.clone(),
        tally: Growing::new(request),
        worst: Worst::new(request.worst),
        uncounted: 0,
        lwps: Map::default(),
        threads: Map::default(),
        pollers: Vec::new(),
        listed: None,
    })
}

impl Sliced for Latency {
    fn needs(&self) -> Option<Needs> {
        // Single waits are listed with who woke the thread, and who had the CPU or the LWPs.
        if self.listed.is_some() {
            return Some(Needs { interrupts: true, ..Needs::STATES });
        }
        Some(Needs {
            interrupts: false,
            on_cpu: false,
            only_lives: true,
            before_lives: true,
            only_own: true,
            pollers: true,
            only_pollers: self.request.cpus.is_none() && self.request.worst == 0,
            ..LATENCY.needs
        })
    }

    fn times(&self) -> Option<Vec<Interval>> {
        self.listed.as_ref().map(Listed::times)
    }

    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        if let Some(listed) = &mut self.listed {
            listed.add(history, slice, self.request.by(history));
            return Ok(());
        }
        match self.request.level(history) {
            Level::Lwps => self.add_lwps(history, slice),
            Level::Threads => self.add_threads(history, slice),
        }
        Ok(())
    }

    fn looks_back(&self) -> bool {
        match &self.listed {
            Some(listed) => listed.looks_back(),
            None => !self.lwps.is_empty() || !self.threads.is_empty() || !self.pollers.is_empty(),
        }
    }

    fn is_done(&mut self, history: &History) -> Result<bool, String> {
        self.add_kept(history);
        if self.request.worst == 0 || self.listed.is_some() {
            return Ok(true);
        }
        let worst = std::mem::replace(&mut self.worst, Worst::new(0));
        self.listed = Some(Listed::new(worst, history));
        Ok(false)
    }

    fn spill(&mut self, to: &Spill) -> io::Result<()> {
        self.tally.spill(to)
    }

    fn finish(self: Box<Self>, history: &History) -> Result<Answer, String> {
        let (by, level) = (self.request.by(history), self.request.level(history));
        let mut answer = match self.listed {
            Some(listed) => listed.finish(history, level),
            None => {
                let mut columns = Group::columns(by, level);
                columns
                    .push(Column::text("kind", "What began the wait: a wakeup, a yield, a preemption ..."));
                columns.extend(Distribution::columns());
                self.tally
                    .finish(columns, |group, kinds, out| tally::runs(history, group, kinds, Kind::name, out))
            }
        };
        if self.uncounted > 0 {
            answer.notes.push(format!(
                "{} waits are not counted: events are missing at their begin or end.",
                self.uncounted
            ));
        }
        Ok(answer)
    }
}

impl Latency {
    fn add_lwps(&mut self, history: &History, slice: Slice) {
        let (request, by) = (&self.request.clone(), self.request.by(history));
        let (wakes, carried) = (wakes(history, Level::Lwps), Carried::new(history, request));
        let lwps = history.lwps.keys().filter(|lwp| *lwp != 0 && request.has_lwp(*lwp as u32));
        let lwps: Vec<u64> = lwps.filter(|lwp| history.names.lwps.contains(*lwp as u32)).collect();
        let later = std::mem::take(&mut self.lwps);
        let new = || Part { count: Count::new(request), kept: Vec::new(), pollers: Vec::new() };
        let parts = parallel::fold(&lwps, new, |part: &mut Part<'_, LwpStay>, lwp| {
            let (own, goes_on) = own(history.lwps.of(*lwp), slice);
            let mut wakes = Wakes::new(wakes.of(*lwp));
            let state = |(interval, stay): (Interval, &LwpStay)| {
                let (is_running, from) = (stay.state == LwpState::Running, interval.from);
                let lwp = *lwp as u32;
                let is_asked = if is_running { carried.before(lwp, from) } else { carried.at(lwp, from) };
                let wake = is_running.then(|| wakes.ending_at(history, from)).flatten();
                let (cpu, unparked, carrier, is_doubted) = (stay.cpu, None, None, false);
                At { interval, stay: *stay, is_asked, wake, cpu, unparked, carrier, is_doubted }
            };
            let own = own.map(state).collect();
            let decided = Decided::new(own, later.get(lwp).map_or(&[][..], Vec::as_slice), goes_on);
            part.add_lwp(history, by, *lwp, &decided);
            part.keep(*lwp, decided.kept);
        });
        self.lwps = later;
        for Part { count, kept, .. } in parts {
            self.take(count.tally, count.worst, count.uncounted);
            replace(&mut self.lwps, kept);
        }
    }

    fn add_threads(&mut self, history: &History, slice: Slice) {
        let (request, by) = (&self.request.clone(), self.request.by(history));
        let (wakes, kernel_wakes) = (wakes(history, Level::Threads), wakes(history, Level::Lwps));
        let kernel = Kernel { lwps: &kernel_wakes, slice };
        let carriers = carriers(history);
        let (here, earlier): (Vec<_>, Vec<_>) = std::mem::take(&mut self.pollers)
            .into_iter()
            .map(|(thread, wait, lwp, otherwise)| {
                (kernel.poller(history, lwp, slice.interval.to), (thread, wait, lwp, otherwise))
            })
            .partition(|(polled, _)| !matches!(polled, Polled::Before));
        self.pollers = earlier.into_iter().map(|(_, poller)| poller).collect();
        for at in self.threads.values_mut().flatten() {
            if let Some(Since::Poller { lwp, otherwise }) = at.unparked {
                match kernel.poller(history, lwp, slice.interval.to) {
                    Polled::At(from) => at.unparked = Some(Since::Tick(from)),
                    Polled::Never => at.unparked = Some(Since::Tick(otherwise)),
                    Polled::Before => {}
                }
            }
        }
        let mut count = Count::new(request);
        for (polled, (thread, wait, _, otherwise)) in here {
            let from = if let Polled::At(from) = polled { from } else { otherwise };
            let group = Group::of_thread(history, by, thread);
            count.add(group, Group::Thread(thread), Some(Wait { from, ..wait }), wait.to);
        }
        let threads = history.threads.keys().filter(|thread| request.has_thread(*thread));
        let threads: Vec<u64> = threads.filter(|thread| history.names.threads.contains(*thread)).collect();
        let later = std::mem::take(&mut self.threads);
        let new = || Part { count: Count::new(request), kept: Vec::new(), pollers: Vec::new() };
        let parts = parallel::fold(&threads, new, |part: &mut Part<'_, ThreadStay>, thread| {
            let (own, goes_on) = own(history.threads.of(*thread), slice);
            let unparks = wakes.of(*thread);
            let mut wakes = Wakes::new(unparks);
            let state = |(interval, stay): (Interval, &ThreadStay)| {
                let at = interval.from;
                let is_mounted =
                    stay.lwp.is_some() && !matches!(stay.state, ThreadState::Unknown | ThreadState::Exited);
                let wake = is_mounted.then(|| wakes.ending_at(history, at)).flatten();
                let lwp = stay.lwp.filter(|_| is_mounted);
                let cpu = lwp.and_then(|lwp| history.lwps.of(lwp.into()).at(at)?.1.cpu);
                let is_ready = stay.state == ThreadState::Ready;
                let unpark =
                    is_ready.then(|| unparks.at(at).filter(|(unpark, _)| unpark.from == at)).flatten();
                let unparked = unpark.map(|(_, place)| since(history, &kernel, *place, at));
                let is_active = stay.state == ThreadState::Active;
                let carrier = is_active.then(|| carriers.get(&(*thread, at)).copied()).flatten();
                let is_doubted = stay.state == ThreadState::Mounted
                    && lwp.is_some_and(|lwp| history.lwps.of(lwp.into()).at(at).is_some());
                At { interval, stay: *stay, is_asked: true, wake, cpu, unparked, carrier, is_doubted }
            };
            let own = own.map(state).collect();
            let decided = Decided::new(own, later.get(thread).map_or(&[][..], Vec::as_slice), goes_on);
            part.add_thread(history, by, *thread, &decided);
            part.keep(*thread, decided.kept);
        });
        self.threads = later;
        let Count { tally, worst, uncounted, .. } = count;
        let parts: Vec<_> =
            parts.into_iter().map(|part| (part.count.parts(), part.kept, part.pollers)).collect();
        self.take(tally, worst, uncounted);
        let mut tallies = Vec::with_capacity(parts.len());
        for ((tally, worst, uncounted), kept, pollers) in parts {
            tallies.push(tally.into_groups());
            self.worst.merge(worst);
            self.uncounted += uncounted;
            replace(&mut self.threads, kept);
            self.pollers.extend(pollers);
        }
        let polled: BTreeSet<u64> = self.pollers.iter().map(|(thread, ..)| *thread).collect();
        let is_open = |thread: u64| self.threads.contains_key(&thread) || polled.contains(&thread);
        self.tally.add_slice((history, slice), tallies, Kinds::merge, is_open, |group, kinds, out| {
            tally::runs(history, group, kinds, Kind::name, out)
        });
    }

    /// Adds the waits that no earlier slice can decide.
    fn add_kept(&mut self, history: &History) {
        let by = self.request.by(history);
        let request = self.request.clone();
        let mut part = Part { count: Count::new(&request), kept: Vec::new(), pollers: Vec::new() };
        for (lwp, states) in std::mem::take(&mut self.lwps) {
            part.add_lwp(history, by, lwp, &Decided { before: None, states, kept: Vec::new() });
        }
        self.take(part.count.tally, part.count.worst, part.count.uncounted);
        let mut part = Part { count: Count::new(&request), kept: Vec::new(), pollers: Vec::new() };
        for (thread, states) in std::mem::take(&mut self.threads) {
            part.add_thread(history, by, thread, &Decided { before: None, states, kept: Vec::new() });
        }
        for (thread, wait, _, otherwise) in self.pollers.drain(..).chain(part.pollers) {
            let group = Group::of_thread(history, by, thread);
            part.count.add(group, Group::Thread(thread), Some(Wait { from: otherwise, ..wait }), wait.to);
        }
        self.take(part.count.tally, part.count.worst, part.count.uncounted);
    }

    fn take(&mut self, tally: Tally<Kind>, worst: Worst, uncounted: u64) {
        tally.add_to(&mut self.tally);
        self.worst.merge(worst);
        self.uncounted += uncounted;
    }
}

/// When a user thread that was unparked at a tick counts as woken.
fn since(history: &History, kernel: &Kernel<'_>, unpark: u32, tick: i64) -> Since {
    let unpark = &history.wakeups[unpark as usize];
    let Some(lwp) = unpark.waker_lwp.filter(|_| unpark.waker_thread.is_none()) else {
        return Since::Tick(tick);
    };
    match kernel.poller(history, lwp, unpark.tick) {
        Polled::At(from) => Since::Tick(from),
        Polled::Never => Since::Tick(tick),
        Polled::Before => Since::Poller { lwp, otherwise: tick },
    }
}

/// When the LWP of a user thread was woken. The key is the user thread and the tick of the LWP's dispatch.
fn carriers(history: &History) -> Map<(u64, i64), i64> {
    let mut carriers = Map::default();
    for wakeup in history.wakeups.iter().filter(|wakeup| !wakeup.is_unpark) {
        if let (Some(thread), Some(latency)) = (wakeup.thread, wakeup.latency) {
            carriers.insert((thread, wakeup.tick.saturating_add(latency)), wakeup.tick);
        }
    }
    carriers
}

/// The waits of some LWPs or user threads in a slice.
struct Part<'r, S> {
    count: Count<'r>,
    kept: Vec<(u64, Vec<At<S>>)>,
    pollers: Vec<(u64, Wait, u32, i64)>,
}

impl<S> Part<'_, S> {
    /// Keeps states for the previous slice. States that begin before the window are of no use.
    fn keep(&mut self, owner: u64, mut states: Vec<At<S>>) {
        if states.last().is_some_and(|last| last.interval.from < self.count.request.window.from) {
            states.clear();
        }
        self.kept.push((owner, states));
    }
}

impl Part<'_, LwpStay> {
    fn add_lwp(&mut self, history: &History, by: By, lwp: u64, decided: &Decided<LwpStay>) {
        let lwp = lwp as u32;
        waits::of_lwp(lwp, decided.before, &decided.states, &mut |wait, tick| {
            self.count.add(Group::of_lwp(history, by, lwp), Group::Lwp(lwp), wait, tick);
        });
    }
}

impl Part<'_, ThreadStay> {
    fn add_thread(&mut self, history: &History, by: By, thread: u64, decided: &Decided<ThreadStay>) {
        let Part { count, pollers, .. } = self;
        let (group, actor) = (Group::of_thread(history, by, thread), Group::Thread(thread));
        waits::of_thread(decided.before, &decided.states, &mut |wait, tick| {
            count.add(group.clone(), actor.clone(), wait, tick);
        });
        // When waits are listed one by one, these are already listed under the other kinds.
        if count.request.worst > 0 {
            return;
        }
        to_user::of_thread(decided.before, &decided.states, &mut |wait, tick| match wait {
            None => count.add(group.clone(), actor.clone(), None, tick),
            Some((wait, Since::Tick(from))) => {
                count.add(group.clone(), actor.clone(), Some(Wait { from, ..wait }), tick);
            }
            Some((wait, Since::Poller { lwp, otherwise })) => pollers.push((thread, wait, lwp, otherwise)),
        });
    }
}

fn replace<S>(kept: &mut Map<u64, Vec<At<S>>>, new: Vec<(u64, Vec<At<S>>)>) {
    for (owner, states) in new {
        if states.is_empty() {
            kept.remove(&owner);
        } else {
            kept.insert(owner, states);
        }
    }
}

/// Counts the waits that the request is about.
struct Count<'r> {
    request: &'r Request,
    tally: Tally<Kind>,
    worst: Worst,
    uncounted: u64,
}

impl<'r> Count<'r> {
    fn new(request: &'r Request) -> Count<'r> {
        Count { request, tally: Tally::new(), worst: Worst::new(request.worst), uncounted: 0 }
    }

    fn parts(self) -> (Tally<Kind>, Worst, u64) {
        (self.tally, self.worst, self.uncounted)
    }

    /// Adds a wait that ended at a tick. `None` if its beginning or end is unknown.
    fn add(&mut self, group: Group, actor: Group, wait: Option<Wait>, tick: i64) {
        match wait {
            _ if !self.request.window.contains(tick) => {}
            None => self.uncounted += 1,
            Some(wait) if !self.request.has_place(wait.lwp, wait.cpu) => {}
            Some(wait) => {
                self.tally.of(group).of(wait.kind).push(wait.to - wait.from);
                self.worst.add(actor, wait);
            }
        }
    }
}

/// The wakeups of each LWP or user thread that led to a dispatch. They are given by their places, and last to the
/// dispatch.
fn wakes(history: &History, level: Level) -> Series<u32> {
    let mut wakes = SeriesBuilder::default();
    for (place, wakeup) in history.wakeups.iter().enumerate() {
        let woken = match (level, wakeup.is_unpark) {
            (Level::Lwps, false) => wakeup.lwp.map(u64::from),
            (Level::Threads, true) => wakeup.thread,
            _ => None,
        };
        if let (Some(woken), Some(latency)) = (woken, wakeup.latency) {
            let interval = Interval::new(wakeup.tick, wakeup.tick.saturating_add(latency));
            wakes.push(woken, interval, place as u32);
        }
    }
    wakes.build()
}
