//! `--functions`: the time that each function and span took, with and without the calls inside of it; and folded
//! stacks.

mod folded;
mod nesting;

use std::{cmp::Reverse, collections::hash_map::Entry};

use crate::map::Map;

use crate::{
    Answer, Column, Distribution, Group, History, Measure, Needs, Request, Span,
    distribution::Lengths,
    groups::{Groups, Owner},
    instances::SpanNames,
    sliced::{Slice, Sliced},
};
use nesting::{LaterSpans, Nested, Visitor, key, walk};

pub use folded::FOLDED;

/// What each function and span took.
pub(crate) const FUNCTIONS: Measure = Measure {
    name: "functions",
    question: "Which functions and spans take the time, and how much of it is their own?",
    heading: crate::measure::headings::TIME,
    subject: crate::measure::Subject::Optional("NAME"),
    lists_cases: false,
    is_of_one_level: false,
    definition: include_str!("../definitions/functions.md"),
    needs: Needs { spans: true, only_lives: true, only_own: true, ..Needs::ONLY_STATES },
    computed: start,
};

/// Selects the spans that count.
#[derive(Debug)]
struct Selection<'r> {
    history: &'r History,
    request: &'r Request,
}

impl Selection<'_> {
    /// Whether its thread is selected, and the LWP and CPU on which it began.
    fn has(&self, span: &Span) -> bool {
        let Request { cpus, .. } = self.request;
        let of_thread = self.request.has_thread_or_none(span.thread);
        let cpu = || self.history.lwps.of(span.lwp?.into()).at(span.interval.from)?.1.cpu;
        of_thread && self.request.has_place(span.lwp, if cpus.is_some() { cpu() } else { None })
    }

    /// Whether it has the requested name. Without a request for a name, each span has.
    fn is_subject(&self, span: &Span) -> bool {
        let Some(subject) = &self.request.subject else { return true };
        span.name.is_some_and(|name| self.history.words.text(name) == subject)
    }
}

#[derive(Debug, Default)]
struct Row {
    /// The number of its group, as numbered by its visitor.
    group: Option<u32>,
    span: Option<Span>,
    lengths: Lengths,
    inclusive: i64,
    own: i64,
    inclusive_active: Option<i64>,
    own_active: Option<i64>,
    active_unknown: u64,
}

impl Row {
    /// Adds the calls of another row.
    fn merge(&mut self, other: Row) {
        self.lengths.merge(other.lengths);
        self.inclusive += other.inclusive;
        self.own += other.own;
        let sum = |a: Option<i64>, b: Option<i64>| a.map_or(b, |a| Some(a + b.unwrap_or(0)));
        self.inclusive_active = sum(self.inclusive_active, other.inclusive_active);
        self.own_active = sum(self.own_active, other.own_active);
        self.active_unknown += other.active_unknown;
    }
}

/// A call that counts in no row.
const NO_ROW: u32 = u32::MAX;

struct Rows<'h> {
    selection: Selection<'h>,
    groups: Groups<'h>,
    places: Map<(Option<u32>, usize), u32>,
    rows: Vec<Row>,
}

impl Visitor for Rows<'_> {
    fn begin(&mut self, _: Option<u32>, _: Owner, span: &Span) -> u32 {
        if !self.selection.is_subject(span) || !self.selection.has(span) {
            return NO_ROW;
        }
        let group = match self.selection.request.by {
            None => None,
            Some(_) => match self.groups.number(span.thread, span.lwp) {
                None => return NO_ROW,
                group => group,
            },
        };
        *self.places.entry((group, key(span))).or_insert_with(|| {
            self.rows.push(Row { group, span: Some(*span), ..Row::default() });
            self.rows.len() as u32 - 1
        })
    }

    fn end(&mut self, nested: Nested<'_>) {
        let Some(row) = self.rows.get_mut(nested.tag as usize) else { return };
        row.lengths.push(nested.wall);
        row.own += nested.self_wall;
        row.active_unknown += u64::from(nested.self_active.is_none());
        if let Some(own) = nested.self_active {
            *row.own_active.get_or_insert(0) += own;
        }
        if nested.is_outermost {
            row.inclusive += nested.wall;
            if let Some(active) = nested.active {
                *row.inclusive_active.get_or_insert(0) += active;
            }
        }
    }
}

