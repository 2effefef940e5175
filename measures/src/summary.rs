//! `--summary`: who had the CPUs, and how often they switched.

use crate::map::Map;

use sigmund_model::{EndReason, LwpState, ThreadState};

use crate::{
    Answer, By, Column, Group, History, Interval, Level, Measure, Needs, Request, ThreadStay, Value,
    carried::Carried,
    groups::Owner,
    growing::is_complete,
    parallel, percent,
    sliced::{Slice, Sliced},
};

/// Who had the CPUs, and how often they switched.
pub(crate) const SUMMARY: Measure = Measure {
    name: "summary",
    question: "Who used the CPUs?",
    heading: crate::measure::headings::TIME,
    subject: crate::measure::Subject::None,
    lists_cases: true,
    is_of_one_level: false,
    definition: include_str!("definitions/summary.md"),
    needs: Needs { only_lives: true, only_own: true, ..Needs::ONLY_STATES },
    computed: start,
};

/// The default number of rows of each kind.
const ROWS: usize = 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    ticks: i64,
    /// Ticks on an LWP for which it is unknown whether it was on a CPU.
    unknown: i64,
    switches: u64,
    migrations: u64,
    preemptions: u64,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.ticks += other.ticks;
        self.unknown += other.unknown;
        self.switches += other.switches;
        self.migrations += other.migrations;
        self.preemptions += other.preemptions;
    }
}

/// Whether an owner has the requested level, if one is requested. In a trace without user threads, a row of a thread
/// stands for an LWP.
fn has_rows(request: &Request, owner: Owner, has_no_threads: bool) -> bool {
    match (request.level, request.by, owner) {
        (Some(level), _, Owner::Thread(_)) => level == Level::Threads,
        (Some(level), _, Owner::Lwp(_)) => level == Level::Lwps,
        (None, Some(By::Lwp), owner) => matches!(owner, Owner::Lwp(_)),
        (None, Some(By::Thread), owner) => matches!(owner, Owner::Thread(_)) || has_no_threads,
        // A question about some LWPs is of LWPs.
        (None, None, Owner::Thread(_)) => request.lwps.is_none() || request.threads.is_some(),
        _ => true,
    }
}

/// The sums so far.
struct Summary {
    request: Request,
    /// Of the user threads whose sums are complete, those with the most time.
    most: Vec<(Group, Sum)>,
    threads: Map<Group, Sum>,
    lwps: Map<Group, Sum>,
    cpus: Map<u32, Sum>,
    /// For each owner, the LWP or CPU of its first dispatch in the slices so far, if that dispatch counts and its
    /// previous place is unknown.
    first: Map<Owner, u32>,
}

fn start(request: &Request) -> Box<dyn Sliced> {
    Box::new(Summary {
        request: request.clone(),
        most: Vec::new(),
        threads: Map::default(),
        lwps: Map::default(),
        cpus: Map::default(),
        first: Map::default(),
    })
}

/// The sums of some user threads or LWPs in a slice, the sums of CPUs, and the changes of `Summary::first`.
#[derive(Default)]
struct Part {
    /// As in [`Summary`]: of the user threads that are complete with this slice.
    most: Vec<(Group, Sum)>,
    sums: Vec<(Owner, Sum)>,
    cpus: Map<u32, Sum>,
    first: Vec<(Owner, Option<u32>)>,
}

