//! Finds one skew for each CPU, so that all pairs of CPUs have offsets that their evidence allows.
//!
//! For each pair, it takes the interval of offsets nearest to zero, among those that third CPUs allow. Differences that
//! are bounded from both sides are a shortest-path problem. The closure of all bounds gives what each pair allows by
//! way of other CPUs, and whether there is a solution at all (R. Bellman, 1958). A CPU is not corrected if that is
//! possible.
//!
//! The nearest interval may be there by chance. So the reported bound also includes the other intervals that are about
//! as near. This relies on an assumption: the true offset is never in an interval that begins farther away than
//! [`FARTHER`] times the end of the nearest one, if nearer ones fit.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
    iter,
};

use sigmund_model::Cpu;

use super::{super::feasible::Feasible, MAX_SKEW, MIN_VIOLATED, NOISE, NoSkews, Skew, orders::Orders};

/// Maximum number of CPUs. A closure takes the cube of this number in steps. There are two closures in each round, and
/// two more each time that the reach is too small.
const MAX_CPUS: usize = 1024;
/// Offsets of a pair up to this one are considered first. While the pairs contradict each other, the reach is
/// multiplied by four.
const REACH: i64 = 1 << 10;
/// Another interval of offsets may contain the true one if it begins before this multiple of the end of the nearest
/// interval.
const FARTHER: i64 = 2;
/// Maximum number of times that pairs which a correction moves apart are considered again.
const ROUNDS: usize = 8;
const UNBOUNDED: i64 = i64::MAX / 4;

/// The skews that are not 0.
pub(super) fn solve(orders: &Orders) -> Result<BTreeMap<Cpu, Skew>, NoSkews> {
    let mut any_wrong = false;
    for pair in orders.pairs.values() {
        if pair.violated >= MIN_VIOLATED && pair.ahead.hull().is_none() {
            return Err(NoSkews::Contradiction);
        }
        any_wrong |= is_wrong(pair.violated, &pair.ahead);
    }
    if !any_wrong {
        return Ok(BTreeMap::new());
    }
    let cpus: BTreeSet<Cpu> = orders.pairs.keys().flat_map(|(one, other)| [*one, *other]).collect();
    let cpus: Vec<Cpu> = cpus.into_iter().collect();
    if cpus.len() > MAX_CPUS {
        return Err(NoSkews::TooManyCpus);
    }
    let mut agreeing = vec![0_u64; cpus.len()];
    let mut violated = vec![0_u64; cpus.len()];
    let mut evidence = Vec::with_capacity(orders.pairs.len());
    for ((one, other), pair) in &orders.pairs {
        let (Ok(one), Ok(other)) = (cpus.binary_search(one), cpus.binary_search(other)) else { continue };
        let agrees = !is_wrong(pair.violated, &pair.ahead);
        for cpu in [one, other] {
            agreeing[cpu] += u64::from(agrees);
            violated[cpu] += pair.violated;
        }
        evidence.push(Evidence {
            one,
            other,
            violated: pair.violated,
            moved: false,
            ahead: pair.ahead.clone(),
        });
    }
    // The reference comes first: the CPU that agrees with the most others, and among those the one whose stamps violate
    // the fewest orders.
    let mut order: Vec<usize> = (0..cpus.len()).collect();
    order.sort_by_key(|cpu| (Reverse(agreeing[*cpu]), violated[*cpu], *cpu));
    let mut best = fit(&order, &evidence).ok_or(NoSkews::Contradiction)?;
    for _ in 0..ROUNDS {
        let moved = best.moved_away(&evidence);
        if moved.is_empty() {
            break;
        }
        moved.into_iter().for_each(|pair| evidence[pair].moved = true);
        let Some(fit) = fit(&order, &evidence) else { break };
        best = fit;
    }
    let Fit { possible, ahead, .. } = best;
    let ahead = order.iter().map(|cpu| (*cpu, ahead[*cpu]));
    let (alone, corrected): (Vec<_>, Vec<_>) = ahead.partition(|(_, ahead)| *ahead == 0);
    let skew = |(cpu, ahead): (usize, i64)| {
        let (low, high) = possible.against(cpu, alone.iter().map(|(cpu, _)| *cpu));
        (cpus[cpu], Skew { ahead, low, high, violated: violated[cpu] })
    };
    Ok(corrected.into_iter().map(skew).collect())
}

