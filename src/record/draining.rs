//! The drain on a thread of its own: a disk that does not answer holds up the drain, and neither the kernel side nor
//! the recorder's handling of signals.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{Receiver, Sender, TryRecvError, channel},
    },
    thread,
    time::Duration,
};

use anyhow::Result;
use sigmund_merge::PartFile;

use super::{
    arenas::{Arenas, UserSides},
    work::Work,
};

/// How long the drain sleeps when there is nothing to take: a ring of 4 MiB takes 4 ms to fill, at the fastest.
const NAP: Duration = Duration::from_millis(1);

/// A running drain.
pub(super) struct Draining {
    finish: Finish,
    work: Work<UserSides>,
    parts: Option<Parts>,
}

/// Makes the drain go on in files of the next part. The drain does not finish before this is gone.
pub(super) struct Parts {
    requests: Sender<NextPart>,
    shared: Arc<Shared>,
}

/// What is asked of the drain.
struct NextPart {
    number: u32,
    /// Parts before this one were removed.
    first: u32,
    files: Sender<Vec<PartFile>>,
}

impl Parts {
    /// Bytes written so far, in all parts.
    pub(super) fn bytes(&self) -> u64 {
        // Relaxed: it need not be exact.
        self.shared.bytes.load(Ordering::Relaxed)
    }

    /// Makes the drain go on in files of part `number`. Returns the files of the one before, once they are closed.
    pub(super) fn next(&self, number: u32, first: u32) -> Vec<PartFile> {
        let (files, closed) = channel();
        // A drain that has panicked has no files; its end is reported by the one who waits for it.
        let _ = self.requests.send(NextPart { number, first, files });
        closed.recv().unwrap_or_default()
    }
}

#[derive(Default)]
struct Shared {
    finish: AtomicBool,
    bytes: AtomicU64,
    recording: AtomicU64,
    polls: AtomicU64,
}

/// Dropped, it makes the drain finish.
struct Finish(Arc<Shared>);

impl Drop for Finish {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `drain`; what a program recorded before its end was seen is taken.
        self.0.finish.store(true, Ordering::Release);
    }
}

impl Draining {
    /// Starts to drain the arenas of a program. Not before the program is started: it must not inherit the priority.
    pub(super) fn start(arenas: Arenas) -> Result<Draining> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let (requests, receiver) = channel();
        let work = Work::start("sigmund-drain", move || drain(arenas, &theirs, receiver))?;
        let parts = Some(Parts { requests, shared: Arc::clone(&shared) });
        Ok(Draining { finish: Finish(shared), work, parts })
    }

    /// What cuts it into parts; given once.
    pub(super) fn parts(&mut self) -> Option<Parts> {
        self.parts.take()
    }

    /// Bytes written so far.
    pub(super) fn bytes(&self) -> u64 {
        // Relaxed: a number for people.
        self.finish.0.bytes.load(Ordering::Relaxed)
    }

    /// The number of processes that have an arena and are not known to have ended.
    pub(super) fn recording(&self) -> u64 {
        // Relaxed: it may lag by some polls anyway.
        self.finish.0.recording.load(Ordering::Relaxed)
    }

    /// How often it has looked at its arenas; stays as it is while a disk does not answer.
    pub(super) fn polls(&self) -> u64 {
        // Relaxed: it publishes no other memory.
        self.finish.0.polls.load(Ordering::Relaxed)
    }

    /// Takes what was recorded until now, and no more. Returns the work, whose result is the recording.
    pub(super) fn finish(self) -> Work<UserSides> {
        drop((self.finish, self.parts));
        self.work
    }
}

fn drain(mut arenas: Arenas, shared: &Shared, requests: Receiver<NextPart>) -> UserSides {
    // The drain keeps up with the program only if it gets the CPU when it wants it; not everybody may ask. On Linux this
    // is the calling thread's priority alone.
    let _ = rustix::process::setpriority_process(None, -20);
    let mut requests = Some(requests);
    // Acquire: pairs with the Release in `Finish`.
    while !shared.finish.load(Ordering::Acquire) || requests.is_some() {
        match requests.as_ref().map(Receiver::try_recv) {
            Some(Ok(NextPart { number, first, files })) => {
                // The rotation may have ended.
                let _ = files.send(arenas.next_part(number, first));
            }
            Some(Err(TryRecvError::Disconnected)) => requests = None,
            Some(Err(TryRecvError::Empty)) | None => {}
        }
        if arenas.poll() == 0 {
            thread::sleep(NAP);
        }
        shared.bytes.store(arenas.bytes(), Ordering::Relaxed);
        shared.recording.store(arenas.recording(), Ordering::Relaxed);
        shared.polls.fetch_add(1, Ordering::Relaxed);
    }
    arenas.finish()
}
