//! Who had the CPUs that LWPs waited for, and the LWPs that user threads waited for, in a slice.

use sigmund_model::LwpState;

use super::{
    Actor, Blame,
    coverage::{Coverage, Hints, Wait},
};
use crate::{By, History, Interval, Searches, map::Map, stretches};

/// A number of times, and their length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) count: u64,
    pub(crate) ticks: i64,
}

impl Sum {
    /// The sum of `count` pieces of this length. If these continue pieces that were counted before, only their ticks
    /// count.
    pub(crate) fn of(count: u64, ticks: i64, goes_on: bool) -> Sum {
        Sum { count: if goes_on { 0 } else { count }, ticks: ticks * count as i64 }
    }

    pub(crate) fn add(&mut self, other: Sum) {
        self.count += other.count;
        self.ticks += other.ticks;
    }
}

pub(crate) type Shares = Map<Blame, Sum>;

pub(super) fn add(shares: &mut Shares, blame: Blame, sum: Sum) {
    shares.entry(blame).or_default().add(sum);
}

/// The waits in a slice. A wait counts once for each stretch of a culprit in it, even if both are in several slices.
pub(super) struct InSlice {
    waits: Coverage,
    slice: Interval,
    /// The number of waits that continue after the slice.
    open: u64,
}

impl InSlice {
    pub(super) fn new(waits: Vec<Wait>, slice: Interval) -> InSlice {
        let goes_on = |wait: &&Wait| wait.interval.from < slice.to && slice.to < wait.interval.to;
        let open = waits.iter().filter(goes_on).map(|wait| wait.count).sum();
        InSlice { waits: Coverage::new(waits), slice, open }
    }

    /// The waits during a stretch. If the stretch continues after the slice, the waits were already counted there.
    fn during(&self, stretch: Interval, hints: &mut Hints) -> Option<Sum> {
        let part = Interval { from: stretch.from, to: stretch.to.min(self.slice.to) };
        if part.from >= part.to {
            return None;
        }
        let counted = if stretch.to > self.slice.to { self.open } else { 0 };
        let (count, ticks) = self.waits.during(part, hints);
        Some(Sum { count: count.saturating_sub(counted), ticks })
    }

    /// The time from the beginning of the slice on.
    fn within(&self) -> Interval {
        Interval { from: self.slice.from, to: i64::MAX }
    }
}

/// Who had a CPU during waits for it, grouped. The ticks sum to the waits in the slice.
pub(super) fn of_cpu(history: &History, by: By, cpu: u32, waits: &InSlice) -> Shares {
    let (mut shares, mut at) = (Shares::default(), Hints::default());
    let mut had = |blame: Blame, interval: Interval| {
        if let Some(sum) = waits.during(interval, &mut at) {
            add(&mut shares, blame.representative(history, by), sum);
        }
    };
    let (runs, mut searches) = (waits.waits.runs(), Searches::new(history));
    let track = history.on_cpu.of(cpu.into());
    stretches(track, runs, waits.within(), &mut (0, 0), |interval, lwp| match lwp {
        None => had(Blame::Unknown, interval),
        Some(0) => had(Blame::Idle, interval),
        Some(lwp) if by == By::Lwp => had(Blame::Who(Actor::Lwp(*lwp)), interval),
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

/// What an LWP carried during waits for an LWP of its process, grouped.
pub(super) fn of_lwp(history: &History, by: By, lwp: u32, waits: &InSlice) -> Shares {
    let (mounted, states) = (history.mounted.of(lwp.into()), history.lwps.of(lwp.into()));
    let (mut shares, mut hints, mut at) = (Shares::default(), (0, 0), Hints::default());
    let mut had = |blame: Blame, interval: Interval| {
        if let Some(sum) = waits.during(interval, &mut at) {
            add(&mut shares, blame.representative(history, by), sum);
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
