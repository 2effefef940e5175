//! `--noise`: what a span, or a thread, would have taken without interrupts, preemptions and waits.

mod parts;

use std::{io, iter::once};

use crate::{
    Answer, By, Column, Distribution, Group, History, Interval, Level, Measure, Needs, Request, Span, Spill,
    Value,
    carried::Carried,
    groups::Owner,
    growing::{Growing, Runs},
    instances::SpanNames,
    map::Map,
    parallel,
    sliced::{Slice, Sliced},
    stays::{asked_owners, named_owners},
    tally::{Kinds, Tally},
};
use parts::{Part, Parts, Splitter, life};

/// What a span, or a thread, would have taken without interrupts, preemptions and waits.
pub(crate) const NOISE: Measure = Measure {
    name: "noise",
    question: "How long would my span take if nothing interrupted it, and what did interrupt it?",
    heading: crate::measure::headings::WAY,
    subject: crate::measure::Subject::Optional("SPAN"),
    lists_cases: false,
    is_of_one_level: false,
    definition: include_str!("../definitions/noise.md"),
    needs: Needs { interrupts: true, spans: true, only_lives: true, only_own: true, ..Needs::ONLY_STATES },
    computed: start,
};

/// The kind of a row: a curve, or a part that was subtracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Row {
    Wall,
    WithoutTimer,
    WithoutInterrupts,
    Pure,
    Part(Part),
}

/// The curves so far.
struct Noise {
    request: Request,
    tally: Growing<Kinds<Row>>,
    unknown: u64,
    unended: u64,
    /// Lives that were never seen on a CPU, although they may have been on one.
    unseen: u64,
    names: SpanNames,
    /// Spans that began before the slice, by their owners, with their parts in later slices.
    open: Map<Owner, Vec<(Span, Parts)>>,
    /// For owners that began before the slices so far: the parts of their lives, and the ticks for which they had a
    /// state.
    lives: Map<Owner, (Parts, i64)>,
    /// Owners whose lives are to be split, sorted by their beginnings. `None` before the first slice.
    named: Option<Vec<(i64, Owner)>>,
}

fn start(request: &Request) -> Box<dyn Sliced> {
    Box::new(Noise {
        request: request.clone(),
        tally: Growing::new(request),
        unknown: 0,
        unended: 0,
        unseen: 0,
        names: SpanNames::default(),
        open: Map::default(),
        lives: Map::default(),
        named: None,
    })
}

impl Sliced for Noise {
    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        match self.request.subject.clone() {
            Some(subject) => self.add_spans(history, slice, &subject),
            None if !slice.is_before_window() => self.add_lives(history, slice),
            None => {}
        }
        let is_open = |thread| {
            let owner = Owner::Thread(thread);
            self.open.contains_key(&owner) || self.lives.contains_key(&owner)
        };
        self.tally.settle(history, slice, is_open, |group, rows, out| runs(history, group, rows, out));
        Ok(())
    }

    fn looks_back(&self) -> bool {
        !self.open.is_empty()
    }

    fn spill(&mut self, to: &Spill) -> io::Result<()> {
        self.tally.spill(to)
    }

    fn finish(mut self: Box<Self>, history: &History) -> Result<Answer, String> {
        let request = self.request.clone();
        std::mem::take(&mut self.names).check(history, &request)?;
        if request.subject.is_none() {
            let all = Slice { interval: Interval::ALL, window: request.window };
            self.tally_lives(history, all, Vec::new());
        }
        let mut columns = Group::columns(request.by(history), request.level(history));
        columns.push(Column::text(
            "curve",
            "wall, without-timer, without-interrupts, pure; or what was taken away.",
        ));
        columns.extend(Distribution::columns());
        let mut answer = self.tally.finish(columns, |group, rows, out| runs(history, group, rows, out));
        for (count, why) in [(self.unknown, "events are missing in them"), (self.unended, "they did not end")]
        {
            if count > 0 {
                answer.notes.push(format!("{count} spans are not counted: {why}."));
            }
        }
        if self.unseen > 0 {
            answer.notes.push(format!(
                "{} were never seen on a CPU: what they would have taken without interrupts is not known.",
                self.unseen
            ));
        }
        if history.has_no_interrupts {
            let what = "without-timer and without-interrupts are not known, and pure includes interrupt time";
            answer.notes.push(format!("No interrupts are recorded: {what}."));
        }
        Ok(answer)
    }
}

