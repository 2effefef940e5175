//! The level of a question: user threads, or LWPs.

use sigmund_measures::{By, Level};
use sigmund_model::Pid;
use sigmund_sql::SuperTrace;

use crate::{Error, Filter};

/// The level that the filter or the grouping requires; `None` if they require none. With a filter of processes: user
/// threads if one of the processes has any, else LWPs.
///
/// # Errors
/// When the filter and the grouping require different levels; when names of processes cannot be read.
pub(super) fn level(
    trace: &SuperTrace,
    name: &str,
    filter: &Filter,
    by: Option<By>,
) -> Result<Option<Level>, Error> {
    let level = filter.level.map(|level| match level {
        sigmund_model::Level::User => Level::Threads,
        sigmund_model::Level::Kern => Level::Lwps,
    });
    match (level, by) {
        (Some(Level::Lwps), Some(By::Thread)) | (Some(Level::Threads), Some(By::Lwp)) => {
            let (found, level) =
                (by.map_or("", By::name), filter.level.map_or("", sigmund_model::Level::name));
            let message = format!("{name}: expected rows of the level {level}, found --by {found}");
            Err(Error::argument(message))
        }
        (None, by) if !filter.processes.is_empty() => Ok(match by {
            Some(By::Lwp) => None,
            // In a trace without user threads, a row of a thread is one of an LWP.
            Some(By::Thread) if trace.has_threads() => Some(Level::Threads),
            _ if has_threads(trace, filter)? => Some(Level::Threads),
            _ => Some(Level::Lwps),
        }),
        _ => Ok(level),
    }
}

/// The filter to use for each of several super-traces. If it names processes, this gives all traces the same level.
///
/// # Errors
/// When names of processes cannot be read.
pub(super) fn common(traces: &[&SuperTrace], filter: &Filter, by: Option<By>) -> Result<Filter, Error> {
    let mut filter = filter.clone();
    if filter.processes.is_empty() || filter.level.is_some() || matches!(by, Some(By::Lwp | By::Thread)) {
        return Ok(filter);
    }
    let mut level = sigmund_model::Level::Kern;
    for trace in traces {
        if has_threads(trace, &filter)? {
            level = sigmund_model::Level::User;
        }
    }
    filter.level = Some(level);
    Ok(filter)
}

/// Whether a process of the filter has user threads.
fn has_threads(trace: &SuperTrace, filter: &Filter) -> Result<bool, Error> {
    let names = trace.lwps()?;
    let processes = filter.process_numbers(trace)?.unwrap_or_default();
    Ok(processes.into_iter().any(|process| names.has_threads(process)))
}

/// Says which LWPs of the filter have no rows because they carry no user threads.
///
/// # Errors
/// When the LWPs cannot be read.
pub(super) fn lwps_without_threads(
    trace: &SuperTrace,
    name: &str,
    filter: &Filter,
    (level, by): (Option<Level>, Option<By>),
) -> Result<Option<String>, Error> {
    let is_of_threads = match (level, by) {
        (Some(level), _) => level == Level::Threads,
        (None, by) => !matches!(by, None | Some(By::Lwp)),
    };
    // A timeline is no measure, and its lines are of one level.
    let is_of_one_level = sigmund_measures::named(name).is_none_or(|measure| measure.is_of_one_level);
    if !is_of_one_level || filter.lwps.is_empty() || !is_of_threads || !trace.has_threads() {
        return Ok(None);
    }
    let selected = filter.selected_lwps(trace)?.map(|lwps| lwps.numbers()).unwrap_or_default();
    let all = trace.lwps()?.iter();
    let without = all.filter(|lwp| selected.contains(&lwp.lwp) && !lwp.carries_threads);
    let names = without.map(|lwp| match &lwp.name {
        Some(name) => format!("{}({name})", lwp.lwp),
        None => lwp.lwp.to_string(),
    });
    Ok(first(names).map(|first| {
        format!("These LWPs carry no user threads, and have no rows: {first}. The level kern shows all LWPs.")
    }))
}

/// The first few of these names; `None` if there are none.
fn first(names: impl Iterator<Item = String>) -> Option<String> {
    let mut names = names.peekable();
    names.peek()?;
    let first: Vec<String> = names.by_ref().take(MOST_NAMED).collect();
    let more = if names.next().is_some() { ", ..." } else { "" };
    Some(format!("{}{more}", first.join(", ")))
}

/// Says which processes of the filter have no rows because they have no user threads.
///
/// # Errors
/// When names of processes cannot be read.
pub(super) fn without_threads(
    trace: &SuperTrace,
    filter: &Filter,
    level: Option<Level>,
) -> Result<Option<String>, Error> {
    let (Some(processes), Some(Level::Threads)) = (filter.process_numbers(trace)?, level) else {
        return Ok(None);
    };
    let names = trace.lwps()?;
    let without = processes.into_iter().filter(|process| !names.has_threads(*process));
    let name = |process: Pid| {
        let named = names.processes().find_map(|(pid, name)| name.filter(|_| pid == process));
        named.map_or_else(|| process.to_string(), |name| format!("{process}({name})"))
    };
    Ok(first(without.map(name)).map(|first| {
        format!(
            "These processes have no user threads, and no rows: {first}. The level kern shows the LWPs of all processes."
        )
    }))
}

/// The number of names in a note.
const MOST_NAMED: usize = 4;
