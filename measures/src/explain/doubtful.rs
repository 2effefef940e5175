//! Instances whose walk touches a gap, found while instances are searched for: so the bands of the others are known before
//! all are walked.

use std::collections::HashSet;

use sigmund_model::EndReason;

use crate::{
    Actor, History, Instance, Instances, Interval, Joint, Origin, Request, Slice, ending_in, ends_of_unknown,
};

/// Walks of those that may touch a gap.
#[derive(Default)]
pub(super) struct Doubtful {
    walking: Joint,
    instances: Vec<Instance>,
    /// Places of those that do.
    touching: Vec<u32>,
}

impl Doubtful {
    /// `None` if it is not known in the slice in which an instance ends whether it is asked for.
    pub(super) fn of(instances: &Instances, request: &Request) -> Option<Doubtful> {
        let are_known = matches!(instances, Instances::Spans { .. }) && request.cpus.is_none();
        are_known.then(|| Doubtful { walking: Joint::to_the_unknown(), ..Doubtful::default() })
    }

    /// Walks the few instances that end in a slice and may touch a gap: a time in which something is unknown ends in them, or they
    /// begin before the slice, where one may.
    pub(super) fn add(&mut self, history: &History, slice: Slice, request: &Request) {
        let ends = ends_of_unknown(history, slice.interval);
        let window = request.extent(history);
        let may_touch = |instance: &Instance| {
            let Interval { from, to } = instance.interval;
            let end = ends.get(ends.partition_point(|end| *end <= from));
            is_whole(instance, window)
                && (slice.goes_on_before(instance.interval) || end.is_some_and(|end| *end <= to))
        };
        let first = self.instances.len() as u32;
        self.instances.extend(ending_in(history, slice, request).into_iter().filter(may_touch));
        let places: Vec<u32> = (first..self.instances.len() as u32).collect();
        let start = |place: &u32| {
            let Instance { actor, interval, .. } = self.instances[*place as usize];
            (Origin { place: *place, part: 0, actor: None }, actor, interval)
        };
        let (_, mut touching) =
            self.walking.add_slice(history, slice, &places, start, || (), |(), _, _, _| {});
        self.touching.append(&mut touching);
    }

    /// After all slices. What two of one actor and time touch is the same.
    pub(super) fn touching(self) -> HashSet<(Actor, Interval)> {
        let touching = self.touching.into_iter().map(|place| self.instances[place as usize]);
        touching.map(|Instance { actor, interval, .. }| (actor, interval)).collect()
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
