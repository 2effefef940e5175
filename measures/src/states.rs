//! `--states`: how long each thread was in each state, and why.

use std::{io, ops::AddAssign};

use sigmund_model::{LwpState, ThreadState, WaitKind};

use crate::{
    Answer, By, Column, Culprit, Group, History, Interrupt, Interval, Measure, Needs, Request, Searches,
    Spill, Value, Word,
    culprit::{Culprits, each_on_cpu},
    few::Few,
    groups::{Groups, Owner},
    growing::{Growing, Runs},
    measure::{Subject, headings},
    parallel, percent,
    sliced::{Slice, Sliced},
    stays::{OpenStays, State, Stay, Taken, TakenLater, asked_owners, each_stay},
};

/// How long each thread was in each state.
pub(crate) const STATES: Measure = Measure {
    name: "states",
    question: "What did my thread do all the time?",
    heading: headings::TIME,
    subject: Subject::None,
    lists_cases: false,
    is_of_one_level: true,
    definition: include_str!("definitions/states.md"),
    needs: Needs {
        interrupts: true,
        syscalls: true,
        only_asleep: true,
        only_lives: true,
        only_own: true,
        ..Needs::STATES
    },
    computed: start,
};

/// The key of a row within its group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Why<R> {
    state: &'static str,
    reason: Option<R>,
    object: Option<i64>,
    culprit: Option<Culprit>,
}

/// What it waits for, or the name of the system call or interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Reason {
    Word(Word),
    WaitsFor(WaitKind),
}

/// The same key in numbers. Several of these may become one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Raw {
    Is(State),
    Interrupted(Word),
    /// With the number of the culprit.
    Runnable(State, u32),
    Asleep(State, Option<Word>),
    /// With the object; 0 if the row has none.
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

/// The sums of a group.
type Sums = Few<Why<Reason>, Sum>;

/// A stay in later slices.
#[derive(Clone, Debug, Default)]
struct Later {
    /// How long it was asleep. The beginning of the stay decides which system call that counts for.
    asleep: i64,
    culprits: Vec<Culprit>,
    taken: TakenLater,
}

/// The sums of the slices so far.
struct States {
    request: Request,
    sums: Growing<Sums>,
    open: OpenStays<Later>,
}

fn start(request: &Request) -> Box<dyn Sliced> {
    Box::new(States { request: request.clone(), sums: Growing::new(request), open: OpenStays::default() })
}

impl Sliced for States {
    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        let owners = asked_owners(history, &self.request);
        let later = std::mem::take(&mut self.open);
        let new = || Part::new(history, &self.request, slice, &later);
        let parts = parallel::fold(&owners, new, |part, owner| part.add(*owner));
        let (parts, open): (Vec<_>, Vec<_>) = parallel::map(parts, Part::finish).into_iter().unzip();
        open.into_iter().for_each(|open| self.open.extend(open));
        let is_open = |thread| self.open.has(Owner::Thread(thread));
        self.sums.add_slice((history, slice), parts, add_all, is_open, |group, sums, out| {
            runs(history, group, sums, out)
        });
        Ok(())
    }

    fn spill(&mut self, to: &Spill) -> io::Result<()> {
        self.sums.spill(to)
    }

    fn finish(self: Box<Self>, history: &History) -> Result<Answer, String> {
        let columns = columns(history, &self.request);
        let mut answer = self.sums.finish(columns, |group, sums, out| runs(history, group, sums, out));
        if history.has_no_interrupts {
            let what = "active (for LWPs: running) includes the time that they took";
            answer.notes.push(format!("No interrupts are recorded: {what}."));
        }
        Ok(answer)
    }
}

/// Collects the states of some user threads or LWPs in a slice.
struct Part<'h> {
    searches: Searches<'h>,
    request: &'h Request,
    slice: Slice,
    by: By,
    groups: Groups<'h>,
    /// Indexed by the number of the group.
    sums: Vec<Few<Raw, Sum>>,
    culprits: Culprits,
    taken: Taken,
    later: &'h OpenStays<Later>,
    open: OpenStays<Later>,
}

