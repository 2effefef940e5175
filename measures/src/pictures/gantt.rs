//! What each thread did in each column of a timeline: the state with the largest share.

use sigmund_model::{LwpState, ThreadState};

use crate::{History, Interval, Level, Life, LwpStay, Request, ThreadStay, carried::Carried};

/// What a column shows. The states are those of both levels. If several have the largest share, the first of these is
/// shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shown {
    Active,
    Stalled,
    InKernel,
    Ready,
    Blocked,
    Stopped,
    Off,
    Unknown,
    /// Alive, but on no LWP or CPU that is selected.
    NotSelected,
    NotThere,
}

impl Shown {
    pub(super) const ALL: [Shown; 10] = [
        Shown::Active,
        Shown::Stalled,
        Shown::InKernel,
        Shown::Ready,
        Shown::Blocked,
        Shown::Stopped,
        Shown::Off,
        Shown::Unknown,
        Shown::NotSelected,
        Shown::NotThere,
    ];

    pub(super) fn letter(self) -> char {
        match self {
            Shown::Active => 'A',
            Shown::Stalled => 's',
            Shown::InKernel => 'k',
            Shown::Ready => 'r',
            Shown::Blocked => 'b',
            Shown::Stopped => 't',
            Shown::Off => 'o',
            Shown::Unknown => '?',
            Shown::NotSelected => '-',
            Shown::NotThere => '.',
        }
    }

    /// Its words in the legend.
    pub(super) fn name(self, level: Level) -> &'static str {
        match (self, level) {
            (Shown::Active, Level::Threads) => "active",
            (Shown::Active, Level::Lwps) => "running",
            (Shown::Stalled, Level::Threads) => "stalled",
            (Shown::Stalled, Level::Lwps) => "runnable",
            (Shown::InKernel, Level::Threads) => "in kernel",
            (Shown::InKernel, Level::Lwps) => "sleeping",
            (Shown::Ready, _) => "ready",
            (Shown::Blocked, _) => "blocked",
            (Shown::Stopped, _) => "stopped",
            (Shown::Off, _) => "not active, reason unknown",
            (Shown::Unknown, _) => "unknown",
            (Shown::NotSelected, _) => "not in the filter",
            (Shown::NotThere, _) => "not alive",
        }
    }

    /// Whether it is a state at a selected place, so that it has a share.
    pub(super) fn is_state(self) -> bool {
        !matches!(self, Shown::NotSelected | Shown::NotThere)
    }

    /// What is drawn for this state at a place that may be not selected.
    fn selected(self, is_selected: bool) -> Shown {
        if self == Shown::NotThere || is_selected { self } else { Shown::NotSelected }
    }

    fn of_thread(state: ThreadState) -> Shown {
        match state {
            ThreadState::Active => Shown::Active,
            ThreadState::Stalled => Shown::Stalled,
            ThreadState::InKernel => Shown::InKernel,
            ThreadState::New | ThreadState::Ready => Shown::Ready,
            ThreadState::Blocked => Shown::Blocked,
            ThreadState::Stopped => Shown::Stopped,
            ThreadState::OffCpu | ThreadState::Unmounted => Shown::Off,
            ThreadState::Mounted | ThreadState::Unknown => Shown::Unknown,
            ThreadState::Exited => Shown::NotThere,
        }
    }

    fn of_lwp(state: LwpState) -> Shown {
        match state {
            LwpState::Running => Shown::Active,
            LwpState::Runnable => Shown::Stalled,
            LwpState::Sleeping | LwpState::DiskSleep | LwpState::Idle => Shown::InKernel,
            LwpState::Stopped => Shown::Stopped,
            LwpState::OffCpu => Shown::Off,
            LwpState::Unknown => Shown::Unknown,
            LwpState::Exited => Shown::NotThere,
        }
    }
}

/// One thread.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) label: String,
    /// What each column shows.
    pub(super) columns: Vec<Shown>,
    /// Ticks of each state in the window, in the order of [`Shown::ALL`].
    pub(super) sums: [i64; Shown::ALL.len()],
}

impl Line {
    /// The ticks in which it is alive and at a selected place.
    pub(super) fn selected(&self) -> i64 {
        let states = Shown::ALL.into_iter().filter(|shown| shown.is_state());
        states.map(|shown| self.sums[shown as usize]).sum()
    }
}

/// All selected threads that are alive in the window.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    pub(super) level: Level,
    pub(super) window: Interval,
    /// The number of columns: as many as requested, but no column is shorter than a tick.
    pub(super) columns: usize,
    pub(super) lines: Vec<Line>,
}

