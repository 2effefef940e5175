//! `--quanta`: how long user threads stay on their LWPs, and LWPs on their CPUs.

use std::{cmp::Reverse, io, iter::once};

use crate::map::Map;

use sigmund_model::{EndReason, LwpState, ThreadState};

use crate::{
    Answer, Column, Distribution, Group, History, Level, LwpStay, Measure, Needs, Request, Spill,
    carried::Carried,
    distribution::Lengths,
    few::Few,
    groups::{Groups, Owner},
    growing::{Growing, Runs},
    parallel,
    sliced::{Slice, Sliced},
    stays::asked_owners,
};

/// How long user threads stay on their LWPs, and LWPs on their CPUs.
pub(crate) const QUANTA: Measure = Measure {
    name: "quanta",
    question: "How long does my thread run before it leaves, and what ends that?",
    heading: crate::measure::headings::SCHEDULING,
    subject: crate::measure::Subject::None,
    lists_cases: false,
    is_of_one_level: true,
    definition: include_str!("definitions/quanta.md"),
    needs: Needs { only_lives: true, only_own: true, ..Needs::ONLY_STATES },
    computed: start,
};

#[derive(Default)]
struct Sum {
    active: Lengths,
    wall: i64,
    preemptions: u64,
}

const ENDS: &[EndReason] = &[
    EndReason::Yield,
    EndReason::Quantum,
    EndReason::Block,
    EndReason::Exit,
    EndReason::UserSwitch,
    EndReason::Preempted,
    EndReason::SchedYield,
    EndReason::Runnable,
    EndReason::Slept,
    EndReason::KernelSwitch,
];

/// The part of a quantum in later slices.
#[derive(Clone, Copy, Debug)]
struct Later {
    to: i64,
    /// `None` if that is not known.
    active: Option<i64>,
    preemptions: u64,
    ended_by: EndReason,
    /// Whether it counts, by its end.
    is_asked: bool,
}

/// By what ended them.
type Sums = Few<&'static str, Sum>;

/// The quanta so far.
struct Quanta {
    request: Request,
    sums: Growing<Sums>,
    uncounted: u64,
    /// Quanta that began before the slice, by user thread. If LWPs count while they carry selected threads: by LWP.
    open: Map<u64, Later>,
    /// Whether a stay that counts may have begun before the slice without being in `open`.
    has_begun: bool,
}

fn start(request: &Request) -> Box<dyn Sliced> {
    Box::new(Quanta {
        request: request.clone(),
        sums: Growing::new(request),
        uncounted: 0,
        open: Map::default(),
        has_begun: false,
    })
}

