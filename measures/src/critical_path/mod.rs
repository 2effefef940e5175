//! `--critical-path`: the chain of work and waits that determined the end of a span, a function or a thread.

mod chains;

use sigmund_model::EndReason;

use crate::{
    Actor, Answer, Column, History, Instance, Instances, Interval, Joint, LeftOut, Level, Many, Measure,
    Needs, Origin, Piece, Pieces, Request, Slice, Sliced, SpanNames, Totals, Value, ending_in, percent,
};

pub use chains::critical_path_chains;

/// The causes that make up the critical paths of all instances.
pub(crate) const CRITICAL_PATH: Measure = Measure {
    name: "critical-path",
    question: "What decided when it ended?",
    heading: crate::measure::headings::LATE,
    subject: crate::measure::Subject::OptionalOrPair("SPAN"),
    lists_cases: true,
    is_of_one_level: false,
    definition: include_str!("../definitions/critical-path.md"),
    needs: Needs { spans: true, only_named: true, marks: true, ..Needs::WALK },
    computed: start,
};

fn start(request: &Request) -> Box<dyn Sliced> {
    if request.worst > 0 {
        return Box::new(chains::Chains::new(request));
    }
    Box::new(CriticalPath {
        request: request.clone(),
        paths: Paths::new(request),
        length: 0,
        walking: Joint::default(),
        totals: Totals::new(|part| vec![part]),
        left_out: LeftOut::default(),
    })
}

/// Which instances have their paths walked, and how these are found.
enum Paths {
    /// The life of a thread or LWP. It begins with the first slice that is added.
    Life,
    /// Spans, which are found slice by slice as they end. Only if the request selects no CPUs.
    Spans(SpanNames),
    /// Instances that are searched for in all slices first, before any path is walked.
    Finding(Instances),
    /// The instances that were found, sorted by their ends and clipped to the window.
    Found(Vec<Instance>),
}

impl Paths {
    fn new(request: &Request) -> Paths {
        match Instances::asked(request) {
            None => Paths::Life,
            Some(Instances::Spans { names, .. }) if request.cpus.is_none() => Paths::Spans(names),
            Some(instances) => Paths::Finding(instances),
        }
    }

    /// The instances that end in a slice; `None` if they are still being searched for.
    ///
    /// # Errors
    /// When the request does not select exactly one thread or LWP.
    fn add(
        &mut self,
        history: &History,
        slice: Slice,
        request: &Request,
    ) -> Result<Option<Vec<Instance>>, String> {
        let mut paths = match self {
            Paths::Life if slice.is_latest() => vec![life(history, request)?],
            Paths::Life => Vec::new(),
            Paths::Spans(names) => {
                names.add(history, slice, request);
                ending_in(history, slice, request)
            }
            Paths::Finding(instances) => {
                instances.add(history, slice, request);
                return Ok(None);
            }
            Paths::Found(instances) => {
                let begin = slice.interval.from;
                let first =
                    instances.partition_point(|path| !slice.is_earliest() && path.interval.to <= begin);
                instances.split_off(first)
            }
        };
        paths.iter_mut().for_each(|path| path.interval = inside(history, request, path.interval));
        Ok(Some(paths))
    }

    fn needs(&self, request: &Request) -> Option<Needs> {
        match self {
            Paths::Finding(instances) => Some(instances.needs(request)),
            Paths::Life | Paths::Found(_) => Some(Needs::WALK),
            Paths::Spans(_) => None,
        }
    }

    /// Whether all paths have been walked. If not, all instances have been found now, except those in `left_out`.
    ///
    /// # Errors
    /// When no span or function has the requested name.
    fn is_done(
        &mut self,
        history: &History,
        request: &Request,
        left_out: &mut LeftOut,
    ) -> Result<bool, String> {
        match std::mem::replace(self, Paths::Life) {
            Paths::Life | Paths::Found(_) => Ok(true),
            Paths::Spans(names) => names.check(history, request).map(|()| true),
            Paths::Finding(mut instances) => {
                if !instances.is_done(history, request) {
                    *self = Paths::Finding(instances);
                    return Ok(false);
                }
                let found = instances.finish(history, request)?;
                *left_out = found.left_out;
                let mut found = found.instances;
                found.iter_mut().for_each(|path| path.interval = inside(history, request, path.interval));
                found.sort_by_key(|path| path.interval.to);
                *self = Paths::Found(found);
                Ok(false)
            }
        }
    }
}

