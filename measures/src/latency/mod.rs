//! `--latency`: how long LWPs waited for a CPU, and user threads for an LWP.

mod to_user;
mod waits;
mod worst;

use crate::map::Map;

use crate::{
    Answer, Column, Distribution, Group, History, Level, Measure, Needs, Request, Series, SeriesBuilder,
    distribution::Lengths,
    tally::{self, Tally},
};
use waits::{Kind, Wait};
use worst::Worst;

/// How long LWPs waited for a CPU, and user threads for an LWP.
pub(crate) const LATENCY: Measure = Measure {
    name: "latency",
    question: "How long does my thread wait until it runs, and who had the CPU meanwhile?",
    heading: crate::measure::headings::LATE,
    subject: crate::measure::Subject::None,
    definition: "LWPs: the run-queue latency, from the wakeup (sched_waking; sched_wakeup where only that is traced), or from \
        the switch that left it runnable, to the switch in. Kinds: wakeup, voluntary (it left its CPU by \
        sched_yield), involuntary (it was preempted), unknown (it left runnable, and no system calls are traced that \
        tell the two apart). User threads: the ready latency, to the dispatch on an LWP. Kinds: unpark, yield, \
        quantum, creation; an unpark before it had left its LWP counts from its leaving, one of a user thread that \
        is new or ready counts for nothing. Kind wakeup-to-user counts the wakeups of a user thread on both levels \
        again, each up to the first instant at which it is active: from the wakeup of the LWP that carries it; from \
        its unpark; or, if an LWP unparked it that carried no user thread and had not slept since the kernel woke \
        it, as a poller does, from that wakeup. Waking what is awake has no latency. A latency counts whole, if its end \
        is in the window, and by the LWP and CPU where it ends: one in a run queue may have been moved to another \
        meanwhile. One whose begin or end is not known, because events are missing, is not counted; a note says how \
        many. With --worst N, the N longest: by the CPU in whose run queue it was put (the one that it left, if that \
        is not known), who had that CPU longest; for user threads what the LWPs of its process carried longest, in \
        LWP-ticks; wakeup-to-user is left out, since its waits are in the other kinds.",
    needs: Needs { wakeups: true, interrupts: true, ..Needs::STATES },
    answer,
};

fn answer(history: &History, request: &Request) -> Result<Answer, String> {
    let (by, level) = (request.by(history), request.level(history));
    let wakes = wakes(history, level);
    let mut tally = Tally::new();
    let mut count = Count { request, worst: Worst::new(request.worst), uncounted: 0 };
    match level {
        Level::Lwps => {
            for lwp in history.names.lwps.keys().copied().filter(|lwp| *lwp != 0 && request.has_lwp(*lwp)) {
                let (track, wakes) = (history.lwps.of(lwp.into()), wakes.of(lwp.into()));
                let kinds = tally.of(Group::of_lwp(history, by, lwp));
                waits::of_lwp(history, lwp, track, wakes, &mut |wait, tick| {
                    count.add(kinds, Group::Lwp(lwp), wait, tick);
                });
            }
        }
        Level::Threads => {
            // Listed one by one, these waits are in the other kinds.
            let kernel_wakes = (request.worst == 0).then(|| self::wakes(history, Level::Lwps));
            let kernel = kernel_wakes.as_ref().map(|wakes| to_user::Kernel::new(history, wakes));
            for thread in history.names.threads.keys().copied().filter(|thread| request.has_thread(*thread)) {
                let (track, wakes) = (history.threads.of(thread), wakes.of(thread));
                let kinds = tally.of(Group::of_thread(history, by, thread));
                waits::of_thread(history, track, wakes, &mut |wait, tick| {
                    count.add(kinds, Group::Thread(thread), wait, tick);
                });
                if let Some(kernel) = &kernel {
                    to_user::of_thread(history, thread, wakes, kernel, &mut |wait, tick| {
                        count.add(kinds, Group::Thread(thread), wait, tick);
                    });
                }
            }
        }
    }
    let Count { worst, uncounted, .. } = count;
    let mut answer = if request.worst > 0 {
        worst.finish(history, by, level)
    } else {
        let mut columns = Group::columns(by, level);
        columns.push(Column::text("kind", "What it waited after: a wakeup, a yield, a preemption ..."));
        columns.extend(Distribution::columns());
        let mut answer = Answer::new(columns);
        for (group, kind, lengths) in tally.finish() {
            answer.push_with_lengths(tally::cells(history, &group, kind.name(), &lengths), lengths);
        }
        answer
    };
    if uncounted > 0 {
        answer
            .notes
            .push(format!("{uncounted} waits are not counted: events are missing at their begin or end."));
    }
    Ok(answer)
}

/// Takes those waits that the request is about.
struct Count<'r> {
    request: &'r Request,
    worst: Worst,
    uncounted: u64,
}

impl Count<'_> {
    /// A wait that ended at a tick; `None` if it is not known when it began or ended.
    fn add(&mut self, kinds: &mut Map<Kind, Lengths>, actor: Group, wait: Option<Wait>, tick: i64) {
        match wait {
            _ if !self.request.window.contains(tick) => {}
            None => self.uncounted += 1,
            Some(wait) if !self.request.has_place(wait.lwp, wait.cpu) => {}
            Some(wait) => {
                kinds.entry(wait.kind).or_default().push(wait.to - wait.from);
                self.worst.add(actor, wait);
            }
        }
    }
}

/// The wakeups of each LWP or user thread that led to a dispatch, by their places, up to the dispatch.
fn wakes(history: &History, level: Level) -> Series<u32> {
    let mut wakes = SeriesBuilder::default();
    for (place, wakeup) in history.wakeups.iter().enumerate() {
        let woken = match (level, wakeup.is_unpark) {
            (Level::Lwps, false) => wakeup.lwp.map(u64::from),
            (Level::Threads, true) => wakeup.thread,
            _ => None,
        };
        if let (Some(woken), Some(latency)) = (woken, wakeup.latency) {
            let interval = crate::Interval::new(wakeup.tick, wakeup.tick.saturating_add(latency));
            wakes.push(woken, interval, place as u32);
        }
    }
    wakes.build()
}
