//! The designs of a merge, as tasks.
//!
//! ```text
//!   today           decode ▶ order, state, columns ▶ encode ▶ append       order, state, columns, append: one thread
//!   columns apart   decode ▶ order, state ▶ columns ▶ encode ▶ append      order, state, append: one thread
//!   first pass      scan, all parts at once ▶ combine ▶ all of the rest, part by part ▶ append
//! ```
//! A first pass scans the records of each part for what decides who is on what, and finds for each CPU, LWP and user thread
//! the last such event in the part. Combining these, part after part, gives the state at each border; then every part is
//! merged by itself. An interval belongs to the part in which it ends.

use crate::schedule::{Place, Run, Task, run};

/// CPU time of each stage in ns an event, measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Costs {
    /// Records to events.
    pub(crate) decode: f64,
    /// Streams to one order, and who is on what; pairs of events.
    pub(crate) state: f64,
    /// Rows to columns.
    pub(crate) columns: f64,
    /// Columns to pages of Parquet, compressed.
    pub(crate) encode: f64,
    /// Pages to files.
    pub(crate) append: f64,
    /// What a stage takes longer if another CPU did the one before: of decoding, columns and encoding together.
    pub(crate) hand_over: f64,
    /// Looking at a record, and at the fields of the few that decide who is on what.
    pub(crate) scan: f64,
    /// Combining the state of a part, for an LWP or user thread that lives.
    pub(crate) combine: f64,
}

/// A design.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Design {
    Today,
    ColumnsApart,
    FirstPass,
}

/// What is merged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trace {
    pub(crate) events: u64,
    /// Buffers of CPUs and LWPs, which are decoded independently.
    pub(crate) streams: u64,
    /// LWPs and user threads that live at a border.
    pub(crate) living: u64,
}

/// Events that are merged at a time in the simulation, and that are decoded ahead: `merge/src/prefetch.rs` keeps 48 Ki.
const UNIT: u64 = 16 << 10;
const UNITS_AHEAD: usize = 3;
/// Units of a row group (`merge/src/encoding/parts.rs`).
const UNITS_OF_A_GROUP: usize = 16;
/// It is encoded in pieces: between two of them, a worker looks for what is to be decoded.
const PIECES_OF_A_GROUP: usize = 8;
/// Parts of a first pass for each CPU: so many that none waits long for the last.
const PARTS_PER_CPU: u64 = 4;

impl Costs {
    /// All of it, on one CPU and without handing anything over.
    pub(crate) fn alone(&self) -> f64 {
        self.decode + self.state + self.columns + self.encode + self.append
    }
}

impl Design {
    pub(crate) const ALL: [Design; 3] = [Design::Today, Design::ColumnsApart, Design::FirstPass];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Design::Today => "today",
            Design::ColumnsApart => "columns apart",
            Design::FirstPass => "first pass",
        }
    }

    /// How long it takes on so many CPUs.
    pub(crate) fn run(self, costs: &Costs, trace: Trace, cpus: usize) -> Run {
        let tasks = match self {
            Design::Today => pipeline(costs, trace, cpus, costs.columns, 0.0),
            Design::ColumnsApart => pipeline(costs, trace, cpus, 0.0, costs.columns),
            Design::FirstPass => parts(costs, trace, cpus),
        };
        run(&tasks, cpus)
    }
}

/// One thread merges unit after unit; `here` and `there` are ns an event of columns, on that thread and by whoever encodes.
fn pipeline(costs: &Costs, trace: Trace, cpus: usize, here: f64, there: f64) -> Vec<Task> {
    let shared = if cpus > 1 { costs.hand_over } else { 0.0 };
    let decode = (costs.decode + shared / 2.0) / trace.streams.max(1) as f64;
    let encode = costs.encode + there + shared / 2.0;
    // A worker may have twice as many row groups to encode as there are workers (`WorkerPool::encode`); then the merge helps.
    let most_open = 2 * (cpus - 1) + 1;
    let units = trace.events.div_ceil(UNIT) as usize;
    let mut tasks = Tasks::default();
    let (mut merged, mut encoded, mut appended): (Vec<usize>, Vec<usize>, Vec<usize>) = Default::default();
    for unit in 0..units {
        let room = unit.checked_sub(UNITS_AHEAD).map(|before| merged[before]);
        let decoded = (0..trace.streams.max(1)).map(|_| tasks.any(UNIT, decode, room));
        let mut after: Vec<usize> = decoded.collect();
        after.extend(merged.last());
        let group = unit / UNITS_OF_A_GROUP;
        after.extend(group.checked_sub(most_open).map(|before| encoded[before]));
        merged.push(tasks.merge(UNIT, costs.state + here, after));
        if (unit + 1) % UNITS_OF_A_GROUP == 0 || unit + 1 == units {
            let events = UNIT * (unit % UNITS_OF_A_GROUP + 1) as u64;
            let mut piece = merged[unit];
            for _ in 0..PIECES_OF_A_GROUP {
                piece = tasks.encode(events, encode / PIECES_OF_A_GROUP as f64, piece);
            }
            encoded.push(piece);
            let after = [Some(piece), appended.last().copied()];
            appended.push(tasks.merge(events, costs.append, after.into_iter().flatten().collect()));
        }
    }
    tasks.0
}

