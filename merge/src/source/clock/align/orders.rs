//! What the events of single LWPs show about the counters of two CPUs.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    io,
    ops::ControlFlow,
};

use sigmund_model::{Cpu, Effect, Event, Level, Lwp};

use super::{
    super::{
        feasible::Feasible,
        side_by_side::{Step, Witness, side_by_side},
    },
    MAX_SKEW,
};

/// Number of stretches and wakeups of an LWP with which new ones are compared. These are the ones within reach of a
/// skew, and at most this many.
const RECENT: usize = 16;
/// Maximum number of intervals ruled out by wakeups that are kept for a pair of CPUs.
const WAKEUPS: usize = 1 << 13;
/// One wakeup in this number may be of an LWP that was about to sleep and still on its CPU: the kernel traces those,
/// too.
const RACES: usize = 100;

/// Two CPUs, the one with the smaller number first.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) ahead: Feasible,
    /// Number of orders that are violated by the stamps.
    pub(super) violated: u64,
    /// The offsets that wakeups rule out.
    wakeups: Vec<(i64, i64)>,
}

/// The evidence for all pairs of CPUs.
#[derive(Debug, Default)]
pub(super) struct Orders {
    pub(super) pairs: BTreeMap<(Cpu, Cpu), Pair>,
    on: BTreeMap<Cpu, On>,
    lwps: HashMap<Lwp, OfLwp>,
}

#[derive(Clone, Copy, Debug)]
struct On {
    lwp: Lwp,
    since: i64,
    stream: usize,
}

#[derive(Debug, Default)]
struct OfLwp {
    /// The newest first.
    stretches: VecDeque<Stretch>,
    /// The CPU of each wakeup, and its time.
    wakeups: VecDeque<(Cpu, i64)>,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    cpu: Cpu,
    from: i64,
    to: i64,
}

impl Orders {
    pub(super) fn of(witnesses: Vec<Witness>) -> io::Result<Orders> {
        let mut orders = Orders::default();
        side_by_side(witnesses, |step| {
            match step {
                Step::Gap { stream, .. } => orders.forget(stream),
                Step::Event { stream, tick, level: Level::Kern, event } => {
                    orders.take(stream, tick as i64, event);
                }
                Step::Event { .. } => {}
            }
            ControlFlow::Continue(())
        })?;
        orders.pairs.values_mut().for_each(Pair::take_wakeups);
        Ok(orders)
    }

    /// The LWPs on the CPUs of a stream become unknown.
    fn forget(&mut self, stream: usize) {
        self.on.retain(|_, on| on.stream != stream);
    }

    fn take(&mut self, stream: usize, tick: i64, event: &Event) {
        let Some(cpu) = event.cpu else { return };
        match event.effect {
            Effect::KernelSwitch { prev, next, .. } => {
                self.leaves(prev.or(event.lwp), cpu, tick);
                self.on.insert(cpu, On { lwp: next, since: tick, stream });
            }
            Effect::LwpLeave { .. } => self.leaves(event.lwp, cpu, tick),
            Effect::LwpArrive => {
                self.on.extend(event.lwp.map(|lwp| (cpu, On { lwp, since: tick, stream })));
            }
            Effect::LwpWaking(lwp) | Effect::LwpWakeup { lwp, .. } => self.wakes(lwp, cpu, tick),
            _ => {}
        }
    }

    fn leaves(&mut self, lwp: Option<Lwp>, cpu: Cpu, tick: i64) {
        let on = self.on.remove(&cpu);
        let Some(on) = on.filter(|on| Some(on.lwp) == lwp && on.lwp != Lwp::IDLE) else { return };
        let of_lwp = self.lwps.entry(on.lwp).or_default();
        let stretch = Stretch { cpu, from: on.since, to: tick };
        for old in &of_lwp.stretches {
            apart(&mut self.pairs, old, &stretch);
        }
        for wakeup in &of_lwp.wakeups {
            not_awake(&mut self.pairs, *wakeup, &stretch);
        }
        of_lwp.stretches.truncate(RECENT - 1);
        of_lwp.stretches.push_front(stretch);
    }

    fn wakes(&mut self, lwp: Lwp, waker: Cpu, tick: i64) {
        let of_lwp = self.lwps.entry(lwp).or_default();
        for stretch in &of_lwp.stretches {
            not_awake(&mut self.pairs, (waker, tick), stretch);
        }
        of_lwp.wakeups.truncate(RECENT - 1);
        of_lwp.wakeups.push_front((waker, tick));
    }
}

impl Pair {
    /// Rules out the offsets that wakeups forbid, except one in a hundred.
    fn take_wakeups(&mut self) {
        let ends = self.wakeups.iter().flat_map(|(low, high)| [(low + 1, 1), (*high, -1_i64)]);
        let mut ends: Vec<(i64, i64)> = ends.collect();
        ends.sort_unstable();
        let races = (self.wakeups.len() / RACES) as i64;
        let mut ahead = self.ahead.clone();
        let (mut depth, mut since) = (0, 0);
        for (at, change) in ends {
            match (depth <= races, depth + change <= races) {
                (true, false) => since = at,
                (false, true) => ahead.forbid(since - 1, at),
                _ => {}
            }
            depth += change;
        }
        // If no offset remains, most wakeups are of a trace with missing events. Then only the stretches are used.
        if ahead.hull().is_some() {
            self.ahead = ahead;
        }
        self.wakeups = Vec::new();
    }
}

/// Rules out that one LWP was on both CPUs at the same time.
fn apart(pairs: &mut BTreeMap<(Cpu, Cpu), Pair>, one: &Stretch, other: &Stretch) {
    let (one, other) = if one.cpu < other.cpu { (one, other) } else { (other, one) };
    let (low, high) = (other.from - one.to, other.to - one.from);
    if let Some(pair) = near(pairs, (one.cpu, other.cpu), (low, high)) {
        pair.ahead.forbid(low, high);
    }
}

/// Rules out that an LWP was woken while it was on a CPU.
fn not_awake(pairs: &mut BTreeMap<(Cpu, Cpu), Pair>, (waker, at): (Cpu, i64), stretch: &Stretch) {
    let after = (stretch.from - at, stretch.to - at);
    let (cpus, forbidden) = match waker < stretch.cpu {
        true => ((waker, stretch.cpu), after),
        false => ((stretch.cpu, waker), (-after.1, -after.0)),
    };
    if let Some(pair) = near(pairs, cpus, forbidden)
        && pair.wakeups.len() < WAKEUPS
    {
        pair.wakeups.push(forbidden);
    }
}

/// The pair of two different CPUs, if the forbidden offsets are not beyond the largest skew.
fn near(
    pairs: &mut BTreeMap<(Cpu, Cpu), Pair>,
    (one, other): (Cpu, Cpu),
    (low, high): (i64, i64),
) -> Option<&mut Pair> {
    if one == other || high < -MAX_SKEW || low > MAX_SKEW {
        return None;
    }
    let new = || Pair { ahead: Feasible::between(-MAX_SKEW, MAX_SKEW), violated: 0, wakeups: Vec::new() };
    let pair = pairs.entry((one, other)).or_insert_with(new);
    pair.violated += u64::from(low < 0 && 0 < high);
    Some(pair)
}
