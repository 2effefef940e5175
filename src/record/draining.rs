//! Runs the drain on a separate thread. So a disk that does not answer delays only the drain, and not the kernel side
//! or the recorder's handling of signals.

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

/// How long the drain sleeps if there is nothing to drain. A ring of 4 MiB takes at least 4 ms to fill.
const NAP: Duration = Duration::from_millis(1);

/// A running drain.
pub(super) struct Draining {
    finish: Finish,
    work: Work<UserSides>,
    parts: Option<Parts>,
}

/// Makes the drain continue in files of the next part. The drain does not finish before this value is dropped.
pub(super) struct Parts {
    requests: Sender<NextPart>,
    shared: Arc<Shared>,
}

/// A request to the drain.
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

    /// Makes the drain continue in files of part `number`. Returns the files of the previous part, once these are
    /// closed.
    pub(super) fn next(&self, number: u32, first: u32) -> Vec<PartFile> {
        let (files, closed) = channel();
        // A drain that has panicked returns no files. Its panic is reported where its end is waited for.
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

/// Makes the drain finish when it is dropped.
struct Finish(Arc<Shared>);

impl Drop for Finish {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `drain`. So everything is drained that a program recorded before its end
        // was noticed.
        self.0.finish.store(true, Ordering::Release);
    }
}

impl Draining {
    /// Starts to drain the arenas of a program. Call it only after the program was started, because the program must
    /// not inherit the priority.
    pub(super) fn start(arenas: Arenas) -> Result<Draining> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let (requests, receiver) = channel();
        let work = Work::start("sigmund-drain", move || drain(arenas, &theirs, receiver))?;
        let parts = Some(Parts { requests, shared: Arc::clone(&shared) });
        Ok(Draining { finish: Finish(shared), work, parts })
    }

    /// The handle that changes to the next part. It is returned only once.
    pub(super) fn parts(&mut self) -> Option<Parts> {
        self.parts.take()
    }

    /// Bytes written so far.
    pub(super) fn bytes(&self) -> u64 {
        // Relaxed: the number is only displayed.
        self.finish.0.bytes.load(Ordering::Relaxed)
    }

    /// The number of processes that have an arena and are not known to have ended.
    pub(super) fn recording(&self) -> u64 {
        // Relaxed: it may lag by some polls anyway.
        self.finish.0.recording.load(Ordering::Relaxed)
    }

    /// How often the drain has looked at its arenas. The number does not change while a disk does not answer.
    pub(super) fn polls(&self) -> u64 {
        // Relaxed: it publishes no other memory.
        self.finish.0.polls.load(Ordering::Relaxed)
    }

    /// Drains what was recorded until now, and nothing later. The result of the returned work is the recording.
    pub(super) fn finish(self) -> Work<UserSides> {
        drop((self.finish, self.parts));
        self.work
    }
}

fn drain(mut arenas: Arenas, shared: &Shared, requests: Receiver<NextPart>) -> UserSides {
    // The drain keeps up with the program only if it gets a CPU as soon as it needs one. Not every user may raise the
    // priority. On Linux, this changes only the priority of the calling thread.
    let _ = rustix::process::setpriority_process(None, -20);
    let mut requests = Some(requests);
    // Acquire: pairs with the Release in `Finish`.
    while !shared.finish.load(Ordering::Acquire) || requests.is_some() {
        match requests.as_ref().map(Receiver::try_recv) {
            Some(Ok(NextPart { number, first, files })) => {
                // The receiver is gone if the rotation has ended.
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
