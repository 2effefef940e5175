//! The once cell.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use fut::{spawn, sync::OnceCell, yield_now};

use super::{join_all, on_one_and_four_lwps};

#[test]
fn the_value_is_made_once_by_a_function_that_blocks() {
    on_one_and_four_lwps(|| {
        let cell = Arc::new(OnceCell::new());
        let made = Arc::new(AtomicUsize::new(0));
        let seen = join_all((0..40).map(|n| {
            let (cell, made) = (Arc::clone(&cell), Arc::clone(&made));
            spawn(move || {
                *cell.get_or_init(|| {
                    (0..5).for_each(|_| yield_now());
                    made.fetch_add(1, Ordering::Relaxed);
                    n
                })
            })
        }));
        assert_eq!(made.load(Ordering::Relaxed), 1);
        assert!(seen.iter().all(|value| *value == seen[0]));
    });
}

#[test]
fn if_making_fails_or_panics_the_next_one_makes_it() {
    on_one_and_four_lwps(|| {
        let cell: Arc<OnceCell<usize>> = Arc::default();
        assert_eq!(cell.get_or_try_init(|| Err("no")), Err("no"));
        assert_eq!(cell.get(), None);
        let panics: Vec<_> = (0..10)
            .map(|n| {
                let cell = Arc::clone(&cell);
                spawn(move || {
                    *cell.get_or_init(|| {
                        yield_now();
                        assert!(n == 9, "on purpose");
                        n
                    })
                })
            })
            .collect();
        // All that came before the last made it panicked; all that came after it found its value.
        let results: Vec<_> = panics.into_iter().map(|thread| thread.join().ok()).collect();
        assert_eq!(results[9], Some(9));
        assert!(results.iter().all(|result| matches!(result, None | Some(9))));
        assert_eq!(cell.get(), Some(&9));
    });
}

#[test]
fn it_is_set_once_waited_for_and_taken() {
    on_one_and_four_lwps(|| {
        let cell = Arc::new(OnceCell::new());
        let waiters: Vec<_> = (0..20)
            .map(|_| {
                let cell = Arc::clone(&cell);
                spawn(move || *cell.wait())
            })
            .collect();
        yield_now();
        assert_eq!(cell.set(1), Ok(()));
        assert_eq!(cell.set(2), Err(2));
        assert!(join_all(waiters).into_iter().all(|value| value == 1));
        let mut cell = Arc::into_inner(cell).unwrap();
        *cell.get_mut().unwrap() += 1;
        assert_eq!((cell.take(), cell.take()), (Some(2), None));
        assert_eq!(cell.get_or_init(|| 3), &3);
        assert_eq!(OnceCell::from(4).into_inner(), Some(4));
    });
}
