//! Limits how much of the mapped index counts as the server's memory.
//!
//! The kernel may take back the pages of a mapped file at any time, but until then they count as memory of the process
//! (RssFile). A question about all rows of a long trace reads gigabytes once.

use std::{
    fs,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// Limit of anonymous memory and mapped pages together. It leaves a reserve for pages that are mapped before the next
/// check: on a busy machine these were 160 MB.
const MOST_KB: usize = 288 << 10;

/// Mapped pages that are always allowed. They include the pages of the program itself.
const LEAST_KB: usize = 96 << 10;

/// Interval between checks while a question is answered. Questions about all rows map some 2 MB per millisecond, and a
/// check takes 50 µs.
const OFTEN: Duration = Duration::from_millis(3);

/// The time of the last check.
pub(super) struct Looked {
    begun: Instant,
    /// Time after `begun`, in µs.
    last: AtomicU64,
}

impl Default for Looked {
    fn default() -> Looked {
        Looked { begun: Instant::now(), last: AtomicU64::new(0) }
    }
}

impl Looked {
    /// Whether a check is due. If several threads ask at the same time, only one of them gets `true`.
    pub(super) fn is_due(&self) -> bool {
        let now = self.begun.elapsed().as_micros() as u64;
        let last = self.last.load(Ordering::Relaxed);
        // Relaxed: it publishes no other memory.
        now.saturating_sub(last) >= OFTEN.as_micros() as u64
            && self.last.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

/// Whether mapped pages should be given back; `false` if the amount is unknown.
pub(super) fn is_too_much() -> bool {
    fs::read_to_string("/proc/self/status").is_ok_and(|status| is_beyond(&status))
}

/// `status` has lines of names and kilobytes (proc_pid_status(5)).
fn is_beyond(status: &str) -> bool {
    let kb = |name| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.parse::<usize>().ok()
    };
    let (Some(own), Some(mapped)) = (kb("RssAnon:"), kb("RssFile:")) else { return false };
    mapped > MOST_KB.saturating_sub(own).max(LEAST_KB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mapped_pages_are_given_back_when_they_and_the_rest_are_too_much() {
        for (own, mapped, expected) in
            [(100, 188, false), (100, 189, true), (1000, 95, false), (1000, 97, true), (0, 287, false)]
        {
            let status = format!(
                "VmRSS:\t 9 kB\nRssAnon:\t{:>8} kB\nRssFile:\t{:>8} kB\nRssShmem:\t 0 kB\n",
                own << 10,
                mapped << 10
            );
            assert_eq!(is_beyond(&status), expected, "{own} {mapped}");
        }
        for unknown in ["", "RssAnon: 5 kB", "RssAnon:\t1 MB\nRssFile:\t1000000000 MB\n"] {
            assert!(!is_beyond(unknown), "{unknown}");
        }
    }

    #[test]
    fn after_a_while_it_is_time_to_look_again() {
        let looked = Looked::default();
        assert!(!looked.is_due());
        std::thread::sleep(OFTEN);
        let due = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| looked.is_due())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).filter(|due| *due).count()
        });
        assert!(due >= 1);
    }

    #[test]
    fn the_kernel_has_these_lines() {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        assert!(status.contains("\nRssAnon:") && status.contains("\nRssFile:"), "{status}");
    }
}
