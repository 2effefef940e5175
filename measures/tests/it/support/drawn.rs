//! Histories drawn by hand: states that follow each other without holes.

use sigmund_measures::{
    Answer, History, HistoryBuilder, Interval, Life, LwpStay, Request, ThreadStay, Value, named,
};
use sigmund_model::{EndReason, LwpState, ThreadState};

/// A history in the making.
#[derive(Default)]
pub(crate) struct Drawn {
    pub(crate) builder: HistoryBuilder,
}

impl Drawn {
    /// An LWP of a process: each state with its begin, CPU and end reason, until `to`.
    pub(crate) fn lwp(
        mut self,
        lwp: u32,
        pid: u32,
        states: &[(i64, LwpState, u32, EndReason)],
        to: i64,
    ) -> Drawn {
        for (place, (from, state, cpu, end)) in states.iter().enumerate() {
            let to = states.get(place + 1).map_or(to, |next| next.0);
            let stay = LwpStay { state: *state, cpu: Some(*cpu), end: Some(*end) };
            self.builder.lwp_state(lwp, Interval::new(*from, to), stay);
        }
        let interval = self.lives(states[0].0, to);
        let name = format!("lwp/{lwp}");
        let life = Life { name: Some(&name), pid: Some(pid), interval, created_by: None };
        if lwp != 0 {
            self.builder.history().names.lwps.insert(lwp, life);
        }
        self
    }

    /// A user thread of a process: each state with its begin, LWP (0 for none) and end reason, until `to`.
    pub(crate) fn thread(
        mut self,
        thread: u64,
        pid: u32,
        states: &[(i64, ThreadState, u32, EndReason)],
        to: i64,
    ) -> Drawn {
        for (place, (from, state, lwp, end)) in states.iter().enumerate() {
            let to = states.get(place + 1).map_or(to, |next| next.0);
            let lwp = (*lwp != 0).then_some(*lwp);
            let stay = ThreadStay { state: *state, lwp, waits_for: None, object: 0, end: Some(*end) };
            self.builder.thread_state(thread, Interval::new(*from, to), stay);
        }
        let interval = self.lives(states[0].0, to);
        let name = format!("work/{thread}");
        let life = Life { name: Some(&name), pid: Some(pid), interval, created_by: None };
        self.builder.history().names.threads.insert(thread, life);
        self
    }

    fn lives(&mut self, from: i64, to: i64) -> Interval {
        let history = self.builder.history();
        let extent = history.extent.unwrap_or(Interval::new(from, to));
        history.extent = Some(Interval::new(extent.from.min(from), extent.to.max(to)));
        Interval::new(from, to)
    }

    pub(crate) fn build(self) -> History {
        self.builder.build()
    }
}

pub(crate) fn ask(name: &str, history: &History, request: &Request) -> Answer {
    let measure = named(name).unwrap_or_else(|| panic!("no measure {name}"));
    measure.answer(history, request).unwrap()
}

/// The cells of some columns, as text: a row for each line, cells separated by a space, NULL as `-`.
pub(crate) fn cells(answer: &Answer, columns: &[&str]) -> Vec<String> {
    let places: Vec<usize> = columns.iter().map(|name| answer.column(name).expect(name)).collect();
    let cell = |value: &Value| match value {
        Value::Null => "-".to_string(),
        Value::Number(number) => number.to_string(),
        Value::Fraction(number) => format!("{number:.2}"),
        Value::Text(text) => text.to_string(),
    };
    let line = |row: &Vec<Value>| places.iter().map(|p| cell(&row[*p])).collect::<Vec<_>>().join(" ");
    answer.rows.to_vec().iter().map(line).collect()
}

/// A cell with a number.
pub(crate) fn number_in(answer: &Answer, row: &[Value], column: &str) -> i64 {
    match row[answer.column(column).expect(column)] {
        Value::Number(number) => number,
        ref other => panic!("{column}: {other:?}"),
    }
}

/// A cell with a text.
pub(crate) fn text_in(answer: &Answer, row: &[Value], column: &str) -> String {
    match &row[answer.column(column).expect(column)] {
        Value::Text(text) => text.to_string(),
        other => panic!("{column}: {other:?}"),
    }
}
