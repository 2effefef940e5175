//! What each recorder spent.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sigmund_model::{Lwp, Thread};

use super::Recorder;

/// What a recorder recorded, and what that cost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Paid {
    pub(super) events: u64,
    pub(super) words: u64,
    pub(super) ticks: f64,
}

impl Paid {
    pub(super) fn add(&mut self, events: u64, words: u64, ticks: f64) {
        self.events += events;
        self.words += words;
        self.ticks += ticks;
    }
}

/// Threads of a page: numbers that are near each other are often counted together.
const PAGE: usize = 1024;

/// All recorders: millions of threads, mostly with numbers that have no holes.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pages: Vec<Box<[Paid; PAGE]>>,
    /// The place of a page, by the number of its first thread.
    places: HashMap<u64, usize, RandomState>,
    /// The page that was used last.
    last: Option<(u64, usize)>,
    lwps: HashMap<Lwp, Paid, RandomState>,
}

impl Recorded {
    /// What the recorder of an event spent: its user thread, else its LWP. `None` if neither is known.
    pub(super) fn of(&mut self, lwp: Option<i32>, thread: Option<i64>) -> Option<&mut Paid> {
        let Some(thread) = thread.map(|thread| thread as u64) else {
            return Some(self.lwps.entry(Lwp(lwp? as u32)).or_default());
        };
        let first = thread / PAGE as u64;
        let place = match self.last {
            Some((of, place)) if of == first => place,
            _ => *self.places.entry(first).or_insert_with(|| {
                self.pages.push(Box::new([Paid::default(); PAGE]));
                self.pages.len() - 1
            }),
        };
        self.last = Some((first, place));
        self.pages[place].get_mut((thread % PAGE as u64) as usize)
    }

    /// All that recorded something.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Recorder, Paid)> {
        let of_page = |(first, place): (&u64, &usize)| {
            let first = first * PAGE as u64;
            let threads = self.pages[*place].iter().zip(first..);
            threads.map(|(paid, thread)| (Recorder::Thread(Thread(thread)), *paid))
        };
        let threads = self.places.iter().flat_map(of_page).filter(|(_, paid)| paid.events > 0);
        threads.chain(self.lwps.iter().map(|(lwp, paid)| (Recorder::Lwp(*lwp), *paid)))
    }
}
