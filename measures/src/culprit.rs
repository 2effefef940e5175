//! Who is to blame for a wait: who had the CPU.

use crate::map::Map;

use crate::{By, Group, History, Interval};

/// Who had a CPU that another waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Culprit {
    /// A user thread, or an LWP without one; grouped as the rows of the answer are.
    Group(Group),
    /// The idle task: whoever waited had not been noticed yet.
    Idle,
    /// LWPs that carried no user thread, in the state of this name.
    Unmounted(&'static str),
    /// Nobody knows.
    Unknown,
}

impl Culprit {
    /// Who an LWP on a CPU is, at an instant: the user thread that it carries, or itself.
    fn of_lwp(history: &History, by: By, lwp: u32, tick: i64) -> Culprit {
        if lwp == 0 {
            return Culprit::Idle;
        }
        let thread = if by == By::Lwp { None } else { history.mounted_at(lwp, tick) };
        Culprit::Group(match thread {
            Some(thread) => Group::of_thread(history, by, thread),
            None => Group::of_lwp(history, by, lwp),
        })
    }

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

/// Who had a CPU, for how many ticks of `window`. The ticks sum to the window.
pub fn who_had_cpu(history: &History, by: By, cpu: Option<u32>, window: Interval) -> Map<Culprit, i64> {
    let mut shares = Map::default();
    let mut add = |culprit, interval: Interval| *shares.entry(culprit).or_insert(0) += interval.ticks();
    let Some(cpu) = cpu else {
        add(Culprit::Unknown, window);
        return shares;
    };
    for (interval, lwp) in history.on_cpu.of(cpu.into()).partition(window) {
        match lwp {
            None => add(Culprit::Unknown, interval),
            Some(0) => add(Culprit::Idle, interval),
            // What it carried may have changed meanwhile.
            Some(lwp) if by != By::Lwp => {
                for (part, _) in history.mounted.of((*lwp).into()).partition(interval) {
                    add(Culprit::of_lwp(history, by, *lwp, part.from), part);
                }
            }
            Some(lwp) => add(Culprit::of_lwp(history, by, *lwp, interval.from), interval),
        }
    }
    shares
}

/// What these LWPs carried, for how many LWP-ticks of `window`. They sum to the window times the number of LWPs.
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
