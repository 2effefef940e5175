//! Moves the pages of one CPU from the kernel's buffers to files without copying them through this process:
//!
//! ```text
//!   per_cpu/cpuN/trace_pipe_raw ──splice──▶ pipe ──splice──▶ file
//! ```
//!
//! During the recording, only full pages are moved. At its end, read(2) fetches the partial page: it returns a whole
//! page, however full that is.
//!
//! If the recording is cut into parts, the pump continues with new files. All pages that it has moved before are in the
//! old files.
//!
//! The pump sleeps in poll(2) until one of its buffers is [`WAKE_AT_PERCENT`] full, which the kernel checks whenever it
//! completes a page. So it wakes in time however fast a buffer fills, and costs nothing while there are few events. It
//! also checks every [`LOOK_EVERY`]. On a machine whose CPUs are all busy it must still get CPU time: it requests the
//! highest non-real-time priority.

use std::fs::{self, File};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, splice};
use rustix::process::setpriority_process;
use rustix::time::{ClockId, clock_gettime};

/// Fill level of a buffer at which its pump is woken: the rest can fill until the pump gets a CPU.
pub(super) const WAKE_AT_PERCENT: u32 = 10;
/// The longest sleep of the pump.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// Largest number of bytes of one splice, and the size of the pipe. Ordinary users may also have a pipe of this size.
const PIPE_SIZE: usize = 1 << 20;

/// Data that pumps and their recorder share.
#[derive(Debug)]
pub(super) struct PumpControl {
    stop: AtomicBool,
    /// Becomes readable when the recording stops.
    stopped: OwnedFd,
    pub(super) bytes: AtomicU64,
}

impl PumpControl {
    pub(super) fn new() -> io::Result<PumpControl> {
        let stopped = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(PumpControl { stop: AtomicBool::new(false), stopped, bytes: AtomicU64::new(0) })
    }

    /// Makes the pumps drain the buffers for the last time. They find everything recorded before this call.
    pub(super) fn stop(&self) {
        // Release: pairs with the Acquire in `run`.
        self.stop.store(true, Ordering::Release);
        // It cannot fail: the counter is 0 or 1. If it did, the pumps would notice after `LOOK_EVERY`.
        let _ = rustix::io::write(&self.stopped, &1u64.to_ne_bytes());
    }
}

/// From one kernel buffer of one CPU to a file.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) pages: File,
    pub(super) page_size: usize,
    pub(super) file: File,
    /// The kernel's counts of this CPU's buffer.
    pub(super) stats: PathBuf,
}

/// The new files with which a pump continues, one for each route.
#[derive(Debug)]
pub(super) struct NewFiles {
    pub(super) files: Vec<File>,
    pub(super) answer: Sender<Vec<RouteAtSwitch>>,
}

/// A route when its pump changed to a new file.
#[derive(Debug)]
pub(super) struct RouteAtSwitch {
    /// The kernel's counts at the change: all that the pump had read by then is in the old file, or in older files.
    /// Empty if the counts could not be read.
    pub(super) stats: String,
}

/// A running pump. Its result is its CPU time.
#[derive(Debug)]
pub(super) struct Pump(JoinHandle<io::Result<Duration>>);

impl Pump {
    /// Starts a thread that pumps all routes of a CPU.
    pub(super) fn start(
        name: String,
        routes: Vec<Route>,
        shared: Arc<PumpControl>,
        new_files: Receiver<NewFiles>,
    ) -> io::Result<Pump> {
        let thread = thread::Builder::new().name(name).spawn(move || run(routes, &shared, &new_files))?;
        Ok(Pump(thread))
    }

    /// Waits for the pump to empty the buffers, which it does after [`PumpControl::stop`]. Returns its CPU time.
    pub(super) fn join(self) -> io::Result<Duration> {
        self.0.join().unwrap_or_else(|_| Err(io::Error::other("the pump panicked")))
    }
}

fn run(mut routes: Vec<Route>, shared: &PumpControl, new_files: &Receiver<NewFiles>) -> io::Result<Duration> {
    // Refused without CAP_SYS_NICE: the pump then keeps its priority. 0 is the calling thread.
    let _ = setpriority_process(None, -20);
    let (mut reader, mut writer) = io::pipe()?;
    // If this is refused, splice moves less at a time.
    let _ = fcntl_setpipe_size(&writer, PIPE_SIZE);
    loop {
        // Acquire: pairs with the Release in `PumpControl::stop`; everything recorded before it is found below.
        let last_look = shared.stop.load(Ordering::Acquire);
        if let Ok(NewFiles { files, answer }) = new_files.try_recv() {
            let switched = routes.iter_mut().zip(files).map(|(route, file)| route.go_on_with(file)).collect();
            // The rotator may have given up.
            let _ = answer.send(switched);
        }
        for route in &mut routes {
            route.move_full_pages(&mut reader, &mut writer, shared)?;
        }
        if last_look {
            break;
        }
        sleep_until_full(&routes, shared)?;
    }
    for route in &mut routes {
        route.read_rest(shared)?;
        route.file.flush()?;
    }
    let used = clock_gettime(ClockId::ThreadCPUTime);
    Ok(Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec.unsigned_abs() as u32))
}

/// Sleeps until a buffer is [`WAKE_AT_PERCENT`] full, the recording stops, or [`LOOK_EVERY`] has passed.
fn sleep_until_full(routes: &[Route], shared: &PumpControl) -> io::Result<()> {
    let stopped = PollFd::new(&shared.stopped, PollFlags::IN);
    let pages = routes.iter().map(|route| PollFd::new(&route.pages, PollFlags::IN));
    let mut waits: Vec<PollFd<'_>> = pages.chain([stopped]).collect();
    match poll(&mut waits, Some(&LOOK_EVERY)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl Route {
    fn go_on_with(&mut self, file: File) -> RouteAtSwitch {
        self.file = file;
        RouteAtSwitch { stats: fs::read_to_string(&self.stats).unwrap_or_default() }
    }

    fn move_full_pages(
        &mut self,
        reader: &mut PipeReader,
        writer: &mut PipeWriter,
        shared: &PumpControl,
    ) -> io::Result<()> {
        loop {
            let wanted = (PIPE_SIZE / self.page_size).max(1) * self.page_size;
            let taken = move_some(self.pages.as_fd(), writer.as_fd(), wanted, SpliceFlags::NONBLOCK)?;
            if taken == 0 {
                return Ok(());
            }
            let mut left = taken;
            while left > 0 {
                let put = move_some(reader.as_fd(), self.file.as_fd(), left, SpliceFlags::MOVE)?;
                if put == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                left -= put;
            }
            shared.bytes.fetch_add(taken as u64, Ordering::Relaxed);
        }
    }

    fn read_rest(&mut self, shared: &PumpControl) -> io::Result<()> {
        let mut page = vec![0; self.page_size];
        loop {
            let read = match self.pages.read(&mut page) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            // The kernel fills a whole page. If it returned less, the rest must not be left over from another page.
            page[read..].fill(0);
            self.file.write_all(&page)?;
            shared.bytes.fetch_add(self.page_size as u64, Ordering::Relaxed);
        }
    }
}

/// Moves up to `len` bytes; returns 0 if there is nothing to move now.
fn move_some(from: BorrowedFd<'_>, to: BorrowedFd<'_>, len: usize, flags: SpliceFlags) -> io::Result<usize> {
    loop {
        match splice(from, None, to, None, len, flags) {
            Ok(moved) => return Ok(moved),
            Err(Errno::AGAIN) => return Ok(0),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
