//! The LWPs and processes of a super-trace with their names, to resolve the names in questions.

use std::{collections::BTreeSet, sync::OnceLock};

use arrow::{
    array::{Array, AsArray, PrimitiveArray},
    datatypes::{Int32Type, Int64Type},
};
use sigmund_model::{
    Lwp, Pid,
    tables::{LWPS, PROCESSES, THREADS},
};

use crate::{Error, files::Files, threads::NameColumn};

/// An LWP of a super-trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedLwp {
    /// Its tid; another LWP may have had it before.
    pub lwp: Lwp,
    /// Its process, if that is known.
    pub pid: Option<Pid>,
    /// Its last known command name.
    pub name: Option<String>,
    /// The tick of its creation, or of the first event that shows it.
    pub from: i64,
    /// The tick of its end, if it ended.
    pub to: Option<i64>,
    /// Whether it carried user threads.
    pub carries_threads: bool,
}

/// The LWPs and processes of a super-trace.
#[derive(Clone, Debug, Default)]
pub struct LwpNames {
    lwps: Vec<NamedLwp>,
    processes: Vec<(Pid, Option<String>)>,
    /// Processes that have user threads.
    with_threads: BTreeSet<Pid>,
}

impl LwpNames {
    fn read(files: &Files) -> Result<LwpNames, Error> {
        let mut names = LwpNames::default();
        let columns = ["lwp", "name", "pid", "ts_tick", "dur_tick", "carries_threads"];
        let groups = files.row_groups(&LWPS, &columns)?;
        for group in 0..groups.len() {
            let batch = groups.read(group)?;
            let (lwps, pids) = (batch.column(0).as_primitive(), batch.column(2).as_primitive());
            let of = NameColumn::of(batch.column(1));
            let [starts, lengths] = [3, 4].map(|column| batch.column(column).as_primitive::<Int64Type>());
            let carries = batch.column(5).as_boolean();
            names.lwps.extend((0..batch.num_rows()).filter_map(|row| {
                Some(NamedLwp {
                    lwp: Lwp(number(lwps, row)?),
                    pid: number(pids, row).map(Pid),
                    name: of.get(row).map(String::from),
                    from: starts.value(row),
                    to: lengths.is_valid(row).then(|| starts.value(row).saturating_add(lengths.value(row))),
                    carries_threads: carries.is_valid(row) && carries.value(row),
                })
            }));
        }
        // Empty if the merge left out this table.
        let groups = files.row_groups(&PROCESSES, &["pid", "name"])?;
        for group in 0..groups.len() {
            let batch = groups.read(group)?;
            let (pids, of) = (batch.column(0).as_primitive(), NameColumn::of(batch.column(1)));
            let process = |row| Some((Pid(number(pids, row)?), of.get(row).map(String::from)));
            names.processes.extend((0..batch.num_rows()).filter_map(process));
        }
        let groups = files.row_groups(&THREADS, &["pid"])?;
        for group in 0..groups.len() {
            // Usually, all threads of a row group are of one process.
            if let Some((least, most)) = groups.bounds(group, "pid").filter(|(least, most)| least == most) {
                names.with_threads.extend([least, most].map(|pid| Pid(pid as u32)));
                continue;
            }
            let batch = groups.read(group)?;
            let pids = batch.column(0).as_primitive::<Int32Type>();
            names.with_threads.extend(pids.iter().flatten().map(|pid| Pid(pid as u32)));
        }
        Ok(names)
    }

    /// Whether a process has user threads.
    pub fn has_threads(&self, process: Pid) -> bool {
        self.with_threads.contains(&process)
    }

    /// All LWPs. If a number was used again, there are several with it.
    pub fn iter(&self) -> impl Iterator<Item = &NamedLwp> + Clone {
        self.lwps.iter()
    }

    /// The processes that LWPs belong to, with their names: the process's own name, and the name of the LWP that leads
    /// it. A process may occur several times.
    pub fn processes(&self) -> impl Iterator<Item = (Pid, Option<&str>)> + Clone {
        let own = self.processes.iter().map(|(pid, name)| (*pid, name.as_deref()));
        let of_lwps = self.lwps.iter().filter_map(|lwp| {
            let leads = |pid: Pid| lwp.lwp.0 == pid.0;
            lwp.pid.map(|pid| (pid, lwp.name.as_deref().filter(|_| leads(pid))))
        });
        own.chain(of_lwps)
    }
}

/// The LWPs of a super-trace, read when they are first needed.
#[derive(Debug, Default)]
pub(crate) struct AllLwps(OnceLock<LwpNames>);

impl AllLwps {
    /// If several threads need them at the same time, each reads them. That is acceptable because there are few.
    pub(crate) fn get(&self, files: &Files) -> Result<&LwpNames, Error> {
        if let Some(names) = self.0.get() {
            return Ok(names);
        }
        let names = LwpNames::read(files)?;
        Ok(self.0.get_or_init(|| names))
    }
}

fn number(column: &PrimitiveArray<Int32Type>, row: usize) -> Option<u32> {
    column.is_valid(row).then(|| column.value(row) as u32)
}
