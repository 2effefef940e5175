//! A timeline: what each user thread or LWP did, from left to right.
//!
//! ```text
//! shown.rs   what a column shows
//! line.rs    a line, drawn from its end to its beginning
//! mod.rs     all lines, slice by slice
//! text.rs    as text
//! svg.rs     as a picture
//! ```

mod line;
mod shown;
mod svg;
mod text;

use std::collections::BTreeMap;

use crate::{
    Answer, History, Interval, Level, Life, LwpStay, Measure, Needs, Request, Slice, Subject, ThreadStay,
    carried::Carried, groups::Owner, map::Set, measure::headings, parallel, sliced::Sliced,
};

use line::{Line, Run, Scale};
use shown::{SHOWN, Shown};

/// How a timeline is divided, and how many lines it may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Canvas {
    /// The number of columns. No column is shorter than a tick, so there may be fewer.
    pub columns: usize,
    /// The threads with the smallest numbers have lines, up to this number. The others are counted.
    pub most_lines: usize,
}

/// All selected user threads (or LWPs) that are alive in the window: one line each, with the state that each column
/// shows. It is in [`Answer::timeline`]; the answer has no rows.
///
/// A column shows the state with the largest share of its time; of equal shares, the first in the legend. A life of less
/// than half a column still has a column. Without states, a life is unknown.
///
/// If LWPs or CPUs are selected, a thread that is alive but not known to be on one of these is drawn as not in the
/// filter. A thread without any other time has no line.
///
/// It is an error if there are to be no columns, or if no part of the trace is in the window.
pub const GANTT: Measure = Measure {
    name: "gantt",
    question: "What did each thread do, from left to right?",
    heading: headings::TIME,
    subject: Subject::None,
    lists_cases: false,
    is_of_one_level: true,
    definition: "",
    needs: Needs { only_lives: true, only_own: true, ..Needs::ONLY_STATES },
    computed: |request| Box::new(Drawing::new(request)),
};

/// A timeline to be drawn, as [text](Self::text) or as a [picture](Self::svg).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    level: Level,
    scale: Scale,
    /// Sorted by number.
    lines: Vec<Drawn>,
    /// How many threads would have lines, too, if there could be more lines.
    pub more: usize,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Drawn {
    label: String,
    /// The first column first.
    runs: Vec<Run>,
    /// Ticks of each state in the window, in the order of [`Shown::ALL`].
    sums: [i64; SHOWN],
}

impl Timeline {
    /// The number of lines.
    pub fn lines(&self) -> usize {
        self.lines.len()
    }

    /// Whether any line has this state.
    fn has(&self, shown: Shown) -> bool {
        self.lines.iter().any(|line| line.sums[shown as usize] > 0)
    }
}

/// The lines so far.
struct Drawing {
    request: Request,
    scale: Option<Scale>,
    /// Lines that may be drawn, by number.
    lines: BTreeMap<u64, Line>,
    /// The threads that are not drawn, because there are enough lines with smaller numbers.
    more: Set<u64>,
}

impl Drawing {
    fn new(request: &Request) -> Drawing {
        Drawing { request: request.clone(), scale: None, lines: BTreeMap::new(), more: Set::default() }
    }

    /// The columns; `None` if no part of the trace is in the window.
    fn scale(&mut self, history: &History) -> Option<Scale> {
        let window = self.request.extent(history);
        let scale = || Scale::new(window, self.request.canvas.columns);
        (window.ticks() > 0).then(|| *self.scale.get_or_insert_with(scale))
    }

    /// Keeps the lines with the smallest numbers, and counts the others.
    fn leave_out(&mut self) {
        let mut drawn = self.lines.iter().filter(|(_, line)| line.selected() > 0);
        if let Some((first, _)) = drawn.nth(self.request.canvas.most_lines) {
            let first = *first;
            let others = self.lines.split_off(&first).into_iter();
            self.more.extend(others.filter(|(_, line)| line.selected() > 0).map(|(number, _)| number));
        }
    }

    /// Adds what a line shows, from its last part to its first. Where no state is recorded, that is unknown.
    fn draw(&self, scale: Scale, (history, owner): (&History, Owner), parts: &[Part], line: &mut Line) {
        for part in parts.iter().rev() {
            self.draw_hole(scale, (history, owner), part.interval.to, line);
            line.extend(scale, part.interval.from, part.shown);
        }
    }

