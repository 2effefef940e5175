//! Lists of rows: filtered, sorted, and cut into windows. There may be millions of threads, so an order is kept for the
//! next window.

use std::{
    cmp::Reverse,
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use rayon::prelude::*;
use serde_json::{Value, json};
use sigmund_model::{LwpState, ThreadState};

use super::{
    Query, Refusal,
    query::Window,
    related::{Related, related},
};
use crate::{
    View,
    actors::UNKNOWN,
    index::Track,
    key::{Key, Kind},
};

/// The largest number of rows of an answer.
pub(super) const MOST: usize = 1000;

/// The largest number of orders that are kept.
const KEPT: usize = 16;

/// The largest number of rows of all kept orders together, 4 bytes each. So fewer orders are kept if there are millions
/// of threads.
const KEPT_ROWS: usize = 8 << 20;

/// Orders of rows, the most recently used first; and the threads that each thread has created.
#[derive(Default)]
pub(crate) struct Orders {
    recent: Mutex<VecDeque<(String, Arc<Vec<u32>>)>>,
    pub(super) children: OnceLock<HashMap<u64, Vec<u32>>>,
}

impl Orders {
    fn find(&self, name: &str) -> Option<Arc<Vec<u32>>> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let place = recent.iter().position(|(kept, _)| kept == name)?;
        let found = recent.remove(place)?;
        let order = Arc::clone(&found.1);
        recent.push_front(found);
        Some(order)
    }

    fn keep(&self, name: String, order: &Arc<Vec<u32>>) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.push_front((name, Arc::clone(order)));
        let mut rows = 0;
        let mut fits = |(_, order): &(String, Arc<Vec<u32>>)| {
            rows += order.len();
            rows <= KEPT_ROWS
        };
        let kept = recent.iter().take(KEPT).take_while(|order| fits(order)).count();
        recent.truncate(kept.max(1));
    }
}

/// The requested list, without its window.
struct Wanted {
    kind: Kind,
    /// `Some(UNKNOWN)` selects the rows without a process.
    pid: Option<u32>,
    sort: Sort,
    name: Option<String>,
    state: Option<usize>,
    with: Option<Key>,
    window: Window,
}

#[derive(Clone, Copy)]
enum Sort {
    Number,
    Name,
    Busy,
    Start,
    Life,
    State(usize),
}

impl Wanted {
    fn of(view: &View, query: &Query) -> Result<Wanted, Refusal> {
        let word = query.get("kind").unwrap_or_default();
        let kind = Kind::from_name(word)
            .ok_or_else(|| Refusal::wrong(format!("kind: expected cpu, lwp or thread, found `{word}`")))?;
        let state = |word: &str| {
            let place = match kind {
                Kind::Lwp => LwpState::ALL.iter().position(|state| state.name() == word),
                Kind::Thread => ThreadState::ALL.iter().position(|state| state.name() == word),
                Kind::Cpu => None,
            };
            place.ok_or_else(|| {
                Refusal::wrong(format!("expected a state of the {}, found `{word}`", kind.name()))
            })
        };
        Ok(Wanted {
            kind,
            pid: if query.get("pid") == Some("none") { Some(UNKNOWN) } else { query.parsed("pid")? },
            sort: match query.get("sort").unwrap_or("number") {
                "number" => Sort::Number,
                "name" => Sort::Name,
                "busy" => Sort::Busy,
                "start" => Sort::Start,
                "life" => Sort::Life,
                word => Sort::State(state(word)?),
            },
            name: query.get("name").map(str::to_string),
            state: query.get("state").map(state).transpose()?,
            with: query.get("with").map(str::parse).transpose().map_err(Refusal::wrong)?,
            window: query.window(view)?,
        })
    }
}

