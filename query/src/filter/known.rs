//! Checks that the trace has everything that a filter names. If not, it proposes the nearest names.

use std::collections::BTreeSet;

use arrow::{
    array::{AsArray, RecordBatch},
    datatypes::Int32Type,
};
use futures::future::BoxFuture;
use sigmund_model::{Thread, Ticks, tables::CPUS};
use sigmund_sql::{SuperTrace, nearest};

use super::{LwpRef, Numbered, Reference, ThreadRef, reference::resolve_all};
use crate::{Error, Filter};

impl Filter {
    /// Checks that the trace has every thread, LWP, process, CPU and event that the filter names, and covers at least a
    /// part of the filter's window.
    ///
    /// # Errors
    /// [`Argument`](crate::ErrorKind::Argument) when one is missing, with the nearest names; or when the window is
    /// outside of the trace, with the time that the trace covers. Also when the trace cannot be read.
    pub fn check_known<'a>(&'a self, trace: &'a SuperTrace) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async move {
            self.check_window(trace)?;
            check_threads(trace, "--thread", &self.threads).await?;
            for pattern in &self.events {
                let mut names = trace.event_types().iter().map(|event| event.ty.name.as_str());
                if !names.any(|name| pattern.fits(name)) {
                    let names = trace.event_types().iter().map(|event| event.ty.name.as_str());
                    return Err(unknown("--event", "an event of this trace", &pattern.to_string(), names));
                }
            }
            self.check_lwps(trace)?;
            check_cpus(trace, self.cpus.iter().map(|cpu| cpu.0)).await
        })
    }
}

impl Filter {
    /// Checks that the trace has the LWPs and processes.
    fn check_lwps(&self, trace: &SuperTrace) -> Result<(), Error> {
        if self.lwps.is_empty() && self.processes.is_empty() {
            return Ok(());
        }
        let names = trace.lwps()?;
        for lwp in &self.lwps {
            Filter::check_lwp(trace, "--lwp", lwp)?;
        }
        for process in &self.processes {
            let found = process.resolve(trace)?;
            check_one(process, ("--process", "a process of this trace"), &found, names.processes())?;
        }
        Ok(())
    }

    /// Checks that the trace has an LWP.
    pub(crate) fn check_lwp(trace: &SuperTrace, flag: &str, lwp: &LwpRef) -> Result<(), Error> {
        let all = trace.lwps()?.iter().map(|lwp| (lwp.lwp, lwp.name.as_deref()));
        check_one(lwp, (flag, "an LWP of this trace"), &lwp.resolve(trace)?, all)
    }

    /// Checks that the trace covers a part of the window. A trace without events covers no time; every window is
    /// accepted for it.
    ///
    /// # Errors
    /// [`Argument`](crate::ErrorKind::Argument) with the time that the trace covers.
    pub fn check_window(&self, trace: &SuperTrace) -> Result<(), Error> {
        let window = self.window(trace)?;
        let (Some(first), Some(last)) = (trace.first_tick(), trace.last_tick()) else { return Ok(()) };
        let covered = || covered(trace).unwrap_or_default();
        let tick = |tick: Ticks| i64::try_from(tick.0).unwrap_or(i64::MAX);
        match (window.from, window.to, self.from, self.to) {
            (Some(from), _, Some(asked), _) if from > tick(last) => Err(Error::argument(format!(
                "--from {asked}: expected an instant of the trace, found one after it; {}",
                covered()
            ))),
            (_, Some(to), _, Some(asked)) if to < tick(first) => Err(Error::argument(format!(
                "--to {asked}: expected an instant of the trace, found one before it; {}",
                covered()
            ))),
            _ => Ok(()),
        }
    }
}

/// The time that a trace covers, in a sentence; `None` if it has no events.
pub(crate) fn covered(trace: &SuperTrace) -> Option<String> {
    let (first, last) = (trace.first_tick()?, trace.last_tick()?);
    let ticks = format!("the trace covers ticks {} to {}", first.0, last.0);
    let length = trace.tick_hz().map(|hz| hz.to_nanos(Ticks(last.0.saturating_sub(first.0))));
    Some(length.map_or(ticks.clone(), |length| format!("{ticks}, 0ms to {:.6}ms", length.0 as f64 / 1e6)))
}