impl Sliced for Quanta {
    fn needs(&self) -> Option<Needs> {
        Some(Needs { lwp_states: !self.request.is_of_threads_on_any_cpu(), ..QUANTA.needs })
    }

    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        let mut owners = asked_owners(history, &self.request);
        let (request, open) = (&self.request, &self.open);
        let carried = &Carried::new(history, request);
        if !carried.is_all() {
            // An LWP may have carried a thread only in later slices; or only before the window, in a quantum that
            // ends in it, even with its first tick.
            owners.extend(open.keys().map(|lwp| Owner::Lwp(*lwp as u32)));
            if slice.is_earliest() || slice.is_before_window() {
                let lwps = history.lwps.keys().map(|lwp| lwp as u32);
                owners.extend(lwps.filter(|lwp| *lwp != 0 && request.has_lwp(*lwp)).map(Owner::Lwp));
            }
            owners.sort_unstable();
            owners.dedup();
        }
        let new = || Part {
            history,
            request,
            slice,
            groups: Groups::new(history, request),
            number: 0,
            sums: Vec::new(),
            uncounted: 0,
            open: Vec::new(),
            has_begun: false,
        };
        let parts = parallel::fold(&owners, new, |part, owner| {
            if !part.begin(*owner) {
                return;
            }
            match owner {
                Owner::Thread(thread) => part.add_thread(*thread, open.get(thread).copied()),
                Owner::Lwp(lwp) if carried.is_all() => part.add_lwp(*lwp),
                Owner::Lwp(lwp) => part.add_carrier(*lwp, carried, open.get(&u64::from(*lwp)).copied()),
            }
        });
        let parts: Vec<_> = parts
            .into_iter()
            .map(|Part { groups, sums, uncounted, open, has_begun, .. }| {
                (groups.into_groups().into_iter().zip(sums).collect(), uncounted, open, has_begun)
            })
            .collect();
        let mut of_slice: Vec<Vec<(Group, Sums)>> = Vec::with_capacity(parts.len());
        self.has_begun = false;
        for (sums, uncounted, open, has_begun) in parts {
            of_slice.push(sums);
            self.uncounted += uncounted;
            self.has_begun |= has_begun;
            for (owner, later) in open {
                match later {
                    Some(later) => self.open.insert(owner, later),
                    None => self.open.remove(&owner),
                };
            }
        }
        let is_open = |thread| self.open.contains_key(&thread);
        let merge = |all: &mut Sums, sums: Sums| all.merge(sums, Sum::merge);
        self.sums.add_slice((history, slice), of_slice, merge, is_open, |group, sums, out| {
            runs(history, group, sums, out)
        });
        Ok(())
    }

    fn looks_back(&self) -> bool {
        self.has_begun || !self.open.is_empty()
    }

    fn spill(&mut self, to: &Spill) -> io::Result<()> {
        self.sums.spill(to)
    }

    fn finish(self: Box<Self>, history: &History) -> Result<Answer, String> {
        // For these, the beginning is before the trace and unknown.
        // An LWP that never carried one of the threads has no quantum.
        let least = i64::from(self.request.level(history) == Level::Lwps);
        let counts = |later: &&Later| later.is_asked && later.active.is_none_or(|active| active >= least);
        let uncounted = self.uncounted + self.open.values().filter(counts).count() as u64;
        let columns = columns(history, &self.request);
        let mut answer = self.sums.finish(columns, |group, sums, out| runs(history, group, sums, out));
        if uncounted > 0 {
            answer.notes.push(format!(
                "{uncounted} quanta are not counted: no state before them is known, or not when they were active."
            ));
        }
        Ok(answer)
    }
}

impl Sum {
    fn merge(&mut self, other: Sum) {
        self.active.merge(other.active);
        self.wall += other.wall;
        self.preemptions += other.preemptions;
    }
}

/// Collects the quanta of some user threads or LWPs in a slice.
struct Part<'s> {
    history: &'s History,
    request: &'s Request,
    slice: Slice,
    groups: Groups<'s>,
    /// The number of the owner's group.
    number: usize,
    /// Indexed by the number of the group.
    sums: Vec<Sums>,
    uncounted: u64,
    /// The changes of `Quanta::open`.
    open: Vec<(u64, Option<Later>)>,
    /// Whether a stay that counts may have begun before the slice.
    has_begun: bool,
}

/// A stay on an LWP, as far as the slice shows it.
#[derive(Clone, Copy, Debug)]
struct Mounted {
    /// `None` if it began before the slice.
    from: Option<i64>,
    is_begin_known: bool,
    lwp: u32,
    known: Later,
}

