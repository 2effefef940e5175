//! The `@` part of a selector: the user thread that executed at an event. If no user thread has that number or name, it
//! is an LWP.

use datafusion::logical_expr::{Expr, ident, lit};
use sigmund_model::{Lwp, Thread};
use sigmund_sql::SuperTrace;

use crate::{
    Error, Filter, LwpRef, Reference, ThreadRef,
    filter::{check_threads, number_in},
};

/// Contexts in which the current LWP executes. In interrupts it does not.
const OUTSIDE_OF_INTERRUPTS: [&str; 2] = ["task", "idle"];

/// The condition on events; `None` if the trace has neither such a user thread nor such an LWP.
///
/// # Errors
/// When the trace cannot be read.
pub(super) async fn condition(trace: &SuperTrace, who: &ThreadRef) -> Result<Option<Expr>, Error> {
    let threads: Vec<Thread> = match who {
        Reference::Number(number) if trace.existing_threads(&[*number]).await?.is_empty() => Vec::new(),
        _ => who.resolve(trace)?,
    };
    if !threads.is_empty() {
        return Ok(Some(number_in("thread", threads.into_iter().map(|thread| thread.0 as i64))));
    }
    let Some(lwp) = as_lwp(who) else { return Ok(None) };
    let is_known = match &lwp {
        Reference::Number(number) => trace.lwps()?.iter().any(|other| other.lwp == *number),
        Reference::Name(_) => !lwp.resolve(trace)?.is_empty(),
    };
    if !is_known {
        return Ok(None);
    }
    let selected = Filter { lwps: vec![lwp], ..Filter::default() }.selected_lwps(trace)?;
    let outside = ident("context").in_list(OUTSIDE_OF_INTERRUPTS.map(lit).to_vec(), false);
    Ok(selected.map(|lwps| lwps.condition().and(outside)))
}

/// # Errors
/// When the trace has neither such a user thread nor such an LWP, with the nearest names; when it cannot be read.
pub(super) async fn check(trace: &SuperTrace, flag: &str, who: &ThreadRef) -> Result<(), Error> {
    if condition(trace, who).await?.is_some() {
        return Ok(());
    }
    match as_lwp(who).filter(|_| !trace.has_threads()) {
        Some(lwp) => Filter::check_lwp(trace, flag, &lwp),
        None => check_threads(trace, flag, std::slice::from_ref(who)).await,
    }
}

fn as_lwp(who: &ThreadRef) -> Option<LwpRef> {
    match who {
        Reference::Number(Thread(number)) => Some(Reference::Number(Lwp(u32::try_from(*number).ok()?))),
        Reference::Name(name) => Some(Reference::Name(name.clone())),
    }
}