impl Timeline {
    /// # Errors
    ///
    /// If there are to be no columns, or the window has no tick in common with the trace.
    pub(super) fn new(history: &History, request: &Request, columns: usize) -> Result<Timeline, String> {
        if columns == 0 {
            return Err("a timeline of 0 columns: expected at least 1".to_string());
        }
        let (level, window) = (request.level(history), request.extent(history));
        if window.ticks() == 0 {
            let Interval { from, to } = request.window;
            return Err(match history.extent {
                Some(all) => format!(
                    "no part of the trace is in the window: expected ticks of {} to {}, found {from} to {to}",
                    all.from, all.to
                ),
                None => "the trace has no events to draw".to_string(),
            });
        }
        let columns = columns.min(usize::try_from(window.ticks()).unwrap_or(usize::MAX));
        let mut timeline = Timeline { level, window, columns, lines: Vec::new() };
        match level {
            Level::Threads => {
                for (thread, life) in history.names.threads.iter() {
                    if request.has_thread(thread) {
                        let states = history.threads.of(thread).partition(window).map(|(interval, stay)| {
                            let shown = |stay: &ThreadStay| {
                                let is_selected = request.has_place(stay.lwp, stay.cpu(history, interval));
                                Shown::of_thread(stay.state).selected(is_selected)
                            };
                            let unknown = || Shown::Unknown.selected(request.has_place(None, None));
                            (interval, stay.map_or_else(unknown, shown), stay.is_some())
                        });
                        timeline.add(history.names.thread_label(thread), life, states);
                    }
                }
            }
            Level::Lwps => {
                let carried = Carried::new(history, request);
                for (lwp, life) in history.names.lwps.iter() {
                    if lwp != 0 && request.has_lwp(lwp) && carried.has(lwp) {
                        let stays = history.lwps.of(lwp.into()).partition(window);
                        let states = stays.flat_map(|(interval, stay)| {
                            let state =
                                stay.map_or(Shown::Unknown, |stay: &LwpStay| Shown::of_lwp(stay.state));
                            let is_selected = request.has_place(Some(lwp), stay.and_then(|stay| stay.cpu));
                            let pieces = carried.pieces(lwp, interval).into_iter();
                            pieces.map(move |(piece, counts)| {
                                (piece, state.selected(is_selected && counts), stay.is_some())
                            })
                        });
                        timeline.add(history.names.lwp_label(lwp), life, states);
                    }
                }
            }
        }
        Ok(timeline)
    }

    /// The first tick of a column; of the column after the last, the end of the window.
    pub(super) fn begin(&self, column: usize) -> i64 {
        let ticks = i128::from(self.window.ticks()) * column as i128 / self.columns.max(1) as i128;
        self.window.from + ticks as i64
    }

    /// Adds a line, if the thread is alive and selected at some time. `states` has what each interval shows, and
    /// whether a state is recorded there. Where none is, the line shows it during its life only, and `not alive` before
    /// and after.
    fn add(&mut self, label: String, life: Life<'_>, states: impl Iterator<Item = (Interval, Shown, bool)>) {
        let mut line = Line { label, columns: Vec::with_capacity(self.columns), sums: [0; Shown::ALL.len()] };
        let mut shares = [0; Shown::ALL.len()];
        // The columns of a line that would otherwise be empty, because the life is shorter than half a column.
        let mut while_there = Vec::with_capacity(self.columns);
        for (interval, shown, is_recorded) in states {
            let inner = match is_recorded {
                true => interval,
                false => life.interval.clipped(interval).unwrap_or(Interval::new(interval.to, 0)),
            };
            let parts = [
                (Interval::new(interval.from, inner.from), Shown::NotThere),
                (inner, shown),
                (Interval::new(inner.to, interval.to), Shown::NotThere),
            ];
            for (part, shown) in parts {
                line.sums[shown as usize] += part.ticks();
                let mut at = part.from;
                while at < part.to {
                    let ends = self.begin(line.columns.len() + 1);
                    let until = ends.min(part.to);
                    shares[shown as usize] += until - at;
                    at = until;
                    if at == ends {
                        line.columns.push(largest(&shares));
                        shares[Shown::NotThere as usize] = 0;
                        let is_there = shares.iter().any(|share| *share > 0);
                        while_there.push(if is_there { largest(&shares) } else { Shown::NotThere });
                        shares = [0; Shown::ALL.len()];
                    }
                }
            }
        }
        if line.columns.iter().all(|shown| *shown == Shown::NotThere) {
            line.columns = while_there;
        }
        if line.selected() > 0 {
            self.lines.push(line);
        }
    }

    /// Whether any line has this state.
    pub(super) fn has(&self, shown: Shown) -> bool {
        self.lines.iter().any(|line| line.sums[shown as usize] > 0)
    }
}

/// The state with the largest share; of equal ones the first.
fn largest(shares: &[i64; Shown::ALL.len()]) -> Shown {
    let mut largest = Shown::Active;
    for shown in Shown::ALL {
        if shares[shown as usize] > shares[largest as usize] {
            largest = shown;
        }
    }
    largest
}
