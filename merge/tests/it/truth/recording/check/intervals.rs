//! The tables `syscalls` and `interrupts`: each row is one of the history, and none is missing except at gaps.

use std::{collections::BTreeMap, path::Path};

use super::{Oracle, merged_number, rows::during};
use crate::{
    supertrace::Table,
    truth::recording::{
        Told, kernel_file,
        world::{Interval, LwpIs},
    },
};

/// A row of either table.
#[derive(Debug)]
struct Row {
    start: u64,
    end: u64,
    cpu: Option<i64>,
    lwp: Option<i64>,
    thread: Option<i64>,
    number: Option<i64>,
    ret: Option<i64>,
    on_cpu: Option<i64>,
    depth: Option<i64>,
    end_reason: String,
}

fn read(out: &Path, name: &str) -> Vec<Row> {
    let table = Table::read(out, name);
    let is_call = name == "syscalls";
    let column = |column: &str, is_there: bool| match is_there {
        true => table.numbers(column),
        false => vec![None; table.numbers("ts_tick").len()],
    };
    let (starts, lengths) = (table.numbers("ts_tick"), table.numbers("dur_tick"));
    let (lwps, threads, numbers) = (table.numbers("lwp"), table.numbers("thread"), table.numbers("number"));
    let (cpus, depths) = (column("cpu", !is_call), column("depth", !is_call));
    let (rets, on_cpus) = (column("ret", is_call), column("on_cpu_tick", is_call));
    let reasons = table.lines(&["end_reason"]);
    let row = |row: usize| {
        let start = starts[row].expect("a start") as u64;
        Row {
            start,
            end: start + lengths[row].expect("a length") as u64,
            cpu: cpus[row],
            lwp: lwps[row],
            thread: threads[row],
            number: numbers[row],
            ret: rets[row],
            on_cpu: on_cpus[row],
            depth: depths[row],
            end_reason: reasons[row].clone(),
        }
    };
    (0..starts.len()).map(row).collect()
}

impl Oracle<'_> {
    pub(super) fn check_intervals(&self, out: &Path, told: &mut Told) -> Result<(), String> {
        let calls = self.check_table(out, "syscalls", &self.history.syscalls)?;
        let interrupts = self.check_table(out, "interrupts", &self.history.interrupts)?;
        told.syscalls += calls;
        told.interrupts += interrupts;
        Ok(())
    }

    fn check_table(&self, out: &Path, name: &str, truth: &[Interval]) -> Result<usize, String> {
        let is_call = name == "syscalls";
        let key = |lwp: i64, cpu: i64, start: u64| (if is_call { lwp } else { cpu }, start);
        let mut rows = BTreeMap::new();
        for row in read(out, name) {
            let of = key(row.lwp.unwrap_or(-1), row.cpu.unwrap_or(-1), row.start);
            if let Some(other) = rows.insert(of, row) {
                return Err(format!("{name}: two rows with one start: {other:?}"));
            }
        }
        let found = rows.len();
        for interval in truth {
            let mut row_of = |lwp: u32| rows.remove(&key(lwp.into(), interval.cpu.into(), interval.start));
            // If a gap cuts it before its LWP gets another number, the row has the old one.
            let row = row_of(interval.lwp).or_else(|| row_of(interval.entered_as?));
            let wrong = |why: String| {
                Err(format!("{name}: {interval:?}: {why}\n{}", self.neighbourhood(interval.start)))
            };
            match row {
                None if !self.is_seen(interval, is_call) => {}
                None => return wrong("no row".into()),
                Some(row) => {
                    if let Err(why) = self.check_interval(&row, interval, is_call) {
                        return wrong(format!("{row:?}: {why}"));
                    }
                }
            }
        }
        match rows.into_values().next() {
            None => Ok(found),
            Some(row) => Err(format!("{name}: never was: {row:?}\n{}", self.neighbourhood(row.start))),
        }
    }

    /// Whether an interval must be in the table: no gap of a CPU that could concern it is open at its start.
    pub(super) fn is_seen(&self, interval: &Interval, is_call: bool) -> bool {
        let concerns = |of: u32| is_call || of == interval.cpu;
        let gaps = &self.recording.cpu_gaps;
        self.recording.has_kernel
            && !gaps.iter().any(|gap| {
                let hides = gap.from <= interval.start && gap.to.is_none_or(|to| interval.start <= to);
                hides && concerns(gap.of)
            })
    }

    fn check_interval(&self, row: &Row, truth: &Interval, is_call: bool) -> Result<(), String> {
        let until = truth.end.or(truth.died).unwrap_or(self.end);
        let reason = row.end_reason.as_str();
        let is_open = |gap: &super::Gap| gap.from <= row.end && gap.to.is_none_or(|to| row.start <= to);
        let may_be_cut =
            self.recording.cpu_gaps.iter().any(|gap| (is_call || gap.of == truth.cpu) && is_open(gap));
        let fits = match reason {
            "returned" => truth.end == Some(row.end),
            "exit" => truth.end.is_none() && truth.died == Some(row.end),
            "trace-end" => row.end == self.end && until >= self.end,
            "lost" => may_be_cut && row.end <= until,
            "unseen" => !self.is_whole() && row.end <= until,
            _ => false,
        };
        // The trace ends with its last event that there is: a call may have ended after that.
        if !fits {
            return Err(format!("it lasted until {until}"));
        }
        let is_of = |lwp: u32| row.lwp == Some(lwp.into());
        let was_of = || matches!(reason, "lost" | "unseen") && truth.entered_as.is_some_and(is_of);
        if !(is_of(truth.lwp) || was_of()) || row.number != Some(truth.number) {
            return Err("another LWP or number".into());
        }
        let thread = truth.thread.map(|thread| merged_number(thread) as i64);
        let may_be_null = truth.lwp != 0 && !self.knows_mounted(truth.lwp, truth.start);
        if row.thread != thread && !(may_be_null && row.thread.is_none()) {
            return Err(format!("thread {thread:?}"));
        }
        if !is_call {
            let depth = truth.depth as i64;
            let fits = row.depth == Some(depth) || (!self.is_whole() && row.depth.is_some_and(|d| d < depth));
            return if fits { Ok(()) } else { Err(format!("depth {depth}")) };
        }
        let ret = (reason == "returned").then_some(kernel_file::returned(truth.number) as i64);
        if row.ret != ret {
            return Err(format!("returned {ret:?}"));
        }
        let on_cpu: u64 = during(&self.history.lwps[&truth.lwp], row.start, row.end)
            .filter(|(_, _, is)| matches!(is, Some(LwpIs::On(_))))
            .map(|(start, end, _)| end - start)
            .sum();
        // Before the first switch of its CPU it is not known where an LWP is.
        // The ticks under the number that it had before are not known of the LWP that has the new one.
        let may_be_null = matches!(reason, "lost" | "unseen")
            || truth.entered_as.is_some()
            || !self.knows_place(truth.lwp, truth.start)
            || self.recording.cpu_gaps.iter().any(is_open);
        if row.on_cpu != Some(on_cpu as i64) && !(may_be_null && row.on_cpu.is_none()) {
            return Err(format!("{on_cpu} ticks on CPUs"));
        }
        Ok(())
    }
}
