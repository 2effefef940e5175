//! Switches that the kernel did not trace, although it lost nothing, as the kernels of some guests do.
//!
//! ```text
//!   CPU 0   |==X==|=====L=====|       the switch from X to L is not in the trace: by what is there, L waits in
//!                  ^  * u  u  |       the run queue of CPU 0, and X runs on, until L itself records an event there
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::world::{Event, History, LwpIs, What};
use crate::truth::chance::Chance;

/// Which switches, and the user events that show them; by their places in the history.
#[derive(Debug, Default)]
pub(super) struct Untraced {
    pub(super) switches: BTreeSet<usize>,
    pub(super) shown_by: BTreeSet<usize>,
}

/// Any switches, and all of a CPU up to some point: those whose tracing is switched on last. Only, each stay on a CPU that
/// begins with one of them has an event that is recorded: nothing could ever tell of the others. And an LWP that has left
/// a CPU unseen is not put on another one unseen, before either is shown: its user events would be put on the first.
pub(super) fn choose_any(chance: &mut Chance, history: &History) -> Untraced {
    let mut untraced = Untraced::default();
    let mut stays = stays(history);
    // CPUs whose switches are not traced yet.
    let mut untraced_yet: BTreeSet<u32> =
        history.events.iter().map(|event| event.cpu).collect::<BTreeSet<_>>();
    untraced_yet.retain(|_| chance.one_in(2));
    // LWPs that may still be taken to be on a CPU that they have left.
    let mut left_unseen: BTreeMap<u32, u32> = BTreeMap::new();
    for (place, event) in history.events.iter().enumerate() {
        left_unseen.retain(|lwp, cpu| *cpu != event.cpu || *lwp == event.lwp);
        let What::Switch { left, next } = event.what else { continue };
        let shown_by =
            stays.remove(&place).filter(|_| left != LwpIs::Dead && !left_unseen.contains_key(&next));
        // What shows the stay that ends here is perhaps this switch alone.
        let is_needed = untraced.shown_by.contains(&place);
        let drops = untraced_yet.contains(&event.cpu) || chance.one_in(3);
        match shown_by.filter(|_| drops && !is_needed) {
            Some(shown_by) => {
                untraced.switches.insert(place);
                untraced.shown_by.insert(shown_by);
                left_unseen.insert(event.lwp, event.cpu);
            }
            None => {
                untraced_yet.remove(&event.cpu);
                left_unseen.remove(&event.lwp);
                left_unseen.remove(&next);
            }
        }
    }
    untraced
}

/// The first event of each stay on a CPU, if there is one, by the switch that begins it.
fn stays(history: &History) -> BTreeMap<usize, usize> {
    let (mut stays, mut begun) = (BTreeMap::new(), BTreeMap::new());
    for (place, event) in history.events.iter().enumerate() {
        if let Some(switch) = begun.remove(&event.cpu) {
            stays.insert(switch, place);
        }
        if let What::Switch { .. } = event.what {
            begun.insert(event.cpu, place);
        }
    }
    stays
}

/// Where an LWP is according to the traced events.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Traced {
    On(u32),
    RunnableOn(u32),
    Elsewhere,
}

/// Of the switches that the LWP which comes will show by an event of its own, half.
pub(super) fn choose(chance: &mut Chance, history: &History) -> Untraced {
    let (mut untraced, mut traced) = (Untraced::default(), BTreeMap::new());
    for (place, event) in history.events.iter().enumerate() {
        let shown_by = shown_by(history, place, &traced).filter(|_| chance.one_in(2));
        follow(&mut traced, event, shown_by.is_some());
        if let Some(shown_by) = shown_by {
            untraced.switches.insert(place);
            untraced.shown_by.insert(shown_by);
        }
    }
    untraced
}

/// The user event that would show a switch if it were not traced: the next one of its CPU.
fn shown_by(history: &History, place: usize, traced: &BTreeMap<u32, Traced>) -> Option<usize> {
    let switch = &history.events[place];
    let What::Switch { left, next } = switch.what else { return None };
    let (before, cpu) = (switch.lwp, switch.cpu);
    let fits = before != 0
        && left != LwpIs::Dead
        && traced.get(&before) == Some(&Traced::On(cpu))
        && traced.get(&next) == Some(&Traced::RunnableOn(cpu));
    if !fits {
        return None;
    }
    let behind = || (place + 1..).zip(&history.events[place + 1..]);
    let (shown_by, _) = behind().find(|(_, event)| event.cpu == cpu)?;
    // Whoever meets one of the two before would be told something wrong of it.
    let concerns = |event: &Event| match event.what {
        What::Switch { next: lwp, .. }
        | What::Wakeup { lwp, .. }
        | What::Waking(lwp)
        | What::Migrate { lwp, .. } => lwp == before || lwp == next,
        _ => false,
    };
    let is_first = !behind().take_while(|(place, _)| *place < shown_by).any(|(_, event)| concerns(event));
    (is_first && history.events[shown_by].is_user()).then_some(shown_by)
}

/// Applies what an event shows of the CPUs of LWPs.
fn follow(traced: &mut BTreeMap<u32, Traced>, event: &Event, is_untraced: bool) {
    match event.what {
        What::Switch { left, next } => {
            let before = match left {
                LwpIs::Runnable if !is_untraced => Traced::RunnableOn(event.cpu),
                _ => Traced::Elsewhere,
            };
            traced.insert(event.lwp, before);
            traced.insert(next, Traced::On(event.cpu));
        }
        What::Wakeup { lwp, cpu } => {
            if let Some(is) = traced.get_mut(&lwp).filter(|is| !matches!(is, Traced::On(_))) {
                *is = Traced::RunnableOn(cpu);
            }
        }
        What::Migrate { lwp, cpu } => {
            if let Some(is) = traced.get_mut(&lwp).filter(|is| matches!(is, Traced::RunnableOn(_))) {
                *is = Traced::RunnableOn(cpu);
            }
        }
        What::Fork(lwp) => drop(traced.remove(&lwp)),
        _ => {}
    }
}
