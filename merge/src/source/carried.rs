//! User threads that are older than the events that are kept.
//!
//! For a snapshot, these are the names of the threads. For a rotated recording, these are the facts that the recorder
//! carried over from the parts that it removed, about user threads that lived when the first part that is kept began.
//!
//! The file with these facts describes the time at which the file of that part begins. What is kept begins a little
//! later, at `begins`, when all processes had continued in files of that part. A few records were made in between. They
//! are read here, and are not events of what is kept.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fs::File,
    io,
    path::Path,
};

use fut::trace::{Carried, CarriedFile, CarriedOwner, CarriedSpan, CarriedState, Changes, Digest, UserTrace};
use sigmund_model::{
    Context, Effect, Event, EventStream, EventType, Level, Loss, LossKind, Lwp, Params, Pid, Reported,
    Severity, Thread, Ticks, Wait, WaitKind,
};

use crate::symbols::{self, Symbols};

/// What is known at the time from which an input is kept.
pub(crate) struct CarriedOver {
    /// That time.
    pub(crate) begins: Ticks,
    pub(crate) pid: Option<Pid>,
    pub(crate) threads: Vec<CarriedThread>,
    /// Begins of the spans that are open at that time, each with its owner.
    pub(crate) spans: Box<dyn EventStream + Send>,
}

/// A user thread, and its state at that time.
#[derive(Clone, Debug)]
pub(crate) struct CarriedThread {
    pub(crate) thread: Thread,
    pub(crate) name: Box<str>,
    pub(crate) created_by: Option<Thread>,
    pub(crate) state: CarriedState,
}

impl CarriedThread {
    /// The LWP that carries it.
    pub(super) fn lwp(&self) -> Option<Lwp> {
        if let CarriedState::Mounted(lwp) = self.state { Some(lwp) } else { None }
    }

    /// Changes the numbers of its threads.
    pub(super) fn renumber_threads(&mut self, number: impl Fn(Thread) -> Thread) {
        self.thread = number(self.thread);
        self.created_by = self.created_by.map(&number);
        if let CarriedState::Blocked(Wait { kind: Some(WaitKind::Join), on: Some(on) }) = &mut self.state {
            *on = number(Thread(*on)).0;
        }
    }

    /// Changes the number of its LWP.
    pub(super) fn renumber_lwp(&mut self, number: impl Fn(Lwp) -> Lwp) {
        if let CarriedState::Mounted(lwp) = &mut self.state {
            *lwp = number(*lwp);
        }
    }
}

/// Reads the facts about a user trace whose parts before `begins` were removed. What cannot be read, or had no room in
/// the file, is a loss.
pub(super) fn read(
    path: &Path,
    file: File,
    (trace, name): (&UserTrace, &Path),
    types: &[EventType],
    begins: Ticks,
) -> (Option<CarriedOver>, Vec<Loss>) {
    let mut losses = Vec::new();
    let note = |detail: String, count| {
        let advice = "a larger --max-size keeps more";
        let loss = Loss::new(LossKind::Overwritten, Level::User, detail);
        Loss { severity: Severity::Note, to: Some(begins), count, advice, ..loss }
    };
    let damaged = |error: &dyn std::fmt::Display| {
        let detail = format!("user threads older than what is kept: {error}");
        Loss {
            severity: Severity::Note,
            to: Some(begins),
            ..Loss::new(LossKind::Damaged, Level::User, detail)
        }
    };
    let mut file = match CarriedFile::open(path, file) {
        Ok(file) => file,
        Err(error) => return (None, vec![damaged(&error)]),
    };
    let mut after = Digest::after(file.lwps().clone());
    if let Err(error) = after.take(trace, begins) {
        losses.push(damaged(&error));
    }
    let mut changes: HashMap<_, _> = after.take_changes().into_iter().collect();
    let (mut threads, mut spans) = (Vec::new(), Vec::new());
    let mut keep = |owner, facts: Carried| {
        if let CarriedOwner::Thread(thread) = owner
            && thread.0 != 0
            && let Some(state) = after.state(&facts)
        {
            threads.push(CarriedThread { thread, name: facts.name, created_by: facts.created_by, state });
        }
        spans.extend(facts.spans.into_iter().map(|span| (owner, span)));
    };
    loop {
        match file.next_owner() {
            Ok(Some((owner, facts))) => {
                let changed = changes.remove(&owner);
                after.fold(owner, Some(facts), changed).into_iter().for_each(|facts| keep(owner, facts));
            }
            Ok(None) => break,
            Err(error) => {
                losses.push(damaged(&error));
                break;
            }
        }
    }
    // For threads that are not in the file, only a creation shows that they live: a thread that has ended may still be
    // made ready.
    let mut others: Vec<_> = changes.into_iter().collect();
    others.sort_unstable_by_key(|(owner, _)| *owner);
    for (owner, changed) in others {
        let facts = after.fold(owner, None, Some(changed));
        let is_new = |facts: &Carried| facts.created.is_some() || matches!(owner, CarriedOwner::Lwp(_));
        facts.into_iter().filter(is_new).for_each(|facts| keep(owner, facts));
    }
    if file.left_out() > 0 {
        let detail = format!("{}: user threads older than what is kept: no room for all", path.display());
        losses.push(note(detail, Some(file.left_out())));
    }
    let pid =
        trace.lwps().first().map(|lwp| lwp.pid).or(trace.processes().first().map(|process| process.pid));
    let spans = named_begins(spans, (trace, name), types, begins);
    (Some(CarriedOver { begins, pid, threads, spans }), losses)
}

