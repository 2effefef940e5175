//! Two super-traces in the same measure.

use sigmund_measures::{Measure, compare};
use sigmund_sql::SuperTrace;

use super::{Loaded, MeasureOptions, Measured, gaps, left_out_note, loaded};
use crate::{Error, Filter};

/// Compares two super-traces in a measure: what differs, and whether by more than the spread inside each; see
/// [`sigmund_measures::compare`]. The filter applies to both; `gaps` are those of both.
///
/// # Errors
/// As [`measure`](crate::measure), for either trace; when the rate of a trace's clock is not known; when a window has no
/// time in it.
pub async fn compare_traces(
    (a, b): (&SuperTrace, &SuperTrace),
    measure: &Measure,
    filter: &Filter,
    options: &MeasureOptions,
) -> Result<Measured, Error> {
    let mut sides = Vec::new();
    for trace in [a, b] {
        let path = trace.path().display().to_string();
        let Some(hz) = trace.tick_hz() else {
            return Err(Error::argument(format!(
                "{path}: the rate of its clock is not known: expected one, to compare times"
            )));
        };
        let side = loaded(trace, (measure.name, measure.needs), filter, options).await;
        sides.push((side.map_err(|error| error.in_trace(&path))?, hz));
    }
    let [(a, hz_a), (b, hz_b)] = sides.as_slice() else {
        return Err(Error::argument(format!("expected two super-traces, found {}", sides.len())));
    };
    let answer = compare(measure, (&a.history, &a.request, *hz_a), (&b.history, &b.request, *hz_b));
    let mut answer = answer.map_err(|message| Error::argument(format!("{}: {message}", measure.name)))?;
    for (side, Loaded { left_out, .. }) in [("A", a), ("B", b)] {
        answer.notes.extend(left_out.iter().map(|table| format!("{side}: {}", left_out_note(table))));
    }
    Ok(Measured { answer, gaps: gaps(&a.history, &a.request) + gaps(&b.history, &b.request) })
}
