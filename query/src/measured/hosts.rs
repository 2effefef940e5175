//! A measure of each host of a fleet.

use futures::future::BoxFuture;
use sigmund_measures::{By, Measure};
use sigmund_sql::SuperTrace;

use super::{Asked, MeasureOptions, Measured, elsewhere, level, measure};
use crate::{Error, ErrorKind, Filter};

/// The answer of one host.
pub struct OfHost<'t> {
    /// Its name; `None` if the trace is not of a fleet.
    pub host: Option<&'t str>,
    /// Its super-trace.
    pub trace: &'t SuperTrace,
    /// The answer. All have the same columns.
    pub measured: Measured,
}

/// The answers of the hosts of a fleet, or of one super-trace.
pub struct OfHosts<'t> {
    /// At least one.
    pub answers: Vec<OfHost<'t>>,
    /// Notes about all answers together.
    pub notes: Vec<String>,
}

/// Computes a measure for each host of the trace's fleet. If the trace is not of a fleet: for the trace alone.
///
/// A host that lacks what the filter names has no answer, and a note gives the reason. Other hosts may have it.
///
/// # Errors
/// Those of [`measure`]; when no host has an answer; when the answers have different columns, as answers of hosts with
/// and without user threads do.
pub fn measure_hosts<'a, 't: 'a>(
    trace: &'t SuperTrace,
    of: &'static Measure,
    filter: &'a Filter,
    options: &'a MeasureOptions,
) -> BoxFuture<'a, Result<OfHosts<'t>, Error>> {
    Box::pin(async move {
        let hosts = trace.hosts();
        if hosts.is_empty() {
            let measured = measured(&[trace], of, filter, options).await?.swap_remove(0)?;
            return Ok(OfHosts { answers: vec![OfHost { host: None, trace, measured }], notes: Vec::new() });
        }
        let traces: Vec<&SuperTrace> = hosts.iter().map(|(_, trace)| *trace).collect();
        let filter = &level::common(&traces, filter, options.by)?;
        let of_hosts = measured(&traces, of, filter, options).await?;
        let (mut answers, mut without) = (Vec::<OfHost<'t>>::new(), Vec::new());
        for ((host, trace), measured) in hosts.into_iter().zip(of_hosts) {
            match measured {
                Ok(measured) => answers.push(OfHost { host: Some(host), trace, measured }),
                Err(error) if error.kind() == ErrorKind::Argument => without.push(error.in_trace(host)),
                Err(error) => return Err(error),
            }
        }
        let Some((first, others)) = answers.split_first() else {
            return Err(without.swap_remove(0));
        };
        if let Some(other) =
            others.iter().find(|o| o.measured.answer.columns != first.measured.answer.columns)
        {
            let (one, other) = (first.host.unwrap_or_default(), other.host.unwrap_or_default());
            return Err(Error::argument(format!(
                "{}: the answers of {one} and {other} have different columns: only one of them has user threads. Ask by lwp",
                of.name
            )));
        }
        let without = without.iter().map(|error| format!("no answer from {error}"));
        let notes = without.chain(levels_note(&answers, filter, options)).collect();
        Ok(OfHosts { answers, notes })
    })
}

/// A note for answers with the same columns whose rows are of LWPs for some hosts and of user threads for others. It
/// names the hosts with rows of LWPs.
fn levels_note(answers: &[OfHost<'_>], filter: &Filter, options: &MeasureOptions) -> Option<String> {
    if filter.level.is_some() || !matches!(options.by, Some(By::Process | By::Name | By::Pattern)) {
        return None;
    }
    let (with, without): (Vec<_>, Vec<_>) = answers.iter().partition(|of| of.trace.has_threads());
    let names =
        |of: Vec<&OfHost<'_>>| of.iter().map(|of| of.host.unwrap_or_default()).collect::<Vec<_>>().join(", ");
    (!with.is_empty() && !without.is_empty()).then(|| {
        format!(
            "the rows of {} are of user threads, those of {} of LWPs; the level kern shows the LWPs of all",
            names(with),
            names(without)
        )
    })
}

/// The answers for these traces, of which the first has the session. They are computed in this process, or by the
/// session's `Elsewhere`.
async fn measured(
    traces: &[&SuperTrace],
    of: &'static Measure,
    filter: &Filter,
    options: &MeasureOptions,
) -> Result<Vec<Result<Measured, Error>>, Error> {
    if let Some(elsewhere) = traces.first().and_then(|trace| elsewhere::of(trace)) {
        let answers = elsewhere.measure(traces, &Asked::new(of, filter, options)?).await?;
        return match answers.len() == traces.len() {
            true => Ok(answers),
            false => Err(Error::elsewhere(format!(
                "expected an answer about each of {} super-traces, found {}",
                traces.len(),
                answers.len()
            ))),
        };
    }
    let mut answers = Vec::new();
    for trace in traces {
        let measured = measure(trace, of, filter, options).await;
        let is_over = measured.as_ref().is_err_and(|error| error.kind() != ErrorKind::Argument);
        answers.push(measured);
        if is_over {
            break;
        }
    }
    Ok(answers)
}
