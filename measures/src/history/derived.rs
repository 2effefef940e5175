//! What can be derived from the tables: which LWP was on each CPU, what each LWP carried, and the system call and the
//! interrupt at each instant.

use crate::map::Map;

use sigmund_model::{LwpState, ThreadState};

use super::{
    Gap, Interrupt, LastOnCpu, LockRequest, LwpRow, Series, SeriesBuilder, Syscall, ThreadRow, ThreadStay,
    Wakeup, Words,
};
use crate::Interval;

/// What was on each CPU before and after the rows of a slice.
#[derive(Clone, Debug, Default)]
pub(super) struct OnCpuAround {
    /// The last stay on each CPU that ends before the rows.
    pub(super) before: Map<u32, LastOnCpu>,
    /// The begin of the first stay on each CPU after the rows.
    pub(super) after: Map<u32, i64>,
}

/// States by their threads or LWPs. At most `most` rows.
pub(super) fn states<'r, N: Copy + Into<u64> + 'r, S: Copy + 'r>(
    rows: impl Iterator<Item = &'r (N, Interval, S)> + Clone,
    most: usize,
) -> Series<S> {
    let mut keys = Vec::with_capacity(most);
    keys.extend(rows.clone().map(|(number, _, _)| (*number).into()));
    Series::grouped(keys, rows.map(|(_, interval, stay)| (*interval, *stay)))
}

/// Which LWP was on each CPU; 0 is the idle task.
///
/// The tables have no rows of the idle task. It has a CPU from a switch without a next LWP to the next switch. If
/// events of the CPU are missing, it has the CPU only until they begin to be missing: after that, what ran is unknown.
pub(super) fn on_cpu<'r>(
    lwps: impl Iterator<Item = &'r LwpRow> + Clone,
    gaps: &[Gap],
    extent: Interval,
    around: &OnCpuAround,
) -> Series<u32> {
    let running = lwps
        .filter_map(|row @ (_, _, stay)| Some((stay.cpu?, row)))
        .filter(|(_, row)| row.2.state == LwpState::Running);
    let keys = running.clone().map(|(cpu, _)| cpu.into()).collect();
    let stay = |(_, (lwp, interval, stay)): (u32, &LwpRow)| {
        (*interval, (*lwp, LastOnCpu::of(*lwp, *interval, stay).is_left))
    };
    let on_cpu = Series::grouped(keys, running.map(stay));
    let mut with_idle = Series::default();
    let without_rows =
        around.before.keys().map(|cpu| u64::from(*cpu)).filter(|cpu| on_cpu.of(*cpu).is_empty());
    let mut cpus: Vec<u64> = on_cpu.keys().chain(without_rows).collect();
    cpus.sort_unstable();
    for cpu in cpus {
        let track = on_cpu.of(cpu);
        let of_cpu = gaps.iter().filter(|gap| gap.cpu.map(u64::from) == Some(cpu));
        let missing: Vec<Interval> = of_cpu.map(|gap| gap.interval).collect();
        // The time in which the CPU was idle: from where an LWP left it to where the next LWP came, or to a gap in
        // between.
        let idle = |to: i64, next: i64| {
            let gap = missing.get(missing.partition_point(|gap| gap.to < to));
            let known = gap.map_or(next, |gap| gap.from.clamp(to, next));
            Interval::new(to, known)
        };
        let number = cpu as u32;
        let end = around.after.get(&number).copied().unwrap_or(extent.to);
        let begin = |place| track.get(place).map_or(end, |(next, _)| next.from);
        if let Some(last) = around.before.get(&number).filter(|last| last.is_left && last.to < begin(0)) {
            with_idle.push_last(cpu, idle(last.to, begin(0)), 0);
        }
        for place in 0..track.len() {
            let Some((interval, (lwp, is_left))) = track.get(place) else { continue };
            with_idle.push_last(cpu, interval, *lwp);
            let next = begin(place + 1);
            if *is_left && interval.to < next {
                with_idle.push_last(cpu, idle(interval.to, next), 0);
            }
        }
    }
    with_idle.sort_all();
    with_idle
}

