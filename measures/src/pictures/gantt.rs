//! What each thread did in each column of a timeline: the state with the largest share.

use sigmund_model::{LwpState, ThreadState};

use crate::{History, Interval, Level, Life, Request};

/// What a column shows: states of both levels. Of equal shares the first of these wins.
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
    NotThere,
}

impl Shown {
    pub(super) const ALL: [Shown; 9] = [
        Shown::Active,
        Shown::Stalled,
        Shown::InKernel,
        Shown::Ready,
        Shown::Blocked,
        Shown::Stopped,
        Shown::Off,
        Shown::Unknown,
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
            (Shown::NotThere, _) => "not alive",
        }
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

/// All selected threads that are alive in the window.
#[derive(Clone, Debug)]
pub(super) struct Timeline {
    pub(super) level: Level,
    pub(super) window: Interval,
    /// How many columns there are: as many as were asked for, but none is shorter than a tick.
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
                            let is_here = |stay: &crate::ThreadStay| {
                                request.has_place(stay.lwp, stay.cpu(history, interval))
                            };
                            (interval, stay.map(|stay| is_here(stay).then(|| Shown::of_thread(stay.state))))
                        });
                        timeline.add(history.names.thread_label(thread), life, states);
                    }
                }
            }
            Level::Lwps => {
                for (lwp, life) in history.names.lwps.iter() {
                    if lwp != 0 && request.has_lwp(lwp) {
                        let states = history.lwps.of(lwp.into()).partition(window).map(|(interval, stay)| {
                            let is_here = |stay: &crate::LwpStay| request.has_place(Some(lwp), stay.cpu);
                            (interval, stay.map(|stay| is_here(stay).then(|| Shown::of_lwp(stay.state))))
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

    /// Adds a line. A state is `None` where there is none, and `Some(None)` where it is not selected.
    fn add(
        &mut self,
        label: String,
        life: Life<'_>,
        states: impl Iterator<Item = (Interval, Option<Option<Shown>>)>,
    ) {
        let mut line = Line { label, columns: Vec::with_capacity(self.columns), sums: [0; Shown::ALL.len()] };
        let mut shares = [0; Shown::ALL.len()];
        for (interval, state) in states {
            // Without a state it is unknown in its life, and not alive before and after.
            let (shown, inner) = match state {
                Some(shown) => (shown.unwrap_or(Shown::NotThere), interval),
                None => {
                    (Shown::Unknown, life.interval.clipped(interval).unwrap_or(Interval::new(interval.to, 0)))
                }
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
                        shares = [0; Shown::ALL.len()];
                    }
                }
            }
        }
        if line.sums[Shown::NotThere as usize] < self.window.ticks() {
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