impl Part<'_> {
    /// What is counted from here on is of this owner's group. False if it has none.
    fn begin(&mut self, owner: Owner) -> bool {
        let Some(number) = self.groups.number_of_owner(owner) else { return false };
        self.number = number as usize;
        if self.sums.len() <= self.number {
            self.sums.resize_with(self.number + 1, Sums::default);
        }
        true
    }

    fn add_thread(&mut self, thread: u64, later: Option<Later>) {
        let slice = self.slice;
        let (mut first, mut open): (Option<Later>, Option<Mounted>) = (None, None);
        let mut before: Option<(i64, EndReason)> = None;
        // The tick and the LWP of its current stay.
        let mut mounted: Option<(i64, u32)> = None;
        let mut quanta = Vec::new();
        for (interval, stay) in self.history.threads.of(thread).iter() {
            if interval.from >= slice.interval.to {
                break;
            }
            let is_mounted = !matches!(stay.state, ThreadState::Unknown | ThreadState::Exited);
            let lwp = stay.lwp.filter(|_| is_mounted);
            if let Some(quantum) =
                open.take_if(|open| (Some(open.lwp), open.known.to) != (lwp, interval.from))
            {
                quanta.push(quantum);
            }
            let ended = before.filter(|(at, _)| *at == interval.from).map(|(_, end)| end);
            before = stay.end.map(|end| (interval.to, end));
            let Some(part) = interval.clipped(slice.interval) else {
                mounted = lwp.map(|lwp| (interval.to, lwp));
                self.has_begun |= lwp.is_some() && slice.counts(interval.to);
                continue;
            };
            let Some(lwp) = lwp else { continue };
            let goes_on = interval.from < slice.interval.from || mounted == Some((interval.from, lwp));
            let quantum = open.get_or_insert(Mounted {
                from: (!goes_on).then_some(interval.from),
                is_begin_known: ended == Some(EndReason::Dispatched),
                lwp,
                known: Later {
                    to: interval.from,
                    active: Some(0),
                    preemptions: 0,
                    ended_by: EndReason::Lost,
                    is_asked: false,
                },
            });
            let known = &mut quantum.known;
            match stay.state {
                ThreadState::Active => {
                    known.active = known.active.map(|active| active + part.ticks());
                    let is_preempted = matches!(stay.end, Some(EndReason::Preempted | EndReason::Runnable));
                    known.preemptions += u64::from(is_preempted && !slice.goes_on_after(interval));
                }
                ThreadState::Mounted if part.ticks() > 0 => known.active = None,
                _ => {}
            }
            known.to = interval.to;
            known.ended_by = stay.end.unwrap_or(EndReason::Lost);
        }
        if let Some(mut last) = open {
            let goes_on = later.filter(|_| last.known.to >= slice.interval.to);
            if let Some(later) = goes_on {
                last.known = Later {
                    active: last.known.active.zip(later.active).map(|(active, of_later)| active + of_later),
                    preemptions: last.known.preemptions + later.preemptions,
                    ..later
                };
            }
            self.end(last, goes_on.is_some(), &mut first);
        }
        for quantum in quanta {
            self.end(quantum, false, &mut first);
        }
        if first.is_some() || later.is_some() {
            self.open.push((thread, first));
        }
    }

    /// Counts a quantum whose end is known. If it began before the slice, it becomes `first` instead.
    fn end(&mut self, quantum: Mounted, is_later: bool, first: &mut Option<Later>) {
        let Mounted { from, is_begin_known, lwp, mut known } = quantum;
        if !is_later {
            known.is_asked = self.is_asked(known.ended_by, known.to, lwp);
        }
        let Some(from) = from else {
            *first = Some(known);
            return;
        };
        if known.is_asked {
            let active = known.active.filter(|_| is_begin_known);
            self.count((known.ended_by, active, known.to - from, known.preemptions));
        }
    }

    fn add_lwp(&mut self, lwp: u32) {
        let mut before: Option<(i64, EndReason)> = None;
        for (interval, stay) in self.history.lwps.of(lwp.into()).iter() {
            let is_begin_known = before == Some((interval.from, EndReason::Dispatched));
            before = stay.end.map(|end| (interval.to, end));
            let is_running = stay.state == LwpState::Running && self.slice.window.contains(interval.to);
            let is_before = interval.from < self.slice.interval.from;
            self.has_begun |= is_running && is_before && interval.to >= self.slice.interval.from;
            let ended_by = stay.end.unwrap_or(EndReason::Lost);
            let is_here = is_running && self.slice.interval.contains(interval.from);
            if is_here && self.is_asked_of(ended_by, lwp, stay) {
                let preemptions = u64::from(matches!(ended_by, EndReason::Preempted | EndReason::Runnable));
                let active = is_begin_known.then_some(interval.ticks());
                self.count((ended_by, active, interval.ticks(), preemptions));
            }
        }
    }

    /// Adds the quanta of an LWP that counts while it carries selected user threads.
    fn add_carrier(&mut self, lwp: u32, carried: &Carried, later: Option<Later>) {
        let slice = self.slice;
        let (mut first, mut before): (Option<Later>, Option<(i64, EndReason)>) = (None, None);
        for (interval, stay) in self.history.lwps.of(lwp.into()).iter() {
            let is_begin_known = before == Some((interval.from, EndReason::Dispatched));
            before = stay.end.map(|end| (interval.to, end));
            if stay.state != LwpState::Running || !slice.window.contains(interval.to) {
                continue;
            }
            let Some(part) = interval.clipped(slice.interval) else {
                self.has_begun |= interval.to == slice.interval.from;
                continue;
            };
            let ended_by = stay.end.unwrap_or(EndReason::Lost);
            let is_asked = self.is_asked_of(ended_by, lwp, stay);
            let of_later = later.filter(|_| slice.goes_on_after(interval)).and_then(|later| later.active);
            let active = carried.ticks(lwp, part) + of_later.unwrap_or(0);
            let preemptions = u64::from(matches!(ended_by, EndReason::Preempted | EndReason::Runnable));
            if !slice.interval.contains(interval.from) {
                let active = Some(active);
                first = Some(Later { to: interval.to, active, preemptions, ended_by, is_asked });
            } else if is_asked && active > 0 {
                self.count((ended_by, is_begin_known.then_some(active), active, preemptions));
            }
        }
        if first.is_some() || later.is_some() {
            self.open.push((lwp.into(), first));
        }
    }

    /// Whether a quantum with this end counts.
    fn is_asked(&self, ended_by: EndReason, to: i64, lwp: u32) -> bool {
        let cpu = || self.history.lwps.of(lwp.into()).before(to)?.1.cpu;
        ended_by != EndReason::TraceEnd
            && self.slice.window.contains(to)
            && self.request.has_place(Some(lwp), self.request.cpus.as_ref().and_then(|_| cpu()))
    }

    /// As [`is_asked`](Self::is_asked), for a stay on a CPU that ends in the window.
    fn is_asked_of(&self, ended_by: EndReason, lwp: u32, stay: &LwpStay) -> bool {
        ended_by != EndReason::TraceEnd && self.request.has_place(Some(lwp), stay.cpu)
    }

    fn count(&mut self, (ended_by, active, wall, preemptions): (EndReason, Option<i64>, i64, u64)) {
        let Some(active) = active else {
            self.uncounted += 1;
            return;
        };
        let end = if ENDS.contains(&ended_by) { ended_by } else { EndReason::Lost };
        let sum = self.sums[self.number].of(end.name());
        sum.active.push(active);
        sum.wall += wall;
        sum.preemptions += preemptions;
    }
}