/// The sums of the calls so far.
struct Functions {
    request: Request,
    rows: Map<(Option<Group>, usize), Row>,
    open: LaterSpans,
    names: SpanNames,
}

fn start(request: &Request) -> Box<dyn Sliced> {
    Box::new(Functions {
        request: request.clone(),
        rows: Map::default(),
        open: LaterSpans::default(),
        names: SpanNames::default(),
    })
}

impl Functions {
    /// Whether a call is selected by the CPU on which it began.
    fn at_begin(&self) -> bool {
        self.request.cpus.is_some()
    }
}

impl Sliced for Functions {
    fn needs(&self) -> Option<Needs> {
        Some(Needs { lwp_states: !self.request.is_of_own_threads(), ..FUNCTIONS.needs })
    }

    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        if self.request.subject.is_some() {
            self.names.add(history, slice, &self.request);
        }
        let (request, at_begin) = (&self.request, self.at_begin());
        let later = std::mem::take(&mut self.open);
        let (visitors, open) = walk(history, (slice, at_begin), &later, || Rows {
            selection: Selection { history, request },
            groups: Groups::new(history, request),
            places: Map::default(),
            rows: Vec::new(),
        });
        self.open = open;
        for Rows { groups, rows, .. } in visitors {
            for row in rows {
                let group = row.group.map(|group| groups.group(group).clone());
                match self.rows.entry((group, row.span.as_ref().map_or(0, key))) {
                    Entry::Vacant(vacant) => drop(vacant.insert(row)),
                    Entry::Occupied(mut occupied) => occupied.get_mut().merge(row),
                }
            }
        }
        Ok(())
    }

    fn looks_back(&self) -> bool {
        self.at_begin() && !self.open.is_empty()
    }

    fn finish(mut self: Box<Self>, history: &History) -> Result<Answer, String> {
        std::mem::take(&mut self.names).check(history, &self.request)?;
        Ok(table(history, &self.request, self.rows))
    }
}

fn table(history: &History, request: &Request, rows: Map<(Option<Group>, usize), Row>) -> Answer {
    let mut columns = match request.by {
        Some(by) => Group::columns(by, request.level(history)),
        None => Vec::new(),
    };
    columns.extend([
        Column::text("kind", "span or function."),
        Column::text("function", "The name of the function or span."),
        Column::length("inclusive_tick", "Its wall time, without calls inside one of the same name."),
        Column::length("self_tick", "Its wall time without the spans directly inside of it."),
        Column::length("inclusive_active_tick", "The active part of inclusive_tick; NULL if not known."),
        Column::length("self_active_tick", "The active part of self_tick; NULL if not known."),
        Column::count("active_unknown", "Calls whose own active time is not known."),
    ]);
    columns.extend(Distribution::columns());
    let rows = rows.into_iter().filter(|(_, row)| row.lengths.count() > 0);
    let mut rows: Vec<(Option<Group>, Row)> = rows.map(|((group, _), row)| (group, row)).collect();
    let what = |row: &Row| {
        let name = row.span.and_then(|span| span.name).map(|name| history.words.text(name).to_string());
        (row.span.is_some_and(|span| span.is_function), name)
    };
    rows.sort_by_cached_key(|(group, row)| (Reverse((row.inclusive, row.own)), group.clone(), what(row)));
    let mut answer = Answer::new(columns);
    for (group, row) in rows {
        let mut cells = group.as_ref().map(|group| group.cells(history)).unwrap_or_default();
        let (is_function, name) = what(&row);
        cells.extend([
            if is_function { "function" } else { "span" }.into(),
            name.into(),
            row.inclusive.into(),
            row.own.into(),
            row.inclusive_active.into(),
            row.own_active.into(),
            row.active_unknown.into(),
        ]);
        let lengths = Distribution::from(row.lengths);
        cells.extend(lengths.cells());
        answer.push_with_lengths(cells, lengths);
    }
    answer
}