    /// Draws the time after `from` in which no state of a thread is recorded. It is unknown while the thread is alive.
    fn draw_hole(&self, scale: Scale, (history, owner): (&History, Owner), from: i64, line: &mut Line) {
        if from < line.at() {
            for part in hole(history, &self.request, owner, Interval::new(from, line.at())).iter().rev() {
                line.extend(scale, part.interval.from, part.shown);
            }
        }
    }
}

impl Sliced for Drawing {
    fn needs(&self) -> Option<Needs> {
        Some(Needs { lwp_states: !self.request.is_of_threads_on_any_cpu(), ..GANTT.needs })
    }

    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        let Some(scale) = self.scale(history) else { return Ok(()) };
        let Some(window) = slice.extent(history).clipped(scale.window) else { return Ok(()) };
        let carried = Carried::new(history, &self.request);
        let mut owners = owners(history, &self.request, &carried, window);
        owners.retain(|owner| !self.more.contains(&number(*owner)));
        let lines: Vec<(Owner, Line)> = owners
            .into_iter()
            .map(|owner| (owner, self.lines.remove(&number(owner)).unwrap_or_else(|| Line::new(scale))))
            .collect();
        let length = lines.len().div_ceil(8 * rayon::current_num_threads()).max(1);
        let drawn = parallel::map(parallel::chunks(lines, length), |mut lines| {
            let mut parts = Vec::new();
            for (owner, line) in &mut lines {
                parts.clear();
                states(history, &self.request, (*owner, &carried), window, &mut parts);
                self.draw(scale, (history, *owner), &parts, line);
            }
            lines
        });
        self.lines.extend(drawn.into_iter().flatten().map(|(owner, line)| (number(owner), line)));
        self.leave_out();
        Ok(())
    }

    fn finish(mut self: Box<Self>, history: &History) -> Result<Answer, String> {
        if self.request.canvas.columns == 0 {
            return Err("a timeline of 0 columns: expected at least 1".to_string());
        }
        let Some(scale) = self.scale(history) else {
            let Interval { from, to } = self.request.window;
            return Err(match history.extent {
                Some(all) => format!(
                    "no part of the trace is in the window: expected ticks of {} to {}, found {from} to {to}",
                    all.from, all.to
                ),
                None => "the trace has no events to draw".to_string(),
            });
        };
        let level = self.request.level(history);
        let owner = |number| match level {
            Level::Threads => Owner::Thread(number),
            Level::Lwps => Owner::Lwp(number as u32),
        };
        // Those without any recorded state.
        for number in unrecorded(history, &self.request, scale.window) {
            if !self.more.contains(&number) {
                self.lines.entry(number).or_insert_with(|| Line::new(scale));
            }
        }
        let mut lines = std::mem::take(&mut self.lines);
        for (number, line) in &mut lines {
            self.draw_hole(scale, (history, owner(*number)), scale.window.from, line);
        }
        self.lines = lines;
        self.leave_out();
        let lines = self.lines.into_iter().filter(|(_, line)| line.selected() > 0);
        let lines = lines.map(|(number, line)| {
            let label = match owner(number) {
                Owner::Thread(thread) => history.names.thread_label(thread),
                Owner::Lwp(lwp) => history.names.lwp_label(lwp),
            };
            let sums = line.sums;
            Drawn { label, runs: line.into_runs(), sums }
        });
        let timeline = Timeline { level, scale, lines: lines.collect(), more: self.more.len() };
        Ok(Answer { timeline: Some(timeline), ..Answer::default() })
    }
}

/// An interval of a line.
#[derive(Clone, Copy, Debug)]
struct Part {
    interval: Interval,
    shown: Shown,
}

fn number(owner: Owner) -> u64 {
    match owner {
        Owner::Thread(thread) => thread,
        Owner::Lwp(lwp) => lwp.into(),
    }
}

