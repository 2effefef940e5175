//! What the longer definitions say.

use super::{Base, LocationGroupId, LocationId, MetricMode, Paradigm, RegionRole, StringId, Type};

/// The clock of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockProperties {
    /// Ticks per second.
    pub resolution: u64,
    /// No event is earlier.
    pub offset: u64,
    /// No event is later than this many ticks after `offset`.
    pub length: u64,
    /// Nanoseconds since 1970 at `offset`, if known.
    pub realtime: Option<u64>,
}

/// A region, that is entered and left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its name.
    pub name: StringId,
    /// More about it.
    pub description: StringId,
    /// What it is.
    pub role: RegionRole,
    /// Whose it is.
    pub paradigm: Paradigm,
}

/// A quantity that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricMember {
    /// Its name.
    pub name: StringId,
    /// More about it.
    pub description: StringId,
    /// How its values are meant.
    pub mode: MetricMode,
    /// Their type: [`Type::U64`], [`Type::I64`] or [`Type::F64`].
    pub ty: Type,
    /// Values are to be multiplied by `base` to the power of `exponent`.
    pub base: Base,
    /// See `base`.
    pub exponent: i64,
    /// The unit, without any prefix: `bytes`, not `MB`.
    pub unit: StringId,
}

/// Whom a metric tells about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricScope {
    /// Another location than that which records it.
    Location(LocationId),
    /// A process.
    LocationGroup(LocationGroupId),
}
