//! The rows of `--locks`: sums over requests, then the convoys of each lock.

use std::cmp::Reverse;

use super::{
    Selection,
    convoy::{Holders, Ready, Reason, Timeline, unite},
    holders::HeldBy,
    lock::{Lock, locks},
    wakers::{Ended, RowOf, Waker, most},
};
use crate::{
    Actor, Answer, By, Culprits, Group, History, Interval, Labels, LockRequest, Names, Piece, Request,
    Searches, Slice, Value, Waits, What, Word,
    groups::{Groups, Owner},
    map::Map,
    near,
    numbering::{ByNumber, number},
    parallel,
    sliced::Sliced,
};

/// The key of a row, apart from the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    group: Option<u32>,
    kind: Word,
    call_site: Option<Word>,
}

/// Sums over requests.
#[derive(Clone, Debug, Default)]
struct Row {
    requests: u64,
    contended: u64,
    wait: i64,
    longest_wait: i64,
    holds: u64,
    hold: i64,
    longest_hold: i64,
    holders: HeldBy,
    /// The time in which at least one thread waited.
    waited: i64,
    /// What the holders did in that time.
    known: Holders,
    /// For futexes and locks of the kernel: who ended the waits, and the ticks of those waits.
    wakers: Map<Waker, i64>,
}

impl Row {
    /// Adds the parts of a request that count in a slice.
    fn add(&mut self, asked: &LockRequest, slice: Slice) {
        let (waiting, holding) = (asked.waiting(), asked.holding());
        if slice.owns(whole(asked)) {
            self.requests += 1;
            if asked.is_acquired() {
                self.holders.insert(asked.owner());
            }
        }
        let wait = waiting.clipped(slice.window).filter(|_| asked.is_contended && slice.owns(waiting));
        if let Some(wait) = wait {
            self.contended += 1;
            self.wait += wait.ticks();
            self.longest_wait = self.longest_wait.max(wait.ticks());
        }
        let hold = holding.filter(|hold| slice.owns(*hold)).and_then(|hold| hold.clipped(slice.window));
        if let Some(hold) = hold {
            self.holds += 1;
            self.hold += hold.ticks();
            self.longest_hold = self.longest_hold.max(hold.ticks());
        }
    }

    fn merge(&mut self, other: Row, names: &Names) {
        self.requests += other.requests;
        self.contended += other.contended;
        self.wait += other.wait;
        self.longest_wait = self.longest_wait.max(other.longest_wait);
        self.holds += other.holds;
        self.hold += other.hold;
        self.longest_hold = self.longest_hold.max(other.longest_hold);
        self.holders.merge(other.holders, names);
        self.waited += other.waited;
        self.known.add(other.known);
        for (waker, ticks) in other.wakers {
            *self.wakers.entry(waker).or_insert(0) += ticks;
        }
    }

    /// What holders did while somebody waited; `None` if no holder is known at any instant of that time.
    fn known(&self) -> Option<Holders> {
        Some(self.known).filter(|known| self.contended == 0 || known.total() > 0)
    }
}

/// From the request to the release, as far as it is known.
fn whole(asked: &LockRequest) -> Interval {
    Interval::new(asked.tick, asked.holding().unwrap_or(asked.waiting()).to)
}