pub(super) async fn rows(view: &Arc<View>, query: &Query) -> Result<Value, Refusal> {
    if let Some(key) = query.get("key") {
        return Ok(only(view, key));
    }
    let wanted = Wanted::of(view, query)?;
    let name: Vec<&str> = ["kind", "pid", "sort", "name", "state", "with", "from", "to"]
        .into_iter()
        .map(|name| query.get(name).unwrap_or_default())
        .collect();
    let name = name.join("\n");
    let order = match view.orders.find(&name) {
        Some(order) => order,
        None => {
            let related = match wanted.with {
                Some(key) => Some(related(view, key, wanted.window).await?),
                None => None,
            };
            let of = Arc::clone(view);
            let sorting = tokio::task::spawn_blocking(move || order(&of, &wanted, related.as_ref()));
            let order =
                Arc::new(sorting.await.map_err(|_| {
                    Refusal::failed("the rows could not be sorted: this is a defect of sigmund")
                })?);
            view.orders.keep(name, &order);
            order
        }
    };
    let kind = Wanted::of(view, query)?.kind;
    let (offset, limit) = (query.count("offset", 0, usize::MAX)?, query.count("limit", 100, MOST)?);
    let rows = order.iter().skip(offset).take(limit).map(|at| row(view, kind, *at as usize));
    Ok(json!({ "total": order.len(), "rows": rows.collect::<Vec<_>>() }))
}

/// The row with a key; none if the trace does not have it, or if the text is not a key.
fn only(view: &View, key: &str) -> Value {
    // The idle task is not a row.
    let key = key.parse::<Key>().ok().filter(|key| *key != Key::lwp(0));
    let found = key.and_then(|key| Some(row(view, key.kind, view.actors.row(key)?)));
    json!({ "total": usize::from(found.is_some()), "rows": found.into_iter().collect::<Vec<_>>() })
}

fn order(view: &View, wanted: &Wanted, related: Option<&Related>) -> Vec<u32> {
    let (actors, pattern) = (&view.actors, wanted.name.as_deref().map(Pattern::new));
    let count = match wanted.kind {
        Kind::Cpu => actors.cpus.len(),
        Kind::Lwp => actors.lwps.len(),
        Kind::Thread => actors.threads.numbers.len(),
    };
    let pid = |row: usize| match wanted.kind {
        Kind::Cpu => UNKNOWN,
        Kind::Lwp => actors.lwps[row].pid.unwrap_or(UNKNOWN),
        Kind::Thread => actors.threads.pids[row],
    };
    let time = |row: usize, state: usize| {
        let track = if wanted.kind == Kind::Lwp { Track::LwpState } else { Track::ThreadState };
        view.index.row(track, row).sums(wanted.window.from, wanted.window.to)[state]
    };
    let is_wanted = |row: &usize| {
        let key = actors.key(wanted.kind, *row);
        // The idle task is not a row: while it runs, its CPU is idle.
        key != Key::lwp(0)
            && wanted.pid.is_none_or(|wanted| wanted == pid(*row))
            && related.is_none_or(|related| related.has(key))
            && pattern.as_ref().is_none_or(|pattern| {
                pattern.fits(&key.number.to_string())
                    || actors.name(&view.trace, key).is_some_and(|name| pattern.fits(name))
            })
            && wanted.state.is_none_or(|state| time(*row, state) > 0)
    };
    let mut rows: Vec<u32> = (0..count).into_par_iter().filter(is_wanted).map(|row| row as u32).collect();
    let life = |row: usize| match wanted.kind {
        Kind::Cpu => (0, 0, 0),
        Kind::Lwp => {
            let lwp = &actors.lwps[row];
            (lwp.from, lwp.to.unwrap_or(i64::MAX), lwp.busy)
        }
        Kind::Thread => {
            let threads = &actors.threads;
            (threads.from[row], threads.to[row], threads.busy[row])
        }
    };
    match wanted.sort {
        Sort::Number => {}
        Sort::Name => sort_by_name(&mut rows, view, wanted.kind),
        Sort::Busy => rows.par_sort_by_key(|row| Reverse(life(*row as usize).2)),
        Sort::Start => rows.par_sort_by_key(|row| life(*row as usize).0),
        Sort::Life => rows.par_sort_by_key(|row| {
            let (from, to, _) = life(*row as usize);
            Reverse(to.saturating_sub(from))
        }),
        Sort::State(state) => rows.par_sort_by_cached_key(|row| Reverse(time(*row as usize, state))),
    }
    rows
}

