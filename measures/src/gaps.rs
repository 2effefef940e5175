//! Finds whether there is a gap between two instants.

use crate::map::Map;

use crate::{Gap, Interval};

/// The gaps of each CPU and of each LWP, and those that concern all. Gaps that sum up several contradictions are left
/// out.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    cpus: Map<u32, Vec<Interval>>,
    lwps: Map<u32, Vec<Interval>>,
    all: Vec<Interval>,
}

impl Gaps {
    /// `gaps` are sorted by their beginning.
    pub(crate) fn new(gaps: &[Gap]) -> Gaps {
        let mut sorted = Gaps::default();
        for gap in gaps {
            let lists = [
                gap.cpu.map(|cpu| sorted.cpus.entry(cpu).or_default()),
                gap.lwp.map(|lwp| sorted.lwps.entry(lwp).or_default()),
            ];
            lists.into_iter().flatten().for_each(|list| add(list, gap.interval));
            if gap.cpu.is_none() && gap.lwp.is_none() && !gap.is_sum {
                add(&mut sorted.all, gap.interval);
            }
        }
        sorted
    }

    /// Whether any event may be missing on this CPU or of this LWP between two instants.
    pub(crate) fn touch(&self, cpu: Option<u32>, lwp: Option<u32>, between: Interval) -> bool {
        let lists = [cpu.and_then(|cpu| self.cpus.get(&cpu)), lwp.and_then(|lwp| self.lwps.get(&lwp))];
        lists.into_iter().flatten().chain([&self.all]).any(|list| {
            let next = list.partition_point(|gap| gap.to <= between.from);
            list.get(next).is_some_and(|gap| gap.from < between.to)
        })
    }
}

/// Adds a gap to a list. The list stays sorted and disjoint.
fn add(list: &mut Vec<Interval>, gap: Interval) {
    match list.last_mut() {
        Some(last) if gap.from <= last.to => last.to = last.to.max(gap.to),
        _ => list.push(gap),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // CPU 1  ..|#######|....|###|..      LWP 70  ..|##|      all  ..|#|
    //          10     20    25  27                 40 42            50 51
    #[test]
    fn a_gap_touches_what_it_overlaps() {
        let gap = |from, to, cpu, lwp| Gap { interval: Interval::new(from, to), cpu, lwp, is_sum: false };
        let gaps = Gaps::new(&[
            gap(10, 20, Some(1), None),
            gap(12, 15, Some(1), None),
            gap(25, 27, Some(1), None),
            gap(40, 42, None, Some(70)),
            gap(50, 51, None, None),
            Gap { is_sum: true, ..gap(0, 60, None, None) },
        ]);
        let touch = |cpu, lwp, from, to| gaps.touch(cpu, lwp, Interval::new(from, to));
        assert!([(5, 11), (16, 18), (19, 30), (0, 60)].iter().all(|(from, to)| touch(
            Some(1),
            None,
            *from,
            *to
        )));
        assert!([(0, 10), (20, 25), (27, 49)].iter().all(|(from, to)| !touch(Some(1), None, *from, *to)));
        assert!(touch(Some(2), Some(70), 41, 42) && !touch(Some(2), Some(71), 10, 45));
        assert!(touch(None, None, 50, 55));
    }
}
