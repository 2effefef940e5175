//! `--summary`: who had the CPUs, and how often they switched.

use crate::map::Map;

use sigmund_model::{EndReason, LwpState, ThreadState};

use crate::{
    Answer, By, Column, Group, History, Interval, LwpStay, Measure, Needs, Request, ThreadStay, Value,
    percent,
};

/// Who had the CPUs, and how often they switched.
pub(crate) const SUMMARY: Measure = Measure {
    name: "summary",
    question: "Who used the CPUs?",
    heading: crate::measure::headings::TIME,
    subject: crate::measure::Subject::None,
    definition: "The user threads, LWPs and CPUs with most time; the ten first of each, or as many as asked for with --worst. \
        Time: of a user thread its active ticks, of an LWP those on CPUs, of a CPU those with an LWP (not the idle \
        task) on it, each with interrupts, and cut to the window. percent is of the length of the window; a group of \
        threads may have more than 100. Switches: dispatches of the user thread on an LWP, switches in of the LWP, \
        on the CPU those of all LWPs, without the idle task. Migrations: those of them to another LWP, or CPU, than \
        the one before, also if that was before the window. Preemptions: times it left its CPU runnable, but not by \
        sched_yield (of a user thread: its LWP left); where no system calls are traced that tell the two apart, \
        both. Each counts if it is in the window. What is unknown counts for nothing.",
    needs: Needs::STATES,
    answer,
};

/// Rows of each kind, by default.
const ROWS: usize = 10;

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    ticks: i64,
    switches: u64,
    migrations: u64,
    preemptions: u64,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.ticks += other.ticks;
        self.switches += other.switches;
        self.migrations += other.migrations;
        self.preemptions += other.preemptions;
    }
}

fn answer(history: &History, request: &Request) -> Result<Answer, String> {
    let window = request.extent(history);
    let (mut threads, mut lwps, mut cpus) = (Map::default(), Map::default(), Map::default());
    let of_group = |by| request.by.unwrap_or(by);
    for thread in history.names.threads.keys().filter(|thread| request.has_thread(**thread)) {
        let sum = of_thread(history, request, window, *thread);
        threads
            .entry(Group::of_thread(history, of_group(By::Thread), *thread))
            .or_insert(Sum::default())
            .add(sum);
    }
    // If user threads are asked for, LWPs without them are not.
    let is_of_lwps = request.threads.is_none();
    for lwp in history.names.lwps.keys().filter(|lwp| is_of_lwps && **lwp != 0 && request.has_lwp(**lwp)) {
        let sum = of_lwp(history, request, window, *lwp, &mut cpus);
        lwps.entry(Group::of_lwp(history, of_group(By::Lwp), *lwp)).or_insert(Sum::default()).add(sum);
    }
    let mut answer = Answer::new(vec![
        Column::text("what", "thread (user threads), lwp or cpu."),
        Column::count("number", "Its number; of a group of threads that of the process, or NULL."),
        Column::text("name", "Its name, or that of the group."),
        Column::length("total_tick", "Active, or on a CPU; of a CPU: busy."),
        Column::percent("percent", "That in per cent of the window."),
        Column::count("switches", "Dispatches on an LWP; switches in on a CPU."),
        Column::count("migrations", "Those on another LWP, or CPU, than before."),
        Column::count(
            "preemptions",
            "Times it left its CPU runnable, but not by sched_yield, as far as that is known.",
        ),
    ]);
    let cells = |group: &Group| match group {
        Group::Name(_) => [vec![Value::Null], group.cells(history)].concat(),
        _ => group.cells(history),
    };
    let rows = sorted(threads, request).into_iter().map(|(group, sum)| ("thread", cells(&group), sum));
    let rows = rows.chain(sorted(lwps, request).into_iter().map(|(group, sum)| ("lwp", cells(&group), sum)));
    let cpus = sorted(cpus, request).into_iter();
    let rows = rows.chain(cpus.map(|(cpu, sum)| ("cpu", vec![cpu.into(), Value::Null], sum)));
    for (what, cells, sum) in rows {
        let mut row = vec![what.into()];
        row.extend(cells);
        row.extend([
            sum.ticks.into(),
            Value::Fraction(percent(sum.ticks, window.ticks())),
            sum.switches.into(),
            sum.migrations.into(),
            sum.preemptions.into(),
        ]);
        answer.push(row);
    }
    Ok(answer)
}

