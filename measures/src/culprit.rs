//! The culprits of a wait for a CPU: who had the CPU meanwhile.

use crate::map::Map;

use crate::{By, Group, History, Interval, Searches};

/// A culprit: one who had a CPU that another waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Culprit {
    /// A user thread, or an LWP without one; grouped as the rows of the answer are.
    Group(Group),
    /// The idle task: the CPU had not yet reacted to the wakeup of the waiting LWP.
    Idle,
    /// LWPs that carried no user thread, in the state of this name.
    Unmounted(&'static str),
    /// Not known.
    Unknown,
}

impl Culprit {
    /// For people: `15(work/6)`, `LWP 812(cc1)`, `process 812(cc1)`, a name, `idle`, `unknown`.
    pub fn label(&self, history: &History) -> String {
        let names = &history.names;
        match self {
            Culprit::Idle => "idle".into(),
            Culprit::Unmounted(state) => format!("LWPs without a user thread, {state}"),
            Culprit::Unknown => "unknown".into(),
            Culprit::Group(Group::Thread(thread)) => names.thread_label(*thread),
            Culprit::Group(Group::Lwp(lwp)) => format!("LWP {}", names.lwp_label(*lwp)),
            Culprit::Group(Group::Process(None)) => "unknown process".into(),
            Culprit::Group(Group::Process(Some(pid))) => match names.process_name(*pid) {
                Some(name) => format!("process {pid}({name})"),
                None => format!("process {pid}"),
            },
            Culprit::Group(Group::Name(name)) => name.as_deref().unwrap_or("without a name").into(),
        }
    }
}

/// Who had a CPU, not yet grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum OnCpu {
    Thread(u64),
    Lwp(u32),
    Idle,
    Unknown,
}

impl OnCpu {
    pub(crate) fn culprit(self, history: &History, by: By) -> Culprit {
        match self {
            OnCpu::Thread(thread) => Culprit::Group(Group::of_thread(history, by, thread)),
            OnCpu::Lwp(lwp) => Culprit::Group(Group::of_lwp(history, by, lwp)),
            OnCpu::Idle => Culprit::Idle,
            OnCpu::Unknown => Culprit::Unknown,
        }
    }
}

/// Calls `each` with whoever had a CPU, piece by piece. The pieces sum to the window. As [`who_had_cpu`], but faster
/// for many windows.
pub(crate) fn each_on_cpu(
    searches: &mut Searches<'_>,
    of_lwps: bool,
    cpu: Option<u32>,
    window: Interval,
    mut each: impl FnMut(OnCpu, i64),
) {
    let Some(cpu) = cpu else { return each(OnCpu::Unknown, window.ticks()) };
    for (interval, lwp) in searches.on_cpu.of(cpu.into()).partition(window) {
        match lwp {
            None => each(OnCpu::Unknown, interval.ticks()),
            Some(0) => each(OnCpu::Idle, interval.ticks()),
            Some(lwp) if of_lwps => each(OnCpu::Lwp(*lwp), interval.ticks()),
            // The user thread mounted on it may have changed meanwhile.
            Some(lwp) => {
                for (part, thread) in searches.mounted.of((*lwp).into()).partition(interval) {
                    each(thread.map_or(OnCpu::Lwp(*lwp), |thread| OnCpu::Thread(*thread)), part.ticks());
                }
            }
        }
    }
}

/// Culprits, numbered as they occur.
#[derive(Debug, Default)]
pub(crate) struct Culprits {
    numbers: Map<OnCpu, u32>,
    of_culprits: Map<Culprit, u32>,
    /// Each culprit, with the number of the last wait that it was a culprit of.
    culprits: Vec<(Culprit, u64)>,
    wait: u64,
    /// The culprits of the current wait.
    of_wait: Vec<u32>,
}

impl Culprits {
    /// Begins another wait. `later` are its culprits in later slices.
    pub(crate) fn next_wait(&mut self, later: &[Culprit]) {
        self.wait += 1;
        self.of_wait.clear();
        for culprit in later {
            let number = self.number_of(culprit.clone());
            self.is_first(number);
        }
    }

    /// The culprits of the current wait, each once.
    pub(crate) fn of_wait(&self) -> Vec<Culprit> {
        self.of_wait.iter().map(|number| self.culprit(*number).clone()).collect()
    }

    /// The number of whoever had the CPU, and whether it occurs for the first time in the current wait.
    pub(crate) fn number(&mut self, history: &History, by: By, on_cpu: OnCpu) -> (u32, bool) {
        let number = match self.numbers.get(&on_cpu) {
            Some(number) => *number,
            None => {
                let number = self.number_of(on_cpu.culprit(history, by));
                self.numbers.insert(on_cpu, number);
                number
            }
        };
        (number, self.is_first(number))
    }

    fn number_of(&mut self, culprit: Culprit) -> u32 {
        *self.of_culprits.entry(culprit).or_insert_with_key(|culprit| {
            self.culprits.push((culprit.clone(), 0));
            self.culprits.len() as u32 - 1
        })
    }

    /// Whether a culprit occurs for the first time in the current wait.
    fn is_first(&mut self, number: u32) -> bool {
        let (_, last) = &mut self.culprits[number as usize];
        let is_first = std::mem::replace(last, self.wait) != self.wait;
        if is_first {
            self.of_wait.push(number);
        }
        is_first
    }

    pub(crate) fn culprit(&self, number: u32) -> &Culprit {
        &self.culprits[number as usize].0
    }
}

/// Who had a CPU, and for how many ticks of `window`. The ticks sum to the window.
pub fn who_had_cpu(history: &History, by: By, cpu: Option<u32>, window: Interval) -> Map<Culprit, i64> {
    let mut shares = Map::default();
    each_on_cpu(&mut Searches::new(history), by == By::Lwp, cpu, window, |on_cpu, ticks| {
        *shares.entry(on_cpu.culprit(history, by)).or_insert(0) += ticks;
    });
    shares
}

/// What these LWPs carried, and for how many ticks of `window`, summed over the LWPs. All ticks together are the window
/// times the number of LWPs.
pub fn who_had_lwps(history: &History, by: By, lwps: &[u32], window: Interval) -> Map<Culprit, i64> {
    let mut shares = Map::default();
    let mut add = |culprit, interval: Interval| *shares.entry(culprit).or_insert(0) += interval.ticks();
    for lwp in lwps {
        for (part, thread) in history.mounted.of((*lwp).into()).partition(window) {
            if let Some(thread) = thread {
                add(Culprit::Group(Group::of_thread(history, by, *thread)), part);
                continue;
            }
            for (part, stay) in history.lwps.of((*lwp).into()).partition(part) {
                add(stay.map_or(Culprit::Unknown, |stay| Culprit::Unmounted(stay.state.name())), part);
            }
        }
    }
    shares
}
