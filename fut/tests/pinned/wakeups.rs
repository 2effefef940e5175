//! Wakeups of LWPs: none is lost, and none is in vain.

use super::*;

/// A message goes round through threads on all LWPs, which have nothing else to do: each wakes the next one's LWP.
/// With `busy`, they have.
fn a_message_goes_round(policy: Policy, busy: bool) {
    let (tell, told) = mpsc::channel();
    let runtime = Runtime::builder().lwps(4).policy(policy).build().unwrap();
    let main = runtime.spawn(move || {
        let channels: Vec<_> = (0..8).map(|_| unbounded::<u32>()).collect();
        let begun = Arc::new(AtomicUsize::new(0));
        let done = Arc::new(AtomicBool::new(false));
        let members: Vec<_> = (0..8)
            .map(|n| {
                let (receive, send) = (channels[n].1.clone(), channels[(n + 1) % 8].0.clone());
                let begun = Arc::clone(&begun);
                spawn(move || {
                    begun.fetch_add(1, Ordering::Relaxed);
                    // So that others are begun elsewhere.
                    compute(Duration::from_millis(3));
                    while let Ok(number) = receive.recv() {
                        // The last round tells all to end.
                        let _ = send.send(number.saturating_sub(1));
                        if number == 0 {
                            break;
                        }
                    }
                    lwp()
                })
            })
            .collect();
        let load: Vec<_> = (0..if busy { 6 } else { 0 })
            .map(|n| {
                let done = Arc::clone(&done);
                spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        match n % 3 {
                            0 => yield_now(),
                            1 => fut::sleep(Duration::from_micros(20)),
                            _ => drop(spawn(|| compute(Duration::from_micros(20))).join()),
                        }
                    }
                })
            })
            .collect();
        while begun.load(Ordering::Relaxed) < 8 {
            yield_now();
        }
        channels[0].0.send(if busy { 100 } else { 1_000 }).unwrap();
        let lwps: BTreeSet<_> = join_all(members).into_iter().collect();
        done.store(true, Ordering::Relaxed);
        join_all(load);
        tell.send(lwps).unwrap();
    });
    let lwps = told.recv_timeout(LONG).unwrap_or_else(|_| {
        fut::live_threads().iter().for_each(|thread| eprintln!("  {thread:?}"));
        panic!("{policy:?}, busy {busy}: a wakeup was lost")
    });
    assert!(lwps.len() > 1, "{policy:?}: all on {lwps:?}");
    main.join().unwrap();
}

#[test]
fn a_thread_that_another_lwp_readies_wakes_its_own() {
    for policy in POLICIES {
        a_message_goes_round(policy, false);
        a_message_goes_round(policy, true);
    }
}

/// CPU time of the calling LWP, and of the process.
fn cpu_times() -> (Duration, Duration) {
    let of = |clock| {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a valid place.
        unsafe { libc::clock_gettime(clock, &raw mut time) };
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    (of(libc::CLOCK_THREAD_CPUTIME_ID), of(libc::CLOCK_PROCESS_CPUTIME_ID))
}

/// Two threads of one LWP unpark each other all the time. No other LWP could run them, so no other is woken.
#[test]
fn lwps_sleep_while_only_another_has_work() {
    if env::var_os(CASE).is_none() {
        // A process of its own: the CPU time of other tests would count.
        let program = Command::new(env::current_exe().unwrap())
            .args(["wakeups::lwps_sleep_while_only_another_has_work", "--exact", "--nocapture"])
            .env(CASE, "1")
            .output()
            .unwrap();
        assert!(program.status.success(), "{}", String::from_utf8_lossy(&program.stderr));
        return;
    }
    let (mine, all) = runtime(4).run(|| {
        let (there, back) = (unbounded::<u32>(), unbounded::<u32>());
        let (receive, answer) = (there.1, back.0);
        let home = lwp();
        let partner = |receive: fut::sync::channel::Receiver<u32>,
                       answer: fut::sync::channel::Sender<u32>| {
            spawn(move || {
                let here = lwp();
                while let Ok(number) = receive.recv() {
                    answer.send(number).unwrap();
                }
                here
            })
        };
        // Begun here, since this thread leaves at once and the others are asleep or late.
        let partner = partner(receive, answer);
        there.0.send(0).unwrap();
        back.1.recv().unwrap();
        let before = cpu_times();
        let until = Instant::now() + Duration::from_millis(300);
        while Instant::now() < until {
            there.0.send(1).unwrap();
            back.1.recv().unwrap();
        }
        let after = cpu_times();
        drop(there.0);
        let theirs = partner.join().unwrap();
        let (mine, all) = (after.0 - before.0, after.1 - before.1);
        // Elsewhere it would be another test: of waking each other's LWP.
        if theirs == home { (mine, all) } else { (all, all) }
    });
    assert!(all < mine.mul_f64(1.25), "{mine:?} of this LWP, {all:?} of all");
}
