//! The kernel's epoll, with a bell that ends a wait from outside. Descriptors are registered edge-triggered.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
    ptr,
    time::Duration,
};

/// Maximum number of events that one wait fetches. Their threads run within a millisecond, if each makes two system
/// calls. With 256 events, they ran for longer than a busy worker may leave its set unserved. So more events were
/// fetched meanwhile, out of turn: of 10 000 connections, the slowest hundredth waited 380 ms for an echo; with 64
/// events it waits 127 ms.
const MOST_EVENTS: usize = 64;

/// What epoll reports. Its `u64` is the word that was passed to [`Epoll::add`].
pub(in crate::runtime) type Event = libc::epoll_event;

/// An epoll descriptor, and an eventfd in it.
#[derive(Debug)]
pub(in crate::runtime) struct Epoll {
    epoll: OwnedFd,
    bell: File,
}

/// The `u64` of the bell.
const BELL: u64 = 0;

impl Epoll {
    /// # Errors
    /// If no descriptors are available.
    pub(super) fn new() -> io::Result<Epoll> {
        // SAFETY: takes no pointer.
        let epoll = opened(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: takes no pointer.
        let bell = opened(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        let new = Epoll { epoll, bell: File::from(bell) };
        // Edge-triggered: each write is reported once, and need not be read.
        new.control(libc::EPOLL_CTL_ADD, new.bell.as_fd(), libc::EPOLLIN | libc::EPOLLET, BELL)?;
        Ok(new)
    }

    /// Registers `fd` for both directions. What is ready already is reported, too.
    ///
    /// # Errors
    /// The errors of `epoll_ctl(2)`.
    pub(super) fn add(&self, fd: BorrowedFd<'_>, word: u64) -> io::Result<()> {
        let both = libc::EPOLLIN | libc::EPOLLOUT | libc::EPOLLPRI | libc::EPOLLRDHUP;
        self.control(libc::EPOLL_CTL_ADD, fd, both | libc::EPOLLET, word)
    }

    pub(super) fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, 0)
    }

    fn control(&self, operation: i32, fd: BorrowedFd<'_>, events: i32, word: u64) -> io::Result<()> {
        let mut event = Event { events: events as u32, u64: word };
        // SAFETY: `event` is valid during the call.
        let done =
            unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd.as_raw_fd(), &raw mut event) };
        if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Ends the wait of one thread. If no thread waits, ends the next wait.
    pub(super) fn ring(&self) {
        // The write fails only when the counter is full. Then the edge has been reported.
        let _ = (&self.bell).write(&1_u64.to_ne_bytes());
    }

    /// Waits until there is an event or a ring, but leaves it to be fetched by the next wait. May return earlier.
    pub(super) fn wait_without_fetching(&self) {
        let mut poll = libc::pollfd { fd: self.epoll.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: `poll` is valid during the call.
        let _ = unsafe { libc::poll(&raw mut poll, 1, -1) };
    }

    /// Waits for at most `timeout`, and calls `each` with every event except those of the bell. An interrupted wait
    /// fetches no events. Returns whether the bell was rung.
    pub(super) fn wait(&self, timeout: Option<Duration>, mut each: impl FnMut(Event)) -> bool {
        let mut events = [const { Event { events: 0, u64: BELL } }; MOST_EVENTS];
        let fd = self.epoll.as_raw_fd();
        let most = MOST_EVENTS as i32;
        // SAFETY: there is room for that many events.
        let wait = |events: &mut [Event; MOST_EVENTS], ms| unsafe {
            libc::epoll_wait(fd, events.as_mut_ptr(), most, ms)
        };
        let count = match timeout {
            None => wait(&mut events, -1),
            Some(Duration::ZERO) => wait(&mut events, 0),
            Some(timeout) => match wait_ns(fd, &mut events, timeout) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                Err(_) => {
                    // Before Linux 5.11 the error is ENOSYS; it is EPERM if a system call filter does not know this
                    // call. An epoll descriptor can itself be polled, with a timeout in nanoseconds.
                    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
                    let time = timespec(timeout);
                    // SAFETY: both are valid during the call.
                    let _ = unsafe { libc::ppoll(&raw mut poll, 1, &raw const time, ptr::null()) };
                    wait(&mut events, 0)
                }
            },
        };
        let count = usize::try_from(count).unwrap_or(0);
        let mut is_rung = false;
        for event in &events[..count] {
            if event.u64 == BELL {
                is_rung = true;
            } else {
                each(*event);
            }
        }
        is_rung
    }
}

/// epoll_pwait2(2).
fn wait_ns(fd: RawFd, events: &mut [Event; MOST_EVENTS], timeout: Duration) -> io::Result<i32> {
    let time = timespec(timeout);
    let mask = ptr::null::<libc::sigset_t>();
    // SAFETY: there is room for that many events, and `time` is valid during the call; the signal mask stays.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            fd,
            events.as_mut_ptr(),
            MOST_EVENTS as i32,
            &raw const time,
            mask,
            0_usize,
        )
    };
    if count < 0 { Err(io::Error::last_os_error()) } else { Ok(count as i32) }
}

fn timespec(time: Duration) -> libc::timespec {
    // A longer time than this is cut; the caller reads the clock after its wait.
    let seconds = time.as_secs().min(1 << 30);
    libc::timespec { tv_sec: seconds as libc::time_t, tv_nsec: libc::c_long::from(time.subsec_nanos()) }
}

fn opened(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was opened just now, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
