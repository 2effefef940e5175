//! `--states`: how long each thread was in each state, and why.

use std::{collections::BTreeMap, ops::AddAssign};

use sigmund_model::{LwpState, ThreadState, WaitKind};

use crate::{
    Answer, By, Column, Culprit, Group, History, Interrupt, Interval, Measure, Needs, Request, Searches,
    Value, Word,
    collect::collect,
    culprit::{Culprits, each_on_cpu},
    groups::{Groups, Owner},
    map::Map,
    measure::{Subject, headings},
    percent,
    stays::{State, Stay, Taken, asked_owners, each_stay},
};

/// How long each thread was in each state.
pub(crate) const STATES: Measure = Measure {
    name: "states",
    question: "What did my thread do all the time?",
    heading: headings::TIME,
    subject: Subject::None,
    definition: "For each user thread (or LWP), the time in each state: active (on a CPU, without interrupts), interrupted (by \
        which interrupt), stalled (its LWP is runnable and off-CPU; who had the CPU), in-kernel (its LWP sleeps; in which \
        system call), blocked (for what kind of thing, and which), ready, and the other states of `thread_states`. LWPs: \
        running, interrupted, runnable (who had the CPU), sleeping (in which system call) and so on. States are cut to the \
        window, and sum to the life of the thread in it, exactly. Where events are missing the state is unknown.",
    needs: Needs { wakeups: true, interrupts: true, syscalls: true, only_lives: true, ..Needs::STATES },
    answer,
};

/// What a row is of, beside its group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Why<'h> {
    state: &'static str,
    /// What it waits for, the system call or the interrupt.
    reason: Option<&'h str>,
    object: Option<i64>,
    culprit: Option<Culprit>,
}

/// The same in numbers; some of these are one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Raw {
    Is(State),
    Interrupted(Word),
    /// By the number of the culprit.
    Runnable(State, u32),
    Asleep(State, Option<Word>),
    /// For an object; 0 if the row has none.
    Blocked(Option<WaitKind>, i64),
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: u64,
    ticks: i64,
}

impl AddAssign for Sum {
    fn add_assign(&mut self, other: Sum) {
        self.count += other.count;
        self.ticks += other.ticks;
    }
}

type Sums<'h> = Map<Group, Map<Why<'h>, Sum>>;

/// Collects the states of some user threads or LWPs.
struct States<'h> {
    searches: Searches<'h>,
    request: &'h Request,
    by: By,
    groups: Groups<'h>,
    /// By the number of the group.
    sums: Vec<Map<Raw, Sum>>,
    culprits: Culprits,
    taken: Taken,
}

fn answer(history: &History, request: &Request) -> Result<Answer, String> {
    let owners = asked_owners(history, request);
    let parts = collect(&owners, || States::new(history, request), |states, owner| states.add(*owner));
    let mut sums = Sums::default();
    for part in parts {
        part.add_to(&mut sums);
    }
    Ok(table(history, request, sums))
}

impl<'h> States<'h> {
    fn new(history: &'h History, request: &'h Request) -> States<'h> {
        States {
            searches: Searches::new(history),
            request,
            by: request.by(history),
            groups: Groups::new(history, request),
            sums: Vec::new(),
            culprits: Culprits::default(),
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
        let States { searches, request, by, sums, culprits, taken, .. } = self;
        let mut row = Row { by: *by, sums: &mut sums[number], culprits, taken };
        let window = request.extent(searches.history);
        each_stay(searches, owner, request, window, |searches, interval, stay| {
            row.stay(searches, interval, stay);
        });
    }

    /// Adds its sums to those of all.
    fn add_to(self, all: &mut Sums<'h>) {
        let words = &self.searches.history.words;
        for (number, sums) in self.sums.into_iter().enumerate() {
            let of_group = all.entry(self.groups.group(number as u32).clone()).or_default();
            for (raw, sum) in sums {
                let mut why = Why { state: "interrupted", reason: None, object: None, culprit: None };
                match raw {
                    Raw::Is(state) => why.state = state.name(),
                    Raw::Interrupted(name) => why.reason = Some(words.text(name)),
                    Raw::Runnable(state, culprit) => {
                        why.state = state.name();
                        why.culprit = Some(self.culprits.culprit(culprit).clone());
                    }
                    Raw::Asleep(state, call) => {
                        why.state = state.name();
                        why.reason = call.map(|name| words.text(name));
                    }
                    Raw::Blocked(kind, object) => {
                        why.state = ThreadState::Blocked.name();
                        why.reason = kind.map(WaitKind::name);
                        why.object = (object != 0).then_some(object);
                    }
                }
                *of_group.entry(why).or_default() += sum;
            }
        }
    }
}

