//! Models of the tree of cancellation tokens, while tokens are made, dropped and cancelled.

use loom::thread;

use super::check;
use crate::sync::CancellationToken;

#[test]
fn loom_cancellation_reaches_a_child_that_is_just_made() {
    check(None, || {
        let token = CancellationToken::new();
        let parent = token.clone();
        let cancels = thread::spawn(move || token.cancel());
        parent.child_token().cancelled();
        cancels.join().unwrap();
    });
}

/// The token between the two is dropped: the lower one is a child of the upper one by then, or is just becoming it.
#[test]
fn loom_cancellation_reaches_a_child_whose_parent_leaves_the_tree() {
    check(Some(4), || {
        let upper = CancellationToken::new();
        let middle = upper.child_token();
        let lower = middle.child_token();
        let leaves = thread::spawn(move || drop(middle));
        let cancels = thread::spawn(move || upper.cancel());
        lower.cancelled();
        leaves.join().unwrap();
        cancels.join().unwrap();
    });
}

/// Two neighbours leave the tree at once.
#[test]
fn loom_cancellation_passes_two_that_leave_the_tree() {
    check(None, || {
        let first = CancellationToken::new();
        let second = first.child_token();
        let third = second.child_token();
        let last = third.child_token();
        let leaves = thread::spawn(move || drop(second));
        drop(third);
        leaves.join().unwrap();
        assert!(!last.is_cancelled());
        first.cancel();
        assert!(last.is_cancelled());
    });
}
