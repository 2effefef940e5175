//! What must be known at a tick, given the events that were kept.

use super::{
    Oracle,
    rows::{at, during},
};
use std::collections::BTreeMap;

use crate::truth::recording::{
    losses::Gap,
    world::{Event, LwpIs, ThreadIs, What},
};

impl Oracle<'_> {
    pub(super) fn settle(&mut self, event: &Event) {
        let tick = event.tick;
        let Some(process) = event.process else { return self.settle_place(event) };
        let mut settles: Vec<u64> = event.thread.map(|(_, thread)| thread).into_iter().collect();
        let is_open = self.gaps_of(process).any(|gap| gap.is_open(tick));
        match event.what {
            What::UserSwitch { next, .. } if next != 0 => settles.push(next),
            What::ThreadNew(thread) if !is_open => settles.push(thread),
            What::ThreadReady(thread) if !is_open && self.threads.contains_key(&(process, thread)) => {
                // One that is mounted stays where it is.
                let is = at(&self.history.threads[&(process, thread)], tick);
                settles.extend(Some(thread).filter(|_| is == Some(ThreadIs::Ready)));
            }
            _ => {}
        }
        for thread in settles {
            self.threads.entry((process, thread)).or_default().insert(tick);
        }
    }

    fn settle_place(&mut self, event: &Event) {
        // Before the first switch of a CPU, an event tells where its LWP is at that instant, and no more.
        let is_followed = |cpu| self.first_switches.get(&cpu).is_some_and(|first| *first <= event.tick);
        let mut settles = Vec::new();
        settles.extend(is_followed(event.cpu).then_some(event.lwp));
        match event.what {
            What::Switch { next, .. } => settles.push(next),
            What::Wakeup { lwp, cpu } if is_followed(cpu) => {
                // The merge knows when a gap ends, also if another CPU has the first event of that tick.
                let hides = |gap: &Gap| gap.from <= event.tick && gap.to.is_none_or(|to| event.tick < to);
                let is_open = self.recording.cpu_gaps.iter().any(hides);
                settles.extend(Some(lwp).filter(|lwp| !is_open && self.places.contains_key(lwp)));
            }
            _ => {}
        }
        for lwp in settles.into_iter().filter(|lwp| *lwp != 0) {
            self.places.entry(lwp).or_default().insert(event.tick);
        }
    }

    pub(super) fn find_wakings(&mut self) {
        let mut waking = BTreeMap::new();
        let history = self.history;
        let there = history.events.iter().zip(&self.recording.is_there).filter(|(_, there)| **there);
        for (event, _) in there {
            match event.what {
                What::Waking(lwp) => {
                    self.wakings.entry(lwp).or_default().insert(event.tick);
                    let is = at(&history.lwps[&lwp], event.tick);
                    let is_known = self.knows_place(lwp, event.tick);
                    let sleeps = matches!(is, Some(LwpIs::Sleeping | LwpIs::DiskSleep));
                    waking.insert(lwp, sleeps && is_known);
                }
                What::Wakeup { lwp, .. } if waking.remove(&lwp) == Some(true) => {
                    self.first_followed = self.first_followed.min(event.tick);
                }
                _ => {}
            }
        }
    }

    /// Whether an LWP that sleeps from `start` to `end` may be said to be runnable: it is about to be woken.
    pub(super) fn may_be_woken(&self, lwp: u32, start: u64, end: u64) -> bool {
        let slept =
            self.history.lwps[&lwp].iter().map(|(tick, _)| *tick).take_while(|tick| *tick <= start).last();
        let wakings = self.wakings.get(&lwp);
        let woken = wakings.is_some_and(|ticks| ticks.range(slept.unwrap_or(0)..=start).next().is_some());
        // Where parts are missing, the first that is known to be followed may come later.
        let is_certain = self.is_whole() && self.recording.untraced.is_empty();
        woken && (!is_certain || end <= self.first_followed)
    }

    /// Gaps that may hide what a process's threads do. Whose LWP it is, is not known of a number that several had.
    pub(super) fn gaps_of(&self, process: usize) -> impl Iterator<Item = &Gap> {
        let gaps = &self.recording.lwp_gaps;
        let shared = |lwp: u32| self.history.owners.get(&lwp).is_some_and(|owners| owners.len() > 1);
        // If such an LWP's attach is missing, it is not known either whose the threads are that it tells of.
        let vague = gaps.iter().any(|gap| gap.process == Some(process) && shared(gap.of));
        gaps.iter().filter(move |gap| vague || gap.process == Some(process) || shared(gap.of))
    }

    /// Whether it must be known where an LWP is at a tick.
    pub(super) fn knows_place(&self, lwp: u32, tick: u64) -> bool {
        let settled = self.places.get(&lwp).and_then(|ticks| ticks.range(..=tick).next_back());
        let Some(settled) = settled else { return false };
        let log = &self.history.lwps[&lwp];
        let stays_on = match at(log, *settled) {
            Some(LwpIs::On(cpu)) if during(log, *settled, tick).count() <= 1 => Some(cpu),
            _ => None,
        };
        let hides = |gap: &Gap| gap.from <= tick && gap.to.is_none_or(|to| to > *settled);
        let concerns = |gap: &Gap| stays_on.is_none_or(|cpu| cpu == gap.of);
        !self.recording.cpu_gaps.iter().any(|gap| hides(gap) && concerns(gap))
    }

    /// Whether the thread mounted on an LWP must be known at a tick.
    pub(super) fn knows_mounted(&self, lwp: u32, tick: u64) -> bool {
        if self.recording.packets.is_empty()
            || self.recording.lwp_gaps.iter().any(|g| g.of == lwp && g.is_open(tick))
        {
            return false;
        }
        !self.may_have_ended(lwp, tick)
    }

    /// Whether an LWP has no more user events at a tick, and may have been killed unseen.
    pub(super) fn may_have_ended(&self, lwp: u32, tick: u64) -> bool {
        let owners = &self.history.owners[&lwp];
        let ended = |process: &usize| self.user_ends.get(&(*process, lwp)).filter(|end| **end <= tick);
        let hides = |end: &u64| {
            self.recording.cpu_gaps.iter().any(|gap| gap.from <= tick && gap.to.is_none_or(|to| to >= *end))
        };
        owners.iter().filter_map(ended).any(hides)
    }
}