/// Parts of the time, each scanned and then merged by itself.
fn parts(costs: &Costs, trace: Trace, cpus: usize) -> Vec<Task> {
    let parts = (PARTS_PER_CPU * cpus as u64).clamp(1, trace.events.max(1));
    let events = |part: u64| trace.events * (part + 1) / parts - trace.events * part / parts;
    let mut tasks = Tasks::default();
    let scanned: Vec<usize> = (0..parts).map(|part| tasks.any(events(part), costs.scan, None)).collect();
    let mut border: Option<usize> = None;
    let mut merged = Vec::new();
    for part in 0..parts {
        merged.push(tasks.any(events(part), costs.alone() - costs.append, border));
        // The state at the end of this part.
        let after = [border, Some(scanned[part as usize])].into_iter().flatten().collect();
        border = Some(tasks.merge(trace.living, costs.combine, after));
    }
    let mut appended: Option<usize> = None;
    for (part, merged) in (0..).zip(merged) {
        let after = [Some(merged), appended].into_iter().flatten().collect();
        appended = Some(tasks.merge(events(part), costs.append, after));
    }
    tasks.0
}

/// Tasks of so many events, each of which takes so many ns.
#[derive(Default)]
struct Tasks(Vec<Task>);

impl Tasks {
    fn any(&mut self, events: u64, each: f64, after: Option<usize>) -> usize {
        self.push(Task {
            ns: ns(events, each),
            place: Place::Any,
            can_wait: false,
            after: after.into_iter().collect(),
        })
    }

    fn encode(&mut self, events: u64, each: f64, after: usize) -> usize {
        self.push(Task { ns: ns(events, each), place: Place::Any, can_wait: true, after: vec![after] })
    }

    fn merge(&mut self, events: u64, each: f64, after: Vec<usize>) -> usize {
        self.push(Task { ns: ns(events, each), place: Place::Merge, can_wait: false, after })
    }

    fn push(&mut self, task: Task) -> usize {
        self.0.push(task);
        self.0.len() - 1
    }
}

fn ns(events: u64, each: f64) -> u64 {
    (events as f64 * each).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Easy to add up: 10 ns an event alone.
    const COSTS: Costs = Costs {
        decode: 2.0,
        state: 1.0,
        columns: 1.0,
        encode: 5.0,
        append: 1.0,
        hand_over: 0.0,
        scan: 1.0,
        combine: 0.0,
    };

    const MILLIONS: Trace = Trace { events: 64 * UNITS_OF_A_GROUP as u64 * UNIT, streams: 2, living: 1000 };

    /// ns an event.
    fn each(design: Design, costs: &Costs, cpus: usize) -> f64 {
        design.run(costs, MILLIONS, cpus).ns as f64 / MILLIONS.events as f64
    }

    #[test]
    fn one_cpu_does_all_stages_one_after_the_other() {
        assert_eq!(each(Design::Today, &COSTS, 1), 10.0);
        assert_eq!(each(Design::ColumnsApart, &COSTS, 1), 10.0);
        // And the scan.
        assert_eq!(each(Design::FirstPass, &COSTS, 1), 11.0);
    }

    // Alone 10, so 5 on two CPUs, and what one does at the beginning and the end while the other has nothing to do: at most a
    // row group of 64, 10 / 64 of an ns.
    #[test]
    fn two_cpus_halve_the_time_of_a_long_trace() {
        let two = each(Design::Today, &COSTS, 2);
        assert!((5.0..5.2).contains(&two), "{two}");
    }

    // The one thread: state 1, columns 1, append 1 are 3 an event, or 2 without columns; encoding the last row group 5 / 64.
    #[test]
    fn many_cpus_take_as_long_as_the_one_thread() {
        let today = each(Design::Today, &COSTS, 64);
        assert!((3.0..3.1).contains(&today), "{today}");
        let apart = each(Design::ColumnsApart, &COSTS, 64);
        assert!((2.0..2.15).contains(&apart), "{apart}");
    }

    // Four CPUs, 16 parts, each of which takes 1/16 to scan, 9/16 to merge, 1/16 to append; in sixteenths:
    //
    //   CPU 0   | scans 0–4 | part 0  4–13 | append 0–3   13–17 | part 7 17–26 | append 4–7 26–30 | part 11 30–39 |
    //           | append 8–11 39–43 | append 12–14 43–46 | waits for 15 | append 15 49–50 |
    //   CPU 1–3 | scans 0–4 | parts 1–3 4–13 | 4–6 13–22 | 8–10 22–31 | 12–14 31–40 | part 15 40–49 |
    #[test]
    fn a_first_pass_divides_everything_but_the_appending() {
        assert_eq!(each(Design::FirstPass, &COSTS, 4), 50.0 / 16.0);
        // The appending alone takes 1.
        let many = each(Design::FirstPass, &COSTS, 64);
        assert!((1.0..1.2).contains(&many), "{many}");
    }

    #[test]
    fn what_is_handed_over_costs_more_on_two_cpus_only() {
        let costs = Costs { hand_over: 2.0, ..COSTS };
        assert_eq!(each(Design::Today, &costs, 1), 10.0);
        let two = each(Design::Today, &costs, 2);
        assert!((6.0..6.2).contains(&two), "{two}");
    }

    // 16 parts of 1000 living threads, 50 ns each: 0.8 ms, one part after the other.
    #[test]
    fn combining_takes_time_for_each_living_thread_and_part() {
        let costs = Costs { combine: 50.0, ..COSTS };
        let with = Design::FirstPass.run(&costs, MILLIONS, 4);
        assert_eq!(with.merge_ns - Design::FirstPass.run(&COSTS, MILLIONS, 4).merge_ns, 16 * 1000 * 50);
    }
}