impl Sliced for Summary {
    fn needs(&self) -> Option<Needs> {
        Some(Needs { lwp_states: !self.request.is_of_own_threads(), ..SUMMARY.needs })
    }

    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        let (request, names) = (&self.request, &history.names);
        let threads = history.threads.keys().filter(|thread| request.has_thread(*thread));
        let threads = threads.filter(|thread| names.threads.contains(*thread)).map(Owner::Thread);
        // If user threads are selected, there are rows of LWPs only if the request is for LWPs. They then have the time
        // in which the LWP carried one of these threads.
        let carried = Carried::new(history, request);
        let is_of_lwps = request.threads.is_none() || !carried.is_all();
        let lwps = history.lwps.keys().map(|lwp| lwp as u32);
        let lwps = lwps.filter(|lwp| is_of_lwps && *lwp != 0 && request.has_lwp(*lwp) && carried.has(*lwp));
        let lwps = lwps.filter(|lwp| names.lwps.contains(*lwp)).map(Owner::Lwp);
        let mut owners: Vec<Owner> = threads.chain(lwps).collect();
        if !carried.is_all() {
            // Where an LWP was before its first dispatch matters even if it carried none of the threads there.
            let lwps = self.first.keys().filter(|owner| matches!(owner, Owner::Lwp(_)));
            owners.extend(lwps);
            owners.sort_unstable();
            owners.dedup();
        }
        let parts = parallel::fold(&owners, Part::default, |part, owner| match owner {
            Owner::Thread(thread) => self.add_thread(history, slice, *thread, part),
            Owner::Lwp(lwp) => self.add_lwp(history, slice, (*lwp, &carried), part),
        });
        let of_group = |by| self.request.by.unwrap_or(by);
        for part in parts {
            self.most.extend(part.most);
            let is_asked = |(owner, sum): &(Owner, Sum)| {
                *sum != Sum::default() && has_rows(request, *owner, names.threads.is_empty())
            };
            for (owner, sum) in part.sums.into_iter().filter(is_asked) {
                match owner {
                    Owner::Thread(thread) => {
                        let group = Group::of_thread(history, of_group(By::Thread), thread);
                        self.threads.entry(group).or_default().add(sum);
                    }
                    Owner::Lwp(lwp) => {
                        let group = Group::of_lwp(history, of_group(By::Lwp), lwp);
                        self.lwps.entry(group).or_default().add(sum);
                    }
                }
            }
            part.cpus.into_iter().for_each(|(cpu, sum)| self.cpus.entry(cpu).or_default().add(sum));
            for (owner, first) in part.first {
                match first {
                    Some(place) => self.first.insert(owner, place),
                    None => self.first.remove(&owner),
                };
            }
        }
        self.settle(history, slice);
        Ok(())
    }

    fn looks_back(&self) -> bool {
        !self.first.is_empty()
    }

    fn finish(self: Box<Self>, history: &History) -> Result<Answer, String> {
        Ok(table(history, *self))
    }
}

impl Summary {
    /// Removes what belongs to user threads that are complete: [`Part::add_complete`] has taken their sums.
    fn settle(&mut self, history: &History, slice: Slice) {
        self.threads.retain(
            |group, _| !matches!(group, Group::Thread(thread) if is_complete(history, slice, *thread)),
        );
        if self.first.capacity() > 4 * self.first.len() {
            self.first.shrink_to_fit();
        }
        if self.threads.capacity() > 4 * self.threads.len() {
            self.threads.shrink_to_fit();
        }
        if self.most.len() > most(&self.request) {
            self.most = sorted(std::mem::take(&mut self.most), &self.request);
        }
    }

