//! Who had the CPUs for which LWPs waited, and the LWPs for which user threads waited.

use crate::map::Map;

use rayon::prelude::*;
use sigmund_model::LwpState;

use super::{Actor, Blame, coverage::Coverage};
use crate::{History, Interval, Searches, stretches};

/// A number of times, and their length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) count: u64,
    pub(crate) ticks: i64,
}

pub(super) type Shares = Map<Blame, Sum>;

fn add(shares: &mut Shares, blame: Blame, count: u64, ticks: i64) {
    let sum = shares.entry(blame).or_default();
    sum.count += count;
    sum.ticks += ticks;
}

/// Who had a CPU during waits for it. The ticks sum to the waits; a wait counts for each stretch of a culprit in it.
pub(super) fn of_cpu(history: &History, of_lwps: bool, cpu: Option<u32>, waits: &Coverage) -> Shares {
    let mut shares = Shares::default();
    let mut had = |blame, interval: Interval| {
        add(&mut shares, blame, waits.count(interval), waits.ticks(interval));
    };
    let Some(cpu) = cpu else {
        waits.runs().iter().for_each(|run| had(Blame::Unknown, *run));
        return shares;
    };
    let (runs, mut searches) = (waits.runs(), Searches::new(history));
    let track = history.on_cpu.of(cpu.into());
    stretches(track, runs, Interval::ALL, &mut (0, 0), |interval, lwp| match lwp {
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

/// What the LWPs of a process carried while its threads were ready; all LWPs have the same weight while they live.
/// The ticks sum to the waits: those of all LWPs are scaled, and the rest of rounding goes to the largest
/// remainders.
pub(super) fn of_lwps(history: &History, pid: Option<u32>, waits: &Coverage) -> Shares {
    let lives = history.names.lwps.iter().filter(|(_, life)| pid.is_some() && life.pid == pid);
    let lwps: Vec<u32> = lives.map(|(lwp, _)| *lwp).collect();
    let of_lwp = |lwp: u32| {
        let (mounted, states) = (history.mounted.of(lwp.into()), history.lwps.of(lwp.into()));
        let (mut shares, mut hints) = (Shares::default(), (0, 0));
        if mounted.is_empty() {
            return shares;
        }
        stretches(mounted, waits.runs(), Interval::ALL, &mut (0, 0), |interval, thread| {
            if let Some(thread) = thread {
                let blame = Blame::Who(Actor::Thread(*thread));
                return add(&mut shares, blame, waits.count(interval), waits.ticks(interval));
            }
            stretches(states, waits.runs(), interval, &mut hints, |part, stay| {
                let blame = match stay.map(|stay| stay.state) {
                    None | Some(LwpState::Exited) => return,
                    Some(LwpState::Running) => Blame::LwpWithoutThread,
                    Some(LwpState::Runnable) => Blame::LwpStalled,
                    Some(LwpState::OffCpu | LwpState::Unknown) => Blame::Unknown,
                    Some(_) => Blame::LwpAsleep,
                };
                add(&mut shares, blame, waits.count(part), waits.ticks(part));
            });
        });
        shares
    };
    let merged = |mut sums: Shares, shares: Shares| {
        shares.into_iter().for_each(|(blame, sum)| add(&mut sums, blame, sum.count, sum.ticks));
        sums
    };
    let mut shares = lwps.into_par_iter().map(of_lwp).reduce(Shares::default, merged);
    scale(&mut shares, waits.total());
    shares
}

/// Makes the ticks sum to `total`.
fn scale(shares: &mut Shares, total: i64) {
    let sum: i128 = shares.values().map(|share| i128::from(share.ticks)).sum();
    if sum == 0 {
        shares.clear();
        return add(shares, Blame::Unknown, 1, total);
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
        add(shares, blame, 0, 1);
    }
}
