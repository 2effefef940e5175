//! CPUs, LWPs, user threads and processes: the rows of the timeline, and their names.

use std::collections::HashMap;

use sigmund_model::{
    Thread,
    tables::{CPUS, LWPS, PROCESSES, THREADS},
};
use sigmund_sql::{
    Error, SuperTrace,
    columns::{Small, Texts, Wide, booleans},
};

use crate::key::{Key, Kind};

/// A CPU.
#[derive(Clone, Debug)]
pub(crate) struct Cpu {
    pub(crate) number: u32,
    pub(crate) busy: u64,
}

/// An LWP.
#[derive(Clone, Debug)]
pub(crate) struct Lwp {
    pub(crate) number: u32,
    pub(crate) name: Option<String>,
    pub(crate) pid: Option<u32>,
    pub(crate) from: i64,
    pub(crate) to: Option<i64>,
    pub(crate) busy: u64,
    pub(crate) carries: bool,
}

/// User threads, in columns, because there may be millions. Sorted by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Threads {
    pub(crate) numbers: Vec<u64>,
    /// [`UNKNOWN`] if it is not known.
    pub(crate) pids: Vec<u32>,
    pub(crate) from: Vec<i64>,
    /// `i64::MAX` if it never ended.
    pub(crate) to: Vec<i64>,
    /// 0 if it is not known.
    pub(crate) created_by: Vec<u64>,
    pub(crate) busy: Vec<u64>,
}

/// The pid of an unknown process.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// A process.
#[derive(Clone, Debug)]
pub(crate) struct Process {
    pub(crate) pid: Option<u32>,
    pub(crate) name: Option<String>,
    pub(crate) lwps: usize,
    pub(crate) threads: usize,
    pub(crate) busy: u64,
}

/// All actors of a super-trace.
#[derive(Clone, Debug)]
pub(crate) struct Actors {
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) lwps: Vec<Lwp>,
    pub(crate) threads: Threads,
    /// The busiest process first.
    pub(crate) processes: Vec<Process>,
}

impl Actors {
    /// Reads the tables of actors.
    ///
    /// # Errors
    /// If a table cannot be read.
    pub(crate) async fn read(trace: &SuperTrace) -> Result<Actors, Error> {
        let mut cpus = Vec::new();
        trace
            .each_batch_of(&CPUS, &["cpu", "busy_tick"], |batch| {
                let (cpu, busy) = (Small::of(batch, 0), Wide::of(batch, 1));
                let row = |row| Cpu { number: cpu.or_zero(row), busy: busy.or_zero(row) as u64 };
                cpus.extend((0..batch.num_rows()).map(row));
            })
            .await?;
        cpus.sort_by_key(|cpu| cpu.number);
        cpus.dedup_by_key(|cpu| cpu.number);
        let lwps = lwps(trace).await?;
        let threads = threads(trace).await?;
        let names = process_names(trace).await?;
        let processes = processes(&lwps, &threads, &names);
        Ok(Actors { cpus, lwps, threads, processes })
    }

    /// The row of a key.
    pub(crate) fn row(&self, key: Key) -> Option<usize> {
        match key.kind {
            Kind::Cpu => self.cpu(key.number as u32),
            Kind::Lwp => self.lwp(key.number as u32),
            Kind::Thread => self.thread(key.number),
        }
    }

    /// The row of a CPU.
    pub(crate) fn cpu(&self, number: u32) -> Option<usize> {
        self.cpus.binary_search_by_key(&number, |cpu| cpu.number).ok()
    }

    /// The row of an LWP.
    pub(crate) fn lwp(&self, number: u32) -> Option<usize> {
        self.lwps.binary_search_by_key(&number, |lwp| lwp.number).ok()
    }

    /// The row of a user thread.
    pub(crate) fn thread(&self, number: u64) -> Option<usize> {
        let numbers = &self.threads.numbers;
        // The numbers usually have no gaps.
        let guess = usize::try_from(number.checked_sub(*numbers.first()?)?).ok()?;
        if numbers.get(guess) == Some(&number) {
            return Some(guess);
        }
        numbers.binary_search(&number).ok()
    }

    /// The key of a row.
    pub(crate) fn key(&self, kind: Kind, row: usize) -> Key {
        let number = match kind {
            Kind::Cpu => u64::from(self.cpus[row].number),
            Kind::Lwp => u64::from(self.lwps[row].number),
            Kind::Thread => self.threads.numbers[row],
        };
        Key { kind, number }
    }

    /// The name of a row, if it has one.
    pub(crate) fn name<'a>(&'a self, trace: &'a SuperTrace, key: Key) -> Option<&'a str> {
        match key.kind {
            Kind::Cpu => None,
            Kind::Lwp => self.lwps[self.lwp(key.number as u32)?].name.as_deref(),
            Kind::Thread => trace.threads().ok()?.name(Thread(key.number)),
        }
    }

    /// A row's label: number and name.
    pub(crate) fn label(&self, trace: &SuperTrace, key: Key) -> String {
        match (key.kind, self.name(trace, key)) {
            (Kind::Cpu, _) => format!("CPU {}", key.number),
            (_, Some(name)) => format!("{} {name}", key.number),
            (_, None) => key.number.to_string(),
        }
    }
}

