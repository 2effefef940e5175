//! Who had the CPUs for which LWPs waited, and the LWPs for which user threads waited, in a slice of time.

use sigmund_model::LwpState;

use super::{
    Actor, Blame,
    coverage::{Coverage, Hints},
};
use crate::{History, Interval, Searches, map::Map, stretches};

/// A number of times, and their length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) count: u64,
    pub(crate) ticks: i64,
}

pub(crate) type Shares = Map<Blame, Sum>;

pub(super) fn add(shares: &mut Shares, blame: Blame, sum: Sum) {
    let into = shares.entry(blame).or_default();
    into.count += sum.count;
    into.ticks += sum.ticks;
}

/// Takes away a part of what was added.
pub(super) fn take_away(shares: &mut Shares, other: Shares) {
    for (blame, sum) in other {
        let from = shares.entry(blame).or_default();
        from.count = from.count.saturating_sub(sum.count);
        from.ticks -= sum.ticks;
        if *from == Sum::default() {
            shares.remove(&blame);
        }
    }
}

/// Waits in a slice. A wait counts once for each stretch of a culprit in it, though they may be in several slices.
pub(super) struct InSlice {
    waits: Coverage,
    slice: Interval,
    /// How many go on after the slice.
    open: u64,
}

impl InSlice {
    pub(super) fn new(waits: Vec<Interval>, slice: Interval) -> InSlice {
        let open = waits.iter().filter(|wait| wait.from < slice.to && slice.to < wait.to).count() as u64;
        InSlice { waits: Coverage::new(waits), slice, open }
    }

    /// The waits during a stretch; those of a stretch that goes on after the slice count there.
    fn during(&self, stretch: Interval, hints: &mut Hints) -> Option<Sum> {
        let part = Interval { from: stretch.from, to: stretch.to.min(self.slice.to) };
        if part.from >= part.to {
            return None;
        }
        let counted = if stretch.to > self.slice.to { self.open } else { 0 };
        let (count, ticks) = self.waits.during(part, hints);
        Some(Sum { count: count.saturating_sub(counted), ticks })
    }

    /// From the begin of the slice on.
    fn within(&self) -> Interval {
        Interval { from: self.slice.from, to: i64::MAX }
    }
}

/// Who had a CPU during waits for it. The ticks sum to the waits in the slice.
pub(super) fn of_cpu(history: &History, of_lwps: bool, cpu: u32, waits: &InSlice) -> Shares {
    let (mut shares, mut at) = (Shares::default(), Hints::default());
    let mut had = |blame, interval: Interval| {
        if let Some(sum) = waits.during(interval, &mut at) {
            add(&mut shares, blame, sum);
        }
    };
    let (runs, mut searches) = (waits.waits.runs(), Searches::new(history));
    let track = history.on_cpu.of(cpu.into());
    stretches(track, runs, waits.within(), &mut (0, 0), |interval, lwp| match lwp {
        None => had(Blame::Unknown, interval),
        Some(0) => had(Blame::Idle, interval),
        Some(lwp) if of_lwps => had(Blame::Who(Actor::Lwp(*lwp)), interval),
        Some(lwp) => {
            let mounted = searches.mounted.of((*lwp).into());
            stretches(mounted.track, runs, interval, &mut mounted.hints, |part, thread| {
                let actor = thread.map_or(Actor::Lwp(*lwp), |thread| Actor::Thread(*thread));
                had(Blame::Who(actor), part);
            });
        }
    });
    shares
}

/// What an LWP carried during waits for one of its process.
pub(super) fn of_lwp(history: &History, lwp: u32, waits: &InSlice) -> Shares {
    let (mounted, states) = (history.mounted.of(lwp.into()), history.lwps.of(lwp.into()));
    let (mut shares, mut hints, mut at) = (Shares::default(), (0, 0), Hints::default());
    let mut had = |blame, interval: Interval| {
        if let Some(sum) = waits.during(interval, &mut at) {
            add(&mut shares, blame, sum);
        }
    };
    stretches(mounted, waits.waits.runs(), waits.within(), &mut (0, 0), |interval, thread| {
        if let Some(thread) = thread {
            return had(Blame::Who(Actor::Thread(*thread)), interval);
        }
        stretches(states, waits.waits.runs(), interval, &mut hints, |part, stay| {
            let blame = match stay.map(|stay| stay.state) {
                None | Some(LwpState::Exited) => return,
                Some(LwpState::Running) => Blame::LwpWithoutThread,
                Some(LwpState::Runnable) => Blame::LwpStalled,
                Some(LwpState::OffCpu | LwpState::Unknown) => Blame::Unknown,
                Some(_) => Blame::LwpAsleep,
            };
            had(blame, part);
        });
    });
    shares
}

/// Makes the ticks sum to `total`. The rest of rounding goes to the largest remainders.
pub(super) fn scale(shares: &mut Shares, total: i64) {
    let sum: i128 = shares.values().map(|share| i128::from(share.ticks)).sum();
    if sum == 0 {
        shares.clear();
        return add(shares, Blame::Unknown, Sum { count: 1, ticks: total });
    }
    let mut order: Vec<(i128, Blame)> = Vec::with_capacity(shares.len());
    let mut rest = total;
    for (blame, share) in shares.iter_mut() {
        let scaled = i128::from(share.ticks) * i128::from(total);
        share.ticks = (scaled / sum) as i64;
        rest -= share.ticks;
        order.push((scaled % sum, *blame));
    }
    order.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    for (_, blame) in order.into_iter().take(rest.max(0) as usize) {
        add(shares, blame, Sum { count: 0, ticks: 1 });
    }
}