impl Noise {
    fn add_lives(&mut self, history: &History, slice: Slice) {
        let request = &self.request;
        let owners = asked_owners(history, request);
        let window = slice.extent(history);
        let carried = Carried::new(history, request);
        let new = || (Splitter::new(history, &carried), Vec::new());
        let parts = parallel::fold(&owners, new, |(splitter, lives), owner| {
            lives.push((*owner, splitter.split(*owner, window, request)));
        });
        let parts = parts.into_iter().flat_map(|(_, lives)| lives).collect();
        self.tally_lives(history, slice, parts);
    }

    /// Adds the parts of lives in a slice, sorted by their owners, and counts the lives that began in the slice: all
    /// their parts are known.
    fn tally_lives(&mut self, history: &History, slice: Slice, lives: Vec<(Owner, (Parts, i64))>) {
        let (request, since) = (&self.request, slice.interval.from);
        let (by, window) = (request.by(history), request.extent(history));
        let is_whole = match request.level(history) {
            Level::Lwps => request.threads.is_none(),
            Level::Threads => request.lwps.is_none(),
        };
        let is_anywhere = is_whole && request.cpus.is_none();
        let named = self.named.get_or_insert_with(|| {
            let owners = named_owners(history, request).into_iter();
            let mut named: Vec<(i64, Owner)> =
                owners.map(|owner| (life(history, owner, Interval::ALL).from, owner)).collect();
            named.sort_unstable();
            named
        });
        let first = named.partition_point(|(from, _)| *from < since);
        let mut begun: Vec<Owner> = named.drain(first..).map(|(_, owner)| owner).collect();
        begun.sort_unstable();
        let mut whole: Vec<(Owner, (Parts, i64))> = Vec::with_capacity(begun.len());
        let mut lives = lives.into_iter().peekable();
        let keep = |all: &mut Map<Owner, (Parts, i64)>, (owner, (parts, covered)): (Owner, (Parts, i64))| {
            let life = all.entry(owner).or_default();
            life.0.merge(&parts);
            life.1 += covered;
        };
        for owner in begun {
            while let Some(other) = lives.next_if(|(other, _)| *other < owner) {
                keep(&mut self.lives, other);
            }
            let here = lives.next_if(|(other, _)| *other == owner);
            let (mut parts, mut covered) = here.map(|(_, life)| life).unwrap_or_default();
            if let Some((later, of_later)) = self.lives.remove(&owner) {
                parts.merge(&later);
                covered += of_later;
            }
            whole.push((owner, (parts, covered)));
        }
        lives.for_each(|other| keep(&mut self.lives, other));
        let count = |(tally, unseen): &mut (Tally<Row>, u64),
                     (owner, (parts, covered)): &(Owner, (Parts, i64))| {
            let mut parts = *parts;
            // Time without a state is unknown.
            if is_anywhere {
                parts.add_unknown(life(history, *owner, window).ticks() - covered);
            }
            if parts.wall > 0 {
                *unseen += u64::from(!parts.is_seen());
                add(tally.of(group_of(history, by, *owner)), &parts);
            }
        };
        let counted = parallel::fold(&whole, || (Tally::new(), 0), count);
        self.unseen += counted.iter().map(|(_, unseen)| unseen).sum::<u64>();
        let tallies = parallel::map(counted, |(tally, _)| tally.into_groups());
        self.tally.add_slice(
            (history, slice),
            tallies,
            Kinds::merge,
            |_| false,
            |group, rows, out| runs(history, group, rows, out),
        );
    }

    fn add_spans(&mut self, history: &History, slice: Slice, subject: &str) {
        let name = history.words.get(subject);
        self.names.add(history, slice, &self.request);
        let spans: Vec<&Span> =
            history.spans.iter().filter(|span| name.is_some() && span.name == name).collect();
        let (request, later, carried) = (&self.request, std::mem::take(&mut self.open), Carried::default());
        let new = || Curves {
            splitter: Splitter::new(history, &carried),
            tally: Tally::new(),
            unknown: 0,
            unended: 0,
            open: Vec::new(),
        };
        let parts = parallel::fold(&spans, new, |curves: &mut Curves<'_>, span| {
            curves.add_span(history, request, slice, span, &later);
        });
        for Curves { tally, unknown, unended, open, .. } in parts {
            tally.add_to(&mut self.tally);
            self.unknown += unknown;
            self.unended += unended;
            for (owner, span, parts) in open {
                self.open.entry(owner).or_default().push((span, parts));
            }
        }
    }
}

fn group_of(history: &History, by: By, owner: Owner) -> Group {
    match owner {
        Owner::Thread(thread) => Group::of_thread(history, by, thread),
        Owner::Lwp(lwp) => Group::of_lwp(history, by, lwp),
    }
}

