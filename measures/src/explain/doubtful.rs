//! Finds the instances whose walk touches a gap. This happens before all instances are walked, because the bands of the
//! other instances depend on it.

use sigmund_model::EndReason;

use crate::{History, Instance, Interval, Joint, Origin, Request, Slice, ends_of_unknown, those_ending_in};

/// Walks the instances that may touch a gap.
#[derive(Default)]
pub(super) struct Doubtful {
    /// All instances, sorted by their ends.
    instances: Vec<Instance>,
    walking: Joint,
    /// Places of the instances that touch a gap.
    touching: Vec<u32>,
}

impl Doubtful {
    pub(super) fn new(instances: Vec<Instance>) -> Doubtful {
        Doubtful { instances, walking: Joint::to_the_unknown(), touching: Vec::new() }
    }

    /// Walks the few instances that end in a slice and may touch a gap. An instance may touch one if a time with
    /// unknown states ends inside of it, or if it begins before the slice.
    pub(super) fn add(&mut self, history: &History, slice: Slice, request: &Request) {
        let ends = ends_of_unknown(history, slice.interval);
        let window = request.extent(history);
        let may_touch = |place: &u32| {
            let instance = self.instances[*place as usize];
            let Interval { from, to } = instance.interval;
            let end = ends.get(ends.partition_point(|end| *end <= from));
            is_whole(&instance, window)
                && (slice.goes_on_before(instance.interval) || end.is_some_and(|end| *end <= to))
        };
        let places: Vec<u32> = those_ending_in(&self.instances, slice).filter(may_touch).collect();
        let start = |place: &u32| {
            let Instance { actor, interval, .. } = self.instances[*place as usize];
            (Origin { place: *place, part: 0, actor: None }, actor, interval)
        };
        let (_, mut touching) =
            self.walking.add_slice(history, slice, &places, start, || (), |(), _, _, _| {});
        self.touching.append(&mut touching);
    }

    /// After all slices: all instances, and the places of those that touch a gap.
    pub(super) fn finish(self) -> (Vec<Instance>, Vec<u32>) {
        (self.instances, self.touching)
    }
}

/// Whether an instance begins before the window, or ends after it.
pub(super) fn is_cut(Instance { interval, end, .. }: &Instance, window: Interval) -> bool {
    interval.from < window.from || window.to < interval.to || *end == EndReason::TraceEnd
}

/// Whether both ends of an instance are known.
pub(super) fn is_whole(instance: &Instance, window: Interval) -> bool {
    !is_cut(instance, window) && matches!(instance.end, EndReason::Returned | EndReason::Exit)
}
