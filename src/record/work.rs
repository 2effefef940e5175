//! Work that may take long or never end, because a disk or a process may not answer. It runs on a separate thread. So
//! the thread that started it can still handle signals, and can give the work up.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};

/// Work that has been started. If it is dropped before its end, the work continues until the process ends, and its
/// result is lost.
pub(super) struct Work<T> {
    name: &'static str,
    result: Receiver<T>,
}

impl<T: Send + 'static> Work<T> {
    /// Starts a thread of this name, at most 15 bytes.
    pub(super) fn start(name: &'static str, body: impl FnOnce() -> T + Send + 'static) -> Result<Work<T>> {
        let (give, result) = channel();
        // The receiver may be gone because the work was given up. The result is then dropped.
        let body = move || drop(give.send(body()));
        thread::Builder::new()
            .name(name.into())
            .spawn(body)
            .with_context(|| format!("a thread for {name}"))?;
        Ok(Work { name, result })
    }

    /// The result, if the work is done within this time. It is returned only once.
    ///
    /// # Errors
    /// When its thread has panicked.
    pub(super) fn within(&self, time: Duration) -> Result<Option<T>> {
        match self.result.recv_timeout(time) {
            Ok(result) => Ok(Some(result)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                bail!("the thread {} has ended without a result", self.name)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_endless_work_times_out() {
        let work = Work::start("endless", || {
            loop {
                thread::park();
            }
        });
        assert!(matches!(work.unwrap().within(Duration::from_millis(5)), Ok(None::<()>)));
    }

    #[test]
    fn a_result_is_there_when_the_work_is_done() {
        let work = Work::start("quick", || 7).unwrap();
        assert_eq!(work.within(Duration::from_secs(20)).unwrap(), Some(7));
    }
}
