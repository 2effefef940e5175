//! The memory of user threads that are alive at the same time: a chain in which each joins the previous one. The first
//! yields until all exist.

use std::{
    collections::HashMap,
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use fut::Runtime;

use crate::sample::Sample;

/// Interval between two readings of the memory.
const BATCH: u64 = 1000;
/// Memory limit at which the test stops, because the machine may be shared.
const MOST_BYTES: u64 = 12 << 30;

/// The memory of the process when all threads are alive and blocked, minus its memory before they were spawned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Live {
    /// Resident, without page tables.
    pub(crate) resident: u64,
    pub(crate) page_tables: u64,
    pub(crate) mappings: u64,
    /// Time from then until all threads have ended.
    pub(crate) end_ns: u64,
}

pub(crate) fn run(threads: u64, cpus: usize) -> Result<Sample, String> {
    let runtime = Runtime::builder().lwps(cpus).build().map_err(|error| error.to_string())?;
    let before = memory()?;
    runtime.run(move || {
        let start = Instant::now();
        let blocked = Arc::new(AtomicU64::new(0));
        let go_on = Arc::new(AtomicBool::new(false));
        let first_waits = Arc::clone(&go_on);
        let mut last = fut::spawn(move || {
            while !first_waits.load(Ordering::Relaxed) {
                fut::yield_now();
            }
            1
        });
        for number in 1..threads {
            let before = last;
            let about_to_block = Arc::clone(&blocked);
            last = fut::spawn(move || {
                about_to_block.fetch_add(1, Ordering::Relaxed);
                before.join().expect("the thread before panicked") + 1
            });
            if number % BATCH == 0 || number == threads - 1 {
                // A new thread runs now, and blocks.
                while blocked.load(Ordering::Relaxed) < number {
                    fut::yield_now();
                }
                let used = memory()?.resident;
                if used > MOST_BYTES {
                    return Err(format!("gave up at {number} threads, which take {} MiB", used >> 20));
                }
            }
        }
        let elapsed = start.elapsed();
        let then = memory()?;
        let ending = Instant::now();
        go_on.store(true, Ordering::Relaxed);
        let counted: u64 = last.join().expect("the last thread panicked");
        assert_eq!(counted, threads);
        let live = Live {
            resident: then.resident.saturating_sub(before.resident),
            page_tables: then.page_tables.saturating_sub(before.page_tables),
            mappings: mappings()?,
            end_ns: duration_ns(ending.elapsed()),
        };
        Ok(Sample { live: Some(live), ..Sample::of(elapsed) })
    })
}

pub(crate) fn memory() -> Result<Live, String> {
    let path = "/proc/self/status";
    let status = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let lines: HashMap<&str, &str> = status.lines().filter_map(|line| line.split_once(':')).collect();
    let bytes = |key: &str| -> Result<u64, String> {
        let kib = lines.get(key).and_then(|value| value.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        kib.map(|kib| kib << 10).ok_or(format!("{path}: expected {key} in kB"))
    };
    Ok(Live { resident: bytes("VmRSS")?, page_tables: bytes("VmPTE")?, ..Live::default() })
}

fn mappings() -> Result<u64, String> {
    let path = "/proc/self/maps";
    let maps = fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    Ok(maps.iter().filter(|byte| **byte == b'\n').count() as u64)
}

fn duration_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
