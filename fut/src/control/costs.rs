//! What recording an event costs, by the price that was measured when the session began.

use crate::EventInfo;

/// Ticks for one record, texts without their bytes. `None` when nothing records.
pub(super) fn ticks(event: &EventInfo) -> Option<f64> {
    crate::costs().map(|costs| costs.of_record(event.fields().len()))
}
