//! The table `spans`: each row is one of the history, and none is missing except at gaps.

use std::{collections::BTreeMap, path::Path};

use super::{Oracle, merged_number, rows::during};
use crate::{
    supertrace::Table,
    truth::recording::{
        Told,
        losses::Gap,
        world::{Interval, LwpIs, ThreadIs},
    },
};

#[derive(Debug)]
struct Row {
    start: u64,
    end: u64,
    lwp: Option<i64>,
    depth: Option<i64>,
    parent: Option<i64>,
    active: Option<i64>,
    end_reason: String,
}

impl Oracle<'_> {
    pub(super) fn check_spans(&self, out: &Path, told: &mut Told) -> Result<(), String> {
        let table = Table::read(out, "spans");
        let columns = ["thread", "ts_tick", "dur_tick", "lwp", "depth", "active_tick", "parent_tick"];
        let [threads, starts, lengths, lwps, depths, actives, parents] =
            columns.map(|name| table.numbers(name));
        let reasons = table.lines(&["end_reason"]);
        told.spans += reasons.len();
        let mut rows = BTreeMap::new();
        for row in 0..reasons.len() {
            let start = starts[row].unwrap_or(-1) as u64;
            let end = start + lengths[row].unwrap_or(-1) as u64;
            let (lwp, depth, active, end_reason) =
                (lwps[row], depths[row], actives[row], reasons[row].clone());
            let parent = parents[row];
            let span = Row { start, end, lwp, depth, parent, active, end_reason };
            if let Some(other) = rows.insert((threads[row], start), span) {
                return Err(format!("spans: two rows with one thread and start: {other:?}"));
            }
        }
        for span in &self.history.spans {
            let thread = span.thread.map(|thread| merged_number(thread) as i64);
            let why = match rows.remove(&(thread, span.start)) {
                Some(row) => self.check_span(&row, span).err().map(|why| format!("{row:?}: {why}")),
                None if self.is_span_seen(span) => Some("no row".into()),
                None => None,
            };
            if let Some(why) = why {
                return Err(format!("spans: {span:?}: {why}\n{}", self.neighbourhood(span.start)));
            }
        }
        match rows.into_iter().next() {
            None => Ok(()),
            Some(row) => Err(format!("spans: never was: {row:?}\n{}", self.neighbourhood(row.1.start))),
        }
    }

    fn is_span_seen(&self, span: &Interval) -> bool {
        let Some((process, _)) = span.thread else { return false };
        let hides = |gap: &Gap| gap.from <= span.start && gap.to.is_none_or(|to| span.start <= to);
        !self.recording.packets.is_empty() && !self.gaps_of(process).any(hides)
    }

    /// Where the span begins that is directly around one: the last of its thread and a depth less that begins no later.
    fn parent_of(&self, truth: &Interval) -> Option<i64> {
        let spans = self.history.spans.iter().filter(|span| span.thread == truth.thread);
        let around = spans.filter(|span| span.depth + 1 == truth.depth && span.start <= truth.start);
        around.map(|span| span.start as i64).max()
    }

    fn check_span(&self, row: &Row, truth: &Interval) -> Result<(), String> {
        let Some(thread) = truth.thread else { return Err("of no thread".into()) };
        let until = truth.end.or(truth.died).unwrap_or(self.end);
        let touches = |gap: &Gap| gap.from <= row.end && gap.to.is_none_or(|to| row.start <= to);
        let crosses_gap = self.recording.cpu_gaps.iter().chain(&self.recording.lwp_gaps).any(touches);
        let fits = match row.end_reason.as_str() {
            "returned" => truth.end == Some(row.end),
            "exit" => truth.end.is_none() && truth.died == Some(row.end),
            "trace-end" => row.end == self.end && until >= self.end,
            "lost" => crosses_gap && row.end <= until,
            _ => false,
        };
        if !fits {
            return Err(format!("it lasted until {until}"));
        }
        let depth = truth.depth as i64;
        if row.depth != Some(depth) && (self.is_whole() || row.depth.is_none_or(|found| found > depth)) {
            return Err(format!("depth {depth}"));
        }
        if row.depth == Some(depth) && row.parent != self.parent_of(truth) {
            return Err(format!("its parent begins at {:?}", self.parent_of(truth)));
        }
        if row.lwp != Some(truth.lwp.into()) {
            return Err("another LWP".into());
        }
        // One that blocks after a gap may have been unparked in it: its state is unknown then.
        let follows_gap = self.gaps_of(thread.0).any(|gap| gap.from <= row.end);
        let (mut active, mut is_known) = (0, !crosses_gap && !follows_gap && self.recording.has_kernel);
        for (start, end, is) in during(&self.history.threads[&thread], row.start, row.end) {
            let Some(ThreadIs::On(lwp)) = is else { continue };
            is_known &= self.knows_place(lwp, start);
            let on_cpu = during(&self.history.lwps[&lwp], start, end);
            let on_cpu = on_cpu.filter(|(_, _, is)| matches!(is, Some(LwpIs::On(_))));
            active += on_cpu.map(|(start, end, _)| end - start).sum::<u64>();
        }
        if row.active != Some(active as i64) && (is_known || row.active.is_some()) {
            return Err(format!("active for {active}"));
        }
        Ok(())
    }
}
