//! The cost of recording an event, computed from the costs that were measured when the session began.

use crate::EventInfo;

/// Ticks for one record, without the bytes of texts. `None` when nothing records.
pub(super) fn ticks(event: &EventInfo) -> Option<f64> {
    crate::costs().map(|costs| costs.of_record(event.fields().len()))
}
