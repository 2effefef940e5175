//! Ticks, nanoseconds, and conversion between clocks.

mod conversion;
mod domain;
mod fit;
mod snapshot;
mod units;
mod widen;

pub use conversion::{Conversion, Knot};
pub use domain::ClockDomain;
pub use fit::ClockFit;
pub use snapshot::{ClockPair, Reading, Snapshot};
pub use units::{Hertz, Nanos, Ticks};
pub use widen::Widen;