    fn add_thread(&self, history: &History, slice: Slice, thread: u64, part: &mut Part) {
        let (request, window) = (&self.request, slice.extent(history));
        let mut sum = Sum::default();
        let mut before = Before::new(Owner::Thread(thread), self.first.get(&Owner::Thread(thread)).copied());
        // The tick up to which it is known to be there.
        let mut until = None;
        // In the slice, or where it ends just before the slice.
        let cpu = |stay: &ThreadStay, interval: Interval| {
            let (lwp, at) = (history.lwps.of(stay.lwp?.into()), interval.from.max(slice.interval.from));
            if at < interval.to { lwp.at(at)?.1.cpu } else { lwp.before(interval.to)?.1.cpu }
        };
        for (interval, stay) in history.threads.of(thread).iter() {
            let is_mounted = !matches!(stay.state, ThreadState::Unknown | ThreadState::Exited);
            let Some(lwp) = stay.lwp.filter(|_| is_mounted) else {
                until = None;
                continue;
            };
            if interval.from >= slice.interval.to {
                break;
            }
            let is_dispatch = until != Some(interval.from) || before.last != Some(lwp);
            until = Some(interval.to);
            let of_place = request.cpus.as_ref().and_then(|_| cpu(stay, interval));
            let is_selected = request.has_place(Some(lwp), of_place);
            let counts = is_selected && is_dispatch && slice.counts(interval.from);
            let is_migration = before.is_migration(lwp, counts);
            if counts {
                sum.switches += 1;
                sum.migrations += u64::from(is_migration);
            }
            if is_selected && stay.state == ThreadState::Mounted && !slice.is_before_window() {
                sum.unknown += interval.overlap(window);
            }
            if is_selected && stay.state == ThreadState::Active && !slice.is_before_window() {
                sum.ticks += interval.overlap(window);
                sum.preemptions += u64::from(is_preempted(stay.end) && slice.counts(interval.to));
            }
        }
        let is_complete = is_complete(history, slice, thread);
        sum.migrations += u64::from(before.finish(part, is_complete).is_some());
        if is_complete && matches!(request.by, None | Some(By::Thread)) {
            let group = Group::Thread(thread);
            sum.add(self.threads.get(&group).copied().unwrap_or_default());
            part.add_complete(request, group, sum);
        } else {
            part.sums.push((Owner::Thread(thread), sum));
        }
    }

    fn add_lwp(&self, history: &History, slice: Slice, (lwp, carried): (u32, &Carried), part: &mut Part) {
        let window = slice.extent(history);
        let begin = history.names.lwps.begin(lwp);
        let mut of_lwp = Sum::default();
        let mut before = Before::new(Owner::Lwp(lwp), self.first.get(&Owner::Lwp(lwp)).copied());
        for (interval, stay) in history.lwps.of(lwp.into()).iter() {
            if interval.from >= slice.interval.to {
                break;
            }
            let (LwpState::Running, Some(cpu)) = (stay.state, stay.cpu) else { continue };
            let is_selected = self.request.has_cpu(cpu) && carried.at(lwp, interval.from);
            // If the first event of an LWP is its switch out, it has a state without a length there, and no switch in.
            let is_switch_in = interval.ticks() > 0 || begin != Some(interval.from);
            let counts = is_selected && is_switch_in && slice.counts(interval.from);
            let is_migration = before.is_migration(cpu, counts);
            if !self.request.has_cpu(cpu) || slice.is_before_window() {
                continue;
            }
            let sum = Sum {
                ticks: interval.clipped(window).map_or(0, |inside| carried.ticks(lwp, inside)),
                unknown: 0,
                switches: u64::from(counts),
                migrations: u64::from(counts && is_migration),
                preemptions: u64::from(
                    is_preempted(stay.end) && slice.counts(interval.to) && carried.before(lwp, interval.to),
                ),
            };
            of_lwp.add(sum);
            part.cpus.entry(cpu).or_default().add(sum);
        }
        if let Some(cpu) = before.finish(part, false) {
            let sum = Sum { migrations: 1, ..Sum::default() };
            of_lwp.add(sum);
            part.cpus.entry(cpu).or_default().add(sum);
        }
        part.sums.push((Owner::Lwp(lwp), of_lwp));
    }
}

impl Part {
    /// Adds a user thread that no earlier slice has more of. There may be millions, so only those with the most time are
    /// kept.
    fn add_complete(&mut self, request: &Request, thread: Group, sum: Sum) {
        if sum != Sum::default() && has_rows(request, Owner::Thread(0), false) {
            self.most.push((thread, sum));
            if self.most.len() > most(request) {
                self.most = sorted(std::mem::take(&mut self.most), request);
            }
        }
    }
}

/// Tracks the previous place of one user thread or LWP, dispatch by dispatch.
struct Before {
    owner: Owner,
    /// The place of its first dispatch in later slices, if its previous place is still unknown.
    later: Option<u32>,
    /// Its last place in this slice.
    last: Option<u32>,
    /// The place of its first dispatch in this slice, if that counts and its previous place is unknown.
    first: Option<u32>,
}

impl Before {
    fn new(owner: Owner, later: Option<u32>) -> Before {
        Before { owner, later, last: None, first: None }
    }

