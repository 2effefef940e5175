//! Stacks of a size of their own, and threads that cannot have one.

use std::{
    hint::black_box,
    io::ErrorKind,
    panic::{AssertUnwindSafe, catch_unwind},
};

use fut::{Builder, JoinSet, scope, spawn};

use super::kind::builder;

/// Uses at least so many bytes of stack.
fn deep(bytes: usize) -> usize {
    let frame = black_box([1_u8; 4096]);
    if bytes <= frame.len() {
        frame.len()
    } else {
        deep(bytes - frame.len()) + usize::from(frame[bytes % 4096])
    }
}

#[test]
fn a_thread_has_the_stack_that_it_asks_for_beside_others_of_the_usual_size() {
    for lwps in [1, 2] {
        builder().lwps(lwps).stack_size(32 << 10).build().unwrap().run(|| {
            for _ in 0..20 {
                let large: Vec<_> = [1 << 20, 8 << 20, 100 << 10]
                    .into_iter()
                    .map(|size| Builder::new().stack_size(size).spawn(move || deep(size / 3)))
                    .collect();
                let usual: Vec<_> = (0..10).map(|_| spawn(|| deep(4096))).collect();
                let tried = Builder::new().try_spawn(|| deep(4096)).unwrap();
                assert!(large.into_iter().chain(usual).all(|thread| thread.join().unwrap() > 0));
                assert!(tried.join().unwrap() > 0);
            }
        });
    }
}

#[test]
fn a_stack_that_no_memory_can_hold_is_an_error_or_a_panic_and_nothing_waits_for_its_thread() {
    builder().lwps(1).build().unwrap().run(|| {
        for size in [1 << 60, usize::MAX] {
            let large = || Builder::new().stack_size(size);
            let error = large().try_spawn(|| ()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfMemory);
            assert!(error.to_string().contains(&format!("a stack of {size} bytes")), "{error}");
            assert!(catch_unwind(|| large().spawn(|| ())).is_err());
            let joined = scope(|scope| {
                let panics = catch_unwind(AssertUnwindSafe(|| large().spawn_scoped(scope, || ()))).is_err();
                let error = large().try_spawn_scoped(scope, || ()).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::OutOfMemory);
                assert_eq!(Builder::new().try_spawn_scoped(scope, || 4).unwrap().join().unwrap(), 4);
                (panics, scope.spawn(|| 5).join().unwrap())
            });
            assert_eq!(joined, (true, 5));
            let mut set = JoinSet::new();
            assert_eq!(set.try_spawn_with(large(), || 6).unwrap_err().kind(), ErrorKind::OutOfMemory);
            set.try_spawn_with(Builder::new(), || 7).unwrap();
            assert_eq!(set.join_all(), [7]);
        }
    });
    // From a plain thread.
    let runtime = builder().lwps(1).build().unwrap();
    let refused = Builder::new().stack_size(1 << 60).try_spawn_in(&runtime, || ()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::OutOfMemory);
    let named = Builder::new().name("a").try_spawn_in(&runtime, || 9).unwrap();
    assert_eq!(named.name(), Some("a"));
    assert_eq!(named.join().unwrap(), 9);
    assert_eq!(Builder::new().stack_size(1 << 20).spawn_in(&runtime, || 8).join().unwrap(), 8);
}
