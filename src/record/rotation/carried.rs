//! Carries over user threads that live longer than parts. Before parts are removed, what is known of threads that are
//! still alive is written to a file beside the first part that is kept. The traced program is not involved.
//!
//! CPU time of one removal with a million live user threads: 0.11 s if nothing happens to them, plus 21 ns for each
//! record of the part, plus about 1 µs for each thread that occurs in the part. The file has 77 MB. Memory: 270 bytes
//! for each thread that occurs in the part (2 busy CPUs of an AMD EPYC guest, optimised; `a_million_threads` in
//! `fut/src/trace/carried/file.rs`).

use std::{collections::BTreeMap, path::PathBuf, time::Instant};

use anyhow::{Context, Result};
use fut::trace::{CarriedFile, CarriedSummary, carry_over};
use sigmund_files::Folder;
use sigmund_merge::{Part, user_carried_name, whole_and_part};

use super::packer::thread_cpu_ns;

/// What is carried over may take one in this many parts of the recording's byte limit. What is recorded while it is carried over
/// may, too.
const SHARE: u64 = 8;
/// Nanoseconds for each byte of the removed parts, before this is measured: those above, for parts in which each thread has few
/// records.
const NS_PER_BYTE: f64 = 20.0;

/// The cost so far, over all removed parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Carrying {
    /// CPU time.
    pub(super) cpu_ns: u64,
    /// The number of user threads in the newest files, of all processes.
    pub(super) threads: u64,
    /// The number of user threads for which there was no room in these files.
    left_out: u64,
    /// The number of parts that were removed when there was no time to carry anything over.
    hurried: u64,
    /// How long it took last, for each byte of the removed parts.
    ns_per_byte: f64,
}

impl Default for Carrying {
    fn default() -> Carrying {
        Carrying { cpu_ns: 0, threads: 0, left_out: 0, hurried: 0, ns_per_byte: NS_PER_BYTE }
    }
}

impl Carrying {
    /// Whether there is time to carry over what parts of this size say: while that is done, the recording grows by
    /// `bytes_per_second`, and nothing is removed. If there is no time, these parts are counted.
    pub(super) fn has_time(
        &mut self,
        removed: &[u64],
        bytes_per_second: f64,
        most_bytes: Option<u64>,
    ) -> bool {
        let seconds = removed.iter().sum::<u64>() as f64 * self.ns_per_byte / 1e9;
        let has_time = most_bytes.is_none_or(|most| seconds * bytes_per_second <= (most / SHARE) as f64);
        if !has_time {
            self.hurried += removed.len() as u64;
            // A disk that hung once says little about the next time.
            self.ns_per_byte = NS_PER_BYTE.max(self.ns_per_byte / 2.0);
        }
        has_time
    }

    /// Writes what is known when part `next` begins, for the processes that have a file in that part. `removed` are the
    /// parts before it, which are removed afterwards. Returns the number of bytes written.
    pub(super) fn carry(
        &mut self,
        run: &Folder,
        removed: &[&Part],
        next: u32,
        most_bytes: Option<u64>,
    ) -> Result<u64> {
        let (before, began) = (thread_cpu_ns(), Instant::now());
        let mut sides: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for file in removed.iter().flat_map(|part| &part.files) {
            if let Some((whole, part)) = whole_and_part(&file.name) {
                sides.entry(whole).or_default().push(part);
            }
        }
        (self.threads, self.left_out) = (0, 0);
        let (mut bytes, mut failed) = (0, Ok(()));
        for (whole, parts) in sides {
            let most_bytes = most_bytes.map_or(u64::MAX, |most| (most / SHARE).saturating_sub(bytes));
            match carry_side(run, &whole, &parts, next, most_bytes) {
                Ok(summary) => {
                    bytes += summary.bytes;
                    self.threads += summary.owners;
                    self.left_out += summary.left_out;
                }
                Err(error) => failed = failed.and(Err(error)),
            }
        }
        self.cpu_ns += thread_cpu_ns() - before;
        let read = removed.iter().flat_map(|part| &part.files).map(|file| file.bytes).sum::<u64>();
        self.ns_per_byte = began.elapsed().as_nanos() as f64 / read.max(1) as f64;
        failed.map(|()| bytes)
    }

    /// The cost as text for people; `None` if nothing was carried over.
    pub(super) fn describe(&self) -> Option<String> {
        let Carrying { cpu_ns, threads, left_out, hurried, .. } = *self;
        if hurried > 0 {
            return Some(format!(
                "{} removed while more was recorded than could be carried over: what they say of user threads that are older \
                 than what is kept is not known",
                match hurried {
                    1 => "1 part was".to_string(),
                    parts => format!("{parts} parts were"),
                }
            ));
        }
        let without_room = if left_out > 0 { format!(", {left_out} had no room") } else { String::new() };
        let seconds = cpu_ns as f64 / 1e9;
        (threads > 0).then(|| {
            format!(
                "{threads} user threads are older than what is kept{without_room}; carrying them over took \
                 {seconds:.2} s of CPU time"
            )
        })
    }
}

/// The names of the files that are beside a part and are removed with it.
pub(super) fn remove(run: &Folder, part: &Part) -> impl Iterator<Item = String> {
    let names = part.files.iter().filter_map(|file| whole_and_part(&file.name));
    let names = names.map(|(whole, number)| user_carried_name(&whole, number)).filter(|name| run.has(name));
    names.collect::<Vec<_>>().into_iter()
}

fn carry_side(
    run: &Folder,
    whole: &str,
    parts: &[u32],
    next: u32,
    most_bytes: u64,
) -> Result<CarriedSummary> {
    // A process that has ended has no live threads.
    if !run.has(sigmund_merge::user_part_name(whole, next)) {
        return Ok(CarriedSummary::default());
    }
    let name = user_carried_name(whole, next);
    let path = run.path_of(&name);
    let place = || path.display().to_string();
    let before = user_carried_name(whole, parts[0]);
    // If this file is missing or damaged, only the parts are used.
    let before = run.open_file(&before).ok();
    let before = before.and_then(|file| CarriedFile::open(&path, file).ok());
    let open = |part: &u32| {
        let name = sigmund_merge::user_part_name(whole, *part);
        let path: PathBuf = run.path_of(&name);
        run.open_file(&name).map(|file| (path.clone(), file)).with_context(|| path.display().to_string())
    };
    let files = parts.iter().map(open).collect::<Result<Vec<_>>>()?;
    let out = run.create_file(&name).with_context(place)?;
    carry_over(before, files, out, most_bytes)
        .with_context(place)
        .inspect_err(|_| drop(run.remove_file(&name)))
}