/// What the holders of a lock did while others waited, over all rows of the lock.
#[derive(Clone, Debug, Default)]
struct Main {
    has_waits: bool,
    known: Holders,
    reasons: Map<(&'static str, Reason), i64>,
    /// When holders waited for an LWP, in the current slice.
    ready: Vec<Ready>,
}

/// For a lock, and a state in which its holders waited for an LWP: the culprit that had the LWPs longest, and for how
/// long.
type HadLwps = Map<(Lock, &'static str), (String, i64)>;

impl Main {
    fn merge(&mut self, other: Main) {
        self.has_waits |= other.has_waits;
        self.known.add(other.known);
        for (reason, ticks) in other.reasons {
            *self.reasons.entry(reason).or_insert(0) += ticks;
        }
    }

    fn cells(&self, history: &History, lock: Lock, had_lwps: &HadLwps) -> [Value<'_>; 5] {
        let convoy = Some(self.known.off).filter(|_| !self.has_waits || self.known.total() > 0);
        let mut states: Map<&'static str, i64> = Map::default();
        for ((state, _), ticks) in &self.reasons {
            *states.entry(state).or_insert(0) += ticks;
        }
        let state = states.into_iter().max_by_key(|(state, ticks)| (*ticks, Reverse(*state)));
        let of_state = self.reasons.iter().filter(|((of, _), _)| state.is_some_and(|(is, _)| is == *of));
        let most = of_state.clone().map(|(_, ticks)| *ticks).max();
        // Of several culprits with the same share, the first by name. An unknown culprit is not named.
        let labels = of_state.filter(|(_, ticks)| Some(**ticks) == most);
        let culprit = labels.filter_map(|((_, reason), _)| label(history, reason)).min();
        let had_lwps = state.and_then(|(state, _)| had_lwps.get(&(lock, state)));
        let (culprit, most) = match had_lwps {
            Some((culprit, ticks)) => (Some(culprit.clone()), Some(*ticks)),
            None => (culprit, most),
        };
        [
            convoy.into(),
            state.map(|(state, _)| state).into(),
            state.map(|(_, ticks)| ticks).into(),
            culprit.clone().into(),
            culprit.and(most).into(),
        ]
    }
}

/// A lock in a slice: its number, its rows, and what all its rows share.
type OfLock = (u32, Vec<(Key, Row)>, Main);

/// Requests of a slice, or of a part of one.
struct Requests<'h> {
    history: &'h History,
    request: &'h Request,
    selection: Selection<'h>,
    /// The lock of each request of the history.
    lock_of: Vec<u32>,
    /// The group of each request of the history, if rows are grouped.
    group_of: Vec<u32>,
}

impl<'h> Requests<'h> {
    /// The rows of the requests at these places. These must be all requests that overlap or touch the slice.
    fn rows(&self, slice: Slice, places: &[u32], locks: usize) -> Vec<OfLock> {
        let lock_of: Vec<u32> = places.iter().map(|place| self.lock_of[*place as usize]).collect();
        let by_lock = ByNumber::new(locks, &lock_of);
        drop(lock_of);
        let numbers: Vec<u32> =
            (0..by_lock.len() as u32).filter(|lock| !by_lock.of(*lock).is_empty()).collect();
        let new = || (Searches::new(self.history), Vec::new());
        let rows = parallel::fold(&numbers, new, |(searches, rows), lock| {
            let of_lock = by_lock.of(*lock).iter().map(|row| places[*row as usize]);
            rows.push(self.of_lock(searches, slice, *lock, &of_lock.collect::<Vec<_>>()));
        });
        rows.into_iter().flat_map(|(_, rows)| rows).collect()
    }

    fn of_lock(&self, searches: &mut Searches<'h>, slice: Slice, lock: u32, places: &[u32]) -> OfLock {
        // Each row, with the union of its waits in the slice.
        let mut rows: Vec<(Key, Row, Vec<Interval>)> = Vec::new();
        let mut known: Map<Key, usize> = Map::default();
        let mut main = Main::default();
        let mut waited = Vec::new();
        for place in places {
            let asked = &self.history.locks[*place as usize];
            let is_inside = whole(asked).clipped(slice.window).is_some();
            if !is_inside || !self.selection.has(self.history, asked) {
                continue;
            }
            let group = self.group_of.get(*place as usize).copied();
            let key = Key { group, kind: asked.kind, call_site: asked.call_site };
            // Usually it is the row of the previous request.
            let row = match rows.last() {
                Some((of_last, ..)) if *of_last == key => rows.len() - 1,
                _ => *known.entry(key).or_insert_with(|| {
                    rows.push((key, Row::default(), Vec::new()));
                    rows.len() - 1
                }),
            };
            let (_, row, waits) = &mut rows[row];
            row.add(asked, slice);
            if let (true, Some(wait)) = (asked.is_contended, asked.waiting().clipped(slice.interval)) {
                unite(waits, wait);
                unite(&mut waited, wait);
            }
        }
        if !waited.is_empty() {
            let by = self.request.by(self.history);
            let timeline = Timeline::new(searches, by == By::Lwp, self.holds(places, &waited), &waited);
            main.has_waits = true;
            main.known = timeline.within(&waited);
            main.reasons = timeline.reasons(self.history, by);
            main.ready = timeline.ready.clone();
            parallel::map(rows.chunks_mut(ROWS), |rows| {
                for (_, row, waits) in rows {
                    row.waited = waits.iter().map(|wait| wait.ticks()).sum();
                    row.known = timeline.within(waits);
                }
            });
        }
        (lock, rows.into_iter().map(|(key, row, _)| (key, row)).collect(), main)
    }

    /// The selected waits that count in a slice, of those locks whose waker is the one that released them.
    fn ended(&self, slice: Slice, locks: &[Lock], groups: &Groups<'_>) -> Vec<Ended> {
        let places = (0..self.history.locks.len()).filter(|place| {
            let asked = &self.history.locks[*place];
            asked.has_waker(self.history) && self.selection.has(self.history, asked)
        });
        let ended = places.filter_map(|place| {
            let asked = &self.history.locks[place];
            let row = || -> RowOf {
                let group = self.group_of.get(place).map(|group| groups.group(*group).clone());
                (group, locks[self.lock_of[place] as usize], asked.kind, asked.call_site)
            };
            Ended::new(asked, slice, row)
        });
        ended.collect()
    }