/// The rows with most time.
fn sorted<K: Ord + Clone>(sums: Map<K, Sum>, request: &Request) -> Vec<(K, Sum)> {
    let is_any = |sum: &Sum| sum.ticks > 0 || sum.switches > 0;
    let mut sums: Vec<_> = sums.into_iter().filter(|(_, sum)| is_any(sum)).collect();
    sums.sort_by(|(a, of_a), (b, of_b)| of_b.ticks.cmp(&of_a.ticks).then_with(|| a.cmp(b)));
    sums.truncate(if request.worst == 0 { ROWS } else { request.worst });
    sums
}

fn of_thread(history: &History, request: &Request, window: Interval, thread: u64) -> Sum {
    let mut sum = Sum::default();
    // Where it was last, and whether it is there until when.
    let (mut last, mut until) = (None, None);
    let cpu = |stay: &ThreadStay, at: i64| history.lwps.of(stay.lwp?.into()).at(at)?.1.cpu;
    for (interval, stay) in history.threads.of(thread).iter() {
        let is_mounted = !matches!(stay.state, ThreadState::Unknown | ThreadState::Exited);
        let Some(lwp) = stay.lwp.filter(|_| is_mounted) else {
            until = None;
            continue;
        };
        let is_dispatch = until != Some(interval.from) || last != Some(lwp);
        let is_migration = last.is_some_and(|last| last != lwp);
        (last, until) = (Some(lwp), Some(interval.to));
        let is_before = interval.to < request.window.from;
        if is_before
            || !request.has_place(Some(lwp), request.cpus.as_ref().and_then(|_| cpu(stay, interval.from)))
        {
            continue;
        }
        if is_dispatch && request.window.contains(interval.from) {
            sum.switches += 1;
            sum.migrations += u64::from(is_migration);
        }
        if stay.state == ThreadState::Active {
            sum.ticks += interval.overlap(window);
            sum.preemptions += u64::from(is_preempted(stay.end) && request.window.contains(interval.to));
        }
    }
    sum
}

fn of_lwp(history: &History, request: &Request, window: Interval, lwp: u32, cpus: &mut Map<u32, Sum>) -> Sum {
    let mut of_lwp = Sum::default();
    let mut last = None;
    for (interval, stay) in history.lwps.of(lwp.into()).iter() {
        let (LwpState::Running, Some(cpu)) = (stay.state, stay.cpu) else { continue };
        let is_migration = last.is_some_and(|last| last != cpu);
        last = Some(cpu);
        if interval.to < request.window.from || !request.has_cpu(cpu) {
            continue;
        }
        let sum = of_stay(request, window, interval, stay, is_migration);
        of_lwp.add(sum);
        cpus.entry(cpu).or_default().add(sum);
    }
    of_lwp
}

fn of_stay(
    request: &Request,
    window: Interval,
    interval: Interval,
    stay: &LwpStay,
    is_migration: bool,
) -> Sum {
    let begins = request.window.contains(interval.from);
    let is_preempted = is_preempted(stay.end) && request.window.contains(interval.to);
    Sum {
        ticks: interval.overlap(window),
        switches: u64::from(begins),
        migrations: u64::from(begins && is_migration),
        preemptions: u64::from(is_preempted),
    }
}

fn is_preempted(end: Option<EndReason>) -> bool {
    matches!(end, Some(EndReason::Preempted | EndReason::Runnable))
}
