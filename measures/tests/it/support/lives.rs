//! Lives that a test changes.

use sigmund_measures::{Life, Lives};

/// Changes the life of one that there is.
pub(crate) fn change<K: Copy + Ord + Into<u64>>(
    lives: &mut Lives<K>,
    number: K,
    change: impl FnOnce(&mut Life<'_>),
) {
    let life = lives.get(number).expect("one of this number");
    let name = life.name.map(str::to_string);
    let mut life = Life { name: name.as_deref(), ..life };
    change(&mut life);
    lives.insert(number, life);
}