    /// Whether it was elsewhere before. If that is unknown and the dispatch counts, an earlier slice has to decide.
    fn is_migration(&mut self, place: u32, counts: bool) -> bool {
        match self.last.replace(place) {
            Some(last) => last != place,
            None => {
                self.first = Some(place).filter(|_| counts);
                false
            }
        }
    }

    /// If the first dispatch in later slices was a migration from its last place in this slice: the place of that
    /// dispatch. If the owner is complete, no earlier slice has to decide.
    fn finish(self, part: &mut Part, is_complete: bool) -> Option<u32> {
        let first = self.first.filter(|_| !is_complete);
        if first.is_some() || self.later.is_some() && (self.last.is_some() || is_complete) {
            part.first.push((self.owner, first));
        }
        let last = self.last?;
        self.later.filter(|later| *later != last)
    }
}

fn table(history: &History, Summary { request, most, threads, lwps, cpus, .. }: Summary) -> Answer {
    let (request, window) = (&request, request.extent(history));
    let mut answer = Answer::new(vec![
        Column::text("what", "thread (user threads), lwp or cpu."),
        Column::count(
            "number",
            "The number of the thread, LWP or CPU; for a group, the number of the process, or NULL.",
        ),
        Column::text("name", "Its name, or the name of the group."),
        Column::length(
            "total_tick",
            "Time active (user thread), on a CPU (LWP) or busy (CPU); NULL if its time on CPUs is unknown.",
        ),
        Column::percent("percent", "total_tick as a percentage of the window."),
        Column::count("switches", "Dispatches on an LWP; switches in on a CPU."),
        Column::count("migrations", "Switches on a different LWP, or CPU, than the previous one."),
        Column::count(
            "preemptions",
            "Times it left its CPU runnable, but not by sched_yield, as far as that is known.",
        ),
    ]);
    let cells = |group: &Group| match group {
        Group::Name(_) => [vec![Value::Null], group.cells(history)].concat(),
        _ => group.cells(history),
    };
    let threads = most.into_iter().chain(threads);
    let rows = sorted(threads, request).into_iter().map(|(group, sum)| ("thread", cells(&group), sum));
    let rows = rows.chain(sorted(lwps, request).into_iter().map(|(group, sum)| ("lwp", cells(&group), sum)));
    let cpus = sorted(cpus, request).into_iter();
    let rows = rows.chain(cpus.map(|(cpu, sum)| ("cpu", vec![cpu.into(), Value::Null], sum)));
    for (what, cells, sum) in rows {
        let mut row = vec![what.into()];
        row.extend(cells);
        let is_known = sum.ticks > 0 || sum.unknown == 0;
        let share = Value::Fraction(percent(sum.ticks, window.ticks()));
        row.extend([
            is_known.then_some(sum.ticks).into(),
            if is_known { share } else { Value::Null },
            sum.switches.into(),
            sum.migrations.into(),
            is_known.then_some(sum.preemptions).into(),
        ]);
        answer.push(row);
    }
    answer
}

/// The rows with the most time.
fn sorted<K: Ord + Clone>(sums: impl IntoIterator<Item = (K, Sum)>, request: &Request) -> Vec<(K, Sum)> {
    let is_any = |sum: &Sum| sum.ticks > 0 || sum.switches > 0;
    let mut sums: Vec<_> = sums.into_iter().filter(|(_, sum)| is_any(sum)).collect();
    sums.sort_by(|(a, of_a), (b, of_b)| of_b.ticks.cmp(&of_a.ticks).then_with(|| a.cmp(b)));
    sums.truncate(rows(request));
    sums
}

/// With more complete user threads than this, all but those with the most time are dropped.
fn most(request: &Request) -> usize {
    rows(request).saturating_mul(2).max(1 << 10)
}

/// How many rows of each kind are asked for.
fn rows(request: &Request) -> usize {
    if request.worst == 0 { ROWS } else { request.worst }
}

fn is_preempted(end: Option<EndReason>) -> bool {
    matches!(end, Some(EndReason::Preempted | EndReason::Runnable))
}