impl<'h> Part<'h> {
    fn new(
        history: &'h History,
        request: &'h Request,
        slice: Slice,
        later: &'h OpenStays<Later>,
    ) -> Part<'h> {
        Part {
            searches: Searches::new(history),
            request,
            slice,
            by: request.by(history),
            groups: Groups::new(history, request),
            sums: Vec::new(),
            culprits: Culprits::default(),
            taken: Taken::default(),
            later,
            open: OpenStays::default(),
        }
    }

    fn add(&mut self, owner: Owner) {
        let Some(number) = self.groups.number_of_owner(owner).map(|number| number as usize) else { return };
        if self.sums.len() <= number {
            self.sums.resize_with(number + 1, Few::default);
        }
        let Part { searches, request, slice, by, sums, culprits, taken, later, open, .. } = self;
        let slice = *slice;
        let mut row = Row { by: *by, slice, sums: &mut sums[number], culprits, taken };
        let window = slice.extent(searches.history);
        each_stay(searches, owner, request, window, |searches, interval, stay| {
            let before = row.stay(searches, interval, stay, later.later(slice, owner, stay.whole));
            if slice.goes_on_before(stay.whole) {
                open.keep(owner, before);
            }
        });
    }

    /// The sums of the groups, and the stays that continue in earlier slices.
    fn finish(self) -> (Vec<(Group, Sums)>, OpenStays<Later>) {
        let Part { groups, sums, culprits, open, .. } = self;
        let why = |raw| {
            let mut why = Why { state: "interrupted", reason: None, object: None, culprit: None };
            match raw {
                Raw::Is(state) => why.state = state.name(),
                Raw::Interrupted(name) => why.reason = Some(Reason::Word(name)),
                Raw::Runnable(state, culprit) => {
                    why.state = state.name();
                    why.culprit = Some(culprits.culprit(culprit).clone());
                }
                Raw::Asleep(state, call) => {
                    why.state = state.name();
                    why.reason = call.map(Reason::Word);
                }
                Raw::Blocked(kind, object) => {
                    why.state = ThreadState::Blocked.name();
                    why.reason = kind.map(Reason::WaitsFor);
                    why.object = (object != 0).then_some(object);
                }
            }
            why
        };
        let of_group = |(group, raw): (Group, Few<Raw, Sum>)| {
            let mut sums = Sums::with_capacity(raw.len());
            raw.into_entries().into_iter().for_each(|(raw, sum)| *sums.of(why(raw)) += sum);
            (group, sums)
        };
        (groups.into_groups().into_iter().zip(sums).map(of_group).collect(), open)
    }
}

fn add_all(all: &mut Sums, sums: Sums) {
    all.merge(sums, |sum, other| *sum += other);
}

/// The sums of one group.
struct Row<'s> {
    by: By,
    slice: Slice,
    sums: &'s mut Few<Raw, Sum>,
    culprits: &'s mut Culprits,
    taken: &'s mut Taken,
}