/// Which user thread was mounted on each LWP.
pub(super) fn mounted<'r>(threads: impl Iterator<Item = &'r ThreadRow> + Clone, most: usize) -> Series<u64> {
    let is_mounted = |stay: &ThreadStay| !matches!(stay.state, ThreadState::Unknown | ThreadState::Exited);
    let mounted = threads.filter_map(move |row @ (_, _, stay)| Some((stay.lwp?, row)));
    let mounted = mounted.filter(move |(_, (_, _, stay))| is_mounted(stay));
    let mut keys = Vec::with_capacity(most);
    keys.extend(mounted.clone().map(|(lwp, _)| u64::from(lwp)));
    Series::grouped(keys, mounted.map(|(_, (thread, interval, _))| (*interval, *thread)))
}

/// The system calls of each LWP, by their places. They do not overlap, with one exception: an `execve` by an LWP takes
/// the number of the leader of its process. The later of the overlapping calls is left out.
pub(super) fn calls(syscalls: &[Syscall]) -> Series<u32> {
    let mut calls = SeriesBuilder::default();
    for (place, call) in syscalls.iter().enumerate() {
        calls.push(call.lwp.into(), call.interval, place as u32);
    }
    calls.build_disjoint()
}

/// Unparks by user thread, and wakeups by LWP.
pub(super) fn wakeups_by_target(wakeups: &[Wakeup]) -> (Series<u32>, Series<u32>) {
    let (mut unparks, mut wakings) = (SeriesBuilder::default(), SeriesBuilder::default());
    for (place, wakeup) in wakeups.iter().enumerate() {
        let interval = Interval::new(wakeup.tick, wakeup.tick.saturating_add(wakeup.latency.unwrap_or(0)));
        match (wakeup.is_unpark, wakeup.thread, wakeup.lwp) {
            (true, Some(thread), _) => unparks.push(thread, interval, place as u32),
            (false, _, Some(lwp)) => wakings.push(lwp.into(), interval, place as u32),
            _ => {}
        }
    }
    (unparks.build(), wakings.build())
}

/// Waits for locks of processes, by user thread. Waits for the kernel's own locks are left out, because the user thread
/// is mounted during these.
pub(super) fn lock_waits(locks: &[LockRequest], words: &Words) -> Series<u32> {
    let mut waits = SeriesBuilder::default();
    for (place, request) in locks.iter().enumerate() {
        if let (Some(thread), true, false) =
            (request.thread, request.is_contended, request.is_of_kernel(words))
        {
            let to = request.wait.map_or(i64::MAX, |wait| request.tick.saturating_add(wait));
            waits.push(thread, Interval::new(request.tick, to), place as u32);
        }
    }
    waits.build()
}

/// The innermost interrupt at each instant of each CPU, by its place. The interval of an interrupt is cut where others
/// are inside of it.
pub(super) fn innermost(interrupts: &[Interrupt]) -> Series<u32> {
    let mut pieces = SeriesBuilder::default();
    // For each CPU, the open interrupts, and the tick up to which the innermost already has its pieces.
    let mut open: Map<u32, (Vec<u32>, i64)> = Map::default();
    for (place, interrupt) in interrupts.iter().enumerate() {
        let (stack, since) = open.entry(interrupt.cpu).or_default();
        close(&mut pieces, interrupts, interrupt.cpu, stack, since, interrupt.interval.from);
        if let Some(around) = stack.last() {
            push(&mut pieces, interrupt.cpu, *since, interrupt.interval.from, *around);
        }
        stack.push(place as u32);
        *since = interrupt.interval.from;
    }
    for (cpu, (stack, since)) in &mut open {
        close(&mut pieces, interrupts, *cpu, stack, since, i64::MAX);
    }
    pieces.build()
}

/// Ends the interrupts that have ended by `tick`.
fn close(
    pieces: &mut SeriesBuilder<u32>,
    interrupts: &[Interrupt],
    cpu: u32,
    stack: &mut Vec<u32>,
    since: &mut i64,
    tick: i64,
) {
    while let Some(place) = stack.pop_if(|place| interrupts[*place as usize].interval.to <= tick) {
        let end = interrupts[place as usize].interval.to;
        push(pieces, cpu, *since, end, place);
        *since = end.max(*since);
    }
}

fn push(pieces: &mut SeriesBuilder<u32>, cpu: u32, from: i64, to: i64, place: u32) {
    if from < to {
        pieces.push(cpu.into(), Interval { from, to }, place);
    }
}