fn sort_by_name(rows: &mut [u32], view: &View, kind: Kind) {
    let name = |row: &u32| view.actors.name(&view.trace, view.actors.key(kind, *row as usize));
    // Rows without a name are last.
    rows.par_sort_by(|a, b| {
        let (a, b) = (name(a), name(b));
        a.is_none().cmp(&b.is_none()).then_with(|| a.cmp(&b))
    });
}

/// A row, in the form that the page reads.
pub(super) fn row(view: &View, kind: Kind, row: usize) -> Value {
    let actors = &view.actors;
    let key = actors.key(kind, row);
    let (label, name) = (actors.label(&view.trace, key), actors.name(&view.trace, key));
    match kind {
        Kind::Cpu => json!({
            "key": key, "kind": "cpu", "label": label, "name": null, "pid": null,
            "from": 0, "to": null, "busy": actors.cpus[row].busy,
        }),
        Kind::Lwp => {
            let lwp = &actors.lwps[row];
            json!({
                "key": key, "kind": "lwp", "label": label, "name": name, "pid": lwp.pid,
                "from": view.offset(lwp.from), "to": lwp.to.map(|to| view.offset(to)),
                "busy": lwp.busy, "carries": lwp.carries,
            })
        }
        Kind::Thread => {
            let threads = &actors.threads;
            let (to, pid, by) = (threads.to[row], threads.pids[row], threads.created_by[row]);
            json!({
                "key": key, "kind": "thread", "label": label, "name": name,
                "pid": (pid != UNKNOWN).then_some(pid),
                "from": view.offset(threads.from[row]),
                "to": (to != i64::MAX).then(|| view.offset(to)),
                "busy": threads.busy[row],
                "created_by": (by != 0).then(|| Key::thread(by)),
            })
        }
    }
}

/// A text to find in names, ignoring case. A text with `*` or `?` is a pattern for the whole name.
pub(super) enum Pattern {
    Part(String),
    Glob(Vec<char>),
}

impl Pattern {
    pub(super) fn new(text: &str) -> Pattern {
        let text = text.to_lowercase();
        if text.contains(['*', '?']) { Pattern::Glob(text.chars().collect()) } else { Pattern::Part(text) }
    }

    pub(super) fn fits(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        match self {
            Pattern::Part(part) => name.contains(part.as_str()),
            Pattern::Glob(glob) => glob_fits(glob, &name.chars().collect::<Vec<_>>()),
        }
    }
}

/// When the rest does not match, it returns to the last `*`. The number of steps is at most the product of both
/// lengths.
fn glob_fits(glob: &[char], name: &[char]) -> bool {
    let (mut g, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match glob.get(g) {
            Some('*') => {
                star = Some((g, n));
                g += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => (g, n) = (g + 1, n + 1),
            _ => match &mut star {
                Some((at, from)) => {
                    *from += 1;
                    (g, n) = (*at + 1, *from);
                }
                None => return false,
            },
        }
    }
    glob[g..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_long_orders_fewer_are_kept_and_the_last_one_always() {
        let kept = |length: usize| {
            let orders = Orders::default();
            let order = Arc::new(vec![0; length]);
            (0..20).for_each(|name| orders.keep(name.to_string(), &order));
            (0..20).filter(|name| orders.find(&name.to_string()).is_some()).collect::<Vec<_>>()
        };
        assert_eq!(kept(10), (4..20).collect::<Vec<_>>());
        assert_eq!(kept(KEPT_ROWS / 3), vec![17, 18, 19]);
        assert_eq!(kept(KEPT_ROWS + 1), vec![19]);
    }

    #[test]
    fn a_text_is_found_in_names_and_a_pattern_is_of_the_whole_name() {
        let fits = |pattern: &str, name: &str| Pattern::new(pattern).fits(name);
        assert!(fits("ork", "Worker/1") && fits("WORK", "worker") && !fits("works", "worker"));
        assert!(fits("work*", "Worker/1") && !fits("ork*", "worker") && fits("*1", "worker/1"));
        assert!(fits("w?rk", "work") && !fits("w?rk", "wrk") && fits("*", "") && !fits("?", ""));
        assert!(fits("*a*b*", "xxaxxbxx") && !fits("*a*b", "ba"));
    }
}
