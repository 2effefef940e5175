//! The kernel's own sum of the time that each recorded LWP spent on CPUs. It is read from
//! `/proc/PID/task/TID/schedstat` while the recording runs. If an LWP ends between two readings, its last reading is
//! kept. An LWP that lives only between two readings is not seen.

use std::{
    collections::{BTreeSet, HashMap, hash_map::Entry},
    fs,
    path::Path,
    time::{Duration, Instant},
};

use fut::clock;
use sigmund_merge::{CpuTimeReading, LwpCpuTime, Manifest};
use sigmund_model::Pid;

/// The maximum number of LWPs that are kept. Each takes about 300 bytes in the manifest.
const MAX_LWPS: usize = 16384;
/// The maximum number of processes read.
const MAX_PROCESSES: usize = 16384;
/// The minimum time between two readings.
const READ_EVERY: Duration = Duration::from_millis(100);
/// A reading may take at most one in this many parts of the time until the next: 1 % of one CPU.
const SHARE: u32 = 100;

/// The readings so far.
pub(super) struct CpuTimes {
    /// This process and its descendants are read; `None` for all processes.
    root: Option<Pid>,
    /// The processes that are read, with their start times. If the start time is different, it is another process with
    /// the same number.
    processes: HashMap<u32, u64>,
    lwps: HashMap<u32, Known>,
    ended: Vec<LwpCpuTime>,
    omitted: u64,
    readings: u64,
    /// The time of the next reading.
    next: Instant,
}

struct Known {
    times: LwpCpuTime,
    last: Sum,
    /// The number of the last reading that found the LWP.
    seen: u64,
}

/// The two numbers in the file. Neither ever decreases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sum {
    reading: CpuTimeReading,
    slices: u64,
}

impl CpuTimes {
    /// Takes the first reading, of a process and its children or of all processes. Call it only after the recording of
    /// the kernel has begun. Then every LWP that this reading does not find was created during the recording.
    pub(super) fn start(root: Option<Pid>) -> CpuTimes {
        let (processes, lwps) = (HashMap::new(), HashMap::new());
        let next = Instant::now();
        let mut times = CpuTimes { root, processes, lwps, ended: Vec::new(), omitted: 0, readings: 0, next };
        times.read();
        times
    }

    /// Reads again if a reading is due.
    pub(super) fn read_now_and_then(&mut self) {
        if Instant::now() >= self.next {
            self.read();
        }
    }

    /// Reads all LWPs.
    pub(super) fn read(&mut self) {
        let begun = Instant::now();
        self.readings += 1;
        let mut omitted = 0;
        for pid in self.find_processes() {
            for tid in numbers_in(&format!("/proc/{pid}/task")) {
                // The LWP may have ended in the meantime.
                if let Some(sum) = read_sum(pid, tid) {
                    omitted += u64::from(!self.take(pid, tid, sum));
                }
            }
        }
        self.omitted = self.omitted.max(omitted);
        let ended: Vec<u32> =
            self.lwps.iter().filter(|(_, known)| known.seen < self.readings).map(|(tid, _)| *tid).collect();
        self.ended.extend(ended.iter().filter_map(|tid| Some(self.lwps.remove(tid)?.times)));
        self.next = Instant::now() + READ_EVERY.max(begun.elapsed() * SHARE);
    }

    /// Writes the readings to the manifest.
    pub(super) fn store(self, manifest: &mut Manifest) {
        let mut times = self.ended;
        times.extend(self.lwps.into_values().map(|known| known.times));
        times.sort_by_key(|times| (times.pid, times.tid, times.end.map_or(0, |end| end.before)));
        manifest.lwp_cpu_times = times;
        manifest.lwp_cpu_times_omitted = self.omitted;
    }

    /// Stores the reading of an LWP. Returns `false` if the limit is reached.
    fn take(&mut self, pid: u32, tid: u32, sum: Sum) -> bool {
        let (readings, first) = (self.readings, self.readings == 1);
        let room = self.lwps.len() + self.ended.len() < MAX_LWPS;
        let begin = |sum: Sum| LwpCpuTime {
            pid,
            tid,
            begin: first.then_some(sum.reading),
            end: (!first).then_some(sum.reading),
        };
        match self.lwps.entry(tid) {
            Entry::Vacant(_) if !room => return false,
            Entry::Vacant(place) => _ = place.insert(Known { times: begin(sum), last: sum, seen: readings }),
            Entry::Occupied(mut place) => {
                let known = place.get_mut();
                // Both numbers only grow. If one is smaller, it is another LWP with the same number.
                if known.times.pid != pid || sum.is_before(known.last) {
                    if !room {
                        return false;
                    }
                    let other = Known { times: begin(sum), last: sum, seen: readings };
                    self.ended.push(std::mem::replace(known, other).times);
                } else {
                    *known = Known {
                        times: LwpCpuTime { end: Some(sum.reading), ..known.times.clone() },
                        last: sum,
                        seen: readings,
                    };
                }
            }
        }
        true
    }

    /// The processes to read: the root, those that are known already (a daemon no longer has its parent), and the
    /// children of all these.
    fn find_processes(&mut self) -> BTreeSet<u32> {
        let Some(root) = self.root else { return numbers_in("/proc").take(MAX_PROCESSES).collect() };
        self.processes.retain(|pid, started| start_time(*pid) == Some(*started));
        // The root is added only for the first reading: after it has ended, its number may belong to another process.
        let root = (self.readings == 1).then_some(root.0);
        let mut found: BTreeSet<u32> = self.processes.keys().copied().chain(root).collect();
        let mut to_ask: Vec<u32> = found.iter().copied().collect();
        while let Some(parent) = to_ask.pop() {
            for child in children(parent) {
                if found.len() < MAX_PROCESSES && found.insert(child) {
                    to_ask.push(child);
                }
            }
        }
        for pid in &found {
            if let Entry::Vacant(place) = self.processes.entry(*pid)
                && let Some(started) = start_time(*pid)
            {
                place.insert(started);
            }
        }
        found
    }
}

