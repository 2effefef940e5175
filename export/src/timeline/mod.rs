//! The changes of a trace in the order of time, independent of tables and formats.
//!
//! A timeline consists of [`Actors`], which include the clock, and [`Change`]s, which a [`Sink`] receives. Rules:
//!
//! 1. Ticks never decrease, and are between `actors.clock.first` and `actors.clock.last`.
//! 2. Every id refers to an actor.
//! 3. A state is valid until the next one on the same track; `None`: no state is known or selected. At the end, the
//!    last state of every track is `None`.
//! 4. Slices of a track nest: a `Leave` ends the innermost open slice of its track, and every slice is ended.
//! 5. Before its first value, a counter is 0.
//! 6. A hold of a lock begins once and ends once. Holds of one track need not nest; holds of one mutex never overlap.
//!
//! The replay corrects and counts violations in a trace (an exit without its entry, a span that never ended).

mod actors;
mod change;
mod detailed_state;
mod names;

pub use actors::{
    Actors, Clock, CpuId, EventTypeId, LwpActor, LwpId, Process, ProcessId, Team, ThreadActor, ThreadId,
};
pub use change::{Change, Counter, Hold, RecordedEvent, Sink, Slice, SliceKind, Track};
pub use detailed_state::DetailedState;
pub use names::{NameId, Names};