/// The rows of a group, the curves first.
fn runs<'h>(history: &'h History, group: &Group, rows: Kinds<Row>, out: &mut Runs<'_, 'h>) {
    let is_known =
        |row| !(history.has_no_interrupts && matches!(row, Row::WithoutTimer | Row::WithoutInterrupts));
    let mut rows: Vec<(Row, Distribution)> = rows
        .into_distributions()
        .map(|(row, lengths)| (row, if is_known(row) { lengths } else { Distribution::default() }))
        .collect();
    rows.sort_by_key(|(row, _)| *row);
    let order = rows.iter().map(|(_, lengths)| lengths.total()).max().unwrap_or(0);
    out.head(history, group);
    out.begin(order);
    for (row, lengths) in rows {
        let figures = match lengths.count() {
            // For an unknown curve there is only a name, without figures.
            0 => [const { Value::Null }; 8],
            _ => lengths.figures(),
        };
        out.row(once(row.name().into()).chain(figures), Some(lengths));
    }
}

impl Row {
    fn name(self) -> &'static str {
        match self {
            Row::Wall => "wall",
            Row::WithoutTimer => "without-timer",
            Row::WithoutInterrupts => "without-interrupts",
            Row::Pure => "pure",
            Row::Part(part) => part.name(),
        }
    }
}

/// Collects the curves of some spans.
struct Curves<'h> {
    splitter: Splitter<'h>,
    tally: Tally<Row>,
    unknown: u64,
    unended: u64,
    open: Vec<(Owner, Span, Parts)>,
}

impl Curves<'_> {
    fn add_span(
        &mut self,
        history: &History,
        request: &Request,
        slice: Slice,
        span: &Span,
        later: &Map<Owner, Vec<(Span, Parts)>>,
    ) {
        let (by, level) = (request.by(history), request.level(history));
        let Some((owner, group)) = Owner::new(span.thread, span.lwp).zip(group(history, by, level, span))
        else {
            return;
        };
        // A span of length 0 has no parts.
        let part = span.interval.clipped(slice.interval);
        let Some(part) = part.filter(|_| slice.window.contains(span.interval.to)) else { return };
        let (mut parts, covered) = self.splitter.split(owner, part, &Request::default());
        parts.add_unknown(life(history, owner, part).ticks() - covered);
        let later = later.get(&owner).and_then(|spans| spans.iter().find(|(later, _)| later == span));
        if let Some((_, later)) = later {
            parts.merge(later);
        }
        if span.interval.from < slice.interval.from {
            self.open.push((owner, *span, parts));
            return;
        }
        if !selects(history, request, span) {
            return;
        }
        if span.end != sigmund_model::EndReason::Returned {
            self.unended += 1;
            return;
        }
        match parts.of(Part::Unknown) {
            0 => add(self.tally.of(group), &parts),
            _ => self.unknown += 1,
        }
    }
}

fn add(rows: &mut Kinds<Row>, parts: &Parts) {
    if !parts.is_seen() {
        for row in [Row::WithoutTimer, Row::WithoutInterrupts, Row::Pure] {
            rows.of(row);
        }
        rows.of(Row::Wall).push(parts.wall);
        rows.of(Row::Part(Part::Unknown)).push(parts.of(Part::Unknown));
        for part in [Part::OffCpu, Part::Waits].into_iter().filter(|part| parts.of(*part) > 0) {
            rows.of(Row::Part(part)).push(parts.of(part));
        }
        return;
    }
    let mut push = |row, ticks| rows.of(row).push(ticks);
    let without_timer = parts.wall - parts.of(Part::Timer);
    push(Row::Wall, parts.wall);
    push(Row::WithoutTimer, without_timer);
    push(Row::WithoutInterrupts, without_timer - parts.other_interrupts());
    push(Row::Pure, parts.pure());
    for part in Part::ALL.iter().filter(|part| parts.of(**part) > 0) {
        push(Row::Part(*part), parts.of(*part));
    }
}

/// The group of a span. In rows by user thread, a span without one has no group.
fn group(history: &History, by: By, level: Level, span: &Span) -> Option<Group> {
    match (level, span.thread) {
        (Level::Threads, Some(thread)) => Some(Group::of_thread(history, by, thread)),
        (Level::Threads, None) if by == By::Thread => None,
        _ => span.lwp.map(|lwp| Group::of_lwp(history, by, lwp)),
    }
}

/// Whether a span is selected by its thread, and by the LWP and CPU on which it began.
fn selects(history: &History, request: &Request, span: &Span) -> bool {
    let cpu = || history.lwps.of(span.lwp?.into()).at(span.interval.from)?.1.cpu;
    let is_thread = match &request.threads {
        None => true,
        Some(threads) => span.thread.is_some_and(|thread| threads.contains(&thread)),
    };
    is_thread && request.has_place(span.lwp, request.cpus.as_ref().and_then(|_| cpu()))
}
