//! Two LWPs that record at the same time, each on its own CPU. They share no written memory, so the cost stays the
//! same.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use fut::clock::ticks;

use crate::{
    BURST, drain,
    measure::{Cost, ROUNDS, Table, median, pin_to},
};

const BURSTS: usize = 5 * ROUNDS;

/// The cost on each of two CPUs, first alone and then at the same time.
pub(crate) fn measure(body: impl Fn(u64) + Copy + Send + 'static) -> Table {
    if thread::available_parallelism().map_or(1, usize::from) < 2 && cpus() < 2 {
        println!("not measured: there is one CPU");
        return Table(Vec::new());
    }
    let (first, second) = (alone(0, body), alone(1, body));
    let at_once = at_once(body);
    let cost = |name: &str, ticks| Cost { name: name.into(), ticks };
    Table(vec![
        cost("alone, the mean of both CPUs", (first + second) / 2.0),
        cost("alone on the first", first),
        cost("alone on the second", second),
        cost("at once, on the first", at_once[0]),
        cost("at once, on the second", at_once[1]),
    ])
}

fn cpus() -> i64 {
    // SAFETY: the call only returns a number.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }
}

fn alone(cpu: usize, body: impl Fn(u64) + Copy + Send + 'static) -> f64 {
    let lwp = thread::spawn(move || {
        pin_to(cpu);
        bursts(body, |_| {})
    });
    lwp.join().expect("a measurement")
}

fn at_once(body: impl Fn(u64) + Copy + Send + 'static) -> [f64; 2] {
    let arrived = Arc::new(AtomicUsize::new(0));
    let lwps = [0, 1].map(|cpu| {
        let arrived = Arc::clone(&arrived);
        thread::spawn(move || {
            pin_to(cpu);
            bursts(body, |burst| {
                // Release and Acquire pair with each other, although nothing but the simultaneous start matters.
                arrived.fetch_add(1, Ordering::AcqRel);
                while arrived.load(Ordering::Acquire) < 2 * (burst + 1) {
                    std::hint::spin_loop();
                }
            })
        })
    });
    lwps.map(|lwp| lwp.join().expect("a measurement"))
}

fn bursts(body: impl Fn(u64), meet: impl Fn(usize)) -> f64 {
    median((0..BURSTS).map(|burst| {
        drain::empty_the_rings();
        meet(burst);
        let start = ticks();
        body(BURST);
        (ticks() - start) as f64 / BURST as f64
    }))
}