fn columns(history: &History, request: &Request) -> Vec<Column> {
    let mut columns = Group::columns(request.by(history), request.level(history));
    columns.push(Column::text("ended_by", "What ended them; `all` for all of the group together."));
    columns.extend(Distribution::columns());
    columns.extend([
        Column::length("wall_tick", "The sum of their wall time."),
        Column::length("wall_mean_tick", "Their mean wall time, rounded down."),
        Column::count(
            "preemptions",
            "Times the LWP left its CPU runnable, but not by sched_yield, as far as that is known.",
        ),
    ]);
    columns
}

/// The rows of a group. The group with the longest sum comes first.
fn runs<'h>(history: &'h History, group: &Group, sums: Sums, out: &mut Runs<'_, 'h>) {
    if sums.len() == 0 {
        return;
    }
    let rows = summed(sums);
    out.head(history, group);
    out.begin(rows[0].1.total());
    for (ended_by, active, wall, preemptions) in rows {
        let of_wall = [wall.into(), (wall / active.count().max(1) as i64).into(), preemptions.into()];
        out.row(once(ended_by.into()).chain(active.figures()).chain(of_wall), Some(active));
    }
}

type Row = (&'static str, Distribution, i64, u64);

/// The rows of a group: first the sum of all, then one row for each end reason, the longest first.
fn summed(sums: Sums) -> Vec<Row> {
    let sums = sums.into_entries();
    let mut all = Lengths::default();
    sums.iter().for_each(|(_, sum)| all.merge(sum.active.clone()));
    let wall = sums.iter().map(|(_, sum)| sum.wall).sum();
    let preemptions = sums.iter().map(|(_, sum)| sum.preemptions).sum();
    let mut rows: Vec<Row> = Vec::with_capacity(1 + sums.len());
    rows.push(("all", all.into(), wall, preemptions));
    rows.extend(sums.into_iter().map(|(end, sum)| (end, sum.active.into(), sum.wall, sum.preemptions)));
    rows[1..].sort_by_key(|(end, active, ..): &Row| (Reverse(active.total()), *end));
    rows
}