async fn lwps(trace: &SuperTrace) -> Result<Vec<Lwp>, Error> {
    let columns = ["lwp", "name", "pid", "ts_tick", "dur_tick", "carries_threads", "on_cpu_tick"];
    let mut lwps = Vec::new();
    trace
        .each_batch_of(&LWPS, &columns, |batch| {
            let (lwp, name, pid) = (Small::of(batch, 0), Texts::of(batch, 1), Small::of(batch, 2));
            let (from, length, busy) = (Wide::of(batch, 3), Wide::of(batch, 4), Wide::of(batch, 6));
            let carries = booleans(batch, 5);
            lwps.extend((0..batch.num_rows()).map(|row| Lwp {
                number: lwp.or_zero(row),
                name: name.get(row).map(str::to_string),
                pid: pid.get(row),
                from: from.or_zero(row),
                to: length.get(row).map(|length| from.or_zero(row).saturating_add(length)),
                busy: busy.or_zero(row) as u64,
                carries: carries.value(row),
            }));
        })
        .await?;
    lwps.sort_by_key(|lwp: &Lwp| lwp.number);
    lwps.dedup_by_key(|lwp| lwp.number);
    Ok(lwps)
}

async fn threads(trace: &SuperTrace) -> Result<Threads, Error> {
    let columns = ["thread", "pid", "ts_tick", "dur_tick", "created_by", "active_tick"];
    let mut threads = Threads::default();
    trace
        .each_batch_of(&THREADS, &columns, |batch| {
            let (number, pid, from) = (Wide::of(batch, 0), Small::of(batch, 1), Wide::of(batch, 2));
            let (length, by, busy) = (Wide::of(batch, 3), Wide::of(batch, 4), Wide::of(batch, 5));
            for row in 0..batch.num_rows() {
                let begin = from.or_zero(row);
                threads.numbers.push(number.or_zero(row) as u64);
                threads.pids.push(pid.get(row).unwrap_or(UNKNOWN));
                threads.from.push(begin);
                threads.to.push(length.get(row).map_or(i64::MAX, |length| begin.saturating_add(length)));
                threads.created_by.push(by.or_zero(row) as u64);
                threads.busy.push(busy.or_zero(row) as u64);
            }
        })
        .await?;
    Ok(threads.sorted())
}

impl Threads {
    /// Sorts the threads by number, and removes duplicates.
    fn sorted(self) -> Threads {
        if self.numbers.is_sorted_by(|a, b| a < b) {
            return self;
        }
        let mut order: Vec<usize> = (0..self.numbers.len()).collect();
        order.sort_by_key(|row| self.numbers[*row]);
        order.dedup_by_key(|row| self.numbers[*row]);
        fn pick<T: Copy>(order: &[usize], column: &[T]) -> Vec<T> {
            order.iter().map(|row| column[*row]).collect()
        }
        Threads {
            numbers: pick(&order, &self.numbers),
            pids: pick(&order, &self.pids),
            from: pick(&order, &self.from),
            to: pick(&order, &self.to),
            created_by: pick(&order, &self.created_by),
            busy: pick(&order, &self.busy),
        }
    }
}

async fn process_names(trace: &SuperTrace) -> Result<HashMap<u32, String>, Error> {
    let mut names = HashMap::new();
    if trace.info().left_out_tables().any(|table| table == PROCESSES.name) {
        return Ok(names);
    }
    trace
        .each_batch_of(&PROCESSES, &["pid", "name"], |batch| {
            let (pid, name) = (Small::of(batch, 0), Texts::of(batch, 1));
            for row in 0..batch.num_rows() {
                if let (Some(pid), Some(name)) = (pid.get(row), name.get(row)) {
                    names.insert(pid, name.to_string());
                }
            }
        })
        .await?;
    Ok(names)
}

fn processes(lwps: &[Lwp], threads: &Threads, names: &HashMap<u32, String>) -> Vec<Process> {
    let mut by_pid: HashMap<Option<u32>, Process> = HashMap::new();
    let mut of = |pid: Option<u32>, lwps: usize, threads: usize, busy: u64| {
        let process = by_pid.entry(pid).or_insert_with(|| Process {
            pid,
            name: pid.and_then(|pid| names.get(&pid).cloned()),
            lwps: 0,
            threads: 0,
            busy: 0,
        });
        process.lwps += lwps;
        process.threads += threads;
        process.busy += busy;
    };
    lwps.iter().for_each(|lwp| of(lwp.pid, 1, 0, lwp.busy));
    for pid in &threads.pids {
        of(Some(*pid).filter(|pid| *pid != UNKNOWN), 0, 1, 0);
    }
    let mut processes: Vec<Process> = by_pid.into_values().collect();
    for process in &mut processes {
        // The kernel's own threads have separate processes. Such a process gets the name of its first LWP.
        let first = lwps.iter().find(|lwp| Some(lwp.number) == process.pid);
        process.name = process.name.take().or_else(|| first.and_then(|lwp| lwp.name.clone()));
    }
    // Processes with user threads are first, because they are of most interest.
    processes.sort_by_key(|process| {
        (process.threads == 0, std::cmp::Reverse(process.busy), process.pid.unwrap_or(u32::MAX))
    });
    processes
}
