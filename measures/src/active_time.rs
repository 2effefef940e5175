//! `--active-time`: how long each thread really executed.

use std::io;

use crate::{
    Answer, Column, Group, History, Measure, Needs, Request, Searches, Spill, Value,
    groups::{Groups, Owner},
    growing::{Growing, Runs},
    measure::{Subject, headings},
    parallel, percent,
    sliced::{Slice, Sliced},
    stays::{asked_owners, each_stay},
};

/// How long each thread really executed.
pub(crate) const ACTIVE_TIME: Measure = Measure {
    name: "active-time",
    question: "How long did my thread really execute?",
    heading: headings::TIME,
    subject: Subject::None,
    lists_cases: false,
    is_of_one_level: true,
    definition: include_str!("definitions/active-time.md"),
    needs: Needs { only_lives: true, only_own: true, ..Needs::ONLY_STATES },
    computed: start,
};

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    active: i64,
    life: i64,
    /// The part of the life in which it is not known whether it executed.
    unknown: i64,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.active += other.active;
        self.life += other.life;
        self.unknown += other.unknown;
    }
}

/// The sums so far.
struct ActiveTime {
    request: Request,
    sums: Growing<Sum>,
}

fn start(request: &Request) -> Box<dyn Sliced> {
    Box::new(ActiveTime { request: request.clone(), sums: Growing::new(request) })
}

impl Sliced for ActiveTime {
    fn needs(&self) -> Option<Needs> {
        Some(Needs { lwp_states: !self.request.is_of_threads_on_any_cpu(), ..ACTIVE_TIME.needs })
    }

    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        let request = &self.request;
        let owners = asked_owners(history, request);
        let new = || Part {
            searches: Searches::new(history),
            groups: Groups::new(history, request),
            sums: Vec::new(),
        };
        let parts = parallel::fold(&owners, new, |part, owner| part.add(*owner, request, slice));
        let sums = |Part { groups, sums, .. }: Part<'_>| groups.into_groups().into_iter().zip(sums).collect();
        let parts = parts.into_iter().map(sums).collect();
        // Only ticks are added, so nothing is open between slices.
        self.sums.add_slice(
            (history, slice),
            parts,
            Sum::add,
            |_| false,
            |group, sum, out| runs(history, group, sum, out),
        );
        Ok(())
    }

    fn spill(&mut self, to: &Spill) -> io::Result<()> {
        self.sums.spill(to)
    }

    fn finish(self: Box<Self>, history: &History) -> Result<Answer, String> {
        let mut columns = Group::columns(self.request.by(history), self.request.level(history));
        columns.extend([
            Column::length(
                "active_tick",
                "How long it executed on a CPU; NULL if it was never seen on a CPU but may have been on one.",
            ),
            Column::length("life_tick", "The part of its life in the window."),
            Column::percent("percent", "active_tick as a percentage of life_tick."),
        ]);
        Ok(self.sums.finish(columns, |group, sum, out| runs(history, group, sum, out)))
    }
}

/// Sums of some user threads or LWPs in a slice.
struct Part<'h> {
    searches: Searches<'h>,
    groups: Groups<'h>,
    /// Indexed by the number of the group.
    sums: Vec<Sum>,
}

impl Part<'_> {
    fn add(&mut self, owner: Owner, request: &Request, slice: Slice) {
        let Some(number) = self.groups.number_of_owner(owner).map(|number| number as usize) else { return };
        if self.sums.len() <= number {
            self.sums.resize_with(number + 1, Sum::default);
        }
        let sum = &mut self.sums[number];
        let window = slice.extent(self.searches.history);
        each_stay(&mut self.searches, owner, request, window, |_, interval, stay| {
            let ticks = interval.ticks();
            sum.life += ticks;
            sum.active += if stay.state.is_on_cpu() { ticks } else { 0 };
            sum.unknown += if stay.state.may_be_on_cpu() { ticks } else { 0 };
        });
    }
}

/// The row of a group. Those that executed longest come first.
fn runs<'h>(history: &'h History, group: &Group, sum: Sum, out: &mut Runs<'_, 'h>) {
    if sum.life == 0 {
        // It did not live in the window.
        return;
    }
    let active = Some(sum.active).filter(|active| *active > 0 || sum.unknown == 0);
    let share = active.map(|active| Value::Fraction(percent(active, sum.life)));
    out.head(history, group);
    out.begin(sum.active);
    out.row([active.into(), sum.life.into(), share.unwrap_or(Value::Null)], None);
}
