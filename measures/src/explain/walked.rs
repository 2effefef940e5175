//! The walks of all instances, summed by band.

use rayon::prelude::*;

use super::{
    bands::Bands,
    category,
    doubtful::{is_cut, is_whole},
};
use crate::{
    By, History, Instance, Joint, Key, Many, Origin, Piece, Pieces, Request, Slice, Totals, those_ending_in,
};

/// Instances and their walks.
pub(super) struct Walked {
    slowest: usize,
    /// The complete instances, sorted by their ends.
    instances: Vec<Instance>,
    /// The bands of each instance, as bits.
    bands: Vec<u8>,
    gaps: Apart,
    cut: Apart,
    /// Instances whose walk touches a gap.
    unknown: Vec<u32>,
    walking: Joint,
    /// Sums by band.
    totals: Totals,
}

/// Instances that are counted separately, without categories.
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

impl Walked {
    /// `touching` are the places of the found instances that are known to touch a gap.
    pub(super) fn new(
        (found, touching): (Vec<Instance>, &[u32]),
        request: &Request,
        history: &History,
    ) -> Walked {
        let window = request.extent(history);
        let mut walked = Walked {
            slowest: if request.worst > 0 { request.worst } else { 10 },
            instances: found,
            bands: Vec::new(),
            gaps: Apart::default(),
            cut: Apart::default(),
            unknown: Vec::new(),
            walking: Joint::to_the_unknown().telling_waits(),
            totals: Totals::new(bands_of),
        };
        let (gaps, cut) = (&mut walked.gaps, &mut walked.cut);
        let mut touches = are_at(touching, walked.instances.len()).into_iter();
        walked.instances.retain(|instance| {
            let touches = touches.next() == Some(true);
            if is_cut(instance, window) {
                cut.add(instance);
                return false;
            }
            let is_known = is_whole(instance, window) && !touches;
            if !is_known {
                gaps.add(instance);
            }
            is_known
        });
        walked.put_in_bands();
        walked
    }

    /// The places of the instances, the shortest first. Of equal lengths, the earlier comes first.
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

    pub(super) fn add(&mut self, history: &History, slice: Slice, by: By) {
        let places: Vec<u32> = those_ending_in(&self.instances, slice).collect();
        let start = |place: &u32| {
            let Instance { actor, interval, .. } = self.instances[*place as usize];
            let part = self.bands[*place as usize].into();
            (Origin { place: *place, part, actor: Some(actor) }, actor, interval)
        };
        let add = |pieces: &mut Pieces, walks: Many, piece: &Piece, goes_on: bool| {
            pieces.add_with_waits(history, category(piece), walks, piece, goes_on);
        };
        let (parts, mut unknown) =
            self.walking.add_slice(history, slice, &places, start, || Pieces::new(by), add);
        parts.into_iter().for_each(|pieces| self.totals.pieces().merge(history, pieces));
        self.unknown.append(&mut unknown);
        self.totals.add_slice(history, by, slice.interval);
    }

    /// Whether the sums are right. If not, walking has found instances that touch a gap. These are now counted
    /// separately, which moves some of the others to other bands. So all remaining instances have to be walked once
    /// more.
    pub(super) fn is_done(&mut self) -> bool {
        if self.unknown.is_empty() {
            return true;
        }
        let mut each = are_at(&std::mem::take(&mut self.unknown), self.instances.len()).into_iter();
        let gaps = &mut self.gaps;
        self.instances.retain(|instance| {
            let is_unknown = each.next() == Some(true);
            if is_unknown {
                gaps.add(instance);
            }
            !is_unknown
        });
        self.put_in_bands();
        (self.walking, self.totals) = (Joint::to_the_unknown().telling_waits(), Totals::new(bands_of));
        false
    }

    /// The bands, the instances that touch a gap, and the instances that are cut off.
    pub(super) fn finish(self, history: &History, by: By) -> (Vec<(String, Band)>, Apart, Apart) {
        let bands = Bands::of(self.instances.len(), self.slowest);
        let mut sums = self.totals.finish(history, by);
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

/// For each place, whether it is one of `places`.
fn are_at(places: &[u32], count: usize) -> Vec<bool> {
    let mut are_at = vec![false; count];
    places.iter().for_each(|place| are_at[*place as usize] = true);
    are_at
}

/// The bands whose bits are set.
fn bands_of(bits: u32) -> Vec<u32> {
    (0..u8::BITS).filter(|band| bits >> band & 1 == 1).collect()
}
