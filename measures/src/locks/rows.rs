//! The rows of `--locks`: sums over requests, then the convoys of each lock.

use std::{cmp::Reverse, sync::Arc};

use rayon::prelude::*;

use super::{
    Selection,
    convoy::{Holders, Reason, Timeline, unite},
    holding::once_each,
    lock::locks,
};
use crate::{
    Answer, By, History, Interval, Request, Searches, Value, Word,
    groups::{Groups, Owner},
    map::Map,
    near,
    numbering::{ByNumber, number},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    group: Option<u32>,
    lock: u32,
    kind: Word,
    call_site: Option<Word>,
}

#[derive(Debug)]
struct Row {
    key: Key,
    requests: u64,
    contended: u64,
    wait: i64,
    longest_wait: i64,
    holds: u64,
    hold: i64,
    longest_hold: i64,
    holders: u64,
    /// Time in which at least one waited.
    waited: i64,
    /// Of that, what holders did; `None` if none is known at any instant of it.
    known: Option<Holders>,
    /// What the holders of the whole lock did.
    main: Shared,
}

/// The same for all rows of a lock.
type Shared = Arc<Main>;

/// Collects the rows of one lock.
struct OfLock<'s, 'h> {
    searches: &'s mut Searches<'h>,
    request: &'s Request,
    selection: &'s Selection<'s>,
    /// The group of each request, if rows are grouped; `NO_GROUP` if it is in none.
    group_of: &'s [u32],
}

const NO_GROUP: u32 = u32::MAX;

/// A row, the union of its waits, and who acquired the lock.
type Open = (Row, Vec<Interval>, Map<Option<Owner>, ()>);

impl OfLock<'_, '_> {
    fn rows(&mut self, lock: u32, requests: &[u32]) -> Vec<Row> {
        let history = self.searches.history;
        let mut rows: Vec<Open> = Vec::new();
        let mut places: Map<Key, usize> = Map::default();
        let mut waited = Vec::new();
        for place in requests {
            let asked = &history.locks[*place as usize];
            let (waiting, holding) = (asked.waiting(), asked.holding());
            let whole = Interval::new(asked.tick, holding.unwrap_or(waiting).to);
            if whole.clipped(self.request.window).is_none() || !self.selection.has(history, asked) {
                continue;
            }
            let group = self.group_of.get(*place as usize).copied();
            if group == Some(NO_GROUP) {
                continue;
            }
            let key = Key { group, lock, kind: asked.kind, call_site: asked.call_site };
            // Mostly that of the request before.
            let row = match rows.last() {
                Some((row, ..)) if row.key == key => rows.len() - 1,
                _ => *places.entry(key).or_insert_with(|| {
                    rows.push((Row::new(key), Vec::new(), Map::default()));
                    rows.len() - 1
                }),
            };
            let (row, waits, holders) = &mut rows[row];
            row.requests += 1;
            if let (true, Some(wait)) = (asked.is_contended, waiting.clipped(self.request.window)) {
                row.contended += 1;
                row.wait += wait.ticks();
                row.longest_wait = row.longest_wait.max(wait.ticks());
                unite(waits, wait);
                unite(&mut waited, wait);
            }
            if let Some(hold) = holding.and_then(|hold| hold.clipped(self.request.window)) {
                row.holds += 1;
                row.hold += hold.ticks();
                row.longest_hold = row.longest_hold.max(hold.ticks());
            }
            if asked.is_acquired() {
                holders.insert(asked.owner(), ());
            }
        }
        let timeline = (!waited.is_empty()).then(|| {
            let holds = self.holds(requests, &waited);
            let of_lwps = self.request.by(history) == By::Lwp;
            Timeline::new(self.searches, of_lwps, holds, &waited)
        });
        let main = match &timeline {
            Some(timeline) => Main::of(history, self.request.by(history), timeline, &waited),
            None => Main { convoy: Some(0), ..Main::default() },
        };
        let main = Shared::new(main);
        let finish = |(mut row, waits, holders): Open| {
            row.holders = holders.len() as u64;
            row.waited = waits.iter().map(|wait| wait.ticks()).sum();
            row.known = match &timeline {
                Some(timeline) if row.contended > 0 => {
                    Some(timeline.within(&waits)).filter(|holders| holders.total() > 0)
                }
                _ => Some(Holders::default()),
            };
            row.main = main.clone();
            row
        };
        rows.into_par_iter().map(finish).collect()
    }

    /// The holds of a lock in which somebody waited, in the order of acquisition.
    fn holds(&self, requests: &[u32], waited: &[Interval]) -> Vec<(Interval, Owner)> {
        let hold = |place: &u32| {
            let asked = &self.searches.history.locks[*place as usize];
            Some((asked.holding().filter(|hold| hold.ticks() > 0)?, asked.owner()?))
        };
        let mut holds: Vec<(Interval, Owner)> = requests.iter().filter_map(hold).collect();
        holds.sort_by_key(|(hold, _)| hold.from);
        once_each(&mut holds);
        let mut run = 0;
        holds.retain(|(hold, _)| {
            run = near(waited, |wait| wait.to <= hold.from, run);
            waited.get(run).is_some_and(|wait| wait.from < hold.to)
        });
        holds
    }
}