/// The sums of one group.
struct Row<'s> {
    by: By,
    sums: &'s mut Map<Raw, Sum>,
    culprits: &'s mut Culprits,
    taken: &'s mut Taken,
}

impl Row<'_> {
    fn stay(&mut self, searches: &mut Searches<'_>, interval: Interval, stay: Stay) {
        let raw = match (stay.state, stay.lwp) {
            (state, _) if state.is_on_cpu() => return self.on_cpu(searches, interval, stay),
            (State::Thread(ThreadState::Stalled) | State::Lwp(LwpState::Runnable), _) => {
                return self.runnable(searches, interval, stay);
            }
            (
                State::Thread(ThreadState::InKernel) | State::Lwp(LwpState::Sleeping | LwpState::DiskSleep),
                Some(lwp),
            ) => {
                let call = searches.calls.of(lwp.into()).at(interval.from);
                let call = call.and_then(|(_, place)| searches.history.syscalls.get(*place as usize));
                Raw::Asleep(stay.state, call.map(|call| call.name))
            }
            (State::Thread(ThreadState::Blocked), _) => {
                Raw::Blocked(stay.waits_for, if self.is_told(stay.waits_for) { stay.object } else { 0 })
            }
            _ => Raw::Is(stay.state),
        };
        self.add(raw, interval.ticks(), 1);
    }

    /// Whether what is waited for is one object for all threads of a row: each joins another thread, or waits for a
    /// descriptor of its own. A point in time is no object.
    fn is_told(&self, waits_for: Option<WaitKind>) -> bool {
        match waits_for {
            Some(WaitKind::Sleep | WaitKind::Park) => false,
            Some(WaitKind::Join | WaitKind::Io | WaitKind::Scope | WaitKind::OnceCell | WaitKind::Future) => {
                self.by == By::Thread
            }
            _ => true,
        }
    }

    /// On a CPU: the time of interrupts is counted apart.
    fn on_cpu(&mut self, searches: &mut Searches<'_>, interval: Interval, stay: Stay) {
        let Row { sums, taken, .. } = self;
        let mut interrupted = |interrupt: &Interrupt, ticks| {
            let name = interrupt.name.unwrap_or(interrupt.kind);
            *sums.entry(Raw::Interrupted(name)).or_default() += Sum { count: 1, ticks };
        };
        let ticks = taken.add(searches, stay.cpu, interval, &mut interrupted);
        taken.finish(searches.history, interrupted);
        self.add(Raw::Is(stay.state), interval.ticks() - ticks, 1);
    }

    /// In a run queue: by who had the CPU.
    fn runnable(&mut self, searches: &mut Searches<'_>, interval: Interval, stay: Stay) {
        let (history, by) = (searches.history, self.by);
        self.culprits.next_wait();
        each_on_cpu(searches, by == By::Lwp, stay.cpu, interval, |on_cpu, ticks| {
            let (culprit, is_first) = self.culprits.number(history, by, on_cpu);
            self.add(Raw::Runnable(stay.state, culprit), ticks, u64::from(is_first));
        });
    }

    fn add(&mut self, raw: Raw, ticks: i64, count: u64) {
        *self.sums.entry(raw).or_default() += Sum { count, ticks };
    }
}

fn table(history: &History, request: &Request, sums: Sums<'_>) -> Answer {
    let mut columns = Group::columns(request.by(history), request.level(history));
    columns.extend([
            Column::text("state", "The state."),
            Column::text("reason", "What it waited for, the system call it slept in, or the interrupt."),
            Column::count(
                "object",
                "The object it waited for: the address of a lock; in rows of one thread also the user thread or the descriptor.",
            ),
            Column::text("culprit", "Who had the CPU while it was runnable."),
            Column::count("count", "How many times."),
            Column::length("total_tick", "The time in this state."),
            Column::percent("percent", "Of the time in all states."),
        ]);
    let mut answer = Answer::new(columns);
    let sorted: BTreeMap<_, _> = sums.into_iter().collect();
    for (group, sums) in sorted {
        let life: i64 = sums.values().map(|sum| sum.ticks).sum();
        let mut sums: Vec<_> = sums.into_iter().filter(|(_, sum)| sum.ticks > 0 || sum.count > 0).collect();
        sums.sort_by(|(a, of_a), (b, of_b)| of_b.ticks.cmp(&of_a.ticks).then_with(|| a.cmp(b)));
        for (why, sum) in sums {
            let mut row = group.cells(history);
            let culprit = why.culprit.map(|culprit| culprit.label(history));
            row.extend([
                why.state.into(),
                why.reason.map(str::to_string).into(),
                why.object.into(),
                culprit.into(),
                sum.count.into(),
                sum.ticks.into(),
                Value::Fraction(percent(sum.ticks, life)),
            ]);
            answer.push(row);
        }
    }
    answer
}
