//! Which LWP runs a thread that another user thread has woken.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use fut::{JoinHandle, spawn, sync::channel};

use super::{builder, lwp};

const LIMIT: Duration = Duration::from_secs(20);
const MESSAGES: u32 = 20_000;

/// Two threads send to each other in turns; returns how many messages came from another LWP.
fn talk() -> u32 {
    let ((to_other, from_one), (to_one, from_other)) = (channel::unbounded(), channel::unbounded());
    let is_from_elsewhere = |sender: u32| u32::from(sender != lwp());
    let other = spawn(move || {
        let answer = |_| {
            let elsewhere = is_from_elsewhere(from_one.recv().unwrap());
            to_one.send(lwp()).unwrap();
            elsewhere
        };
        (0..MESSAGES).map(answer).sum::<u32>()
    });
    let ask = |_| {
        to_other.send(lwp()).unwrap();
        is_from_elsewhere(from_other.recv().unwrap())
    };
    (0..MESSAGES).map(ask).sum::<u32>() + other.join().unwrap()
}

#[test]
fn threads_that_talk_to_each_other_stay_together() {
    let runtime = builder().lwps(2).build().unwrap();
    let elsewhere = runtime.run(talk);
    assert!(
        elsewhere < MESSAGES / 5,
        "{elsewhere} of {MESSAGES} messages and as many answers came from another LWP"
    );
}

/// Two threads that talk for ever, each waiting for a short time at most: timers come and go.
fn chatter(stop: &Arc<AtomicBool>) -> [JoinHandle<()>; 2] {
    let ((to_other, from_one), (to_one, from_other)) = (channel::unbounded(), channel::unbounded());
    let talks = |sender: channel::Sender<()>, receiver: channel::Receiver<()>| {
        let stop = Arc::clone(stop);
        spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                let _ = sender.send(());
                let _ = receiver.recv_timeout(Duration::from_micros(200));
            }
        })
    };
    [talks(to_other, from_other), talks(to_one, from_one)]
}

/// Another thread is woken by one that then does not leave its LWP until `busy` returns, which gets whether the other has
/// run; before, they have talked for long, so that other LWPs do not expect it.
fn wake_and_be(busy: fn(&dyn Fn() -> bool)) {
    let runtime = builder().lwps(3).build().unwrap();
    runtime.run(move || {
        let stop = Arc::new(AtomicBool::new(false));
        let mut chatting = Vec::new();
        for round in 0..3 {
            talk();
            if round == 1 {
                chatting.extend(chatter(&stop));
            }
            let has_run = Arc::new(AtomicBool::new(false));
            let (sender, receiver) = channel::unbounded();
            let (ready_sender, ready) = channel::unbounded();
            let other = spawn({
                let has_run = Arc::clone(&has_run);
                move || {
                    ready_sender.send(()).unwrap();
                    receiver.recv().unwrap();
                    has_run.store(true, Ordering::Release);
                }
            });
            ready.recv().unwrap();
            // It blocks meanwhile.
            fut::sleep(Duration::from_millis(5));
            sender.send(()).unwrap();
            busy(&|| has_run.load(Ordering::Acquire));
            other.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        chatting.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn a_thread_woken_by_one_that_computes_runs_elsewhere() {
    wake_and_be(|has_run| {
        let since = Instant::now();
        while !has_run() {
            assert!(since.elapsed() < LIMIT, "nobody has run the woken thread");
            std::hint::spin_loop();
        }
    });
}

#[test]
fn a_thread_woken_by_one_that_sleeps_in_the_kernel_runs_elsewhere() {
    wake_and_be(|has_run| {
        thread::sleep(Duration::from_secs(1));
        assert!(has_run(), "the woken thread has waited for the end of the sleep");
    });
}
