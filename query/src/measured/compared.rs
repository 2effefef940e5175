//! Two super-traces in the same measure.

use futures::future::BoxFuture;
use sigmund_measures::{Interval, Measure, Request, Side, compare, request_to_compare, slices_to_compare};
use sigmund_model::Hertz;
use sigmund_sql::SuperTrace;

use super::{
    MeasureOptions, Measured, SliceSize, asked, computed, level, load, loaded_window, selection_notes,
};
use crate::{Error, Filter};

/// Compares two super-traces in a measure: what differs, and whether it differs by more than the spread inside each;
/// see [`sigmund_measures::compare`]. The filter applies to both traces. `gaps` counts the gaps of both.
///
/// Those of [`measure`](crate::measure), for either trace; when the rate of a trace's clock is unknown; when a window
/// is empty.
pub fn compare_traces<'a>(
    (a, b): (&'a SuperTrace, &'a SuperTrace),
    measure: &'a Measure,
    filter: &'a Filter,
    options: &'a MeasureOptions,
) -> BoxFuture<'a, Result<Measured, Error>> {
    Box::pin(async move {
        let filter = &level::common(&[a, b], filter, options.by)?;
        let mut sides = Vec::new();
        let mut gaps = 0;
        for trace in [a, b] {
            let path = trace.path().display().to_string();
            let Some(hz) = trace.tick_hz() else {
                return Err(Error::argument(format!(
                    "{path}: the rate of its clock is not known, so its times cannot be compared"
                )));
            };
            let side = side(trace, (measure, hz), filter, options).await;
            let (side, of_side) = side.map_err(|error| error.in_trace(&path))?;
            gaps += of_side;
            sides.push(side);
        }
        let [a, b] = sides.as_slice() else {
            return Err(Error::argument(format!("expected two super-traces, found {}", sides.len())));
        };
        let refused = |message| Error::argument(format!("{}: {message}", measure.name));
        let answer = compare(a, b).map_err(refused)?;
        Ok(Measured { answer, gaps })
    })
}

/// The answers for the window and for its slices, and the number of gaps in the window.
async fn side(
    trace: &SuperTrace,
    (measure, hz): (&Measure, Hertz),
    filter: &Filter,
    options: &MeasureOptions,
) -> Result<(Side, usize), Error> {
    let request = asked(trace, (measure.name, measure.needs), filter, options).await?;
    let request = request_to_compare(measure, &request);
    let window = loaded_window(trace, measure.first_needs(&request), &request).await?;
    let size = SliceSize::default();
    let (mut of_window, mut known) =
        computed(trace, measure, (&request, window), options, (size, None)).await?;
    of_window.answer.notes.extend(selection_notes(trace, measure.name, filter, &request)?);
    let extent = match (trace.first_tick(), trace.last_tick()) {
        (Some(first), Some(last)) => Interval::new(first.0 as i64, last.0 as i64),
        _ => Interval::new(0, 0),
    };
    let extent = Interval::new(request.window.from.max(extent.from), request.window.to.min(extent.to));
    let mut slices = Vec::new();
    for of_slice in slices_to_compare(extent, hz) {
        // A slice may lack the subject. Only the whole window must have it.
        let request = Request { window: of_slice, is_subject_known: true, ..request.clone() };
        let window = load::Window { of_rows: of_slice, ..window };
        let of_slice = computed(trace, measure, (&request, window), options, (size, Some(known))).await?;
        slices.push(of_slice.0.answer);
        known = of_slice.1;
    }
    let Measured { answer, gaps } = of_window;
    Ok((Side { whole: answer, slices, window: extent, hz }, gaps))
}
