//! The table `processes`: those that the kernel reports.

use std::{collections::BTreeMap, path::Path};

use super::Oracle;
use crate::{
    supertrace::Table,
    truth::recording::{
        Told,
        world::{ProcessLife, What},
    },
};

#[derive(Debug)]
struct Row {
    parent: Option<i64>,
    start: u64,
    end: Option<u64>,
    exit_code: Option<i64>,
}

impl Oracle<'_> {
    pub(super) fn check_processes(&self, out: &Path, told: &mut Told) -> Result<(), String> {
        let table = Table::read(out, "processes");
        let [pids, parents, starts, lengths, codes] =
            ["pid", "parent", "ts_tick", "dur_tick", "exit_code"].map(|name| table.numbers(name));
        let mut rows: BTreeMap<i64, Vec<Row>> = BTreeMap::new();
        for row in 0..pids.len() {
            let start = starts[row].unwrap_or(0) as u64;
            let end = lengths[row].map(|length| start + length as u64);
            let found = Row { parent: parents[row], start, end, exit_code: codes[row] };
            rows.entry(pids[row].unwrap_or(-1)).or_default().push(found);
        }
        let lives: BTreeMap<u32, Vec<&ProcessLife>> =
            self.history.processes.iter().fold(BTreeMap::new(), |mut lives, life| {
                lives.entry(life.pid).or_default().push(life);
                lives
            });
        for (pid, lives) in lives {
            let rows = rows.remove(&i64::from(pid)).unwrap_or_default();
            for life in &lives {
                let row = rows.iter().find(|row| row.start == life.created);
                let is_reported = self.recording.has_kernel && self.is_made(pid, life.created);
                let checked = match row {
                    Some(row) => self.check_process(row, life),
                    None if is_reported => Err("no row".into()),
                    None => Ok(()),
                };
                told.processes += usize::from(row.is_some());
                checked.map_err(|why| {
                    format!("processes: {life:?}: {row:?}: {why}\n{}", self.neighbourhood(life.created))
                })?;
            }
            let began = |row: &&Row| !lives.iter().any(|life| life.created == row.start);
            if let Some(row) = rows.iter().find(began)
                && !self.may_begin_late(pid, row)
            {
                return Err(format!(
                    "processes: {pid}: {row:?}: not of {lives:?}\n{}",
                    self.neighbourhood(row.start)
                ));
            }
        }
        Ok(())
    }

    /// Whether there is the event that made it.
    fn is_made(&self, pid: u32, at: u64) -> bool {
        self.there().any(|event| event.tick == at && event.what == What::Fork(pid))
            && self.there().any(|event| matches!(event.what, What::NewTask { lwp, .. } if lwp == pid))
    }

    /// Where its creation is missing, it is known from the first of its LWPs on.
    fn may_begin_late(&self, pid: u32, row: &Row) -> bool {
        !self.is_made(pid, row.start) && !self.is_whole()
    }

    fn check_process(&self, row: &Row, life: &ProcessLife) -> Result<(), String> {
        let is_whole = self.is_whole();
        let parent = life.parent.map(i64::from);
        let ended = life.ended.filter(|end| *end <= self.end);
        if row.parent != parent && !(row.parent.is_none() && self.may_lack_parent(life)) {
            return Err(format!("parent {parent:?}"));
        }
        if row.end != ended && (is_whole || row.end.is_some()) {
            return Err(format!("ended {ended:?}"));
        }
        let code = life.exit_code.filter(|_| ended.is_some()).map(|code| code as i64);
        if row.exit_code != code && (is_whole || row.exit_code.is_some()) {
            return Err(format!("exit code {code:?}"));
        }
        Ok(())
    }

    /// The process of an LWP that carries no user threads yet is not known, and some of it may be missing.
    fn may_lack_parent(&self, life: &ProcessLife) -> bool {
        !self.is_whole() || life.parent.is_some_and(|parent| parent < 7000)
    }
}
