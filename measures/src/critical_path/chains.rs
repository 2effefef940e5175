//! The critical paths of the longest instances, piece by piece.

use super::Paths;
use crate::{
    Actor, Answer, Blame, Column, Culprits, History, Instance, Instances, Labels, LeftOut, Link, Needs,
    Piece, Request, Slice, Sliced, Waits, Walking, What, map::Map, percent, sliced,
};

/// The critical paths of the longest instances, as many as `request.worst` (at least one), piece by piece in the order of
/// time.
///
/// # Errors
/// When the request has neither a span or function that occurs, nor a pair of events, nor exactly one thread or LWP.
pub fn critical_path_chains(history: &History, request: &Request) -> Result<Answer, String> {
    sliced::whole(Box::new(Chains::new(request)), history, request)
}

/// A piece of a path, reduced to what can be kept after its slice.
struct Kept {
    piece: Piece,
    /// Who took the time. `None` for a wait: these are in `Chains::waits`.
    blame: Option<Blame>,
}

/// Paths that are being walked.
pub(super) struct Chains {
    request: Request,
    paths: Paths,
    /// The longest instances, the longest first. With each, the pieces of its path, the last piece first.
    chains: Vec<(Instance, Vec<Kept>)>,
    walking: Walking<usize>,
    /// By the chain and the place of the piece in it.
    waits: Waits<(usize, usize)>,
    culprits: Culprits<(usize, usize)>,
    labels: Labels,
    left_out: LeftOut,
}

impl Chains {
    pub(super) fn new(request: &Request) -> Chains {
        Chains {
            request: request.clone(),
            paths: Instances::asked(request).map_or(Paths::Life, Paths::Finding),
            chains: Vec::new(),
            walking: Walking::default(),
            waits: Waits::default(),
            culprits: Culprits::new(usize::MAX),
            labels: Labels::default(),
            left_out: LeftOut::default(),
        }
    }

    fn keep(&mut self, history: &History, chain: usize, piece: Piece, goes_on: bool) {
        let pieces = &mut self.chains[chain].1;
        if goes_on && let Some(kept) = pieces.last_mut() {
            kept.piece.interval.from = piece.interval.from;
            return;
        }
        let blame = Blame::of(history, &piece, false);
        if blame.is_none() {
            self.waits.push(history, (chain, pieces.len()), &piece, 1);
        }
        pieces.push(Kept { piece, blame });
    }
}

impl Sliced for Chains {
    fn needs(&self) -> Option<Needs> {
        self.paths.needs(&self.request)
    }

    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        let Some(paths) = self.paths.add(history, slice, &self.request)? else { return Ok(()) };
        if self.chains.is_empty() {
            // Only the life of a thread is new here; other instances were found before.
            self.chains.extend(paths.iter().map(|path| (*path, Vec::new())));
        }
        let chains: Vec<usize> =
            (0..self.chains.len()).filter(|chain| paths.contains(&self.chains[*chain].0)).collect();
        let start = |chain: &usize| {
            let path = self.chains[*chain].0;
            (*chain, path.actor, path.interval)
        };
        let add = |pieces: &mut Vec<(usize, Piece, bool)>, chain: usize, piece: &Piece, goes_on: bool| {
            pieces.push((chain, *piece, goes_on));
        };
        let parts = self.walking.add_slice(history, slice, &chains, start, Vec::new, add);
        for (chain, piece, goes_on) in parts.into_iter().flatten() {
            self.keep(history, chain, piece, goes_on);
        }
        let (by, waits) = (self.request.by(history), std::mem::take(&mut self.waits));
        self.culprits.add_slice(history, (by, &mut self.labels), slice.interval, waits, std::iter::once);
        Ok(())
    }

    fn is_done(&mut self, history: &History) -> Result<bool, String> {
        if self.paths.is_done(history, &self.request, &mut self.left_out)? {
            return Ok(true);
        }
        if let Paths::Found(found) = &mut self.paths {
            // Instances with equal interval and actor have the same path.
            let mut longest = found.clone();
            longest.sort_by_key(|path| (-path.interval.ticks(), path.interval, path.actor));
            longest.truncate(self.request.worst.max(1));
            self.chains = longest.iter().map(|path| (*path, Vec::new())).collect();
            longest.sort_by_key(|path| path.interval.to);
            *found = longest;
        }
        Ok(false)
    }

    fn finish(self: Box<Self>, history: &History) -> Result<Answer, String> {
        let mut answer = Answer::new(vec![
            Column::count("instance", "Which instance: 1 is the longest."),
            Column::instant("ts_tick", "When it begins."),
            Column::length("dur_tick", "How long it lasts."),
            Column::count("thread", "The user thread on the path; NULL for an LWP without one."),
            Column::count("lwp", "The LWP itself, or the LWP that the user thread was on."),
            Column::text("name", "The name of the user thread, or of the LWP if it carries none."),
            Column::count("cpu", "The CPU that it was on, or waited for."),
            Column::text("what", "What it did."),
            Column::text(
                "why",
                "Why this thread is on the path: the thread that it later woke (and from what), or created.",
            ),
            Column::text(
                "culprit",
                "Who or what took the time; for a wait, the three that took most. Grouped like rows.",
            ),
        ]);
        let (by, mut labels) = (self.request.by(history), self.labels);
        let culprits_of = self.culprits.finish(history, (by, &mut labels));
        let mut waits: Map<(usize, usize), Vec<(String, i64)>> =
            culprits_of.into_iter().map(|(key, largest)| (key, largest.texts(history, &labels))).collect();
        for (chain, (_, pieces)) in self.chains.into_iter().enumerate() {
            for (place, Kept { piece, blame }) in pieces.into_iter().enumerate().rev() {
                let thread = if let Actor::Thread(thread) = piece.actor { Some(thread) } else { None };
                let culprit = match blame {
                    Some(_) if matches!(piece.what, What::Running | What::Mounted) => None,
                    Some(blame) => blame.label(history, by),
                    None => waits.remove(&(chain, place)).map(|culprits| most_of(&culprits, &piece)),
                };
                answer.push(vec![
                    (chain + 1).into(),
                    piece.interval.from.into(),
                    piece.interval.ticks().into(),
                    thread.into(),
                    piece.lwp.into(),
                    piece.actor.name(history).map(str::to_string).into(),
                    piece.cpu.into(),
                    piece.what.name().into(),
                    piece.link.map(|link| why(history, link)).into(),
                    culprit.into(),
                ]);
            }
        }
        answer.notes.extend(self.left_out.note());
        Ok(answer)
    }
}

fn why(history: &History, link: Link) -> String {
    match link {
        Link::Created(created) => format!("created {}", created.label(history)),
        Link::Woke { woken, wait, .. } => match wait {
            What::BlockedOn { kind, object } => {
                format!("woke {} from {}", woken.label(history), crate::object_label(history, kind, object))
            }
            What::InSystemCall(Some(call)) => {
                format!("woke {} from {}", woken.label(history), history.words.text(call))
            }
            _ => format!("woke {}", woken.label(history)),
        },
    }
}

/// The maximum number of culprits named for a wait.
const MOST_CULPRITS: usize = 3;

/// The largest culprits of a wait, each with its share of the wait.
fn most_of(culprits: &[(String, i64)], wait: &Piece) -> String {
    if let [(culprit, _)] = culprits {
        return culprit.clone();
    }
    let share = |ticks| percent(ticks, wait.interval.ticks()).round();
    let most = culprits.iter().take(MOST_CULPRITS);
    let most: Vec<_> = most.map(|(culprit, ticks)| format!("{culprit} {} %", share(*ticks))).collect();
    most.join(", ")
}
