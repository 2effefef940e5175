//! The walks of all instances, summed by band.

use rayon::prelude::*;
use sigmund_model::EndReason;

use super::{bands::Bands, category};
use crate::{By, History, Instance, Interval, Key, Piece, Request, Slice, Totals, Walking, What};

/// Instances and their walks.
pub(super) struct Walked {
    slowest: usize,
    /// Whole ones, sorted by their ends.
    instances: Vec<Instance>,
    /// The bands of each, as bits.
    bands: Vec<u8>,
    gaps: Apart,
    cut: Apart,
    /// Those whose walk touches a gap.
    unknown: Vec<u32>,
    /// In the second pass, what the first added to other bands than the ones without those; sorted by their ends.
    corrections: Option<Vec<Origin>>,
    walking: Walking<Origin>,
    /// By the bands.
    totals: Totals,
    /// What has to be taken away from that.
    wrong: Totals,
}

/// Instances that are counted without categories.
#[derive(Default)]
pub(super) struct Apart {
    pub(super) count: usize,
    pub(super) ticks: i64,
}

impl Apart {
    fn add(&mut self, instance: &Instance) {
        self.count += 1;
        self.ticks += instance.interval.ticks();
    }
}

/// Instances of similar length.
pub(super) struct Band {
    pub(super) instances: usize,
    pub(super) duration: i64,
    pub(super) sums: Vec<(Key, i64)>,
}

/// What a walk is of.
#[derive(Clone, Copy)]
struct Origin {
    /// The place of the instance; of what is taken away not the one that it has now.
    place: u32,
    actor: crate::Actor,
    interval: Interval,
    bands: u8,
    is_wrong: bool,
}

/// Pieces of some walks.
#[derive(Default)]
struct Sums {
    right: Totals,
    wrong: Totals,
    unknown: Vec<u32>,
}

impl Walked {
    pub(super) fn new(found: Vec<Instance>, request: &Request, history: &History) -> Walked {
        let window = request.extent(history);
        let mut walked = Walked {
            slowest: if request.worst > 0 { request.worst } else { 10 },
            instances: found,
            bands: Vec::new(),
            gaps: Apart::default(),
            cut: Apart::default(),
            unknown: Vec::new(),
            corrections: None,
            walking: Walking::default(),
            totals: Totals::default(),
            wrong: Totals::default(),
        };
        let (gaps, cut) = (&mut walked.gaps, &mut walked.cut);
        walked.instances.retain(|instance| {
            let Instance { interval, end, .. } = instance;
            let is_cut =
                interval.from < window.from || window.to < interval.to || *end == EndReason::TraceEnd;
            let is_whole = !is_cut && matches!(end, EndReason::Returned | EndReason::Exit);
            if is_cut {
                cut.add(instance);
            } else if !is_whole {
                gaps.add(instance);
            }
            is_whole
        });
        walked.put_in_bands();
        walked
    }

    /// The places of the instances, the shortest first; of equal length the earlier.
    fn order(&self) -> Vec<u32> {
        let instances = &self.instances;
        let mut order: Vec<u32> = (0..instances.len() as u32).collect();
        order.par_sort_unstable_by_key(|place| {
            let Instance { interval, actor, .. } = instances[*place as usize];
            (interval.ticks(), interval, actor, *place)
        });
        order
    }

    /// The instances, the shortest first.
    pub(super) fn by_length(self) -> Vec<Instance> {
        self.order().into_iter().map(|place| self.instances[place as usize]).collect()
    }

    fn put_in_bands(&mut self) {
        let order = self.order();
        self.bands = vec![0; self.instances.len()];
        for (number, (_, band)) in Bands::of(order.len(), self.slowest).each().enumerate() {
            order[band.clone()].iter().for_each(|place| self.bands[*place as usize] |= 1 << number);
        }
    }

    /// How many walks this pass makes.
    fn count(&self) -> usize {
        self.corrections.as_ref().map_or(self.instances.len(), Vec::len)
    }

    /// How many of them end at a tick or before.
    fn ended_by(&self, tick: i64) -> usize {
        match &self.corrections {
            Some(walks) => walks.partition_point(|walk| walk.interval.to <= tick),
            None => self.instances.partition_point(|instance| instance.interval.to <= tick),
        }
    }