impl Row<'_> {
    /// Adds the part of a stay that is in the slice. `later` is what later slices know of the stay. Returns what the
    /// previous slice needs, if the stay continues there.
    fn stay(&mut self, searches: &mut Searches<'_>, interval: Interval, stay: Stay, later: Later) -> Later {
        let raw = match (stay.state, stay.lwp) {
            (state, _) if state.is_on_cpu() => return self.on_cpu(searches, interval, stay, later),
            (State::Thread(ThreadState::Stalled) | State::Lwp(LwpState::Runnable), _) => {
                return self.runnable(searches, interval, stay, &later);
            }
            (
                State::Thread(ThreadState::InKernel) | State::Lwp(LwpState::Sleeping | LwpState::DiskSleep),
                Some(lwp),
            ) => {
                let asleep = later.asleep + interval.ticks();
                if self.slice.goes_on_before(stay.whole) {
                    return Later { asleep, ..Later::default() };
                }
                let call = searches.calls.of(lwp.into()).at(interval.from);
                let call = call.and_then(|(_, place)| searches.history.syscalls.get(*place as usize));
                self.add(Raw::Asleep(stay.state, call.map(|call| call.name)), asleep, 1);
                return Later::default();
            }
            (State::Thread(ThreadState::Blocked), _) => {
                Raw::Blocked(stay.waits_for, if self.is_told(stay.waits_for) { stay.object } else { 0 })
            }
            _ => Raw::Is(stay.state),
        };
        self.add(raw, interval.ticks(), self.counts(stay));
        Later::default()
    }

    /// 1 if a stay counts in this slice.
    fn counts(&self, stay: Stay) -> u64 {
        u64::from(!self.slice.goes_on_after(stay.whole))
    }

    /// Whether the row names the object that is waited for. It does not if each thread of the row has its own object:
    /// each joins another thread, for example, or waits for its own descriptor. A sleep or park waits for no object.
    fn is_told(&self, waits_for: Option<WaitKind>) -> bool {
        match waits_for {
            Some(WaitKind::Sleep | WaitKind::Park) => false,
            Some(WaitKind::Join | WaitKind::Io | WaitKind::Scope | WaitKind::OnceCell | WaitKind::Future) => {
                self.by == By::Thread
            }
            _ => true,
        }
    }

    /// A stay on a CPU. The time of interrupts is counted separately.
    fn on_cpu(&mut self, searches: &mut Searches<'_>, interval: Interval, stay: Stay, later: Later) -> Later {
        let Row { sums, taken, slice, .. } = self;
        taken.begin(*slice, stay.whole, later.taken);
        let mut each = |interrupt: &Interrupt, ticks| {
            let name = interrupt.name.unwrap_or(interrupt.kind);
            *sums.of(Raw::Interrupted(name)) += Sum { count: 1, ticks };
        };
        let ticks = taken.add(searches, stay.cpu, interval, &mut each);
        let taken = taken.finish(searches.history, each);
        self.add(Raw::Is(stay.state), interval.ticks() - ticks, self.counts(stay));
        Later { taken, ..Later::default() }
    }

    /// A stay in a run queue, divided by who had the CPU.
    fn runnable(
        &mut self,
        searches: &mut Searches<'_>,
        interval: Interval,
        stay: Stay,
        later: &Later,
    ) -> Later {
        let (history, by) = (searches.history, self.by);
        self.culprits.next_wait(&later.culprits);
        each_on_cpu(searches, by == By::Lwp, stay.cpu, interval, |on_cpu, ticks| {
            let (culprit, is_first) = self.culprits.number(history, by, on_cpu);
            self.add(Raw::Runnable(stay.state, culprit), ticks, u64::from(is_first));
        });
        if !self.slice.goes_on_before(stay.whole) {
            return Later::default();
        }
        Later { culprits: self.culprits.of_wait(), ..Later::default() }
    }

    fn add(&mut self, raw: Raw, ticks: i64, count: u64) {
        *self.sums.of(raw) += Sum { count, ticks };
    }
}

fn columns(history: &History, request: &Request) -> Vec<Column> {
    let mut columns = Group::columns(request.by(history), request.level(history));
    columns.extend([
            Column::text("state", "The state."),
            Column::text("reason", "What it waited for, the system call it slept in, or the interrupt."),
            Column::object(
                "object",
                "The object it waited for: the address of a lock; in rows of one thread also the user thread or the descriptor.",
            ),
            Column::text("culprit", "Who had the CPU while it was runnable."),
            Column::count("count", "How many times."),
            Column::length("total_tick", "The time in this state."),
            Column::percent("percent", "Of the time in all states."),
        ]);
    columns
}

/// The rows of a group, the longest first.
fn runs<'h>(history: &'h History, group: &Group, sums: Sums, out: &mut Runs<'_, 'h>) {
    let mut sums = sums.into_entries();
    let life: i64 = sums.iter().map(|(_, sum)| sum.ticks).sum();
    sums.retain(|(_, sum)| sum.ticks > 0 || sum.count > 0);
    sums.sort_by(|(a, of_a), (b, of_b)| {
        of_b.ticks.cmp(&of_a.ticks).then_with(|| named(history, a).cmp(&named(history, b)))
    });
    out.head(history, group);
    out.begin(0);
    for (why, sum) in sums {
        let culprit = why.culprit.as_ref().map(|culprit| culprit.label(history));
        let cells = [
            why.state.into(),
            named(history, &why).reason.into(),
            why.object.into(),
            culprit.into(),
            sum.count.into(),
            sum.ticks.into(),
            Value::Fraction(percent(sum.ticks, life)),
        ];
        out.row(cells, None);
    }
}

/// A reason by its name.
fn named<'h>(history: &'h History, why: &Why<Reason>) -> Why<&'h str> {
    let Why { state, reason, object, culprit } = why.clone();
    let name = |reason| match reason {
        Reason::Word(word) => history.words.text(word),
        Reason::WaitsFor(kind) => kind.name(),
    };
    Why { state, reason: reason.map(name), object, culprit }
}