    /// The holds of a lock during which somebody waited, in the order of acquisition.
    fn holds(&self, places: &[u32], waited: &[Interval]) -> Vec<(Interval, Owner)> {
        let hold = |place: &u32| {
            let asked = &self.history.locks[*place as usize];
            Some((asked.holding().filter(|hold| hold.ticks() > 0)?, asked.owner()?))
        };
        let mut holds: Vec<(Interval, Owner)> = places.iter().filter_map(hold).collect();
        holds.sort_by_key(|(hold, _)| hold.from);
        let mut run = 0;
        holds.retain(|(hold, _)| {
            run = near(waited, |wait| wait.to <= hold.from, run);
            waited.get(run).is_some_and(|wait| wait.from < hold.to)
        });
        holds
    }
}

/// The rows so far, by group, lock, kind and call site; and what all rows of each lock share.
pub(super) struct Locks {
    request: Request,
    rows: Map<(Option<Group>, Lock, Word, Option<Word>), Row>,
    locks: Map<Lock, Main>,
    /// What LWPs carried while holders waited for one. The key is the lock and the state of the holder.
    had_lwps: Culprits<(Lock, &'static str)>,
    labels: Labels,
    /// Waits whose wakeup is in an earlier slice.
    ended: Vec<Ended>,
}

pub(super) fn start(request: &Request) -> Box<dyn Sliced> {
    Box::new(Locks {
        request: request.clone(),
        rows: Map::default(),
        locks: Map::default(),
        had_lwps: Culprits::new(1),
        labels: Labels::default(),
        ended: Vec::new(),
    })
}

impl Locks {
    /// Finds the wakers of waits that have ended, if their wakeup is in this slice.
    fn add_wakers(&mut self, history: &History, slice: Slice, ended: Vec<Ended>) {
        for ended in std::mem::take(&mut self.ended).into_iter().chain(ended) {
            match ended.waker(history) {
                Some(waker) => {
                    let row = self.rows.entry(ended.row).or_default();
                    *row.wakers.entry(waker).or_insert(0) += ended.ticks;
                }
                None if ended.is_open(slice) => self.ended.push(ended),
                None => {}
            }
        }
    }
}

impl Sliced for Locks {
    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        if slice.is_before_window() {
            self.add_wakers(history, slice, Vec::new());
            return Ok(());
        }
        let request = self.request.clone();
        let mut groups = Groups::new(history, &request);
        let (locks, lock_of) = locks(history);
        let group_of = match request.by {
            None => Vec::new(),
            Some(_) => group_of(history, &mut groups),
        };
        let selection = Selection::new(&request);
        let requests = Requests { history, request: &request, selection, lock_of, group_of };
        let parts = parts(&history.locks, slice);
        let of_part = |(part, places): &(Slice, Vec<u32>)| requests.rows(*part, places, locks.len());
        let of_parts: Vec<Vec<OfLock>> = parallel::map(&parts, of_part);
        let ended = requests.ended(slice, &locks, &groups);
        let mut waits = Waits::default();
        for (number, rows, mut main) in of_parts.into_iter().flatten() {
            let lock = locks[number as usize];
            for Ready { interval, thread, state } in std::mem::take(&mut main.ready) {
                let actor = Actor::Thread(thread);
                let piece =
                    Piece { interval, actor, lwp: None, cpu: None, what: What::WaitingForLwp, link: None };
                waits.push(history, (lock, state), &piece, 1);
            }
            self.locks.entry(lock).or_default().merge(main);
            for (Key { group, kind, call_site }, row) in rows {
                let group = group.map(|group| groups.group(group).clone());
                self.rows.entry((group, lock, kind, call_site)).or_default().merge(row, &history.names);
            }
        }
        let by = request.by(history);
        self.had_lwps.add_slice(history, (by, &mut self.labels), slice.interval, waits, std::iter::once);
        self.add_wakers(history, slice, ended);
        Ok(())
    }

    fn looks_back(&self) -> bool {
        !self.ended.is_empty()
    }

