//! User traces of processes in a PID namespace other than that of the kernel's events. Their LWPs get the numbers of
//! the kernel's events.
//!
//! If the other number of an LWP was not found, the LWP gets a number that no LWP can have (`PID_MAX_LIMIT` is 2^22,
//! include/linux/threads.h). So its user events keep only one witness, the probe, and no event of another LWP is taken
//! for one of its own.

use std::{collections::HashMap, io, path::Path};

use fkt_ingest::TraceStream;
use sigmund_model::{Effect, Event, EventStream, Level, Loss, LossKind, Lwp, Pid, tables::info_keys};

use super::{CarriedThread, Inputs, OpenedInput};
use crate::run::{NAMESPACE_MARK, NamespaceNumbers};

/// LWPs with numbers from this one on have no known kernel events, whatever events there are.
pub(crate) const FIRST_WITHOUT_KERNEL: u32 = 1 << 30;

/// The same for a user trace whose name shows that its process is in such a namespace, if there is no manifest with
/// numbers.
pub(super) fn renumber_marked(
    path: &Path,
    mut sources: Vec<OpenedInput>,
    inputs: &mut Inputs,
) -> Vec<OpenedInput> {
    let is_marked =
        |name: &str| name.starts_with("user-") && name.ends_with(".fut") && name.contains(NAMESPACE_MARK);
    if path.file_name().and_then(|name| name.to_str()).is_some_and(is_marked) {
        sources.iter_mut().for_each(|user| renumber(path.parent().unwrap_or(path), user, None, inputs));
    }
    sources
}

/// Replaces the numbers in a user trace by those of the kernel's events. `numbers` is `None` if these are not known at
/// all.
pub(super) fn renumber(
    run: &Path,
    source: &mut OpenedInput,
    numbers: Option<&NamespaceNumbers>,
    inputs: &mut Inputs,
) {
    let inside = source.carriers.first().map(|recorded| recorded.pid);
    let host = numbers.map(|numbers| Pid(numbers.pid)).filter(|pid| pid.0 != 0);
    let known: HashMap<u32, u32> =
        numbers.iter().flat_map(|numbers| &numbers.lwps).map(|(inside, here)| (*inside, *here)).collect();
    let mut lwps: HashMap<Lwp, Lwp> = HashMap::new();
    let mut unknown = Vec::new();
    let carriers = source.carriers.iter().map(|recorded| recorded.lwp);
    let carried =
        source.carried.iter().flat_map(|carried| carried.threads.iter()).filter_map(CarriedThread::lwp);
    for lwp in carriers.chain(carried) {
        let number = lwps.entry(lwp).or_insert_with(|| match known.get(&lwp.0) {
            Some(here) => Lwp(*here),
            None => {
                unknown.push(lwp);
                inputs.number_without_kernel()
            }
        });
        if number.0 >= FIRST_WITHOUT_KERNEL {
            source.lwp_names.push((*number, format!("LWP {lwp} of a PID namespace")));
        }
    }
    let numbers = Numbers { pids: inside.zip(host), lwps };
    for recorded in &mut source.carriers {
        recorded.lwp = numbers.lwp(recorded.lwp);
        recorded.pid = numbers.pid(recorded.pid);
    }
    source.lost.iter_mut().for_each(|(lwp, _)| *lwp = numbers.lwp(*lwp));
    source.losses.iter_mut().for_each(|loss| loss.lwp = loss.lwp.map(|lwp| numbers.lwp(lwp)));
    source.facts.iter_mut().for_each(|(key, _)| numbers.fact(key));
    let streams = std::mem::take(&mut source.streams);
    let renumbered = |stream: TraceStream| {
        let events = Box::new(Outside { stream: stream.events, numbers: numbers.clone() });
        TraceStream { events, ..stream }
    };
    source.streams = streams.into_iter().map(renumbered).collect();
    source.carried = source.carried.take().map(|mut carried| {
        carried.pid = carried.pid.map(|pid| numbers.pid(pid));
        carried.threads.iter_mut().for_each(|thread| thread.renumber_lwp(|lwp| numbers.lwp(lwp)));
        carried.spans = Box::new(Outside { stream: carried.spans, numbers: numbers.clone() });
        carried
    });
    source.losses.extend(not_found(run, source, &unknown));
}

/// LWPs whose kernel events, if there are any, cannot be distinguished from those of others.
fn not_found(run: &Path, source: &OpenedInput, lwps: &[Lwp]) -> Option<Loss> {
    let first = lwps.first()?;
    let detail = format!(
        "{}: {}: the process is in another PID namespace than the kernel's events, and the numbers that its LWPs have \
         there are not known of {}, the first of which calls itself {first}: they have no kernel side",
        run.display(),
        source.path.file_name().unwrap_or_default().display(),
        lwps.len(),
    );
    let advice = "record in the first PID namespace; an LWP that lives for less than some milliseconds cannot be found";
    Some(Loss { advice, count: None, ..Loss::new(LossKind::NotRecorded, Level::Kern, detail) })
}

/// Numbers inside a namespace, and the corresponding numbers of the kernel's events.
#[derive(Clone, Debug)]
struct Numbers {
    pids: Option<(Pid, Pid)>,
    lwps: HashMap<Lwp, Lwp>,
}

impl Numbers {
    fn lwp(&self, lwp: Lwp) -> Lwp {
        self.lwps.get(&lwp).copied().unwrap_or(lwp)
    }

    fn pid(&self, pid: Pid) -> Pid {
        self.pids.filter(|(inside, _)| *inside == pid).map_or(pid, |(_, host)| host)
    }

    /// The key of a fact about a process ends with the number of the process.
    fn fact(&self, key: &mut String) {
        let keys =
            ["process_", info_keys::PROBE_TICKS, info_keys::PROBE_WORD_TICKS, info_keys::PROBE_CLOCK_TICKS];
        let pid = keys.iter().find_map(|start| Some((*start, key.strip_prefix(start)?.parse().ok()?)));
        if let Some((start, pid)) = pid {
            *key = format!("{start}{}", self.pid(Pid(pid)));
        }
    }
}

/// A stream with the numbers of the kernel's events.
struct Outside {
    stream: Box<dyn EventStream + Send>,
    numbers: Numbers,
}

impl EventStream for Outside {
    fn next_into(&mut self, event: &mut Event) -> io::Result<bool> {
        let more = self.stream.next_into(event)?;
        event.lwp = event.lwp.map(|lwp| self.numbers.lwp(lwp));
        if let Effect::LwpAttach { pid, cpu_time_ns } = event.effect {
            event.effect = Effect::LwpAttach { pid: self.numbers.pid(pid), cpu_time_ns };
        }
        Ok(more)
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        let mut losses = self.stream.take_losses();
        losses.iter_mut().for_each(|loss| loss.lwp = loss.lwp.map(|lwp| self.numbers.lwp(lwp)));
        losses
    }
}
