//! Chrome's JSON, for ui.perfetto.dev, chrome://tracing, Speedscope, Tracy's importer, and scripts.
//!
//! The document is "Trace Event Format" (Duca, Sinclair; Google, 2016), JSON object format. One line is one event.
//!
//! ```text
//! {"displayTimeUnit":"ns","otherData":{"name":"…"},"traceEvents":[
//! {"ph":"M","pid":70,"tid":70,"name":"thread_name","args":{"name":"sumtime (70)"}},                 a row's name
//! {"ph":"X","ts":0,"pid":70,"tid":70,"dur":1.480,"cat":"state","name":"running","args":{"cpu":0}},  a state
//! {"ph":"B","ts":0.080,"pid":70,"tid":1000000001,"cat":"span","name":"outer"}, {"ph":"E",…},        a span
//! {"ph":"s","ts":1,…,"bp":"e","id":1,"cat":"wakeup","name":"wakeup"}, {"ph":"f",…},                 a wakeup
//! {"ph":"C","ts":1,"pid":70,"name":"ready queue","args":{"user threads":1}},                        a counter
//! {"ph":"i","ts":0.180,…,"s":"t","cat":"user","name":"received_msg","args":{"len":64}}              an event
//! ]}
//! ```
//!
//! Times are microseconds with three decimals, relative to the trace's first tick. An `X` is written when it ends, all
//! other events when they occur, so lines are not sorted by `ts`.
//!
//! | what | how it is drawn | lost |
//! |---|---|---|
//! | LWPs on CPUs, user threads on CPUs, interrupts | rows of a process "CPUs" | |
//! | states of LWPs | the row with their tid, in their process | the distinction of two LWPs with one tid, and the name of the second |
//! | system calls, spans, events of LWPs; user threads mounted on them | two more rows for each LWP | |
//! | states of user threads; their spans, functions, events | two rows for each user thread; `blocked (mutex)` if the kind of wait is known; `lwp`, `cpu`, `blocked on` in `args` | |
//! | wakeups, of LWPs and user threads | flows between rows of states | those without a known waker |
//! | migrations | instants with both CPUs or LWPs in `args` | |
//! | ready and run queues | counters | |
//! | events | instants with their parameters in `args`; a value's name as `FIELD name` | parameters that could not be read |
//! | ticks | | rounded to the nearest nanosecond |
//! | the clock | the time of day at 0, in `otherData` | for readers that ignore it |
//!
//! `rows.rs` describes the pids and tids of rows: LWPs have their own tids, tids of user threads start at
//! 1,000,000,000. Numbers above 2^53 and addresses are texts. Names are not changed. Viewers read the whole file into
//! memory, and some at most 512 MB: 4 million changes.
//!
//! Cost, on an AMD EPYC with two CPUs and a TSC of 2.6 GHz, CPU time of one LWP, 10^7 changes of
//! `cargo test --release -p sigmund-export --test it speed -- --ignored --nocapture`: 13 million changes a second, 115
//! bytes each.

mod args;
mod json;
mod rows;

use std::{
    io::{self, Write},
    sync::Arc,
};

use sigmund_model::{Level, Ticks};

use self::{
    json::Json,
    rows::{Row, Rows},
};
use crate::{
    living::Living,
    timeline::{Actors, Change, Counter, CpuId, DetailedState, LwpId, RecordedEvent, Sink, ThreadId, Track},
};

/// Size of the buffer, in bytes.
const BUFFER: usize = 64 << 10;

/// Writes a trace in Chrome's JSON. The [module](self) describes its contents.
pub struct Chrome<W> {
    out: W,
    actors: Arc<Actors>,
    tick: Ticks,
    /// The current time in nanoseconds.
    at: u64,
    buffer: Vec<u8>,
    rows: Rows,
    threads: Living<StateSlice>,
    lwps: Vec<Option<StateSlice>>,
    mounted: Vec<Option<(u64, ThreadId)>>,
    cpu_lwps: Vec<Option<(u64, LwpId)>>,
    cpu_threads: Vec<Option<(u64, ThreadId)>>,
    flows: u64,
    /// The label of a user thread that is being written.
    label: String,
}

/// A state that has not ended.
#[derive(Clone, Copy)]
struct StateSlice {
    since: u64,
    state: &'static str,
    lwp: Option<LwpId>,
    cpu: Option<CpuId>,
    blocked_on: Option<i64>,
}

