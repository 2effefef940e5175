//! The token of [`park`](crate::park): rules 1 and 2 of `unparker.rs`.

use crate::model_check::atomic::{AtomicBool, Ordering};

/// Whether a thread was unparked by its [`Unparker`](crate::Unparker) and has not noticed it yet.
#[derive(Debug, Default)]
pub(super) struct Permit(AtomicBool);

impl Permit {
    /// Called for a new thread in the same block.
    pub(super) fn reset(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Called by the thread itself. Returns `false` if there is no permit.
    pub(super) fn take(&self) -> bool {
        // Acquire: pairs with the Release in `give`; makes visible what the giver did before.
        self.0.compare_exchange(true, false, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Gives the permit, and then calls `unpark`, which unparks the thread.
    pub(super) fn give(&self, unpark: impl FnOnce()) {
        // Release: pairs with the Acquire in `take`.
        self.0.store(true, Ordering::Release);
        unpark();
    }
}

#[cfg(all(test, loom))]
mod model {
    use loom::thread;

    use crate::{
        model_check::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
        runtime::plain::PlainThread,
    };

    fn wait_for_permit(thread: &PlainThread) {
        while !thread.permit().take() {
            thread.park();
        }
    }

    /// One thread gives the permit, another one unparks for a different reason. A plain thread that waits for the
    /// permit returns only after it was given, and sees what was done before that.
    #[test]
    fn a_permit_ends_a_wait_and_nothing_else_does() {
        loom::model(|| {
            let (thread, is_done) = (Arc::new(PlainThread::default()), Arc::new(AtomicBool::new(false)));
            let giver = {
                let (thread, is_done) = (thread.clone(), is_done.clone());
                thread::spawn(move || {
                    is_done.store(true, Ordering::Relaxed);
                    thread.permit().give(|| thread.unpark());
                })
            };
            let other = {
                let thread = thread.clone();
                thread::spawn(move || thread.unpark())
            };
            wait_for_permit(&thread);
            assert!(is_done.load(Ordering::Relaxed));
            giver.join().unwrap();
            other.join().unwrap();
            assert!(!thread.permit().take());
        });
    }

    /// A permit that is given while its thread waits for something else does not end that wait. It is kept until the
    /// thread waits for the permit.
    #[test]
    fn another_wait_does_not_take_the_permit() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let (thread, answer) = (Arc::new(PlainThread::default()), Arc::new(AtomicBool::new(false)));
            let giver = {
                let thread = thread.clone();
                thread::spawn(move || {
                    thread.permit().give(|| thread.unpark());
                })
            };
            let answers = {
                let (thread, answer) = (thread.clone(), answer.clone());
                thread::spawn(move || {
                    answer.store(true, Ordering::Relaxed);
                    thread.unpark();
                })
            };
            while !answer.load(Ordering::Relaxed) {
                thread.park();
            }
            wait_for_permit(&thread);
            giver.join().unwrap();
            answers.join().unwrap();
        });
    }
}
