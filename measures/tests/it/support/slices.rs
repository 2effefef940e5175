//! Histories cut into slices, and measures computed from these.

use std::{
    io,
    sync::{Arc, Mutex},
};

use sigmund_measures::{
    Answer, History, HistoryBuilder, Interval, LastOnCpu, LwpRow, Measure, Request, Row, Slice, Sliced,
    Slicer, Spill, Storage, ThreadRow,
};
use sigmund_model::LwpState;

use super::{CPUS, random::Random};

/// The answer from the slices between some borders.
pub(crate) fn ask_in_slices(
    measure: &Measure,
    history: &History,
    request: &Request,
    borders: &[i64],
) -> Result<Answer, String> {
    let mut computed = measure.start(request);
    let slices = Slice::between(request.window, borders);
    let before = Interval::new(i64::MIN, request.window.from);
    let of_before = |slice: Slice| Slice { window: request.window, ..slice };
    let before: Vec<Slice> = Slice::between(before, borders).into_iter().map(of_before).collect();
    // What is complete may go out of memory after each slice, and the answer is the same.
    let spill = borders.len().is_multiple_of(2).then(|| Spill::new(Bytes::default()));
    loop {
        let mut tables = Tables::new(history);
        let mut slicer = Slicer::new(history.extent, Arc::clone(&history.gaps), history.names.clone());
        if history.has_no_interrupts {
            slicer.without_interrupts();
        }
        let mut add = |computed: &mut Box<dyn Sliced>, slicer: &mut Slicer, slice: Slice| {
            tables.feed(slicer, history, slice.interval.from);
            computed.add(&slicer.slice(slice), slice)?;
            spill.iter().try_for_each(|spill| computed.spill(spill)).map_err(|error| error.to_string())
        };
        for slice in &slices {
            add(&mut computed, &mut slicer, *slice)?;
        }
        for slice in before.iter().filter(|slice| slice.interval.from < slice.interval.to) {
            if computed.looks_back() {
                add(&mut computed, &mut slicer, *slice)?;
            }
        }
        if computed.is_done(slicer.shared())? {
            return computed.finish(slicer.shared());
        }
    }
}

/// A place for rows that are spilled.
#[derive(Debug, Default)]
struct Bytes(Mutex<Vec<u8>>);

impl Storage for Bytes {
    fn append(&self, bytes: &[u8]) -> io::Result<u64> {
        let mut all = self.0.lock().unwrap();
        all.extend_from_slice(bytes);
        Ok((all.len() - bytes.len()) as u64)
    }

    fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        bytes.copy_from_slice(&self.0.lock().unwrap()[at as usize..][..bytes.len()]);
        Ok(())
    }
}

/// The same history, made of its rows as a merge would make it.
pub(crate) fn rebuilt(history: &History) -> History {
    let mut builder = HistoryBuilder::default();
    let Tables { threads, lwps, rest, .. } = Tables::new(history);
    *builder.history() = History {
        threads: Default::default(),
        lwps: Default::default(),
        on_cpu: Default::default(),
        mounted: Default::default(),
        unparks: Default::default(),
        wakings: Default::default(),
        calls: Default::default(),
        innermost: Default::default(),
        lock_waits: Default::default(),
        ..rest
    };
    threads.into_iter().for_each(|(thread, interval, stay)| builder.thread_state(thread, interval, stay));
    lwps.into_iter().for_each(|(lwp, interval, stay)| builder.lwp_state(lwp, interval, stay));
    builder.build()
}

/// The rows of a history that were not yet read, in the order of their tables.
struct Tables {
    threads: Vec<ThreadRow>,
    lwps: Vec<LwpRow>,
    rest: History,
    last_on_cpu: Vec<(u32, LastOnCpu)>,
    random: Random,
}

impl Tables {
    fn new(history: &History) -> Tables {
        let (mut threads, mut lwps): (Vec<ThreadRow>, Vec<LwpRow>) = Default::default();
        for (thread, track) in history.threads.iter() {
            threads.extend(track.iter().map(|(interval, stay)| (thread, interval, *stay)));
        }
        for (lwp, track) in history.lwps.iter() {
            lwps.extend(track.iter().map(|(interval, stay)| (lwp as u32, interval, *stay)));
        }
        let is_running = |(_, _, stay): &&LwpRow| stay.state == LwpState::Running;
        let last = |(lwp, interval, stay): &LwpRow| Some((stay.cpu?, LastOnCpu::of(*lwp, *interval, stay)));
        let last_on_cpu = lwps.iter().filter(is_running).filter_map(last).collect();
        let mut rest = history.clone();
        by_end(&mut threads);
        by_end(&mut lwps);
        by_end(&mut rest.wakeups);
        by_end(&mut rest.interrupts);
        by_end(&mut rest.syscalls);
        by_end(&mut rest.spans);
        by_end(&mut rest.locks);
        by_end(&mut rest.events);
        by_end(&mut rest.faults);
        by_end(&mut rest.marks);
        Tables { threads, lwps, rest, last_on_cpu, random: Random::new(7) }
    }

    /// Adds what a slice from a tick on needs, and a few rows more.
    fn feed(&mut self, slicer: &mut Slicer, history: &History, from: i64) {
        let Tables { threads, lwps, rest, random, .. } = self;
        let words = &history.words;
        slicer.threads(last_of(threads, from, random), words);
        slicer.lwps(last_of(lwps, from, random), words);
        slicer.wakeups(last_of(&mut rest.wakeups, from, random), words);
        slicer.interrupts(last_of(&mut rest.interrupts, from, random), words);
        slicer.syscalls(last_of(&mut rest.syscalls, from, random), words);
        slicer.spans(last_of(&mut rest.spans, from, random), words);
        slicer.locks(last_of(&mut rest.locks, from, random), words);
        slicer.events(last_of(&mut rest.events, from, random), words);
        slicer.faults(last_of(&mut rest.faults, from, random), words);
        slicer.marks(last_of(&mut rest.marks, from, random), words);
        let cpus: Vec<u32> = (0..CPUS as u32).collect();
        for cpu in slicer.unknown_cpus(from, &cpus) {
            let before = self.last_on_cpu.iter().filter(|(of, last)| *of == cpu && last.to < from);
            slicer.set_last_on_cpu(cpu, before.max_by_key(|(_, last)| last.to).map(|(_, last)| *last));
        }
    }
}

fn by_end<R: Row>(rows: &mut [R]) {
    rows.sort_by_key(|row| row.interval().to);
}

/// Takes the last rows, those that end at a tick or after and up to three more.
fn last_of<R: Row>(rows: &mut Vec<R>, from: i64, random: &mut Random) -> Vec<R> {
    let first = rows.partition_point(|row| row.interval().to < from);
    rows.split_off(first.saturating_sub(random.below(4)))
}
