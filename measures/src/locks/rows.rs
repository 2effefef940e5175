//! The rows of `--locks`: sums over requests, then the convoys of each lock.

use std::cmp::Reverse;

use crate::map::Map;

use super::{
    Locks, Selection,
    convoy::{Reason, Timeline, union},
};
use crate::{Answer, History, Interval, Request, Value, Word, groups::Groups, groups::Owner};

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
    waits: Vec<Interval>,
    holds: u64,
    hold: i64,
    longest_hold: i64,
    holders: u64,
}

impl Row {
    fn new(key: Key) -> Row {
        Row {
            key,
            requests: 0,
            contended: 0,
            wait: 0,
            longest_wait: 0,
            waits: Vec::new(),
            holds: 0,
            hold: 0,
            longest_hold: 0,
            holders: 0,
        }
    }
}

pub(super) struct Rows<'h> {
    groups: Groups<'h>,
    locks: Locks,
    rows: Vec<Row>,
    /// The lock of each request.
    lock_of: Vec<u32>,
}

pub(super) fn collect<'h>(history: &'h History, request: &Request) -> Rows<'h> {
    let mut groups = Groups::new(history, request);
    let mut locks = Locks::default();
    let (mut rows, mut places): (Vec<Row>, Map<Key, usize>) = (Vec::new(), Map::default());
    let mut lock_of = Vec::with_capacity(history.locks.len());
    let selection = Selection::new(request);
    // Rows and owners that acquired: sorted later, as a set for each row would cost a cache miss for each request.
    let mut acquired: Vec<(u32, u32)> = Vec::new();
    for lock in &history.locks {
        let number = locks.number(history, lock);
        lock_of.push(number);
        let (waiting, holding) = (lock.waiting(), lock.holding());
        let whole = Interval::new(lock.tick, holding.unwrap_or(waiting).to);
        if whole.clipped(request.window).is_none() || !selection.has(history, lock) {
            continue;
        }
        let group = match request.by {
            None => None,
            Some(_) => match groups.number(lock.thread, lock.lwp) {
                None => continue,
                group => group,
            },
        };
        let key = Key { group, lock: number, kind: lock.kind, call_site: lock.call_site };
        let place = *places.entry(key).or_insert_with(|| {
            rows.push(Row::new(key));
            rows.len() - 1
        });
        let row = &mut rows[place];
        row.requests += 1;
        if let (true, Some(wait)) = (lock.is_contended, waiting.clipped(request.window)) {
            row.contended += 1;
            row.wait += wait.ticks();
            row.longest_wait = row.longest_wait.max(wait.ticks());
            row.waits.push(wait);
        }
        if let Some(hold) = holding.and_then(|hold| hold.clipped(request.window)) {
            row.holds += 1;
            row.hold += hold.ticks();
            row.longest_hold = row.longest_hold.max(hold.ticks());
        }
        if lock.is_acquired() {
            acquired.push((place as u32, locks.owner(history, lock)));
        }
    }
    acquired.sort_unstable();
    acquired.dedup();
    for (row, _) in acquired {
        rows[row as usize].holders += 1;
    }
    Rows { groups, locks, rows, lock_of }
}

/// The holds of each lock that somebody waited for, as far as they touch the window, in the order of acquisition.
fn holds_of(
    history: &History,
    request: &Request,
    lock_of: &[u32],
    waited: &Map<u32, Vec<Interval>>,
) -> Map<u32, Vec<(Interval, Owner)>> {
    let mut holds: Map<u32, Vec<(Interval, Owner)>> = Map::default();
    for (lock, number) in history.locks.iter().zip(lock_of) {
        if !waited.contains_key(number) {
            continue;
        }
        let hold = lock.holding().filter(|hold| hold.overlap(request.window) > 0);
        if let (Some(hold), Some(owner)) = (hold, lock.owner()) {
            holds.entry(*number).or_default().push((hold, owner));
        }
    }
    for holds in holds.values_mut() {
        holds.sort_by_key(|(hold, _)| hold.from);
    }
    holds
}

impl Rows<'_> {
    pub(super) fn write(mut self, history: &History, request: &Request, answer: &mut Answer) {
        let mut waited: Map<u32, Vec<Interval>> = Map::default();
        for row in &mut self.rows {
            row.waits = union(std::mem::take(&mut row.waits));
            if row.contended > 0 {
                waited.entry(row.key.lock).or_default().extend(&row.waits);
            }
        }
        for waits in waited.values_mut() {
            *waits = union(std::mem::take(waits));
        }
        let mut holds = holds_of(history, request, &self.lock_of, &waited);
        let by = request.by(history);
        let timelines: Map<u32, Timeline> = waited
            .iter()
            .map(|(lock, waited)| {
                let holds = holds.remove(lock).unwrap_or_default();
                (*lock, Timeline::new(history, by, &holds, waited))
            })
            .collect();
        let main: Map<u32, Main> = timelines
            .iter()
            .map(|(lock, timeline)| (*lock, Main::of(history, timeline, &waited[lock])))
            .collect();

        let words = &history.words;
        let order = |row: &Row| {
            let site = row.key.call_site.map(|site| words.text(site));
            let group = row.key.group.map(|group| self.groups.group(group));
            let lock = self.locks.lock(row.key.lock);
            (Reverse((row.wait, row.requests)), group, lock, words.text(row.key.kind), site)
        };
        self.rows.sort_by(|a, b| order(a).cmp(&order(b)));
        for row in &self.rows {
            let group = row.key.group.map(|group| self.groups.group(group).cells(history));
            let mut cells = group.unwrap_or_default();
            let lock = self.locks.lock(row.key.lock);
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
            ]);
            let total: i64 = row.waits.iter().map(|wait| wait.ticks()).sum();
            let known = match timelines.get(&row.key.lock) {
                Some(timeline) if row.contended > 0 => {
                    Some(timeline.within(&row.waits)).filter(|holders| holders.total() > 0)
                }
                _ => Some(Default::default()),
            };
            cells.extend([
                total.into(),
                known.map(|holders| holders.active).into(),
                known.map(|holders| holders.off).into(),
                known.map(|holders| holders.unknown).into(),
                known.map(|holders| total - holders.total()).into(),
            ]);
            cells.extend(match main.get(&row.key.lock) {
                Some(main) => main.cells(),
                None => Main { convoy: Some(0), ..Main::default() }.cells(),
            });
            answer.push(cells);
        }
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
    fn of(history: &History, timeline: &Timeline, waited: &[Interval]) -> Main {
        let known = Some(timeline.within(waited)).filter(|holders| holders.total() > 0);
        let mut states: Map<&'static str, i64> = Map::default();
        for ((state, _), ticks) in &timeline.reasons {
            *states.entry(state).or_insert(0) += ticks;
        }
        let state = states.into_iter().max_by_key(|(state, ticks)| (*ticks, Reverse(*state)));
        let of_state = timeline.reasons.iter().filter(|((of, _), _)| state.is_some_and(|(is, _)| is == *of));
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