/// The origin of every path: all paths are summed together, whichever actor they belong to.
const ANY: Origin = Origin { place: 0, part: 0, actor: None };

struct CriticalPath {
    request: Request,
    paths: Paths,
    length: i64,
    walking: Joint,
    totals: Totals,
    left_out: LeftOut,
}

impl Sliced for CriticalPath {
    fn needs(&self) -> Option<Needs> {
        self.paths.needs(&self.request)
    }

    fn add(&mut self, history: &History, slice: Slice) -> Result<(), String> {
        let Some(paths) = self.paths.add(history, slice, &self.request)? else { return Ok(()) };
        self.length += paths.iter().map(|path| path.interval.ticks()).sum::<i64>();
        let start = |path: &Instance| (ANY, path.actor, path.interval);
        let add = |pieces: &mut Pieces, walks: Many, piece: &Piece, goes_on: bool| {
            pieces.add(history, piece.what.name(), walks, piece, goes_on);
        };
        let by = self.request.by(history);
        let (parts, _) = self.walking.add_slice(history, slice, &paths, start, || Pieces::new(by), add);
        parts.into_iter().for_each(|pieces| self.totals.pieces().merge(history, pieces));
        self.totals.add_slice(history, by, slice.interval);
        Ok(())
    }

    fn is_done(&mut self, history: &History) -> Result<bool, String> {
        self.paths.is_done(history, &self.request, &mut self.left_out)
    }

    fn finish(self: Box<Self>, history: &History) -> Result<Answer, String> {
        let mut answer = Answer::new(vec![
            Column::text("cause", "What was done, or waited for."),
            Column::text(
                "culprit",
                "Who ran, had the CPU or the LWP; the interrupt, the object or the system call.",
            ),
            Column::count("count", "Number of pieces of the paths."),
            Column::length("total_tick", "Their length; the rows sum to the length of the instances."),
            Column::percent("percent", "Of the length of the instances."),
        ]);
        let sums = self.totals.finish(history, self.request.by(history));
        for (key, sum) in sums.into_values().flatten() {
            answer.push(vec![
                key.cause.into(),
                key.culprit.into(),
                sum.count.into(),
                sum.ticks.into(),
                Value::Fraction(percent(sum.ticks, self.length)),
            ]);
        }
        answer.notes.extend(self.left_out.note());
        Ok(answer)
    }
}

/// The part of an interval inside of the window.
fn inside(history: &History, request: &Request, interval: Interval) -> Interval {
    let window = request.extent(history);
    interval.clipped(window).unwrap_or(Interval::new(window.from, window.from))
}

/// The life of the only selected thread or LWP.
fn life(history: &History, request: &Request) -> Result<Instance, String> {
    let expected = |count: usize| {
        format!("expected the name of a span or function, or one user thread or LWP, found {count} of these")
    };
    let of = |actor, interval| Instance { actor, interval, end: EndReason::Exit };
    match (&request.threads, &request.lwps, request.level(history)) {
        (Some(threads), _, _) if threads.len() == 1 => {
            let life =
                threads.first().and_then(|thread| Some((*thread, history.names.threads.get(*thread)?)));
            let (thread, life) = life.ok_or_else(|| expected(0))?;
            Ok(of(Actor::Thread(thread), life.interval))
        }
        (None, Some(lwps), Level::Lwps) if lwps.len() == 1 => {
            let life = lwps.first().and_then(|lwp| Some((*lwp, history.names.lwps.get(*lwp)?)));
            let (lwp, life) = life.ok_or_else(|| expected(0))?;
            Ok(of(Actor::Lwp(lwp), life.interval))
        }
        (Some(threads), _, _) => Err(expected(threads.len())),
        (None, Some(lwps), Level::Threads) if lwps.len() == 1 => {
            Err("expected one user thread, or an LWP and its level, kern; found an LWP and the level user"
                .to_string())
        }
        (None, Some(lwps), _) => Err(expected(lwps.len())),
        (None, None, _) => Err(expected(0)),
    }
}
