//! What happened, in the order of time, as viewers draw it; apart from any format.
//!
//! First the [`Actors`]: the clock, and everybody who takes part. Then [`Change`]s, one after the other, to a [`Sink`].
//! Whoever writes a sink can rely on this:
//!
//! 1. Ticks never go back, and lie between `actors.clock.first` and `actors.clock.last`.
//! 2. Every id is one of the cast's.
//! 3. A state holds until the next one on the same track; `None` says that there is none that is known or chosen. At the
//!    end every track that had a state has got its `None`.
//! 4. Slices of a track nest: a `Leave` ends the innermost slice that is open on its track, and every slice is ended.
//! 5. A counter counts from 0.
//! 6. A hold of a lock begins once and ends once. Holds of one track need not nest; those of one mutex never overlap.
//!
//! What the trace did not hold in that way (an exit without its entry, a span that never ended) is already put right
//! and counted.

mod actors;
mod change;
mod detailed_state;

pub use actors::{
    Actors, Clock, CpuId, EventTypeId, LwpActor, LwpId, Process, ProcessId, Team, ThreadActor, ThreadId,
};
pub use change::{Change, Counter, Hold, RecordedEvent, Sink, Slice, SliceKind, Track};
pub use detailed_state::DetailedState;
