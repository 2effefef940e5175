//! Histories drawn by hand, and the cells of answers.

use sigmund_measures::{
    Answer, History, HistoryBuilder, Interrupt, Interval, Life, LockRequest, LwpStay, Span, Syscall,
    ThreadStay, Value,
};
use sigmund_model::{EndReason, LwpState, ThreadState, WaitKind};

/// A history under construction, from tick 0 on.
#[derive(Default)]
pub(crate) struct Drawing {
    builder: HistoryBuilder,
}

impl Drawing {
    /// A user thread of process 70, and its states: each from a tick on, on an LWP; the last one ends at `to`.
    pub(crate) fn thread(
        &mut self,
        thread: u64,
        name: &str,
        states: &[(i64, ThreadState, Option<u32>)],
        to: i64,
    ) {
        let ends = states.iter().skip(1).map(|(from, ..)| *from).chain([to]);
        for ((from, state, lwp), to) in states.iter().zip(ends) {
            let waits_for = (*state == ThreadState::Blocked).then_some(WaitKind::Mutex);
            let object = if waits_for.is_some() { 0x5000 } else { 0 };
            let stay =
                ThreadStay { state: *state, lwp: *lwp, waits_for, object, end: Some(EndReason::Yield) };
            self.builder.thread_state(thread, Interval::new(*from, to), stay);
        }
        let from = states.first().map_or(0, |(from, ..)| *from);
        self.builder.history().names.threads.insert(thread, life(name, Interval::new(from, to)));
    }

    /// A user thread waits for something.
    pub(crate) fn waits(&mut self, thread: u64, (from, to): (i64, i64), kind: WaitKind, object: i64) {
        let (state, end) = (ThreadState::Blocked, Some(EndReason::Woken));
        let stay = ThreadStay { state, lwp: None, waits_for: Some(kind), object, end };
        self.builder.thread_state(thread, Interval::new(from, to), stay);
    }

    /// An LWP of process 70, and its states: each from a tick on, on or of a CPU; the last one ends at `to`.
    pub(crate) fn lwp(&mut self, lwp: u32, name: &str, states: &[(i64, LwpState, u32)], to: i64) {
        let ends = states.iter().skip(1).map(|(from, ..)| *from).chain([to]);
        for ((from, state, cpu), to) in states.iter().zip(ends) {
            let stay = LwpStay { state: *state, cpu: Some(*cpu), end: Some(EndReason::Slept) };
            self.builder.lwp_state(lwp, Interval::new(*from, to), stay);
        }
        let from = states.first().map_or(0, |(from, ..)| *from);
        self.builder.history().names.lwps.insert(lwp, life(name, Interval::new(from, to)));
    }

    pub(crate) fn call(
        &mut self,
        lwp: u32,
        thread: Option<u64>,
        name: &str,
        (from, to): (i64, i64),
        ret: i64,
    ) {
        let history = self.builder.history();
        let (interval, name) = (Interval::new(from, to), history.words.intern(name));
        let (ret, off_cpu, end) = (Some(ret), None, EndReason::Returned);
        history.syscalls.push(Syscall { interval, lwp, thread, name, ret, off_cpu, end });
    }

    /// An interrupt of CPU 0, by its depth.
    pub(crate) fn interrupt(&mut self, name: &str, (from, to): (i64, i64), depth: u32) {
        let history = self.builder.history();
        let (kind, name) = (history.words.intern("irq"), Some(history.words.intern(name)));
        let (interval, number, end) = (Interval::new(from, to), Some(7), EndReason::Returned);
        let (lwp, thread) = (None, None);
        history.interrupts.push(Interrupt { interval, cpu: 0, kind, number, name, lwp, thread, depth, end });
    }

    /// A request for a mutex by a user thread: when, its wait and its hold.
    pub(crate) fn mutex(&mut self, thread: u64, object: i64, at: (i64, i64, i64), call_site: &str) {
        self.lock("mutex", (Some(thread), None), object, (at.0, at.1, Some(at.2)), Some(call_site));
    }

    pub(crate) fn lock(
        &mut self,
        kind: &str,
        (thread, lwp): (Option<u64>, Option<u32>),
        object: i64,
        (tick, wait, hold): (i64, i64, Option<i64>),
        call_site: Option<&str>,
    ) {
        let history = self.builder.history();
        history.locks.push(LockRequest {
            tick,
            wait: Some(wait),
            hold,
            thread,
            lwp,
            cpu: None,
            object,
            kind: history.words.intern(kind),
            holder: None,
            holder_lwp: None,
            is_contended: wait > 0,
            call_site: call_site.map(|site| history.words.intern(site)),
            end: if hold.is_some() { EndReason::Released } else { EndReason::Woken },
        });
    }

    /// A span of a user thread.
    pub(crate) fn span(
        &mut self,
        thread: u64,
        name: &str,
        (from, to): (i64, i64),
        depth: u32,
        active: Option<i64>,
    ) {
        let history = self.builder.history();
        history.spans.push(Span {
            interval: Interval::new(from, to),
            thread: Some(thread),
            lwp: Some(101),
            is_function: false,
            name: Some(history.words.intern(name)),
            depth,
            active,
            source: None,
            end: EndReason::Returned,
        });
    }

    pub(crate) fn edit(&mut self) -> &mut History {
        self.builder.history()
    }

    /// From 0 to a tick.
    pub(crate) fn build(mut self, to: i64) -> History {
        self.builder.history().extent = Some(Interval::new(0, to));
        self.builder.build()
    }
}

pub(crate) fn life(name: &str, interval: Interval) -> Life<'_> {
    Life { name: Some(name), pid: Some(70), interval, created_by: None }
}

/// Some columns of an answer, a text for each row: numbers as they are, `-` for NULL.
pub(crate) fn listing(answer: &Answer, columns: &str) -> Vec<String> {
    let places: Vec<usize> = columns.split(' ').map(|name| answer.column(name).expect(name)).collect();
    let cell = |value: &Value| match value {
        Value::Null => "-".to_string(),
        Value::Number(number) => number.to_string(),
        Value::Fraction(fraction) => format!("{fraction:.1}"),
        Value::Text(text) => text.to_string(),
    };
    let row = |row: &Vec<Value>| places.iter().map(|place| cell(&row[*place])).collect::<Vec<_>>().join(" ");
    answer.rows.to_vec().iter().map(row).collect()
}
