//! Signals.

use std::{
    io::ErrorKind,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use fut::signal::{Signal, SignalKind, ctrl_c};

use super::{beside_another, kind::builder};

/// Signals reach every test of the process.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn raise(kind: SignalKind) {
    let process = std::process::id() as i32;
    // SAFETY: the signal has a handler.
    assert_eq!(unsafe { libc::kill(process, kind.as_raw_value()) }, 0);
}

/// The handler has run when this returns: a signal to the process may be handled by another LWP, later.
fn raise_here(kind: SignalKind) {
    // SAFETY: the signal has a handler.
    assert_eq!(unsafe { libc::raise(kind.as_raw_value()) }, 0);
}

fn soon() -> Instant {
    Instant::now() + Duration::from_millis(20)
}

#[test]
fn a_signal_ends_the_wait_of_one_thread_and_no_lwp_waits() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // So that the signal does not end the process, were it too early.
    let _handled =
        builder().lwps(1).build().unwrap().run(|| Signal::new(SignalKind::user_defined1()).unwrap());
    beside_another(
        || raise(SignalKind::user_defined1()),
        || {
            let usr1 = Signal::new(SignalKind::user_defined1()).unwrap();
            usr1.recv().unwrap();
            assert_eq!(usr1.recv_until(soon()).unwrap_err().kind(), ErrorKind::TimedOut);
        },
    );
}

#[test]
fn signals_before_a_call_are_one_event_for_each_receiver_of_their_kind() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    builder().lwps(2).build().unwrap().run(|| {
        let receivers = [0, 1].map(|_| Signal::new(SignalKind::user_defined2()).unwrap());
        let other = Signal::new(SignalKind::hangup()).unwrap();
        (0..3).for_each(|_| raise_here(SignalKind::user_defined2()));
        for receiver in &receivers {
            receiver.recv().unwrap();
            assert_eq!(receiver.recv_until(soon()).unwrap_err().kind(), ErrorKind::TimedOut);
        }
        assert_eq!(other.recv_until(soon()).unwrap_err().kind(), ErrorKind::TimedOut);
        let [first, last] = receivers;
        drop(first);
        raise_here(SignalKind::user_defined2());
        last.recv().unwrap();
        drop(last);
        // Nobody receives it, and it does not end the process.
        raise_here(SignalKind::user_defined2());
    });
}

#[test]
fn ctrl_c_is_received() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    builder().lwps(1).build().unwrap().run(|| {
        let sender = fut::spawn(|| {
            fut::sleep(Duration::from_millis(5));
            raise(SignalKind::interrupt());
        });
        ctrl_c().unwrap();
        sender.join().unwrap();
    });
}

#[test]
fn a_signal_that_cannot_be_caught_is_refused() {
    builder().lwps(1).build().unwrap().run(|| {
        for number in [libc::SIGKILL, libc::SIGSTOP, libc::SIGSEGV, 0, -1, 1000] {
            let error = Signal::new(SignalKind::from_raw(number)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(&number.to_string()), "{error}");
        }
    });
}

/// It inherits the handler, and what the handler writes to.
#[test]
fn a_signal_of_a_forked_child_is_none_of_the_parents() {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    builder().lwps(1).build().unwrap().run(|| {
        let signals = Signal::new(SignalKind::user_defined2()).unwrap();
        // SAFETY: the child makes only calls that are async-signal-safe.
        let child = unsafe { libc::fork() };
        if child == 0 {
            loop {
                // SAFETY: it takes no pointers. The child ends by SIGKILL.
                unsafe { libc::pause() };
            }
        }
        let send = |number| {
            // SAFETY: to the child, which was not waited for yet.
            assert_eq!(unsafe { libc::kill(child, number) }, 0);
        };
        send(libc::SIGUSR2);
        let received = signals.recv_until(Instant::now() + Duration::from_millis(300));
        send(libc::SIGKILL);
        // SAFETY: the status is not asked for.
        assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
        assert_eq!(received.unwrap_err().kind(), ErrorKind::TimedOut);
    });
}