/// The offsets that a pair of CPUs allows.
struct Evidence {
    one: usize,
    other: usize,
    violated: u64,
    /// The correction moves the two CPUs against each other, and away from the allowed offsets. So this evidence must
    /// be kept, too, even if it is only few orders. Otherwise other orders could be violated.
    moved: bool,
    ahead: Feasible,
}

/// Whether the evidence for a skew exceeds the noise.
fn is_wrong(violated: u64, ahead: &Feasible) -> bool {
    let nearest = ahead.nearest(0);
    violated >= MIN_VIOLATED && nearest.is_some_and(|(low, high)| low > NOISE || high < -NOISE)
}

struct Fit {
    possible: Bounds,
    /// For each pair, the interval of possible offsets that is nearest to zero.
    nearest: Vec<Option<(i64, i64)>>,
    /// How far each CPU is ahead, by its number.
    ahead: Vec<i64>,
}

/// Skews that keep what the pairs allow. They are searched for farther and farther away from zero. `None` if there are
/// none.
fn fit(order: &[usize], pairs: &[Evidence]) -> Option<Fit> {
    let mut reaches =
        iter::successors(Some(REACH), |reach| Some(reach * 4)).take_while(|reach| *reach <= MAX_SKEW);
    reaches.find_map(|reach| fit_within(reach, order, pairs))
}

fn fit_within(reach: i64, order: &[usize], pairs: &[Evidence]) -> Option<Fit> {
    // A few orders may be wrong, so the bound does not depend on them.
    let possible = Bounds::of(order.len(), pairs, false, |ahead| possible(ahead, reach))?;
    // Offsets of a pair that third CPUs rule out do not count as near.
    let narrowed = |pair: &Evidence| {
        let (low, high) = (-possible.most(pair.other, pair.one), possible.most(pair.one, pair.other));
        Evidence { ahead: clipped(&pair.ahead, low, high), ..*pair }
    };
    let narrowed: Vec<Evidence> = pairs.iter().map(narrowed).collect();
    let bounds = Bounds::of(order.len(), &narrowed, true, |ahead| ahead.nearest(0))?;
    let nearest = narrowed.iter().map(|pair| pair.ahead.nearest(0)).collect();
    Some(Fit { ahead: bounds.choose(order), possible, nearest })
}

impl Fit {
    /// The pairs that are moved to offsets which violate orders.
    fn moved_away(&self, pairs: &[Evidence]) -> Vec<usize> {
        let away = |(pair, nearest): (&Evidence, &Option<(i64, i64)>)| {
            let ahead = self.ahead[pair.other] - self.ahead[pair.one];
            let beyond = nearest.is_some_and(|(low, high)| low - NOISE > ahead || ahead > high + NOISE);
            !pair.moved && ahead != 0 && beyond
        };
        let away: Vec<bool> = pairs.iter().zip(&self.nearest).map(away).collect();
        (0..pairs.len()).filter(|pair| away[*pair]).collect()
    }
}

/// The range of offsets that may be true. It includes the interval nearest to zero, and all intervals that begin within
/// `reach` or before [`FARTHER`] times its end. If there are only few orders, the nearest interval may be there by
/// chance, even on the wrong side.
fn possible(ahead: &Feasible, reach: i64) -> Option<(i64, i64)> {
    let (low, high) = ahead.nearest(0)?;
    let reach = reach.max(FARTHER * low.abs().max(high.abs()));
    let (low, high) = clipped(ahead, -reach, reach).hull()?;
    Some((ahead.nearest(low)?.0, ahead.nearest(high)?.1))
}

/// Removes the offsets below `low` and above `high`.
fn clipped(ahead: &Feasible, low: i64, high: i64) -> Feasible {
    let mut clipped = ahead.clone();
    clipped.forbid(-UNBOUNDED, low);
    clipped.forbid(high, UNBOUNDED);
    clipped
}

/// How far each CPU may be ahead of each other CPU, at most.
struct Bounds {
    most: Vec<i64>,
    cpus: usize,
}

