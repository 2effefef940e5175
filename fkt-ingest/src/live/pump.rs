//! Moves the pages of one CPU from the kernel's buffers to files, without copying them through this process:
//!
//! ```text
//!   per_cpu/cpuN/trace_pipe_raw ──splice──▶ pipe ──splice──▶ file
//! ```
//!
//! While recording, only full pages move. At the end the partial one is fetched by read(2), which gives a
//! whole page whatever is in it.
//!
//! The pump sleeps in poll(2) until one of its buffers is full to [`WAKE_AT_PERCENT`], which the kernel looks at
//! whenever it finishes a page; so it sleeps through nothing, however fast a buffer fills, and costs nothing while
//! little happens. It looks every [`LOOK_EVERY`] all the same. On a machine whose CPUs are all busy it still has to
//! get one: it asks for the highest ordinary priority.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, splice};
use rustix::process::setpriority_process;
use rustix::time::{ClockId, clock_gettime};

/// How full a buffer is when its pump is woken: the rest is what fills until the pump gets a CPU.
pub(super) const WAKE_AT_PERCENT: u32 = 10;
/// How long the pump sleeps at most.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
/// What one splice moves at most, and the pipe's size; ordinary users get so much, too.
const PIPE_SIZE: usize = 1 << 20;

/// What pumps and their recorder share.
#[derive(Debug)]
pub(super) struct Shared {
    stop: AtomicBool,
    /// Readable from the moment on that the recording stops.
    stopped: OwnedFd,
    pub(super) bytes: AtomicU64,
}

impl Shared {
    pub(super) fn new() -> io::Result<Shared> {
        let stopped = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Shared { stop: AtomicBool::new(false), stopped, bytes: AtomicU64::new(0) })
    }

    /// Makes the pumps look for the last time. What was recorded before, they find.
    pub(super) fn stop(&self) {
        // Release: pairs with the Acquire in `run`.
        self.stop.store(true, Ordering::Release);
        // It cannot fail: the counter is 0 or 1. If it did, the pumps would look after `LOOK_EVERY`.
        let _ = rustix::io::write(&self.stopped, &1u64.to_ne_bytes());
    }
}

/// From one kernel buffer of one CPU to a file.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) pages: File,
    pub(super) page_size: usize,
    pub(super) file: File,
}

/// A running pump. It ends with the time it had on CPUs.
#[derive(Debug)]
pub(super) struct Pump(JoinHandle<io::Result<Duration>>);

impl Pump {
    /// Starts a thread that pumps all routes of a CPU.
    pub(super) fn start(name: String, routes: Vec<Route>, shared: Arc<Shared>) -> io::Result<Pump> {
        let thread = thread::Builder::new().name(name).spawn(move || run(routes, &shared))?;
        Ok(Pump(thread))
    }

    /// Waits for the pump to empty the buffers, which it does after [`Shared::stop`]. Gives the time it had on CPUs.
    pub(super) fn join(self) -> io::Result<Duration> {
        self.0.join().unwrap_or_else(|_| Err(io::Error::other("the pump panicked")))
    }
}

fn run(mut routes: Vec<Route>, shared: &Shared) -> io::Result<Duration> {
    // Refused without CAP_SYS_NICE: then the pump runs at the priority it has. 0 is the calling thread.
    let _ = setpriority_process(None, -20);
    let (mut reader, mut writer) = io::pipe()?;
    // Where it is refused, splice moves less at a time.
    let _ = fcntl_setpipe_size(&writer, PIPE_SIZE);
    loop {
        // Acquire: pairs with the Release in `Shared::stop`; what was recorded before it is seen below.
        let last_look = shared.stop.load(Ordering::Acquire);
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

/// Until a buffer is full to [`WAKE_AT_PERCENT`], the recording stops, or [`LOOK_EVERY`] has passed.
fn sleep_until_full(routes: &[Route], shared: &Shared) -> io::Result<()> {
    let stopped = PollFd::new(&shared.stopped, PollFlags::IN);
    let pages = routes.iter().map(|route| PollFd::new(&route.pages, PollFlags::IN));
    let mut waits: Vec<PollFd<'_>> = pages.chain([stopped]).collect();
    match poll(&mut waits, Some(&LOOK_EVERY)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl Route {
    fn move_full_pages(
        &mut self,
        reader: &mut PipeReader,
        writer: &mut PipeWriter,
        shared: &Shared,
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

    fn read_rest(&mut self, shared: &Shared) -> io::Result<()> {
        let mut page = vec![0; self.page_size];
        loop {
            let read = match self.pages.read(&mut page) {
                Ok(0) => return Ok(()),
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            // The kernel fills a whole page; should it give less, the rest is not ours to leave out.
            page[read..].fill(0);
            self.file.write_all(&page)?;
            shared.bytes.fetch_add(self.page_size as u64, Ordering::Relaxed);
        }
    }
}

/// Moves up to `len` bytes; 0 when there is nothing to move now.
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