/// A thread may be listed as live before the event of its creation is recorded. It is recorded within this time, which
/// is more than a second.
const LATE_CREATION: u64 = 1 << 32;

/// The user threads that lived when a snapshot was taken, or when a recording began, and whose creation is not in the
/// trace. Their state when the trace begins is unknown.
pub(super) fn of_live(trace: &UserTrace, losses: &mut Vec<Loss>) -> Option<CarriedOver> {
    if trace.live().is_empty() {
        return None;
    }
    // What was created later is not among them. So of a long recording only the beginning is read here.
    let until = trace.live_at().map_or(u64::MAX, |at| at.0.saturating_add(LATE_CREATION));
    let mut digest = Digest::default();
    if let Err(error) = digest.take(trace, Ticks(until)) {
        losses.push(Loss::new(LossKind::Damaged, Level::User, format!("user threads that lived: {error}")));
    }
    let new = |(owner, changes): (CarriedOwner, Changes)| changes.are_of_new().then_some(owner);
    let new: HashSet<CarriedOwner> = digest.take_changes().into_iter().filter_map(new).collect();
    let thread = |(owner, facts): &(CarriedOwner, Carried)| match owner {
        CarriedOwner::Thread(thread) if !new.contains(owner) => Some(CarriedThread {
            thread: *thread,
            name: facts.name.clone(),
            created_by: None,
            state: CarriedState::Unknown,
        }),
        _ => None,
    };
    let threads = trace.live().iter().filter_map(thread).collect();
    let pid = trace.processes().first().map(|process| process.pid);
    Some(CarriedOver { begins: Ticks(0), pid, threads, spans: Box::new(Begins(VecDeque::new())) })
}

/// Makes events that begin the open spans, with their names.
fn named_begins(
    spans: Vec<(CarriedOwner, CarriedSpan)>,
    (trace, name): (&UserTrace, &Path),
    types: &[EventType],
    begins: Ticks,
) -> Box<dyn EventStream + Send> {
    let declared = trace.declarations().iter().zip(0..);
    let kinds: HashMap<u32, u32> = declared.filter_map(|(d, kind)| Some((d.event.code?, kind))).collect();
    let begin = |(owner, span): (CarriedOwner, CarriedSpan)| {
        let mut params = Params::default();
        params.push_number(span.address as i64);
        Some(Event {
            tick: begins,
            kind: *kinds.get(&span.code)?,
            cpu: None,
            lwp: Some(span.lwp),
            thread: match owner {
                CarriedOwner::Thread(thread) => Reported::Some(thread),
                CarriedOwner::Lwp(_) => Reported::None,
            },
            context: Context::Task,
            effect: Effect::None,
            params,
        })
    };
    let begins: VecDeque<Event> = spans.into_iter().filter_map(begin).collect();
    let is_empty = begins.is_empty();
    let stream = Box::new(Begins(begins)) as Box<dyn EventStream + Send>;
    if is_empty {
        return stream;
    }
    symbols::named(vec![stream], types, Symbols::of(trace, name)).swap_remove(0)
}

/// A stream of given events.
struct Begins(VecDeque<Event>);

impl EventStream for Begins {
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
        let next = self.0.pop_front();
        let more = next.is_some();
        next.into_iter().for_each(|next| *event = next);
        Ok(more)
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        Vec::new()
    }
}