impl Bounds {
    /// The bounds from what all pairs of CPUs allow, each limited to the interval that `interval` returns, and from
    /// third CPUs. `None` if no skews keep all of them. With `moved`, pairs that are moved apart must be kept, too.
    fn of(
        cpus: usize,
        pairs: &[Evidence],
        moved: bool,
        interval: impl Fn(&Feasible) -> Option<(i64, i64)>,
    ) -> Option<Bounds> {
        let mut bounds = Bounds { most: vec![UNBOUNDED; cpus * cpus], cpus };
        for pair in pairs {
            let (low, high) = match interval(&pair.ahead) {
                Some(interval) if (moved && pair.moved) || is_wrong(pair.violated, &pair.ahead) => interval,
                // The evidence is within the noise, or too little to decide. So zero must stay possible.
                Some((low, high)) => (low.min(0), high.max(0)),
                None if pair.violated < MIN_VIOLATED => continue,
                None => return None,
            };
            bounds.bound(pair.one, pair.other, low, high);
        }
        bounds.close()?;
        Some(bounds)
    }

    /// How far `other` may be ahead of `one`.
    fn most(&self, one: usize, other: usize) -> i64 {
        if one == other { 0 } else { self.most[one * self.cpus + other] }
    }

    fn bound(&mut self, one: usize, other: usize, low: i64, high: i64) {
        // The limits of the search are no evidence.
        let evidence = |bound: i64| if bound >= MAX_SKEW { UNBOUNDED } else { bound };
        self.most[one * self.cpus + other] = evidence(high);
        self.most[other * self.cpus + one] = evidence(-low);
    }

    /// Adds the bounds that follow by way of third CPUs. `None` if no skews keep all of them.
    fn close(&mut self) -> Option<()> {
        for by in 0..self.cpus {
            for one in 0..self.cpus {
                let first = self.most(one, by);
                if first == UNBOUNDED {
                    continue;
                }
                for other in 0..self.cpus {
                    let second = self.most(by, other);
                    let most = &mut self.most[one * self.cpus + other];
                    if second != UNBOUNDED && one != other {
                        *most = (*most).min(first + second);
                    } else if second != UNBOUNDED && first + second < 0 {
                        return None;
                    }
                }
            }
        }
        Some(())
    }

    /// How far `cpu` is at least and at most ahead of the `others`, which may differ among themselves. `None` if one of
    /// them gives no such bound.
    fn against(&self, cpu: usize, others: impl Iterator<Item = usize> + Clone) -> (Option<i64>, Option<i64>) {
        let behind = others.clone().map(|other| self.most(cpu, other)).max();
        let ahead = others.map(|other| self.most(other, cpu)).max();
        let bounded = |most: Option<i64>| most.filter(|most| *most != UNBOUNDED);
        (bounded(behind).map(|behind| -behind), bounded(ahead))
    }

    /// How far each CPU is ahead, chosen in this order.
    fn choose(&self, order: &[usize]) -> Vec<i64> {
        let mut chosen: Vec<(usize, i64)> = Vec::new();
        for cpu in order {
            chosen.push((*cpu, least_correction(self.beside(*cpu, &chosen))));
        }
        chosen.sort_unstable();
        chosen.into_iter().map(|(_, ahead)| ahead).collect()
    }

    /// How far `cpu` may be ahead, at least and at most, given the CPUs that are already chosen.
    fn beside(&self, cpu: usize, chosen: &[(usize, i64)]) -> (i64, i64) {
        let low = chosen.iter().map(|(other, ahead)| ahead - self.most(cpu, *other)).max();
        let high = chosen.iter().map(|(other, ahead)| ahead + self.most(*other, cpu)).min();
        (low.unwrap_or(0), high.unwrap_or(0))
    }
}

/// Zero, if that is possible; the middle, if both sides are bounded; otherwise the smallest correction that suffices.
fn least_correction((low, high): (i64, i64)) -> i64 {
    if low <= 0 && 0 <= high {
        return 0;
    }
    let bounded = high - low < MAX_SKEW;
    match low > 0 {
        _ if bounded => low + (high - low) / 2,
        true => low,
        false => high,
    }
}
