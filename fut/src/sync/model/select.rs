//! Models of selections.

use loom::thread;

use super::{check, passed};
use crate::sync::channel::{
    self,
    __select::{Limit, Operation, select},
    Receiver, RecvError, SendError, Sender,
};

/// Receives from one of the two; `None` if the time was over.
fn recv_either<T>(first: &Receiver<T>, second: &Receiver<T>, limit: Limit) -> Option<Result<T, RecvError>> {
    let (mut first, mut second) = (first.__receive(), second.__receive());
    let mut operations: [&mut dyn Operation; 2] = [&mut first, &mut second];
    select(&mut operations, limit);
    first.take().or(second.take())
}

fn send_either<T>(
    first: &Sender<T>,
    second: &Sender<T>,
    values: [T; 2],
    limit: Limit,
) -> Option<Result<(), SendError<T>>> {
    let [one, two] = values;
    let (mut first, mut second) = (first.__send(one), second.__send(two));
    let mut operations: [&mut dyn Operation; 2] = [&mut first, &mut second];
    select(&mut operations, limit);
    first.take().or(second.take())
}

/// Two senders pass values directly to a receiver: both values arrive, each once.
#[test]
fn loom_select_receives_from_both() {
    check(Some(2), || {
        let (to_first, first) = channel::bounded(0);
        let (to_second, second) = channel::bounded(0);
        let senders = [(to_first, 1), (to_second, 2)].map(|(sender, n)| {
            thread::spawn(move || {
                sender.send(n).unwrap();
                std::mem::forget(sender);
            })
        });
        let received = [(); 2].map(|()| recv_either(&first, &second, Limit::Forever).unwrap().unwrap());
        assert!(received == [1, 2] || received == [2, 1]);
        senders.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// Selections on both sides: one value is passed, and both sides agree on which.
#[test]
fn loom_select_meets_select() {
    check(Some(3), || {
        let (to_first, first) = channel::bounded(0);
        let (to_second, second) = channel::bounded(0);
        let sends = thread::spawn(move || {
            let sent = send_either(&to_first, &to_second, [1, 2], Limit::Forever);
            assert_eq!(sent, Some(Ok(())));
            (to_first, to_second)
        });
        // In the opposite order.
        let received = recv_either(&second, &first, Limit::Forever);
        assert!(matches!(received, Some(Ok(1 | 2))));
        drop(sends.join().unwrap());
    });
}

/// Either both sides have passed the value, or both have timed out.
#[test]
fn loom_select_neither_loses_nor_duplicates_a_value_at_a_deadline() {
    check(Some(3), || {
        let (to_first, first) = channel::bounded(0);
        let (to_second, second) = channel::bounded::<Box<i32>>(0);
        let sends = thread::spawn(move || to_first.send_deadline(Box::new(1), passed()).is_ok());
        let received = match recv_either(&first, &second, Limit::Until(passed())) {
            Some(Ok(_)) => true,
            Some(Err(RecvError)) | None => false,
        };
        assert_eq!(sends.join().unwrap(), received);
        drop(to_second);
    });
}

/// A plain receiver waits for a value. A selection gets that value, or withdraws from it.
#[test]
fn loom_select_passes_a_value_on_when_it_selects_another() {
    check(Some(2), || {
        let (to_first, first) = channel::bounded(1);
        let (to_second, second) = channel::bounded(1);
        let sends = thread::spawn(move || {
            to_first.send(1).unwrap();
            to_second.send(2).unwrap();
            (to_first, to_second)
        });
        let received = recv_either(&first, &second, Limit::Forever).unwrap().unwrap();
        let other = if received == 1 { second.recv() } else { first.recv() };
        assert_eq!(other, Ok(3 - received));
        drop(sends.join().unwrap());
    });
}