impl Sum {
    fn is_before(self, other: Sum) -> bool {
        self.reading.ns < other.reading.ns || self.slices < other.slices
    }
}

/// `/proc/PID/task/TID/schedstat`: nanoseconds on CPUs, nanoseconds in run queues, times on a CPU.
fn read_sum(pid: u32, tid: u32) -> Option<Sum> {
    let path = format!("/proc/{pid}/task/{tid}/schedstat");
    let before = clock::ticks();
    let text = fs::read_to_string(path).ok()?;
    let after = clock::ticks();
    let (ns, slices) = parse(&text)?;
    Some(Sum { reading: CpuTimeReading { before, after, ns }, slices })
}

fn parse(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    Some((numbers.next()?.ok()?, numbers.nth(1)?.ok()?))
}

/// When a process began, in clock ticks since the machine was started: field 22 of `/proc/PID/stat`. The second field
/// is the name, which may contain any characters.
fn start_time(pid: u32) -> Option<u64> {
    let stat = fs::read(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    let after_name = stat.rsplitn(2, |byte| *byte == b')').next()?;
    std::str::from_utf8(after_name).ok()?.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// The children of all LWPs of a process.
fn children(pid: u32) -> impl Iterator<Item = u32> {
    numbers_in(&format!("/proc/{pid}/task")).flat_map(move |tid| {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/children")).unwrap_or_default();
        text.split_ascii_whitespace().filter_map(|child| child.parse().ok()).collect::<Vec<u32>>()
    })
}

/// The names in a folder that are numbers.
pub(super) fn numbers_in(folder: &str) -> impl Iterator<Item = u32> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(ns: u64, slices: u64) -> Sum {
        Sum { reading: CpuTimeReading { before: ns, after: ns + 1, ns }, slices }
    }

    fn nothing_read() -> CpuTimes {
        let next = Instant::now();
        let (processes, lwps) = (HashMap::new(), HashMap::new());
        CpuTimes { root: Some(Pid(0)), processes, lwps, ended: Vec::new(), omitted: 0, readings: 1, next }
    }

    #[test]
    fn the_first_and_the_last_reading_of_an_lwp_are_kept() {
        let mut times = nothing_read();
        assert!(times.take(7, 8, sum(10, 1)));
        for reading in 2..5 {
            times.readings = reading;
            assert!(times.take(7, 8, sum(10 * reading, reading)));
            // Not there at the start.
            assert!(times.take(7, 9, sum(reading, reading)));
        }
        let mut manifest = Manifest::default();
        times.store(&mut manifest);
        let [old, new] = manifest.lwp_cpu_times.as_slice() else { panic!("{manifest:?}") };
        assert_eq!((old.begin.unwrap().ns, old.end.unwrap().ns), (10, 40));
        assert_eq!((new.begin, new.end.unwrap().ns), (None, 4));
    }

    #[test]
    fn a_reused_number_is_another_lwp() {
        let mut times = nothing_read();
        assert!(times.take(7, 8, sum(100, 5)));
        times.readings = 2;
        // As much time, but in fewer slices.
        assert!(times.take(7, 8, sum(200, 4)));
        times.readings = 3;
        assert!(times.take(70, 8, sum(300, 6)));
        let mut manifest = Manifest::default();
        times.store(&mut manifest);
        let ends: Vec<_> = manifest
            .lwp_cpu_times
            .iter()
            .map(|t| (t.pid, t.begin.map(|r| r.ns), t.end.map(|r| r.ns)))
            .collect();
        assert_eq!(ends, [(7, Some(100), None), (7, None, Some(200)), (70, None, Some(300))]);
    }

    #[test]
    fn this_process_is_found_with_its_children_and_its_time_grows() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let mut times = CpuTimes::start(Some(Pid(std::process::id())));
        // More than a timer tick: the kernel adds it up at ticks and switches.
        let started = Instant::now();
        while started.elapsed() < Duration::from_millis(30) {}
        std::thread::sleep(Duration::from_millis(1));
        times.read();
        child.kill().unwrap();
        child.wait().unwrap();
        let mut manifest = Manifest::default();
        times.store(&mut manifest);
        let all = &manifest.lwp_cpu_times;
        let thread = fs::read_link("/proc/thread-self").unwrap();
        let tid: u32 = thread.file_name().unwrap().to_str().unwrap().parse().unwrap();
        let own = all.iter().find(|times| times.tid == tid).unwrap_or_else(|| panic!("{all:?}"));
        let (begin, end) = (own.begin.unwrap(), own.end.unwrap());
        assert!(begin.ns < end.ns && begin.after < end.before, "{own:?}");
        assert!(all.iter().any(|times| times.pid == child.id()), "{all:?}");
        assert_eq!(manifest.lwp_cpu_times_omitted, 0);
    }

    #[test]
    fn the_start_of_a_process_is_read_whatever_its_name_is() {
        assert!(start_time(std::process::id()).is_some_and(|ticks| ticks > 0));
        assert_eq!(parse("776996 101010 2\n"), Some((776996, 2)));
        assert_eq!(parse("776996"), None);
    }
}