    /// One of them: they are sorted by their ends.
    fn walk(&self, number: usize) -> Origin {
        match &self.corrections {
            Some(corrections) => corrections[number],
            None => self.origin(number),
        }
    }

    fn origin(&self, place: usize) -> Origin {
        let Instance { actor, interval, .. } = self.instances[place];
        Origin { place: place as u32, actor, interval, bands: self.bands[place], is_wrong: false }
    }

    pub(super) fn add(&mut self, history: &History, slice: Slice, by: By) {
        let first = if slice.is_earliest() { 0 } else { self.ended_by(slice.interval.from) };
        let last = if slice.is_latest() { self.count() } else { self.ended_by(slice.interval.to) };
        let walks: Vec<Origin> = (first..last).map(|number| self.walk(number)).collect();
        let start = |walk: &Origin| (*walk, walk.actor, walk.interval);
        let add = |sums: &mut Sums, of: Origin, piece: &Piece, goes_on: bool| {
            if piece.what == What::Unknown {
                sums.unknown.push(of.place);
            }
            let key = (of.bands.into(), category(piece), piece.actor == of.actor);
            let into = if of.is_wrong { &mut sums.wrong } else { &mut sums.right };
            into.add(history, key, piece, goes_on);
        };
        let parts = self.walking.add_slice(history, slice, &walks, start, Default::default, add);
        for Sums { right, wrong, mut unknown } in parts {
            self.totals.merge(right);
            self.wrong.merge(wrong);
            self.unknown.append(&mut unknown);
        }
        self.totals.add_slice(history, by, slice.interval);
        self.wrong.add_slice(history, by, slice.interval);
    }

    /// Whether the sums are right; else the instances that touch a gap have been set apart, and what they moved to other
    /// bands has to be walked again.
    pub(super) fn is_done(&mut self) -> bool {
        if self.corrections.take().is_some() {
            self.totals.take_away(std::mem::take(&mut self.wrong));
            return true;
        }
        if self.unknown.is_empty() {
            return true;
        }
        let before: Vec<Origin> = (0..self.instances.len()).map(|place| self.origin(place)).collect();
        let mut is_unknown = vec![false; self.instances.len()];
        std::mem::take(&mut self.unknown).into_iter().for_each(|place| is_unknown[place as usize] = true);
        let mut each = is_unknown.iter();
        let gaps = &mut self.gaps;
        self.instances.retain(|instance| {
            let is_unknown = each.next() == Some(&true);
            if is_unknown {
                gaps.add(instance);
            }
            !is_unknown
        });
        self.put_in_bands();
        let mut corrections = Vec::new();
        let mut place = 0;
        for (walk, is_unknown) in before.into_iter().zip(is_unknown) {
            let now = (!is_unknown).then(|| self.origin(place));
            place += usize::from(!is_unknown);
            if now.is_none_or(|now| now.bands != walk.bands) {
                corrections.push(Origin { is_wrong: true, ..walk });
                corrections.extend(now);
            }
        }
        self.corrections = Some(corrections);
        self.walking = Walking::default();
        false
    }

    /// The bands, those that touch a gap, and those that are cut off.
    pub(super) fn finish(self, history: &History, by: By) -> (Vec<(String, Band)>, Apart, Apart) {
        let bands = Bands::of(self.instances.len(), self.slowest);
        let count = bands.each().count() as u32;
        let parts = |bits: u32| (0..count).filter(|band| bits >> band & 1 == 1).collect();
        let mut sums = self.totals.finish(history, by, parts);
        let mut summed: Vec<(String, Band)> = Vec::new();
        for (number, (name, _)) in (0..).zip(bands.each()) {
            let sums = sums.remove(&number).unwrap_or_default();
            let sums = sums.into_iter().map(|(key, sum)| (key, sum.ticks)).collect();
            summed.push((name.to_string(), Band { instances: 0, duration: 0, sums }));
        }
        for (instance, bits) in self.instances.iter().zip(&self.bands) {
            for (_, (_, band)) in summed.iter_mut().enumerate().filter(|(number, _)| bits >> number & 1 == 1)
            {
                band.instances += 1;
                band.duration += instance.interval.ticks();
            }
        }
        (summed, self.gaps, self.cut)
    }
}
