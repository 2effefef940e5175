//! Limits the size of a recording (`--max-size`, `--max-time`): it is cut into parts, and the oldest parts are removed.
//! This runs on a separate thread, because it waits for disks, for the pumps of the kernel side, and for the drain.
//!
//! ```text
//!   part 5 is full: kernel side, then user side go on in files of part 6 ─▶ T, now ─▶ part 6 begins at T
//!                   part-00006.json, part-00005.json ─▶ the oldest parts are removed ─▶ part 5 to the packer
//! ```
//!
//! What removed parts contain about user threads that are still alive is written beside the first part that is kept
//! (`carried.rs`).
//!
//! From T on, all events of both sides are in part 6 or later. So after parts were removed, the rest is complete from
//! the T of its first part on. At any time, everything that is known is on the disk, in case this process is killed.

mod carried;
mod limits;
mod packer;

use std::{
    io,
    sync::{
        Arc, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use fkt_ingest::live::{ClosedPart, Rotator, part_name, remove_part, write_part};
use fut::clock;
use rustix::fs::fstatvfs;
use sigmund_files::Folder;
use sigmund_merge::{Manifest, Packed, Part, PartFile, Removed, Rotation as RotationOfRun};

use self::{
    carried::Carrying,
    limits::Limits,
    packer::{Closed, ClosedParts},
};
use super::{draining::Parts, processes};
use crate::{cli::RecordArgs, output};

/// The interval between two checks of the size and age of the part.
const NAP: Duration = Duration::from_millis(10);
/// How long to wait after a failure.
const AFTER_A_FAILURE: Duration = Duration::from_secs(1);

/// Whether the recording is limited, and therefore cut into parts.
pub(super) fn is_limited(args: &RecordArgs) -> bool {
    Limits::of(args).is_some()
}

/// What is known of the rotation before the recording begins.
pub(super) struct Plan {
    limits: Limits,
    recording: String,
    began: u64,
}

/// The running rotation.
pub(super) struct Rotation {
    stop: Arc<AtomicBool>,
    /// `None` after it was waited for.
    thread: Option<JoinHandle<Rotated>>,
}

impl Drop for Rotation {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The result of the rotation.
pub(super) struct Rotated {
    rotation: RotationOfRun,
    /// The current part.
    open: Part,
    kernel_bytes_before: u64,
    limits: Limits,
    /// Whether parts within the limits had to be removed because the disk was nearly full.
    has_no_room: bool,
    carrying: Carrying,
    /// How fast the newest closed part grew.
    bytes_per_second: f64,
    closed: Arc<ClosedParts>,
    packer: Option<JoinHandle<()>>,
}

impl Plan {
    /// The plan, if the arguments set a limit.
    pub(super) fn of(args: &RecordArgs) -> Option<Plan> {
        let began = clock::ticks();
        let recording = format!("{began:x}-{:x}", std::process::id());
        Limits::of(args).map(|limits| Plan { limits, recording, began })
    }

    /// Writes the description of the first part.
    pub(super) fn begin(&self, manifest: &mut Manifest, run: &Folder) -> Result<()> {
        manifest.rotation = Some(self.rotation());
        Ok(self.first_part().write(run)?)
    }

    fn rotation(&self) -> RotationOfRun {
        RotationOfRun {
            recording: self.recording.clone(),
            began: self.began,
            max_bytes: self.limits.max_bytes,
            max_ns: self.limits.max_time.map(|time| time.as_nanos() as u64),
            first: 1,
            last: 1,
            ..RotationOfRun::default()
        }
    }

    fn first_part(&self) -> Part {
        Part { recording: self.recording.clone(), number: 1, begins: self.began, ..Part::default() }
    }
}

impl Rotation {
    /// Starts the thread. The kernel side and the user side record into part 1. Either side may be missing.
    pub(super) fn start(
        plan: Plan,
        run: &Arc<Folder>,
        kernel: Option<Rotator>,
        drain: Option<Parts>,
    ) -> Result<Rotation> {
        let stop = Arc::new(AtomicBool::new(false));
        let closed = Arc::new(ClosedParts::default());
        let packer = kernel.is_some().then(|| packer::start(run, &closed)).transpose()?;
        let mut rotating = Rotating {
            run: Arc::clone(run),
            stop: Arc::clone(&stop),
            kernel,
            drain,
            began: Instant::now(),
            user_bytes_before: 0,
            has_failed: false,
            state: Rotated {
                rotation: plan.rotation(),
                open: plan.first_part(),
                kernel_bytes_before: 0,
                limits: plan.limits,
                has_no_room: false,
                carrying: Carrying::default(),
                bytes_per_second: 0.0,
                closed,
                packer,
            },
        };
        let run = move || {
            rotating.run();
            // Not earlier: the drain finishes as soon as it learns that there are no more parts.
            let Rotating { state, .. } = rotating;
            state
        };
        let thread = thread::Builder::new().name("sigmund-parts".into()).spawn(run);
        Ok(Rotation { stop, thread: Some(thread.context("a thread that cuts the recording into parts")?) })
    }

    /// Ends the rotation. Everything recorded from now on is in the last part. The thread may still wait for the pumps,
    /// up to 200 ms.
    pub(super) fn stop(&self) {
        // Release: pairs with the Acquire in `Rotating::run`.
        self.stop.store(true, Ordering::Release);
    }

    /// Waits for its end.
    pub(super) fn join(mut self) -> Option<Rotated> {
        self.stop();
        self.thread.take()?.join().ok()
    }
}

struct Rotating {
    run: Arc<Folder>,
    stop: Arc<AtomicBool>,
    kernel: Option<Rotator>,
    drain: Option<Parts>,
    /// When the part began, and the bytes of the user side until then.
    began: Instant,
    user_bytes_before: u64,
    has_failed: bool,
    state: Rotated,
}

impl Rotating {
    fn run(&mut self) {
        // Acquire: pairs with the Release in `Rotation::stop`.
        while !self.stop.load(Ordering::Acquire) {
            thread::sleep(NAP);
            let (room, bytes) = (self.room(), self.bytes());
            let done = if self.state.limits.within(room).is_full(bytes, self.began.elapsed()) {
                self.rotate(room)
            } else if self.state.outdated(room, bytes) > 0 {
                self.state.remove_oldest(&self.run, room, bytes)
            } else {
                continue;
            };
            if let Err(error) = done {
                if !std::mem::replace(&mut self.has_failed, true) {
                    output::report_error(&format!("cutting the recording into parts: {error:#}"));
                }
                let until = Instant::now() + AFTER_A_FAILURE;
                while Instant::now() < until && !self.stop.load(Ordering::Acquire) {
                    thread::sleep(NAP);
                }
            }
        }
    }

    /// The bytes of the current part so far.
    fn bytes(&self) -> u64 {
        let kernel = self.kernel.as_ref().map_or(0, Rotator::bytes);
        let user = self.drain.as_ref().map_or(0, Parts::bytes);
        (kernel - self.state.kernel_bytes_before) + user.saturating_sub(self.user_bytes_before)
    }

    /// The number of bytes that this recording may have: the bytes that it has, and most of the free space on the disk.
    fn room(&self) -> u64 {
        let Ok(disk) = fstatvfs(&*self.run) else { return u64::MAX };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        (self.state.closed.bytes() + self.bytes()).saturating_add(free / 8 * 7)
    }

    fn rotate(&mut self, room: u64) -> Result<()> {
        let number = self.state.open.number + 1;
        let recording = self.state.open.recording.clone();
        let mut next = Part { recording, number, removed: self.state.rotation.removed, ..Part::default() };
        // The beginning of the part is not known yet, but its description has to exist before its files do.
        next.write(&self.run)?;
        let kernel = self.kernel.as_mut().map(|kernel| kernel.next_part(&self.run)).transpose();
        let kernel = kernel.inspect_err(|_| drop(self.run.remove_file(Part::name(number))))?;
        if let Some(error) = kernel.as_ref().and_then(|closed| closed.not_described.as_deref()) {
            output::report_error(error);
        }
        let kernel_bytes = self.kernel.as_ref().map_or(0, Rotator::bytes);
        let user =
            self.drain.as_ref().map_or_else(Vec::new, |drain| drain.next(number, self.state.rotation.first));
        let user_bytes = self.drain.as_ref().map_or(0, Parts::bytes);
        let bytes = kernel_bytes - self.state.kernel_bytes_before + user_bytes - self.user_bytes_before;
        self.state.bytes_per_second = bytes as f64 / self.began.elapsed().as_secs_f64();
        self.user_bytes_before = user_bytes;
        next.begins = clock::ticks();
        next.processes = if kernel.is_some() { processes::read() } else { Vec::new() };
        self.began = Instant::now();

        let mut closed = std::mem::replace(&mut self.state.open, next);
        let page_bytes = kernel_bytes - std::mem::replace(&mut self.state.kernel_bytes_before, kernel_bytes);
        closed.files = files(kernel.as_ref(), page_bytes, user);
        self.state.rotation.last = number;
        let written = closed.write(&self.run);
        // Even if its description could not be written, its files exist and have to be removed later.
        self.state.closed.push(Closed::new(closed, &self.run));
        self.state.remove_oldest(&self.run, room, 0)?;
        Ok(written?)
    }
}

/// Removes all files of a part. If one cannot be removed, the others still are.
fn remove_files(run: &Folder, part: &Part) -> Result<()> {
    let kernel = remove_part(run, part.number);
    let user = part.files.iter().map(|file| file.name.clone()).filter(|name| name.ends_with(".fut"));
    let others: Vec<Result<()>> = user
        .chain(carried::remove(run, part))
        .chain([Part::name(part.number)])
        .map(|name| match run.remove_file(&name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).context(name),
            _ => Ok(()),
        })
        .collect();
    kernel?;
    others.into_iter().collect()
}

/// The files of a closed part.
fn files(kernel: Option<&ClosedPart>, page_bytes: u64, user: Vec<PartFile>) -> Vec<PartFile> {
    let kernel = kernel.map(|closed| PartFile {
        name: part_name(closed.part),
        bytes: page_bytes,
        to_be_made: true,
        events: closed.events,
        lost: closed.lost.iter().map(|(_, lost)| lost).sum(),
    });
    kernel.into_iter().chain(user).collect()
}

impl Rotated {
    /// The number of parts to remove on a disk with this room, if the current part has `open` bytes.
    fn outdated(&mut self, room: u64, open: u64) -> usize {
        let parts = self.closed.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let sizes: Vec<_> = parts.iter().map(|closed| (closed.bytes(), closed.ended.elapsed())).collect();
        drop(parts);
        let count = self.limits.within(room).outdated(&sizes, open);
        if count > self.limits.outdated(&sizes, open) && !std::mem::replace(&mut self.has_no_room, true) {
            output::notice("the disk is nearly full: less is kept than --max-size and --max-time allow");
        }
        count
    }

    /// Removes the parts that exceed the limits. The number of their events is noted in the description of the newest
    /// part before them: now if there is room for it, and otherwise as soon as there is.
    fn remove_oldest(&mut self, run: &Folder, room: u64, open: u64) -> Result<()> {
        let count = self.outdated(room, open);
        let mut parts = self.closed.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let oldest: Vec<Closed> = parts.drain(..count).collect();
        drop(parts);
        let carried = self.carry_over(run, &oldest, room);
        for closed in &oldest {
            self.rotation.removed = sum(self.rotation.removed, &closed.part);
            self.rotation.first = closed.part.number + 1;
        }
        self.open.removed = self.rotation.removed;
        let noted = self.open.write(run);
        let removed: Vec<_> = oldest.iter().map(|closed| remove_files(run, &closed.part)).collect();
        noted.or_else(|_| self.open.write(run))?;
        removed.into_iter().collect::<Result<()>>()?;
        carried
    }

    /// Writes what is known of user threads at the beginning of the part after these.
    fn carry_over(&mut self, run: &Folder, oldest: &[Closed], room: u64) -> Result<()> {
        let Some(last) = oldest.last() else { return Ok(()) };
        let removed: Vec<&Part> = oldest.iter().map(|closed| &closed.part).collect();
        let most_bytes = self.limits.within(room).max_bytes;
        let sizes: Vec<u64> = oldest.iter().map(Closed::bytes).collect();
        if !self.carrying.has_time(&sizes, self.bytes_per_second, most_bytes) {
            return Ok(());
        }
        let bytes = self.carrying.carry(run, &removed, last.part.number + 1, most_bytes);
        let mut parts = self.closed.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Ok(bytes), Some(first)) = (&bytes, parts.front_mut()) {
            first.add_bytes(*bytes);
        }
        bytes.map(|_| ()).context("user threads that are older than what is kept")
    }

    /// The number of the first part that is kept.
    pub(super) fn first(&self) -> u32 {
        self.rotation.first
    }

    /// Completes the last part, whose files are closed, and writes everything that has not been written yet.
    pub(super) fn finish(
        &mut self,
        run: &Folder,
        kernel: Option<&ClosedPart>,
        user: Vec<PartFile>,
    ) -> Result<()> {
        self.closed.stop();
        if let Some(packer) = self.packer.take() {
            // If the packer panicked, it left the parts unchanged.
            let _ = packer.join();
        }
        self.rotation.packed = self.closed.packed();
        let mut last = self.open.clone();
        last.files = files(kernel, 0, user);
        let mut parts: Vec<Part> = {
            let mut closed = self.closed.parts.lock().unwrap_or_else(PoisonError::into_inner);
            closed.drain(..).map(|closed| closed.part).collect()
        };
        parts.push(last);
        // If one part cannot be written, the others still are.
        let written: Vec<Result<()>> = parts.into_iter().map(|part| complete(run, part)).collect();
        written.into_iter().collect()
    }

    /// Writes the rotation to the manifest, and corrects the facts about the whole recording.
    pub(super) fn describe(&self, manifest: &mut Manifest) {
        let RotationOfRun { first, last, removed, packed, .. } = &self.rotation;
        if removed.parts > 0 {
            let Removed { parts, kernel_events, user_events, .. } = removed;
            output::notice(&format!(
                "kept parts {first} to {last}; {}, with {kernel_events} events of the kernel and {user_events} of programs",
                if *parts == 1 {
                    "1 older part was removed".into()
                } else {
                    format!("{parts} older parts were removed")
                },
            ));
            // These readings began before the part that is kept.
            manifest.lwp_cpu_times_omitted += manifest.lwp_cpu_times.len() as u64;
            manifest.lwp_cpu_times.clear();
        }
        if let Some(carried) = self.carrying.describe() {
            output::notice(&carried);
        }
        if packed.parts > 0 {
            output::notice(&format!("the kernel side: {}", describe_packed(packed)));
        }
        manifest.rotation = Some(self.rotation.clone());
    }
}

/// Makes the trace.dat of a closed part, if it does not exist yet, and writes the description of the part.
fn complete(run: &Folder, mut part: Part) -> Result<()> {
    if part.files.iter().any(|file| file.name == part_name(part.number)) {
        write_part(run, part.number)?;
        part.note_kernel_length(run)?;
    }
    Ok(part.write(run)?)
}

/// The result and the cost of compressing parts with zstd, as text.
pub(crate) fn describe_packed(packed: &Packed) -> String {
    let Packed { parts, page_bytes, bytes, cpu_ns } = *packed;
    // A small part has little to compress, and gets a header.
    let ratio = if bytes < page_bytes {
        format!(" ({:.1} times smaller)", page_bytes as f64 / bytes.max(1) as f64)
    } else {
        String::new()
    };
    format!(
        "{} compressed by zstd while it was recorded, {:.1} MB to {:.1} MB{ratio}, in {:.2} s of CPU time at the lowest \
         priority",
        output::counted(parts.into(), "part"),
        page_bytes as f64 / 1e6,
        bytes as f64 / 1e6,
        cpu_ns as f64 / 1e9
    )
}

fn sum(removed: Removed, part: &Part) -> Removed {
    let (user, kernel): (Vec<&PartFile>, Vec<&PartFile>) =
        part.files.iter().partition(|file| file.name.ends_with(".fut"));
    let events = |files: &[&PartFile]| files.iter().map(|file| file.events).sum::<u64>();
    Removed {
        parts: removed.parts + 1,
        bytes: removed.bytes + part.files.iter().map(|file| file.bytes).sum::<u64>(),
        kernel_events: removed.kernel_events + events(&kernel),
        user_events: removed.user_events + events(&user),
    }
}