impl<W: Write> Chrome<W> {
    /// Starts a trace.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(out: W, actors: Arc<Actors>) -> io::Result<Chrome<W>> {
        let mut chrome = Chrome {
            out,
            tick: actors.clock.first,
            at: 0,
            buffer: Vec::with_capacity(2 * BUFFER),
            rows: Rows::new(&actors),
            threads: Living::new(actors.threads.len()),
            lwps: vec![None; actors.lwps.len()],
            mounted: vec![None; actors.lwps.len()],
            cpu_lwps: vec![None; actors.cpus.len()],
            cpu_threads: vec![None; actors.cpus.len()],
            flows: 0,
            label: String::new(),
            actors,
        };
        chrome.head();
        Ok(chrome)
    }

    fn head(&mut self) {
        let out = &mut self.buffer;
        out.put("{\"displayTimeUnit\":\"ns\",\"otherData\":{\"name\":");
        out.text(&self.actors.name);
        if let Some(realtime) = self.actors.clock.realtime_at_first {
            out.put(",\"nanoseconds since 1970 at 0\":\"");
            out.put(itoa::Buffer::new().format(realtime));
            out.put("\"");
        }
        out.put("},\"traceEvents\":[\n");
        self.rows.head(out);
    }

    /// Appends an event: the common fields, then `more`, which begins with a comma.
    #[inline]
    fn event(&mut self, phase: &str, row: Row, at: u64, more: impl FnOnce(&mut Vec<u8>, &Actors)) {
        let ids = self.rows.ids(row, &self.actors, &mut self.buffer);
        let out = &mut self.buffer;
        event_head(out, phase, ids.pid, at);
        out.put(",\"tid\":");
        out.number(ids.tid);
        more(out, &self.actors);
        out.push(b'}');
    }

    /// Appends an interval that ends now.
    #[inline]
    fn interval(&mut self, row: Row, since: u64, category: &str, more: impl FnOnce(&mut Vec<u8>, &Actors)) {
        let duration = self.at - since;
        self.event("X", row, since, |out, actors| {
            out.put(",\"dur\":");
            out.micros(duration);
            out.put(",\"cat\":\"");
            out.put(category);
            out.put("\",\"name\":");
            more(out, actors);
        });
    }

    fn state(&mut self, row: Row, before: Option<StateSlice>) {
        let Some(interval) = before else { return };
        self.interval(row, interval.since, "state", |out, actors| {
            out.push(b'"');
            out.put(interval.state);
            out.push(b'"');
            args::state(out, actors, &interval);
        });
    }

    fn carried(&mut self, row: Row, category: &str, before: Option<(u64, ThreadId)>) {
        let Some((since, thread)) = before else { return };
        let mut label = std::mem::take(&mut self.label);
        label.clear();
        self.actors.push_thread_label(thread, &mut label);
        self.interval(row, since, category, |out, _| out.text(&label));
        self.label = label;
    }

    fn on_cpu(&mut self, cpu: CpuId, before: Option<(u64, LwpId)>) {
        let Some((since, lwp)) = before else { return };
        self.interval(Row::CpuLwp(cpu), since, "lwp", |out, actors| out.text(&actors[lwp].label()));
    }

    /// Both ends bind to the slice that is open there (`"bp":"e"`): the waker's, and the slice that the woken actor
    /// begins.
    fn wakeup(&mut self, by: Track, of: Track) {
        self.flows += 1;
        let id = self.flows;
        for (phase, track) in [("s", by), ("f", of)] {
            self.event(phase, Row::states(track), self.at, |out, _| {
                out.put(",\"bp\":\"e\",\"id\":");
                out.number(id);
                named(out, "wakeup", "wakeup");
            });
        }
    }

    /// Appends an instant: a flow needs an open slice at both ends, and the slice on the source has already ended.
    fn migration(&mut self, of: Track, from: Track, to: Track) {
        self.event("i", Row::events(of), self.at, |out, actors| {
            out.put(",\"s\":\"t\"");
            named(out, "migration", "migration");
            args::migration(out, actors, from, to);
        });
    }

    fn count(&mut self, counter: Counter, value: u64) {
        let (actors, out) = (&*self.actors, &mut self.buffer);
        let pid = match counter {
            Counter::ReadyQueue(process) => self.rows.process(process, actors, out),
            Counter::RunQueue(_) => self.rows.machine(),
        };
        event_head(out, "C", pid, self.at);
        match counter {
            Counter::ReadyQueue(_) => out.put(",\"name\":\"ready queue\",\"args\":{\"user threads\":"),
            Counter::RunQueue(cpu) => {
                out.put(",\"name\":\"run queue of CPU ");
                out.number(u64::from(actors[cpu].0));
                out.put("\",\"args\":{\"LWPs\":");
            }
        }
        out.number(value);
        out.put("}}");
    }

    fn recorded_event(&mut self, event: &RecordedEvent<'_>) {
        let row = event.track().map_or(Row::Unplaced, Row::events);
        self.event("i", row, self.at, |out, actors| {
            let ty = &actors[event.kind];
            let category = match ty.level {
                Level::User => "user",
                Level::Kern => "kernel",
            };
            // Scope: the row ("t", thread).
            out.put(",\"s\":\"t\"");
            named(out, category, &ty.name);
            args::event(out, actors, event);
        });
    }

    fn send(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl<W: Write> Sink for Chrome<W> {
    fn change(&mut self, tick: Ticks, change: &Change<'_>) -> io::Result<()> {
        if tick != self.tick {
            self.tick = tick;
            self.at = self.actors.clock.nanos(tick).0;
        }
        let since = self.at;
        match *change {
            Change::CpuLwp(cpu, lwp) => {
                let now = lwp.map(|lwp| (since, lwp));
                let before = std::mem::replace(&mut self.cpu_lwps[cpu.index()], now);
                self.on_cpu(cpu, before);
            }
            Change::CpuThread(cpu, thread) => {
                let now = thread.map(|thread| (since, thread));
                let before = std::mem::replace(&mut self.cpu_threads[cpu.index()], now);
                self.carried(Row::CpuThread(cpu), "executing", before);
            }
            Change::LwpThread(lwp, thread) => {
                let now = thread.map(|thread| (since, thread));
                let before = std::mem::replace(&mut self.mounted[lwp.index()], now);
                self.carried(Row::Mounted(lwp), "mounted", before);
            }
            Change::Lwp { lwp, state, cpu } => {
                let now = state.map(|state| StateSlice { cpu, ..StateSlice::new(since, state.name()) });
                let before = std::mem::replace(&mut self.lwps[lwp.index()], now);
                self.state(Row::Lwp(lwp), before);
            }
            Change::Thread { thread, state, lwp, cpu, blocked_on, blocked_for } => {
                let now = state.map(|state| {
                    let name = DetailedState::new(state, blocked_for).name();
                    StateSlice { lwp, cpu, blocked_on, ..StateSlice::new(since, name) }
                });
                let before = self.threads.replace(thread.index(), now);
                self.state(Row::Thread(thread), before);
            }
            Change::Enter(track, slice) => self.event("B", Row::events(track), since, |out, _| {
                named(out, slice.kind.name(), slice.name);
            }),
            Change::Leave(track, _) => self.event("E", Row::events(track), since, |_, _| {}),
            Change::Wakeup { by: None, .. } => {}
            Change::Wakeup { by: Some(by), of } => self.wakeup(by, of),
            Change::Migration { of, from, to } => self.migration(of, from, to),
            Change::Count(counter, value) => self.count(counter, value),
            // The recorded events of locks are written instead.
            Change::Locked { .. } | Change::Unlocked { .. } => {}
            Change::Event(event) => self.recorded_event(event),
        }
        if self.buffer.len() >= BUFFER { self.send() } else { Ok(()) }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.buffer.put("\n]}\n");
        self.send()?;
        self.out.flush()
    }
}

impl StateSlice {
    fn new(since: u64, state: &'static str) -> StateSlice {
        StateSlice { since, state, lwp: None, cpu: None, blocked_on: None }
    }
}

/// Appends the begin of an event that is not the first.
#[inline]
fn event_head(out: &mut Vec<u8>, phase: &str, pid: u64, at: u64) {
    out.put(",\n{\"ph\":\"");
    out.put(phase);
    out.put("\",\"ts\":");
    out.micros(at);
    out.put(",\"pid\":");
    out.number(pid);
}

/// Appends category and name. The category must need no escapes.
#[inline]
fn named(out: &mut Vec<u8>, category: &str, name: &str) {
    out.put(",\"cat\":\"");
    out.put(category);
    out.put("\",\"name\":");
    out.text(name);
}
