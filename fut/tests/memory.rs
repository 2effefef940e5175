//! What a runtime has used is given back when it has ended.

use std::{fs, time::Duration};

use fut::{Builder, Runtime, sleep, spawn};

/// Bytes of address space, and those that are resident.
fn used() -> (u64, u64) {
    let pages = fs::read_to_string("/proc/self/statm").unwrap();
    let mut pages = pages.split_whitespace().map(|pages| pages.parse::<u64>().unwrap() * 4096);
    (pages.next().unwrap(), pages.next().unwrap())
}

#[test]
fn stacks_of_a_runtime_that_has_ended_are_unmapped() {
    let one = || {
        let runtime = Runtime::builder().lwps(2).build().unwrap();
        runtime.run(|| {
            let sleeping = || spawn(|| sleep(Duration::from_millis(20)));
            let threads: Vec<_> = (0..2000).map(|_| sleeping()).collect();
            let large = Builder::new().stack_size(4 << 20).spawn(|| ());
            threads.into_iter().chain([large]).for_each(|thread| thread.join().unwrap());
        });
        runtime.shutdown(Duration::from_secs(20)).unwrap();
    };
    (0..3).for_each(|_| one());
    let before = used();
    (0..10).for_each(|_| one());
    let after = used();
    // The stacks of one have 130 MB of address space, and 8 MB or more that are resident.
    assert!(after.0 < before.0 + (65 << 20), "{before:?}, {after:?}");
    assert!(after.1 < before.1 + (16 << 20), "{before:?}, {after:?}");
}
