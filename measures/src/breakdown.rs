//! `--breakdown`: how the life of each thread or process was spent: its own code, system calls, interrupts, waiting (K42,
//! figure 8).

use std::{cmp::Reverse, collections::BTreeMap};

use sigmund_model::EndReason;

use crate::{
    Answer, Column, EventAt, Group, History, Interrupt, Interval, Level, Measure, Needs, Request, Searches,
    Syscall, Value, Word,
    collect::collect,
    groups::{Groups, Owner},
    map::Map,
    percent,
    stays::{State, Stay, Taken, asked_owners, each_stay},
};

/// How the life of each thread was spent.
pub(crate) const BREAKDOWN: Measure = Measure {
    name: "breakdown",
    question: "How much of its life does my program spend in its own code, in each system call, and waiting?",
    heading: crate::measure::headings::TIME,
    subject: crate::measure::Subject::None,
    definition: "The life of each user thread (or LWP) in the window, in disjoint parts: part_tick sums to it exactly, and to \
        that of all threads of a group. Of each instant the first of these that holds: unknown, if the state is; an \
        interrupt, if one has the CPU on which the thread is active; the system call that its LWP is in, whether it runs, \
        sleeps or is stalled there; user, if it is active; else its state (stalled, blocked, ready, in-kernel for a fault \
        ...). total_tick of a system call is its length from entry to exit, with the interrupts in it; on_cpu_tick the part \
        of that in which the thread was certainly on a CPU. Both are cut to the window and to where the thread is mounted \
        on the LWP; a call counts if any of it is there. An error is a call that returned -1 to -4095. Of user and the \
        states a count is of pieces: stretches of one state outside of calls; of interrupts, of those that took the CPU \
        from it. Of page faults there is a count alone: their time is in what they occurred in, and in the state that the \
        thread waited in. A longest piece of user has no interrupts in it. A migration ends a piece and no call, since calls are of LWPs.",
    needs: Needs { interrupts: true, syscalls: true, faults: true, only_lives: true, ..Needs::STATES },
    answer,
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
    /// Its place among rows of equal length: states by their names.
    fn order(self) -> (u8, Option<Word>, &'static str) {
        match self {
            What::User => (0, None, ""),
            What::Call(name) => (1, Some(name), ""),
            What::Interrupt(name) => (2, Some(name), ""),
            What::State(state) => (3, None, state.name()),
            What::Fault { is_user } => (4, None, if is_user { "user" } else { "kernel" }),
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

type Sums = Map<What, Sum>;

/// Collects the lives of some user threads or LWPs.
struct Lives<'h> {
    searches: Searches<'h>,
    request: &'h Request,
    groups: Groups<'h>,
    /// By the number of the group.
    sums: Vec<Sums>,
    taken: Taken,
}

impl<'h> Lives<'h> {
    fn new(history: &'h History, request: &'h Request) -> Lives<'h> {
        Lives {
            searches: Searches::new(history),
            request,
            groups: Groups::new(history, request),
            sums: Vec::new(),
            taken: Taken::default(),
        }
    }

    fn add(&mut self, owner: Owner) {
        let number = match owner {
            Owner::Thread(thread) => self.groups.number(Some(thread), None),
            Owner::Lwp(lwp) => self.groups.number(None, Some(lwp)),
        };
        let Some(number) = number.map(|number| number as usize) else { return };
        if self.sums.len() <= number {
            self.sums.resize_with(number + 1, Map::default);
        }
        let Lives { searches, request, sums, taken, .. } = self;
        let history = searches.history;
        let mut walk = Walk { history, sums: &mut sums[number], call: None, taken };
        each_stay(searches, owner, request, request.extent(history), |searches, interval, stay| {
            walk.stay(searches, interval, stay);
        });
        walk.end_call();
    }
}

/// The life of one thread, as far as it was walked.
struct Walk<'h, 's> {
    history: &'h History,
    sums: &'s mut Sums,
    /// The system call that it is in, by its place.
    call: Option<(u32, Sum)>,
    taken: &'s mut Taken,
}

impl Walk<'_, '_> {
    fn stay(&mut self, searches: &mut Searches<'_>, interval: Interval, stay: Stay) {
        if interval.ticks() == 0 {
            return;
        }
        let lwp = stay.lwp.filter(|_| !stay.state.is_unknown());
        let calls = lwp.map(|lwp| searches.calls.of(lwp.into()).within(interval));
        let mut at = interval.from;
        for (part, place) in calls.into_iter().flatten() {
            self.outside(searches, Interval::new(at, part.from), stay);
            self.inside(searches, part, stay, *place);
            at = part.to;
        }
        self.outside(searches, Interval::new(at, interval.to), stay);
        let sums = &mut *self.sums;
        self.taken.finish(self.history, |interrupt, ticks| add_interrupt(sums, interrupt, ticks));
    }

    /// A piece outside of system calls.
    fn outside(&mut self, searches: &mut Searches<'_>, piece: Interval, stay: Stay) {
        let ticks = piece.ticks() - self.interrupted(searches, piece, stay);
        if ticks == 0 {
            return;
        }
        let is_on_cpu = stay.state.is_on_cpu();
        let what = if is_on_cpu { What::User } else { What::State(stay.state) };
        let on_cpu = if is_on_cpu { ticks } else { 0 };
        let sum = Sum { count: 1, part: ticks, total: ticks, on_cpu, longest: ticks, errors: 0 };
        self.sums.entry(what).or_default().add(sum);
    }

    /// A piece of a system call.
    fn inside(&mut self, searches: &mut Searches<'_>, piece: Interval, stay: Stay, place: u32) {
        if self.call.is_none_or(|(of, _)| of != place) {
            self.end_call();
        }
        let interrupted = self.interrupted(searches, piece, stay);
        let (_, sum) = self.call.get_or_insert((place, Sum::default()));
        sum.total += piece.ticks();
        sum.part += piece.ticks() - interrupted;
        if stay.state.is_on_cpu() {
            sum.on_cpu += piece.ticks();
        }
    }

    /// The part of a piece that interrupts took.
    fn interrupted(&mut self, searches: &mut Searches<'_>, piece: Interval, stay: Stay) -> i64 {
        let cpu = stay.cpu.filter(|_| stay.state.is_on_cpu());
        let sums = &mut *self.sums;
        self.taken.add(searches, cpu, piece, |interrupt, ticks| add_interrupt(sums, interrupt, ticks))
    }

    fn end_call(&mut self) {
        let Some((place, of_call)) = self.call.take() else { return };
        let call = &self.history.syscalls[place as usize];
        let (count, longest, errors) = (1, of_call.total, u64::from(is_error(call)));
        self.sums.entry(What::Call(call.name)).or_default().add(Sum { count, longest, errors, ..of_call });
    }
}

/// Adds what an interrupt took of a stretch on a CPU.
fn add_interrupt(sums: &mut Sums, interrupt: &Interrupt, ticks: i64) {
    let what = What::Interrupt(interrupt.name.unwrap_or(interrupt.kind));
    let sum = Sum { count: 1, part: ticks, total: ticks, on_cpu: ticks, longest: ticks, errors: 0 };
    sums.entry(what).or_default().add(sum);
}

/// The kernel returns error numbers as -1 to -4095 (`MAX_ERRNO`, include/linux/err.h, v6.12).
fn is_error(call: &Syscall) -> bool {
    call.end == EndReason::Returned && call.ret.is_some_and(|ret| (-4095..0).contains(&ret))
}

fn answer(history: &History, request: &Request) -> Result<Answer, String> {
    let owners = asked_owners(history, request);
    let parts = collect(&owners, || Lives::new(history, request), |lives, owner| lives.add(*owner));
    let mut all: BTreeMap<Group, Sums> = BTreeMap::new();
    for part in parts {
        for (number, sums) in part.sums.into_iter().enumerate() {
            let of_group = all.entry(part.groups.group(number as u32).clone()).or_default();
            for (what, sum) in sums {
                of_group.entry(what).or_default().add(sum);
            }
        }
    }
    let mut groups = Groups::new(history, request);
    for fault in history.faults.iter().filter(|fault| is_asked(history, request, fault.at)) {
        let Some(number) = groups.number(fault.at.thread(), fault.at.lwp()) else { continue };
        let of_group = all.entry(groups.group(number).clone()).or_default();
        of_group.entry(What::Fault { is_user: fault.is_user }).or_default().count += 1;
    }
    Ok(table(history, request, all))
}

/// Whether an event is of one of those that the request is about.
fn is_asked(history: &History, request: &Request, event: EventAt) -> bool {
    let is_of_one = match request.level(history) {
        Level::Threads => event.thread().is_some_and(|thread| request.has_thread(thread)),
        Level::Lwps => event.lwp().is_some_and(|lwp| lwp != 0 && request.has_lwp(lwp)),
    };
    is_of_one && request.window.contains(event.tick()) && request.has_place(event.lwp(), event.cpu())
}

fn table(history: &History, request: &Request, sums: BTreeMap<Group, Sums>) -> Answer {
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
        Column::length("part_tick", "Its part of the life. These are disjoint, and sum to the life exactly."),
        Column::length(
            "total_tick",
            "Its length; of system calls with the interrupts in them; NULL of faults.",
        ),
        Column::length("on_cpu_tick", "The part of that on a CPU; of an interrupt the CPU is what it took."),
        Column::length("longest_tick", "The longest."),
        Column::count("errors", "System calls that returned an error; NULL for the others."),
        Column::percent("percent", "part_tick, of the life."),
    ]);
    let mut answer = Answer::new(columns);
    for (group, sums) in sums {
        let life: i64 = sums.values().map(|sum| sum.part).sum();
        let mut sums: Vec<(What, Sum)> = sums.into_iter().collect();
        sums.sort_by_key(|(what, sum)| (Reverse((sum.part, sum.total)), what.order()));
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
            let mut cells = group.cells(history);
            cells.extend([
                what.into(),
                which.map(str::to_string).into(),
                sum.count.into(),
                sum.part.into(),
                length(sum.total).into(),
                length(sum.on_cpu).into(),
                length(sum.longest).into(),
                (what == "syscall").then_some(sum.errors).into(),
                Value::Fraction(percent(sum.part, life)),
            ]);
            answer.push(cells);
        }
    }
    answer
}
