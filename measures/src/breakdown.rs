//! `--breakdown`: where the life of each thread or process went: its own code, system calls, interrupts, waiting (K42,
//! figure 8).

use std::cmp::Reverse;

use crate::map::Map;

use sigmund_model::{EndReason, LwpState, ThreadState};

use crate::{
    Answer, Column, Group, History, Interval, Level, Measure, Needs, Request, Syscall, Value, Word,
    groups::Groups, percent,
};

/// Where the life of each thread went.
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
        from it. A longest piece of user has no interrupts in it. A migration ends a piece and no call, since calls are of LWPs.",
    needs: Needs { interrupts: true, syscalls: true, ..Needs::STATES },
    answer,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum What {
    User,
    Call(Word),
    Interrupt(Word),
    State(&'static str),
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

/// A state of a user thread or an LWP.
#[derive(Clone, Copy, Debug)]
struct Stay {
    state: &'static str,
    is_on_cpu: bool,
    is_unknown: bool,
    lwp: Option<u32>,
    cpu: Option<u32>,
}

/// The life of one thread, as far as it was walked.
struct Walk<'h, 's> {
    history: &'h History,
    sums: &'s mut Map<What, Sum>,
    /// The system call that it is in, by its place.
    call: Option<(u32, Sum)>,
    /// Interrupts of one stretch on a CPU, by their places.
    interrupts: Map<u32, i64>,
}

impl Walk<'_, '_> {
    fn stay(&mut self, interval: Interval, stay: Stay) {
        if interval.ticks() == 0 {
            return;
        }
        let history = self.history;
        let calls = stay.lwp.filter(|_| !stay.is_unknown).map(|lwp| history.calls.of(lwp.into()));
        let mut at = interval.from;
        for (part, place) in calls.into_iter().flat_map(|calls| calls.within(interval)) {
            self.outside(Interval::new(at, part.from), stay);
            self.inside(part, stay, *place);
            at = part.to;
        }
        self.outside(Interval::new(at, interval.to), stay);
        for (place, ticks) in self.interrupts.drain() {
            let interrupt = &history.interrupts[place as usize];
            let what = What::Interrupt(interrupt.name.unwrap_or(interrupt.kind));
            let sum = self.sums.entry(what).or_default();
            sum.count += 1;
            sum.part += ticks;
            sum.total += ticks;
            sum.on_cpu += ticks;
            sum.longest = sum.longest.max(ticks);
        }
    }

    /// A piece outside of system calls.
    fn outside(&mut self, piece: Interval, stay: Stay) {
        let ticks = piece.ticks() - self.interrupted(piece, stay);
        if ticks == 0 {
            return;
        }
        let what = if stay.is_on_cpu { What::User } else { What::State(stay.state) };
        let sum = self.sums.entry(what).or_default();
        sum.count += 1;
        sum.part += ticks;
        sum.total += ticks;
        sum.longest = sum.longest.max(ticks);
        if stay.is_on_cpu {
            sum.on_cpu += ticks;
        }
    }

    /// A piece of a system call.
    fn inside(&mut self, piece: Interval, stay: Stay, place: u32) {
        if self.call.is_none_or(|(of, _)| of != place) {
            self.end_call();
        }
        let interrupted = self.interrupted(piece, stay);
        let (_, sum) = self.call.get_or_insert((place, Sum::default()));
        sum.total += piece.ticks();
        sum.part += piece.ticks() - interrupted;
        if stay.is_on_cpu {
            sum.on_cpu += piece.ticks();
        }
    }

    /// The part of a piece that interrupts took.
    fn interrupted(&mut self, piece: Interval, stay: Stay) -> i64 {
        let cpu = stay.cpu.filter(|_| stay.is_on_cpu);
        let mut sum = 0;
        let track = cpu.map(|cpu| self.history.innermost.of(cpu.into()));
        for (part, place) in track.into_iter().flat_map(|track| track.within(piece)) {
            *self.interrupts.entry(*place).or_insert(0) += part.ticks();
            sum += part.ticks();
        }
        sum
    }

    fn end_call(&mut self) {
        let Some((place, of_call)) = self.call.take() else { return };
        let call = &self.history.syscalls[place as usize];
        let sum = self.sums.entry(What::Call(call.name)).or_default();
        sum.count += 1;
        sum.part += of_call.part;
        sum.total += of_call.total;
        sum.on_cpu += of_call.on_cpu;
        sum.longest = sum.longest.max(of_call.total);
        sum.errors += u64::from(is_error(call));
    }
}

/// The kernel returns error numbers as -1 to -4095 (`MAX_ERRNO`, include/linux/err.h, v6.12).
fn is_error(call: &Syscall) -> bool {
    call.end == EndReason::Returned && call.ret.is_some_and(|ret| (-4095..0).contains(&ret))
}

fn answer(history: &History, request: &Request) -> Result<Answer, String> {
    let (level, window) = (request.level(history), request.extent(history));
    let mut groups = Groups::new(history, request);
    let mut sums: Map<u32, Map<What, Sum>> = Map::default();
    match level {
        Level::Threads => {
            for thread in history.names.threads.keys().filter(|thread| request.has_thread(**thread)) {
                let Some(group) = groups.number(Some(*thread), None) else { continue };
                let sums = sums.entry(group).or_default();
                let mut walk = Walk { history, sums, call: None, interrupts: Map::default() };
                for (interval, stay) in history.threads.of(*thread).within(window) {
                    let cpu = stay.cpu(history, interval);
                    if stay.state != ThreadState::Exited && request.has_place(stay.lwp, cpu) {
                        let (state, lwp) = (stay.state.name(), stay.lwp);
                        let is_on_cpu = stay.state == ThreadState::Active;
                        let is_unknown = stay.state == ThreadState::Unknown;
                        walk.stay(interval, Stay { state, is_on_cpu, is_unknown, lwp, cpu });
                    }
                }
                walk.end_call();
            }
        }
        Level::Lwps => {
            for lwp in history.names.lwps.keys().filter(|lwp| **lwp != 0 && request.has_lwp(**lwp)) {
                let Some(group) = groups.number(None, Some(*lwp)) else { continue };
                let sums = sums.entry(group).or_default();
                let mut walk = Walk { history, sums, call: None, interrupts: Map::default() };
                for (interval, stay) in history.lwps.of((*lwp).into()).within(window) {
                    if stay.state != LwpState::Exited && request.has_place(Some(*lwp), stay.cpu) {
                        let (state, cpu) = (stay.state.name(), stay.cpu);
                        let is_on_cpu = stay.state == LwpState::Running;
                        let is_unknown = stay.state == LwpState::Unknown;
                        walk.stay(interval, Stay { state, is_on_cpu, is_unknown, lwp: Some(*lwp), cpu });
                    }
                }
                walk.end_call();
            }
        }
    }
    Ok(table(history, request, &groups, sums))
}

fn table(
    history: &History,
    request: &Request,
    groups: &Groups<'_>,
    sums: Map<u32, Map<What, Sum>>,
) -> Answer {
    let mut columns = Group::columns(request.by(history), request.level(history));
    columns.extend([
        Column::text("what", "user, syscall, interrupt, or the state: stalled, blocked, ready, unknown ..."),
        Column::text("which", "The system call, or the interrupt."),
        Column::count("count", "Calls, interrupts or pieces."),
        Column::length("part_tick", "Its part of the life. These are disjoint, and sum to the life exactly."),
        Column::length("total_tick", "Its length; of system calls with the interrupts in them."),
        Column::length("on_cpu_tick", "The part of that on a CPU; of an interrupt the CPU is what it took."),
        Column::length("longest_tick", "The longest."),
        Column::count("errors", "System calls that returned an error; NULL for the others."),
        Column::percent("percent", "part_tick, of the life."),
    ]);
    let mut answer = Answer::new(columns);
    let mut sums: Vec<_> = sums.into_iter().map(|(number, sums)| (groups.group(number), sums)).collect();
    sums.sort_by_key(|(group, _)| *group);
    for (group, sums) in sums {
        let life: i64 = sums.values().map(|sum| sum.part).sum();
        let mut sums: Vec<(What, Sum)> = sums.into_iter().collect();
        sums.sort_by_key(|(what, sum)| (Reverse((sum.part, sum.total)), *what));
        for (what, sum) in sums {
            let (what, which) = match what {
                What::User => ("user", None),
                What::Call(name) => ("syscall", Some(name)),
                What::Interrupt(name) => ("interrupt", Some(name)),
                What::State(state) => (state, None),
            };
            let mut cells = group.cells(history);
            cells.extend([
                what.into(),
                which.map(|name| history.words.text(name).to_string()).into(),
                sum.count.into(),
                sum.part.into(),
                sum.total.into(),
                sum.on_cpu.into(),
                sum.longest.into(),
                (what == "syscall").then_some(sum.errors).into(),
                Value::Fraction(percent(sum.part, life)),
            ]);
            answer.push(cells);
        }
    }
    answer
}