    fn finish(self: Box<Self>, history: &History) -> Result<Answer, String> {
        let mut answer = Answer::new(super::columns(history, &self.request));
        let words = &history.words;
        let mut rows: Vec<_> = self.rows.into_iter().filter(|(_, row)| row.requests > 0).collect();
        rows.sort_by_cached_key(|((group, lock, kind, site), row)| {
            let site = site.map(|site| words.text(site).to_string());
            (Reverse((row.wait, row.requests)), group.clone(), *lock, words.text(*kind).to_string(), site)
        });
        let (by, mut labels) = (self.request.by(history), self.labels);
        let mut had_lwps = HadLwps::default();
        for (of, largest) in self.had_lwps.finish(history, (by, &mut labels)) {
            for (culprit, ticks) in largest.texts(history, &labels).into_iter().take(1) {
                // Holders of one lock may belong to several processes.
                let known = had_lwps.entry(of).or_insert_with(|| (culprit.clone(), ticks));
                if ticks > known.1 {
                    *known = (culprit, ticks);
                }
            }
        }
        let main: Map<Lock, [Value<'_>; 5]> =
            self.locks.iter().map(|(lock, main)| (*lock, main.cells(history, *lock, &had_lwps))).collect();
        for ((group, lock, kind, call_site), row) in rows {
            let mut cells = group.map(|group| group.cells(history)).unwrap_or_default();
            cells.extend([
                lock.process.into(),
                lock.object.into(),
                words.text(kind).to_string().into(),
                call_site.map(|site| words.text(site).to_string()).into(),
                row.requests.into(),
                row.contended.into(),
                row.wait.into(),
                row.longest_wait.into(),
                row.holds.into(),
                (row.holds > 0).then_some(row.hold).into(),
                (row.holds > 0).then_some(row.longest_hold).into(),
                Some(row.holders.len(&history.names) as u64).filter(|holders| *holders > 0).into(),
                row.waited.into(),
                row.known().map(|holders| holders.active).into(),
                row.known().map(|holders| holders.off).into(),
                row.known().map(|holders| holders.unknown).into(),
                row.known().map(|holders| row.waited - holders.total()).into(),
            ]);
            cells.extend(main.get(&lock).into_iter().flatten().cloned());
            let waker = most(history, by, &row.wakers);
            cells.push(waker.as_ref().map(|(waker, _)| waker.clone()).into());
            cells.push(waker.map(|(_, ticks)| ticks).into());
            answer.push(cells);
        }
        Ok(answer)
    }
}

/// The group of each request, by its number.
fn group_of(history: &History, groups: &mut Groups<'_>) -> Vec<u32> {
    let asked = &history.locks;
    let (who, mut group_of) = number(asked.len(), |place| (asked[place].thread, asked[place].lwp));
    let group = |(thread, lwp)| groups.number(thread, lwp).unwrap_or_else(|| groups.nobody());
    let group_of_who: Vec<u32> = who.into_iter().map(group).collect();
    group_of.iter_mut().for_each(|who| *who = group_of_who[*who as usize]);
    group_of
}

/// The number of rows whose waits are added up at a time.
const ROWS: usize = 64;

/// The maximum number of requests in a part.
const PART: usize = 1 << 16;

/// Divides a slice into parts of time, the latest first. Each part has the places of the requests that overlap or touch
/// it. So several CPUs can work on one lock, even if all requests are for that lock.
fn parts(requests: &[LockRequest], slice: Slice) -> Vec<(Slice, Vec<u32>)> {
    let inside = |tick: i64| slice.interval.from < tick && tick < slice.interval.to;
    let mut borders: Vec<i64> =
        requests.iter().step_by(PART).map(|asked| asked.tick).filter(|tick| inside(*tick)).collect();
    borders.dedup();
    let mut parts: Vec<(Slice, Vec<u32>)> = Vec::with_capacity(borders.len() + 1);
    let ends = borders.iter().copied().chain([slice.interval.to]);
    let begins = [slice.interval.from].into_iter().chain(borders.iter().copied());
    for (from, to) in begins.zip(ends) {
        parts.push((Slice { interval: Interval { from, to }, ..slice }, Vec::new()));
    }
    for (place, asked) in requests.iter().enumerate() {
        let Interval { from, to } = whole(asked);
        let first = borders.partition_point(|border| *border < from);
        for (part, places) in &mut parts[first..] {
            if part.interval.from > to {
                break;
            }
            places.push(place as u32);
        }
    }
    parts.reverse();
    parts
}

fn label(history: &History, reason: &Reason) -> Option<String> {
    Some(match reason {
        Reason::Cpu(culprit) => culprit.label(history),
        Reason::Call(name) => history.words.text(*name).to_string(),
        Reason::Waits(kind, 0) => kind.name().to_string(),
        Reason::Waits(kind, object) if *object > 0xfff => format!("{} {object:#x}", kind.name()),
        Reason::Waits(kind, object) => format!("{} {object}", kind.name()),
        Reason::Lwps | Reason::Unknown => return None,
    })
}
