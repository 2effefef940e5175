//! corosensei alone: the cost of switching stacks without a scheduler. A lower bound, not a peer.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use corosensei::{Coroutine, CoroutineResult, Yielder, stack::DefaultStack};

use crate::work::Work;

const STACK_SIZE: usize = 16 << 10;

pub(super) fn run(work: Work) -> Duration {
    let stack = || DefaultStack::new(STACK_SIZE).expect("memory for a stack");
    match work {
        Work::Yield { threads, yields } => {
            let mut all: Vec<_> = (0..threads).map(|_| yielding(stack())).collect();
            let elapsed = second_time(|| {
                for _ in 0..yields / threads {
                    for one in &mut all {
                        black_box(one.resume(false).as_yield());
                    }
                }
            });
            all.iter_mut().for_each(|one| _ = one.resume(true));
            elapsed
        }
        Work::SpawnJoin { times } => {
            let mut free = Some(stack());
            second_time(|| {
                for i in 0..times {
                    free = free.take().map(|stack| run_to_end(spawned(stack, i)));
                }
            })
        }
        Work::SpawnMany { at_once, rounds } => {
            let mut free: Vec<_> = (0..at_once).map(|_| stack()).collect();
            second_time(|| {
                for _ in 0..rounds {
                    let spawn = |(i, stack)| spawned(stack, i);
                    let all: Vec<_> = (0..).zip(free.drain(..)).map(spawn).collect();
                    free.extend(all.into_iter().map(run_to_end));
                }
            })
        }
        _ => unreachable!("there is no scheduler here"),
    }
}

/// Suspends itself until it is resumed with the request to end.
fn yielding(stack: DefaultStack) -> Coroutine<bool, (), (), DefaultStack> {
    Coroutine::with_stack(stack, |yielder: &Yielder<bool, ()>, mut end: bool| {
        while !end {
            end = yielder.suspend(());
        }
    })
}

fn spawned(stack: DefaultStack, i: u64) -> Coroutine<(), (), u64, DefaultStack> {
    Coroutine::with_stack(stack, move |_: &Yielder<(), ()>, ()| black_box(i))
}

fn run_to_end(mut coroutine: Coroutine<(), (), u64, DefaultStack>) -> DefaultStack {
    match coroutine.resume(()) {
        CoroutineResult::Return(i) => black_box(i),
        CoroutineResult::Yield(()) => unreachable!("it does not yield"),
    };
    coroutine.into_stack()
}

fn second_time(mut work: impl FnMut()) -> Duration {
    work();
    let start = Instant::now();
    work();
    start.elapsed()
}
