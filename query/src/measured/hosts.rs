//! A measure of each host of a fleet.

use sigmund_measures::Measure;
use sigmund_sql::SuperTrace;

use super::{MeasureOptions, Measured, measure};
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

/// Computes a measure for each host of the trace's fleet; for the trace alone if it is not of a fleet.
///
/// A host that does not have what the filter names (another may) has no answer, and a note of the first that has one says why.
///
/// # Errors
/// As [`measure`]; when no host has an answer; when the columns of answers differ, as those of hosts with user threads and
/// without do.
pub async fn measure_hosts<'t>(
    trace: &'t SuperTrace,
    of: &Measure,
    filter: &Filter,
    options: &MeasureOptions,
) -> Result<Vec<OfHost<'t>>, Error> {
    let hosts = trace.hosts();
    if hosts.is_empty() {
        let measured = measure(trace, of, filter, options).await?;
        return Ok(vec![OfHost { host: None, trace, measured }]);
    }
    let (mut answers, mut without) = (Vec::<OfHost<'t>>::new(), Vec::new());
    for (host, trace) in hosts {
        match measure(trace, of, filter, options).await {
            Ok(measured) => answers.push(OfHost { host: Some(host), trace, measured }),
            Err(error) if error.kind() == ErrorKind::Argument => without.push(error.in_trace(host)),
            Err(error) => return Err(error),
        }
    }
    let Some((first, others)) = answers.split_first_mut() else {
        return Err(without.swap_remove(0));
    };
    if let Some(other) = others.iter().find(|o| o.measured.answer.columns != first.measured.answer.columns) {
        let (one, other) = (first.host.unwrap_or_default(), other.host.unwrap_or_default());
        return Err(Error::argument(format!(
            "{}: the answers of {one} and {other} have different columns: only one of them has user threads. Ask by lwp",
            of.name
        )));
    }
    first.measured.answer.notes.extend(without.iter().map(|error| format!("no answer of {error}")));
    Ok(answers)
}
