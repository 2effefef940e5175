//! One skew for each CPU, so that all pairs of CPUs are within what their evidence allows.
//!
//! For each pair the interval of offsets that is nearest to none is taken. Differences that are bounded from both sides
//! are a shortest-path problem: the closure of all bounds says what each pair allows by way of the others, and whether
//! there is any solution (R. Bellman, 1958). A CPU is left alone where that is possible.

use std::collections::{BTreeMap, BTreeSet};

use sigmund_model::Cpu;

use super::{
    MAX_SKEW, MIN_VIOLATED, NOISE, NoSkews, Skew,
    orders::{Orders, Pair},
};

/// The closure takes the cube of this in steps.
const MAX_CPUS: usize = 1024;
const UNBOUNDED: i64 = i64::MAX / 4;

/// The skews that are not 0.
pub(super) fn solve(orders: &Orders) -> Result<BTreeMap<Cpu, Skew>, NoSkews> {
    let wrong = |pair: &Pair| {
        let (low, high) = pair.ahead.nearest(0)?;
        Some(pair.violated >= MIN_VIOLATED && (low > NOISE || high < -NOISE))
    };
    let mut any_wrong = false;
    for pair in orders.pairs.values() {
        any_wrong |= match wrong(pair) {
            None if pair.violated >= MIN_VIOLATED => return Err(NoSkews::Contradiction),
            wrong => wrong.unwrap_or(false),
        };
    }
    if !any_wrong {
        return Ok(BTreeMap::new());
    }
    let cpus: BTreeSet<Cpu> = orders.pairs.keys().flat_map(|(one, other)| [*one, *other]).collect();
    let cpus: Vec<Cpu> = cpus.into_iter().collect();
    if cpus.len() > MAX_CPUS {
        return Err(NoSkews::TooManyCpus);
    }
    let mut bounds = Bounds::new(cpus.len());
    let mut agreeing = vec![0_u64; cpus.len()];
    let mut violated = vec![0_u64; cpus.len()];
    for ((one, other), pair) in &orders.pairs {
        let (Ok(one), Ok(other)) = (cpus.binary_search(one), cpus.binary_search(other)) else { continue };
        let Some((low, high)) = pair.ahead.nearest(0) else { continue };
        match wrong(pair) {
            Some(true) => {
                bounds.bound(one, other, low, high);
                [one, other].iter().for_each(|cpu| violated[*cpu] += pair.violated);
            }
            // Within the noise, or too little to tell: no skew is possible, too.
            _ => {
                bounds.bound(one, other, low.min(0), high.max(0));
                [one, other].iter().for_each(|cpu| agreeing[*cpu] += 1);
            }
        }
    }
    bounds.close().ok_or(NoSkews::Contradiction)?;
    let ahead = bounds.choose(&agreeing);
    let reference = ahead.first().map_or(0, |(cpu, _)| *cpu);
    let skew = |(cpu, ahead): (usize, i64)| {
        let (low, high) = (-bounds.most(cpu, reference), bounds.most(reference, cpu));
        (cpus[cpu], Skew { ahead, low, high, violated: violated[cpu] })
    };
    Ok(ahead.into_iter().filter(|(_, ahead)| *ahead != 0).map(skew).collect())
}

/// How far each CPU may be ahead of each other, at most.
struct Bounds {
    most: Vec<i64>,
    cpus: usize,
}

impl Bounds {
    fn new(cpus: usize) -> Bounds {
        Bounds { most: vec![UNBOUNDED; cpus * cpus], cpus }
    }

    /// How far `other` may be ahead of `one`.
    fn most(&self, one: usize, other: usize) -> i64 {
        if one == other { 0 } else { self.most[one * self.cpus + other] }
    }

    fn bound(&mut self, one: usize, other: usize, low: i64, high: i64) {
        // The ends of what is looked at are no evidence.
        let evidence = |bound: i64| if bound >= MAX_SKEW { UNBOUNDED } else { bound };
        self.most[one * self.cpus + other] = evidence(high);
        self.most[other * self.cpus + one] = evidence(-low);
    }

    /// Takes bounds by way of third CPUs; `None` if no skews keep all of them.
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

    /// How far each CPU is ahead, the one first that agrees with the most others: it is right.
    fn choose(&self, agreeing: &[u64]) -> Vec<(usize, i64)> {
        let mut order: Vec<usize> = (0..self.cpus).collect();
        order.sort_by_key(|cpu| (std::cmp::Reverse(agreeing[*cpu]), *cpu));
        let mut chosen: Vec<(usize, i64)> = Vec::new();
        for cpu in order {
            let low = chosen.iter().map(|(other, ahead)| ahead - self.most(cpu, *other)).max();
            let high = chosen.iter().map(|(other, ahead)| ahead + self.most(*other, cpu)).min();
            chosen.push((cpu, least_correction(low.unwrap_or(0), high.unwrap_or(0))));
        }
        chosen
    }
}

/// None, if that is possible; the middle, if both sides are bounded; what just suffices, otherwise.
fn least_correction(low: i64, high: i64) -> i64 {
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
