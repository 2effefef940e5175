//! The machine: its CPUs, the load of other programs, and CPU affinity.

use std::{fs, io, time::Duration};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// If other programs keep more than this many CPUs busy, the figures are doubtful.
const QUIET: f64 = 0.3;

/// The CPUs that this thread may use.
pub(crate) fn cpus() -> io::Result<Vec<usize>> {
    let allowed = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect())
}

/// Number of CPUs of the machine that are online.
pub(crate) fn all() -> io::Result<usize> {
    let online = fs::read_to_string("/sys/devices/system/cpu/online")?;
    let last = online.trim().rsplit(['-', ',']).next().and_then(|last| last.parse::<usize>().ok());
    Ok(last.map_or(1, |last| last + 1))
}

/// Limits the calling thread, and threads that it creates later, to these CPUs.
pub(crate) fn keep_to(cpus: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    Ok(sched_setaffinity(None, &set)?)
}

/// Makes the calling thread, and threads that it creates later, run only on idle CPUs.
pub(crate) fn run_when_idle() -> io::Result<()> {
    set_policy(0, libc::SCHED_IDLE)
}

/// Undoes [`run_when_idle`] for all threads of this process.
pub(crate) fn run_normally() -> io::Result<()> {
    for task in fs::read_dir("/proc/self/task")? {
        if let Some(tid) = task?.file_name().to_str().and_then(|tid| tid.parse().ok()) {
            match set_policy(tid, libc::SCHED_OTHER) {
                // It has ended since the folder was read.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
                done => done?,
            }
        }
    }
    Ok(())
}

fn set_policy(tid: i32, policy: i32) -> io::Result<()> {
    let priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: `priority` is valid for the call, which reads it only.
    let done = unsafe { libc::sched_setscheduler(tid, policy, &raw const priority) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The activity of all CPUs together since boot, in clock ticks (the first line of /proc/stat).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    busy: u64,
    idle: u64,
    /// Stolen by the hypervisor for other guests.
    stolen: u64,
}

impl Use {
    /// The activity from boot until now.
    pub(crate) fn now() -> io::Result<Use> {
        let stat = fs::read_to_string("/proc/stat")?;
        Use::parse(&stat).ok_or_else(|| io::Error::other("/proc/stat: expected a first line of 8 numbers"))
    }

    fn parse(stat: &str) -> Option<Use> {
        let words = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        let ticks: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        let &[user, nice, system, idle, iowait, irq, softirq, stolen, ..] = ticks.as_slice() else {
            return None;
        };
        Some(Use { busy: user + nice + system + irq + softirq, idle: idle + iowait, stolen })
    }

    /// Busy and stolen CPU time since `before`, in CPUs.
    fn since(self, before: Use, cpus: usize) -> (f64, f64) {
        let [busy, idle, stolen] =
            [self.busy - before.busy, self.idle - before.idle, self.stolen - before.stolen];
        let share = |ticks: u64| cpus as f64 * ticks as f64 / (busy + idle + stolen).max(1) as f64;
        (share(busy), share(stolen))
    }
}

/// The load of the idle machine, in one line; a second one warns if that is too high.
pub(crate) fn quietness() -> io::Result<String> {
    let before = Use::now()?;
    std::thread::sleep(Duration::from_secs(1));
    let cpus = std::thread::available_parallelism()?.get();
    let (busy, stolen) = Use::now()?.since(before, cpus);
    let load = fs::read_to_string("/proc/loadavg")?;
    let load = load.split_whitespace().next().unwrap_or("?");
    let mut said =
        format!("Other programs keep {busy:.2} of {cpus} CPUs busy, {stolen:.2} are stolen; load {load}.");
    if busy + stolen > QUIET {
        said += &format!("\nWARNING: that is more than {QUIET}. The figures below are doubtful.");
    }
    Ok(said)
}

/// The stolen time since `before`, in one line.
pub(crate) fn stolen_since(before: Use) -> io::Result<String> {
    let (_, stolen) = Use::now()?.since(before, 1);
    Ok(format!("The hypervisor took {:.1} % of all CPU time meanwhile.", 100.0 * stolen))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_two_cpus_is_busy() {
        let before = Use::parse("cpu  10 0 0 10 0 0 0 0 0 0\ncpu0 …").unwrap();
        let now = Use::parse("cpu  50 0 5 55 0 3 2 0 0 0\n").unwrap();
        assert_eq!(now.since(before, 2), (50.0 / 95.0 * 2.0, 0.0));
        assert!(Use::parse("cpu  10 0\n").is_none());
    }
}