/// Checks that the trace has these user threads.
pub(crate) async fn check_threads(
    trace: &SuperTrace,
    flag: &str,
    threads: &[ThreadRef],
) -> Result<(), Error> {
    // All at once: a thousand are found as fast as one.
    let mut is_found = vec![false; threads.len()];
    resolve_all(threads, trace, &mut |place, _| is_found[place] = true)?;
    let number = |thread: &ThreadRef| match thread {
        ThreadRef::Number(number) => Some(*number),
        ThreadRef::Name(_) => None,
    };
    let numbers: Vec<Thread> = threads.iter().filter_map(number).collect();
    let existing =
        if numbers.is_empty() { BTreeSet::new() } else { trace.existing_threads(&numbers).await? };
    for (thread, is_found) in threads.iter().zip(is_found) {
        let is_known = match thread {
            ThreadRef::Number(number) => existing.contains(number),
            ThreadRef::Name(_) => is_found,
        };
        if !is_known {
            return Err(unknown_thread(trace, flag, thread)?);
        }
    }
    Ok(())
}

fn unknown_thread(trace: &SuperTrace, flag: &str, thread: &ThreadRef) -> Result<Error, Error> {
    let expected = "a user thread of this trace";
    if !trace.has_threads() {
        let message = format!(
            "{flag}: expected {expected}, found {thread}: it has no user threads; --lwp and --process select LWPs"
        );
        return Ok(Error::argument(message));
    }
    let (threads, found) = (trace.threads()?, thread.to_string());
    if let ThreadRef::Number(_) = thread {
        let numbers: Vec<String> = threads.iter().map(|(thread, _)| thread.to_string()).collect();
        return Ok(unknown(flag, expected, &found, numbers.iter().map(String::as_str)));
    }
    Ok(unknown(flag, expected, &found, threads.iter().filter_map(|(_, name)| name)))
}

async fn check_cpus(trace: &SuperTrace, numbers: impl Iterator<Item = u32>) -> Result<(), Error> {
    let mut wanted: Vec<u32> = numbers.collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let on_table = Error::on(trace, CPUS.name);
    let batches = trace.raw(&CPUS).await?.select_columns(&["cpu"]).map_err(&on_table)?;
    let batches = batches.collect().await.map_err(&on_table)?;
    let numbers = |batch: &RecordBatch| batch.column(0).as_primitive::<Int32Type>().values().to_vec();
    let known: Vec<u32> = batches.iter().flat_map(numbers).map(|number| number as u32).collect();
    wanted.retain(|number| !known.contains(number));
    let Some(first) = wanted.first() else { return Ok(()) };
    let names: Vec<String> = known.iter().map(ToString::to_string).collect();
    Err(unknown("--cpu", "a CPU of this trace", &first.to_string(), names.iter().map(String::as_str)))
}

/// Checks that an LWP or a process is among all of the trace.
fn check_one<'n, N: Numbered>(
    reference: &Reference<N>,
    (flag, expected): (&str, &str),
    found: &[N],
    all: impl Iterator<Item = (N, Option<&'n str>)> + Clone,
) -> Result<(), Error> {
    let is_known = match reference {
        Reference::Number(number) => all.clone().any(|(other, _)| other == *number),
        Reference::Name(_) => !found.is_empty(),
    };
    if is_known {
        return Ok(());
    }
    match reference {
        Reference::Number(number) => {
            let digits = number.to_string();
            if all.clone().any(|(_, name)| name == Some(&digits)) {
                let hint = format!("name:{digits} is the {} of that name", N::THING);
                return Err(Error::argument(format!("{flag}: expected {expected}, found {digits}; {hint}")));
            }
            let numbers: Vec<String> = all.map(|(number, _)| number.to_string()).collect();
            Err(unknown(flag, expected, &digits, numbers.iter().map(String::as_str)))
        }
        Reference::Name(name) => Err(unknown(flag, expected, name, all.filter_map(|(_, name)| name))),
    }
}

/// `--thread: expected a user thread of this trace, found wrok: did you mean work/1, work/2?`
pub(crate) fn unknown<'n>(
    what: &str,
    expected: &str,
    found: &str,
    names: impl Iterator<Item = &'n str>,
) -> Error {
    let near = nearest(found, names);
    let hint = if near.is_empty() { String::new() } else { format!("; nearest: {}", near.join(", ")) };
    Error::argument(format!("{what}: expected {expected}, found {found}{hint}"))
}
