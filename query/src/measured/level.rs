//! The level of a question: user threads, or LWPs.

use sigmund_measures::{By, Level};
use sigmund_model::Pid;
use sigmund_sql::SuperTrace;

use crate::{Error, Filter};

/// The level that a filter or the rows ask for, at which there have to be such rows. Of processes: of their user threads, unless
/// none of them has any.
///
/// # Errors
/// When the two ask for different ones; when names of processes cannot be read.
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
            Some(By::Thread) => Some(Level::Threads),
            _ if has_threads(trace, filter)? => Some(Level::Threads),
            _ => Some(Level::Lwps),
        }),
        _ => Ok(level),
    }
}

/// The filter as it is for each of several super-traces: that of processes is of one level in all of them.
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
    let without: Vec<Pid> = processes.into_iter().filter(|process| !names.has_threads(*process)).collect();
    let name = |process: &Pid| {
        let named = names.processes().find_map(|(pid, name)| name.filter(|_| pid == *process));
        named.map_or_else(|| process.to_string(), |name| format!("{process}({name})"))
    };
    let first: Vec<String> = without.iter().take(MOST_NAMED).map(name).collect();
    let more = if without.len() > MOST_NAMED { ", ..." } else { "" };
    Ok((!first.is_empty()).then(|| {
        let first = first.join(", ");
        format!(
            "These processes have no user threads, and no rows: {first}{more}. The level kern shows the LWPs \
             of all processes."
        )
    }))
}

/// So many processes are named in a note.
const MOST_NAMED: usize = 4;
