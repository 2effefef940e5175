//! `--breakdown`: how the life of each thread or process was spent: its own code, system calls, interrupts, waiting (K42,
//! figure 8).

use std::{cmp::Reverse, io};

use sigmund_model::EndReason;

use crate::{
    Answer, Column, EventAt, Group, History, Interrupt, Interval, Level, Measure, Needs, Request, Searches,
    Spill, Syscall, Value, Word,
    carried::Carried,
    few::Few,
    groups::{Groups, Owner},
    growing::{Growing, Runs},
    map::Map,
    parallel, percent,
    sliced::{Slice, Sliced},
    stays::{OpenStays, State, Stay, Taken, TakenLater, asked_owners, each_stay},
};

/// How the life of each thread was spent.
pub(crate) const BREAKDOWN: Measure = Measure {
    name: "breakdown",
    question: "How much of its life does my program spend in its own code, in each system call, and waiting?",
    heading: crate::measure::headings::TIME,
    subject: crate::measure::Subject::None,
    lists_cases: false,
    is_of_one_level: true,
    definition: include_str!("definitions/breakdown.md"),
    needs: Needs {
        interrupts: true,
        syscalls: true,
        faults: true,
        only_lives: true,
        only_own: true,
        ..Needs::ONLY_STATES
    },
    computed: start,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum What {
    User,
    Call(Word),
    Interrupt(Word),
    State(State),
    Fault { is_user: bool },
}

impl What {
    /// Its order among rows of equal length: by kind, then by name.
    fn order(self, history: &History) -> (u8, &str) {
        match self {
            What::User => (0, ""),
            What::Call(name) => (1, history.words.text(name)),
            What::Interrupt(name) => (2, history.words.text(name)),
            What::State(state) => (3, state.name()),
            What::Fault { is_user } => (4, if is_user { "user" } else { "kernel" }),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    part: i64,
    total: i64,
    on_cpu: i64,
    longest: i64,
    errors: u64,
}

impl Sum {
    /// Adds another sum.
    fn add(&mut self, other: Sum) {
        self.count += other.count;
        self.part += other.part;
        self.total += other.total;
        self.on_cpu += other.on_cpu;
        self.longest = self.longest.max(other.longest);
        self.errors += other.errors;
    }
}

type Sums = Few<What, Sum>;

/// A system call that its thread may already have been in before the slice, and its sums from later slices.
type LaterCall = (Syscall, Sum);

/// A stay in later slices.
#[derive(Clone, Debug, Default)]
struct LaterStay {
    /// The first piece of the stay in those slices, if it is outside of system calls and begins with the slice: its
    /// ticks, without those of interrupts.
    piece: Option<i64>,
    taken: TakenLater,
}

/// The sums of the slices so far.
struct Breakdown {
    request: Request,
    sums: Growing<Sums>,
    stays: OpenStays<LaterStay>,
    calls: Map<Owner, LaterCall>,
}

fn start(request: &Request) -> Box<dyn Sliced> {
    Box::new(Breakdown {
        request: request.clone(),
        sums: Growing::new(request),
        stays: OpenStays::default(),
        calls: Map::default(),
    })
}

impl Sliced for Breakdown {
    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        let request = &self.request;
        let owners = asked_owners(history, request);
        let (stays, calls) = (std::mem::take(&mut self.stays), std::mem::take(&mut self.calls));
        let new = || Lives::new(history, request, slice, (&stays, &calls));
        let parts = parallel::fold(&owners, new, |lives, owner| lives.add(*owner));
        // Owners without a state in this slice keep their open calls.
        let parts: Vec<_> = parts.into_iter().map(Lives::finish).collect();
        let mut of_slice = Vec::with_capacity(parts.len());
        self.calls = calls;
        for (sums, stays, calls, ended) in parts {
            of_slice.push(sums);
            self.stays.extend(stays);
            for owner in &ended {
                self.calls.remove(owner);
            }
            self.calls.extend(calls);
        }
        let mut groups = Groups::new(history, request);
        let carried = Carried::new(history, request);
        let is_asked = |event: EventAt| {
            slice.interval.contains(event.tick()) && is_asked(history, request, &carried, event)
        };
        for fault in history.faults.iter().filter(|fault| is_asked(fault.at)) {
            let Some(number) = groups.number(fault.at.thread(), fault.at.lwp()) else { continue };
            let of_group = self.sums.of(groups.group(number).clone());
            of_group.of(What::Fault { is_user: fault.is_user }).count += 1;
        }
        let is_open = |thread| {
            let owner = Owner::Thread(thread);
            self.calls.contains_key(&owner) || self.stays.has(owner)
        };
        self.sums.add_slice((history, slice), of_slice, add_all, is_open, |group, sums, out| {
            runs(history, group, sums, out)
        });
        Ok(())
    }

    fn spill(&mut self, to: &Spill) -> io::Result<()> {
        self.sums.spill(to)
    }

    fn finish(mut self: Box<Self>, history: &History) -> Result<Answer, String> {
        let mut groups = Groups::new(history, &self.request);
        for (owner, call) in std::mem::take(&mut self.calls) {
            let Some(number) = number(&mut groups, owner) else { continue };
            add_call(self.sums.of(groups.group(number).clone()), call);
        }
        let columns = columns(history, &self.request);
        Ok(self.sums.finish(columns, |group, sums, out| runs(history, group, sums, out)))
    }
}

fn add_all(all: &mut Sums, sums: Sums) {
    all.merge(sums, Sum::add);
}

fn number(groups: &mut Groups<'_>, owner: Owner) -> Option<u32> {
    match owner {
        Owner::Thread(thread) => groups.number(Some(thread), None),
        Owner::Lwp(lwp) => groups.number(None, Some(lwp)),
    }
}

/// Collects the lives of some user threads or LWPs in a slice.
struct Lives<'h, 'l> {
    searches: Searches<'h>,
    request: &'h Request,
    slice: Slice,
    groups: Groups<'h>,
    /// Indexed by the number of the group.
    sums: Vec<Sums>,
    taken: Taken,
    later_stays: &'l OpenStays<LaterStay>,
    later_calls: &'l Map<Owner, LaterCall>,
    stays: OpenStays<LaterStay>,
    calls: Map<Owner, LaterCall>,
    /// Owners whose later calls are finished.
    ended: Vec<Owner>,
}

/// The result for some owners in a slice: the sums of each group, open stays, open calls, and owners whose later calls
/// are finished.
type Lived = (Vec<(Group, Sums)>, OpenStays<LaterStay>, Map<Owner, LaterCall>, Vec<Owner>);

impl<'h, 'l> Lives<'h, 'l> {
    fn new(
        history: &'h History,
        request: &'h Request,
        slice: Slice,
        (later_stays, later_calls): (&'l OpenStays<LaterStay>, &'l Map<Owner, LaterCall>),
    ) -> Lives<'h, 'l> {
        Lives {
            searches: Searches::new(history),
            request,
            slice,
            groups: Groups::new(history, request),
            sums: Vec::new(),
            taken: Taken::default(),
            later_stays,
            later_calls,
            stays: OpenStays::default(),
            calls: Map::default(),
            ended: Vec::new(),
        }
    }

    fn finish(self) -> Lived {
        (self.groups.into_groups().into_iter().zip(self.sums).collect(), self.stays, self.calls, self.ended)
    }

    fn add(&mut self, owner: Owner) {
        let Some(number) = self.groups.number_of_owner(owner).map(|number| number as usize) else { return };
        if self.sums.len() <= number {
            self.sums.resize_with(number + 1, Few::default);
        }
        let Lives { searches, request, sums, taken, slice, .. } = self;
        let (history, slice) = (searches.history, *slice);
        let mut walk = Walk {
            history,
            slice,
            sums: &mut sums[number],
            call: None,
            first: None,
            has_ended_call: false,
            taken,
        };
        each_stay(searches, owner, request, slice.extent(history), |searches, interval, stay| {
            let before =
                walk.stay(searches, interval, stay, self.later_stays.later(slice, owner, stay.whole));
            if slice.goes_on_before(stay.whole) {
                self.stays.keep(owner, before);
            }
        });
        let later = self.later_calls.get(&owner);
        if later.is_some() {
            self.ended.push(owner);
        }
        if let Some(open) = walk.end(later.copied()) {
            self.calls.insert(owner, open);
        }
    }
}

/// The life of one thread, as far as it was walked.
struct Walk<'h, 's> {
    history: &'h History,
    slice: Slice,
    sums: &'s mut Sums,
    /// The system call that the thread is in: its place, and its sums so far.
    call: Option<(u32, Sum)>,
    /// The first system call in the slice, if the thread may already have been in it before the slice.
    first: Option<LaterCall>,
    has_ended_call: bool,
    taken: &'s mut Taken,
}

impl Walk<'_, '_> {
    fn stay(
        &mut self,
        searches: &mut Searches<'_>,
        interval: Interval,
        stay: Stay,
        later: LaterStay,
    ) -> LaterStay {
        if interval.ticks() == 0 {
            return LaterStay::default();
        }
        self.taken.begin(self.slice, stay.whole, later.taken);
        // If the stay began before the slice, its first piece here may be the end of a piece in the slice before.
        let mut is_cut = self.slice.goes_on_before(stay.whole);
        let mut before = None;
        let calls = stay.lwp.map(|lwp| searches.calls.of(lwp.into()).within(interval));
        let mut at = interval.from;
        for (part, place) in calls.into_iter().flatten() {
            if stay.state.is_unknown() {
                // The piece of unknown state continues.
                self.in_call(*place).total += part.ticks();
                continue;
            }
            let ticks = self.outside(searches, Interval::new(at, part.from), stay);
            match is_cut && at < part.from {
                true => before = Some(ticks),
                false => self.add_piece(stay, ticks),
            }
            self.inside(searches, part, stay, *place);
            (at, is_cut) = (part.to, false);
        }
        let mut ticks = self.outside(searches, Interval::new(at, interval.to), stay);
        if let Some(later) = later.piece {
            if at < interval.to {
                ticks += later;
            } else {
                self.add_piece(stay, later);
            }
        }
        match is_cut && at < interval.to {
            true => before = Some(ticks),
            false => self.add_piece(stay, ticks),
        }
        let sums = &mut *self.sums;
        let taken = self.taken.finish(self.history, |interrupt, ticks| add_interrupt(sums, interrupt, ticks));
        LaterStay { piece: before, taken }
    }

    /// The ticks of a piece outside of system calls, without those of interrupts.
    fn outside(&mut self, searches: &mut Searches<'_>, piece: Interval, stay: Stay) -> i64 {
        piece.ticks() - self.interrupted(searches, piece, stay)
    }

    /// Adds a piece outside of system calls.
    fn add_piece(&mut self, stay: Stay, ticks: i64) {
        if ticks == 0 {
            return;
        }
        let is_on_cpu = stay.state.is_on_cpu();
        let what = if is_on_cpu { What::User } else { What::State(stay.state) };
        let on_cpu = if is_on_cpu { ticks } else { 0 };
        let sum = Sum { count: 1, part: ticks, total: ticks, on_cpu, longest: ticks, errors: 0 };
        self.sums.of(what).add(sum);
    }

    /// Adds a piece inside of a system call.
    fn inside(&mut self, searches: &mut Searches<'_>, piece: Interval, stay: Stay, place: u32) {
        let interrupted = self.interrupted(searches, piece, stay);
        let sum = self.in_call(place);
        sum.total += piece.ticks();
        sum.part += piece.ticks() - interrupted;
        if stay.state.is_on_cpu() {
            sum.on_cpu += piece.ticks();
        }
    }

    /// The sums of the system call at a place. If the thread was in another call, that call ends.
    fn in_call(&mut self, place: u32) -> &mut Sum {
        if self.call.is_none_or(|(of, _)| of != place) {
            self.end_call();
        }
        &mut self.call.get_or_insert((place, Sum::default())).1
    }

    /// The part of a piece that interrupts took; also adds them to the sums.
    fn interrupted(&mut self, searches: &mut Searches<'_>, piece: Interval, stay: Stay) -> i64 {
        let cpu = stay.cpu.filter(|_| stay.state.is_on_cpu());
        let sums = &mut *self.sums;
        self.taken.add(searches, cpu, piece, |interrupt, ticks| add_interrupt(sums, interrupt, ticks))
    }

    fn end_call(&mut self) {
        let Some((place, sum)) = self.call.take() else { return };
        let call = (self.history.syscalls[place as usize], sum);
        if !self.has_ended_call && self.slice.goes_on_before(call.0.interval) {
            self.first = Some(call);
        } else {
            add_call(self.sums, call);
        }
        self.has_ended_call = true;
    }

    /// Ends the last system call. `later` has what later slices know of it. Returns the call that the thread may
    /// already have been in before the slice.
    fn end(mut self, later: Option<LaterCall>) -> Option<LaterCall> {
        let last = self.call.as_mut().map(|(place, sum)| (self.history.syscalls[*place as usize], sum));
        match (last, later) {
            (Some((last, sum)), Some((later, of_later))) if last == later => sum.add(of_later),
            (None, Some(later)) if !self.has_ended_call && self.slice.goes_on_before(later.0.interval) => {
                return Some(later);
            }
            (_, Some(later)) => add_call(self.sums, later),
            (_, None) => {}
        }
        self.end_call();
        self.first
    }
}

fn add_call(sums: &mut Sums, (call, sum): LaterCall) {
    let (count, longest, errors) = (1, sum.total, u64::from(is_error(&call)));
    sums.of(What::Call(call.name)).add(Sum { count, longest, errors, ..sum });
}

/// Adds the part of a piece on a CPU that an interrupt took.
fn add_interrupt(sums: &mut Sums, interrupt: &Interrupt, ticks: i64) {
    let what = What::Interrupt(interrupt.name.unwrap_or(interrupt.kind));
    let sum = Sum { count: 1, part: ticks, total: ticks, on_cpu: ticks, longest: ticks, errors: 0 };
    sums.of(what).add(sum);
}

/// The kernel returns error numbers as -1 to -4095 (`MAX_ERRNO`, include/linux/err.h, v6.12).
fn is_error(call: &Syscall) -> bool {
    call.end == EndReason::Returned && call.ret.is_some_and(|ret| (-4095..0).contains(&ret))
}

/// Whether an event is of a thread or LWP that the request selects.
fn is_asked(history: &History, request: &Request, carried: &Carried, event: EventAt) -> bool {
    let is_of_one = match request.level(history) {
        Level::Threads => event.thread().is_some_and(|thread| request.has_thread(thread)),
        Level::Lwps => {
            event.lwp().is_some_and(|lwp| lwp != 0 && request.has_lwp(lwp) && carried.at(lwp, event.tick()))
        }
    };
    is_of_one && request.has_place(event.lwp(), event.cpu())
}

fn columns(history: &History, request: &Request) -> Vec<Column> {
    let mut columns = Group::columns(request.by(history), request.level(history));
    columns.extend([
        Column::text(
            "what",
            "user, syscall, interrupt, fault, or the state: stalled, blocked, ready, unknown ...",
        ),
        Column::text(
            "which",
            "The system call, or the interrupt; of faults user or kernel, by where they occurred.",
        ),
        Column::count("count", "Calls, interrupts, faults or pieces."),
        Column::length("part_tick", "Its part of the life. Parts are disjoint, and sum exactly to the life."),
        Column::length(
            "total_tick",
            "Its length; for system calls, interrupts and unknown states are included; NULL for faults.",
        ),
        Column::length(
            "on_cpu_tick",
            "The part of total_tick on a CPU; for an interrupt, the CPU time that it took.",
        ),
        Column::length("longest_tick", "The longest call, interrupt or piece."),
        Column::count("errors", "System calls that returned an error; NULL for the others."),
        Column::percent("percent", "part_tick as a percentage of the life."),
    ]);
    columns
}

/// The rows of a group, the longest first.
fn runs<'h>(history: &'h History, group: &Group, sums: Sums, out: &mut Runs<'_, 'h>) {
    let mut sums = sums.into_entries();
    let life: i64 = sums.iter().map(|(_, sum)| sum.part).sum();
    sums.sort_by_key(|(what, sum)| (Reverse((sum.part, sum.total)), what.order(history)));
    out.head(history, group);
    out.begin(0);
    for (what, sum) in sums {
        let (what, which) = match what {
            What::User => ("user", None),
            What::Call(name) => ("syscall", Some(history.words.text(name))),
            What::Interrupt(name) => ("interrupt", Some(history.words.text(name))),
            What::State(state) => (state.name(), None),
            What::Fault { is_user: true } => ("fault", Some("user")),
            What::Fault { is_user: false } => ("fault", Some("kernel")),
        };
        let length = |ticks: i64| (what != "fault").then_some(ticks);
        let cells = [
            what.into(),
            which.into(),
            sum.count.into(),
            sum.part.into(),
            length(sum.total).into(),
            length(sum.on_cpu).into(),
            length(sum.longest).into(),
            (what == "syscall").then_some(sum.errors).into(),
            Value::Fraction(percent(sum.part, life)),
        ];
        out.row(cells, None);
    }
}