impl Row {
    fn new(key: Key) -> Row {
        Row {
            key,
            requests: 0,
            contended: 0,
            wait: 0,
            longest_wait: 0,
            holds: 0,
            hold: 0,
            longest_hold: 0,
            holders: 0,
            waited: 0,
            known: None,
            main: Shared::default(),
        }
    }
}

/// Writes the rows of all locks.
pub(super) fn write(history: &History, request: &Request, answer: &mut Answer) {
    let mut groups = Groups::new(history, request);
    let group_of: Vec<u32> = match request.by {
        None => Vec::new(),
        Some(_) => {
            let asked = &history.locks;
            let (who, mut group_of) = number(asked.len(), |place| (asked[place].thread, asked[place].lwp));
            let group = |(thread, lwp)| groups.number(thread, lwp).unwrap_or(NO_GROUP);
            let group_of_who: Vec<u32> = who.into_iter().map(group).collect();
            group_of.par_iter_mut().for_each(|who| *who = group_of_who[*who as usize]);
            group_of
        }
    };
    let (locks, lock_of) = locks(history);
    let by_lock = ByNumber::new(locks.len(), &lock_of);
    drop(lock_of);
    let selection = Selection::new(request);
    let of_lock = |searches: &mut Searches<'_>, lock: u32| {
        let mut of = OfLock { searches, request, selection: &selection, group_of: &group_of };
        of.rows(lock, by_lock.of(lock))
    };
    let numbers = (0..by_lock.len() as u32).into_par_iter();
    let mut rows: Vec<Row> = numbers.map_init(|| Searches::new(history), of_lock).flatten_iter().collect();

    let words = &history.words;
    let order = |row: &Row| {
        let site = row.key.call_site.map(|site| words.text(site));
        let group = row.key.group.map(|group| groups.group(group));
        let lock = locks[row.key.lock as usize];
        (Reverse((row.wait, row.requests)), group, lock, words.text(row.key.kind), site)
    };
    rows.sort_by(|a, b| order(a).cmp(&order(b)));
    for row in &rows {
        let group = row.key.group.map(|group| groups.group(group).cells(history));
        let mut cells = group.unwrap_or_default();
        let lock = locks[row.key.lock as usize];
        cells.extend([
            lock.process.into(),
            lock.object.into(),
            words.text(row.key.kind).to_string().into(),
            row.key.call_site.map(|site| words.text(site).to_string()).into(),
            row.requests.into(),
            row.contended.into(),
            row.wait.into(),
            row.longest_wait.into(),
            row.holds.into(),
            (row.holds > 0).then_some(row.hold).into(),
            (row.holds > 0).then_some(row.longest_hold).into(),
            (row.holders > 0).then_some(row.holders).into(),
            row.waited.into(),
            row.known.map(|holders| holders.active).into(),
            row.known.map(|holders| holders.off).into(),
            row.known.map(|holders| holders.unknown).into(),
            row.known.map(|holders| row.waited - holders.total()).into(),
        ]);
        cells.extend(row.main.cells());
        answer.push(cells);
    }
}

/// What the holder of a lock did most of the time while others waited.
#[derive(Clone, Debug, Default)]
struct Main {
    convoy: Option<i64>,
    state: Option<(&'static str, i64)>,
    culprit: Option<(String, i64)>,
}

impl Main {
    fn of(history: &History, by: By, timeline: &Timeline, waited: &[Interval]) -> Main {
        let reasons = timeline.reasons(history, by);
        let known = Some(timeline.within(waited)).filter(|holders| holders.total() > 0);
        let mut states: Map<&'static str, i64> = Map::default();
        for ((state, _), ticks) in &reasons {
            *states.entry(state).or_insert(0) += ticks;
        }
        let state = states.into_iter().max_by_key(|(state, ticks)| (*ticks, Reverse(*state)));
        let of_state = reasons.iter().filter(|((of, _), _)| state.is_some_and(|(is, _)| is == *of));
        let culprit = of_state.max_by_key(|((_, reason), ticks)| (**ticks, Reverse(reason)));
        let culprit = culprit.and_then(|((_, reason), ticks)| Some((label(history, reason)?, *ticks)));
        Main { convoy: known.map(|holders| holders.off), state, culprit }
    }

    fn cells(&self) -> [Value; 5] {
        [
            self.convoy.into(),
            self.state.map(|(state, _)| state).into(),
            self.state.map(|(_, ticks)| ticks).into(),
            self.culprit.as_ref().map(|(culprit, _)| culprit.clone()).into(),
            self.culprit.as_ref().map(|(_, ticks)| *ticks).into(),
        ]
    }
}

fn label(history: &History, reason: &Reason) -> Option<String> {
    Some(match reason {
        Reason::Cpu(culprit) => culprit.label(history),
        Reason::Call(name) => history.words.text(*name).to_string(),
        Reason::Waits(kind, 0) => kind.name().to_string(),
        Reason::Waits(kind, object) if *object > 0xfff => format!("{} {object:#x}", kind.name()),
        Reason::Waits(kind, object) => format!("{} {object}", kind.name()),
        Reason::Unknown => return None,
    })
}