/// The selected threads that have states in a slice. Of LWPs that count while they carry selected user threads, also
/// those without states: what they carried is only known here.
fn owners(history: &History, request: &Request, carried: &Carried, slice: Interval) -> Vec<Owner> {
    let names = &history.names;
    match request.level(history) {
        Level::Threads => {
            let threads = history.threads.keys().filter(|thread| request.has_thread(*thread));
            threads.filter(|thread| names.threads.contains(*thread)).map(Owner::Thread).collect()
        }
        Level::Lwps if carried.is_all() => {
            let lwps = history.lwps.keys().map(|lwp| lwp as u32);
            let lwps = lwps.filter(|lwp| *lwp != 0 && request.has_lwp(*lwp) && names.lwps.contains(*lwp));
            lwps.map(Owner::Lwp).collect()
        }
        Level::Lwps => {
            let is_here = |lwp: u32, life: Life<'_>| {
                life.interval.clipped(slice).is_some() || !history.lwps.of(lwp.into()).is_empty()
            };
            let lwps = names.lwps.iter().filter(|(lwp, life)| *lwp != 0 && is_here(*lwp, *life));
            lwps.map(|(lwp, _)| lwp).filter(|lwp| request.has_lwp(*lwp)).map(Owner::Lwp).collect()
        }
    }
}

/// The numbers of all selected threads that are alive in the window, if they would have lines without recorded states.
fn unrecorded(history: &History, request: &Request, window: Interval) -> Vec<u64> {
    let names = &history.names;
    let is_alive = |life: Life<'_>| life.interval.clipped(window).is_some_and(|life| life.ticks() > 0);
    match request.level(history) {
        Level::Threads if request.has_place(None, None) => {
            let threads = names.threads.iter().filter(|(thread, _)| request.has_thread(*thread));
            threads.filter(|(_, life)| is_alive(*life)).map(|(thread, _)| thread).collect()
        }
        Level::Lwps if request.threads.is_none() => {
            let is_selected =
                |lwp: u32| lwp != 0 && request.has_lwp(lwp) && request.has_place(Some(lwp), None);
            let lwps = names.lwps.iter().filter(|(lwp, _)| is_selected(*lwp));
            lwps.filter(|(_, life)| is_alive(*life)).map(|(lwp, _)| lwp.into()).collect()
        }
        _ => Vec::new(),
    }
}

/// What a thread shows in each interval of a slice.
fn states(
    history: &History,
    request: &Request,
    (owner, carried): (Owner, &Carried),
    slice: Interval,
    parts: &mut Vec<Part>,
) {
    match owner {
        Owner::Thread(thread) => {
            for (interval, stay) in history.threads.of(thread).within(slice) {
                let cpu = |stay: &ThreadStay| request.cpus.as_ref().and_then(|_| stay.cpu(history, interval));
                let is_selected = request.has_place(stay.lwp, cpu(stay));
                parts.push(Part { interval, shown: Shown::of_thread(stay.state).selected(is_selected) });
            }
        }
        Owner::Lwp(lwp) => {
            for (interval, stay) in history.lwps.of(lwp.into()).partition(slice) {
                let state = stay.map_or(Shown::Unknown, |stay: &LwpStay| Shown::of_lwp(stay.state));
                let is_selected = request.has_place(Some(lwp), stay.and_then(|stay| stay.cpu));
                for (interval, counts) in carried.pieces(lwp, interval) {
                    let shown = state.selected(is_selected && counts);
                    match stay {
                        Some(_) => parts.push(Part { interval, shown }),
                        None => parts.extend(while_alive(history, owner, interval, shown)),
                    }
                }
            }
        }
    }
}

/// What a thread shows where it has no recorded state, nor carried anything.
fn hole(history: &History, request: &Request, owner: Owner, interval: Interval) -> [Part; 3] {
    let lwp = match owner {
        Owner::Thread(_) => None,
        Owner::Lwp(lwp) => Some(lwp),
    };
    let counts = lwp.is_none() || request.threads.is_none();
    while_alive(history, owner, interval, Shown::Unknown.selected(counts && request.has_place(lwp, None)))
}

/// An interval in which a thread shows this while it is alive, and is not alive before and after.
fn while_alive(history: &History, owner: Owner, interval: Interval, shown: Shown) -> [Part; 3] {
    let life = match owner {
        Owner::Thread(thread) => history.names.threads.get(thread),
        Owner::Lwp(lwp) => history.names.lwps.get(lwp),
    };
    let inner = life.and_then(|life| life.interval.clipped(interval));
    let inner = inner.unwrap_or(Interval::new(interval.to, 0));
    [
        Part { interval: Interval::new(interval.from, inner.from), shown: Shown::NotThere },
        Part { interval: inner, shown },
        Part { interval: Interval::new(inner.to, interval.to), shown: Shown::NotThere },
    ]
}
