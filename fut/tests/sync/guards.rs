//! Owned and mapped guards.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use fut::{
    WaitKind, spawn,
    sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use super::{blocked, on_one_and_four_lwps};

#[test]
fn an_owned_guard_keeps_its_mutex_locked_and_alive() {
    on_one_and_four_lwps(|| {
        let mutex = Arc::new(Mutex::new(vec![1]));
        let guard = Arc::clone(&mutex).lock_owned();
        assert!(mutex.try_lock().is_none() && Arc::clone(&mutex).try_lock_owned().is_none());
        let waits = {
            let mutex = Arc::clone(&mutex);
            spawn(move || mutex.lock_owned().len())
        };
        assert_eq!(blocked(waits.id()).0, WaitKind::Mutex);
        // Another thread has the guard, and drops it.
        let holds = spawn(move || {
            let mut guard = guard;
            guard.push(2);
        });
        holds.join().unwrap();
        assert_eq!(waits.join().unwrap(), 2);
        let last = mutex.try_lock_owned().unwrap();
        assert_eq!(*last, [1, 2]);
    });
}

#[test]
fn owned_guards_of_a_read_write_lock_share_and_exclude() {
    on_one_and_four_lwps(|| {
        let lock = Arc::new(RwLock::new(1));
        let of = || Arc::clone(&lock);
        let readers = [of().read_owned(), of().try_read_owned().unwrap()];
        assert!(of().try_write_owned().is_none());
        assert!(readers.iter().all(|reader| **reader == 1));
        drop(readers);
        let mut writer = of().try_write_owned().unwrap();
        *writer += 1;
        assert!(of().try_read_owned().is_none());
        drop(spawn(move || drop(writer)).join());
        *of().write_owned() += 1;
        assert_eq!(*lock.read(), 3);
    });
}

#[test]
fn a_mapped_guard_unlocks_its_mutex() {
    on_one_and_four_lwps(|| {
        let mutex = Mutex::new((1, [2, 3]));
        let mut slice = MutexGuard::map(mutex.lock(), |value| &mut value.1[..]);
        assert!(mutex.try_lock().is_none());
        slice[0] = 5;
        drop(slice);
        assert_eq!(mutex.lock().1, [5, 3]);
        let none = MutexGuard::filter_map(mutex.lock(), |_| None::<&mut u32>).expect_err("there is no part");
        drop(none);
        *MutexGuard::filter_map(mutex.lock(), |value| value.1.last_mut()).unwrap() = 7;
        let panics = catch_unwind(AssertUnwindSafe(|| {
            drop(MutexGuard::map(mutex.lock(), |_| -> &mut u32 { panic!("as it should") }));
        }));
        assert!(panics.is_err());
        assert_eq!(*mutex.try_lock().unwrap(), (1, [5, 7]));
    });
}

#[test]
fn mapped_guards_of_a_read_write_lock_share_exclude_and_release() {
    on_one_and_four_lwps(|| {
        let lock = RwLock::new((1, [2, 3]));
        let one = RwLockReadGuard::map(lock.read(), |value| &value.0);
        let other = RwLockReadGuard::filter_map(lock.try_read().unwrap(), |value| value.1.last()).unwrap();
        assert!(lock.try_write().is_none());
        assert_eq!((*one, *other), (1, 3));
        // Another user thread has it, and drops it.
        fut::scope(|scope| scope.spawn(move || drop(one)).join().unwrap());
        assert!(lock.try_write().is_none());
        drop(other);
        let mut slice = RwLockWriteGuard::map(lock.try_write().unwrap(), |value| &mut value.1[..]);
        assert!(lock.try_read().is_none());
        slice[0] = 5;
        fut::scope(|scope| scope.spawn(move || slice[1] = 6).join().unwrap());
        let none =
            RwLockWriteGuard::filter_map(lock.write(), |_| None::<&mut u32>).expect_err("there is no part");
        drop(none);
        let none = RwLockReadGuard::filter_map(lock.read(), |_| None::<&u32>).expect_err("there is no part");
        drop(none);
        for panics in [
            catch_unwind(AssertUnwindSafe(|| {
                drop(RwLockWriteGuard::map(lock.write(), |_| -> &mut u32 { panic!("as it should") }));
            })),
            catch_unwind(AssertUnwindSafe(|| {
                drop(RwLockReadGuard::map(lock.read(), |_| -> &u32 { panic!("as it should") }));
            })),
        ] {
            assert!(panics.is_err());
        }
        assert_eq!(*lock.try_write().unwrap(), (1, [5, 6]));
    });
}
