//! The fields of the longer definitions.

use crate::{Base, LocationGroupId, LocationId, MetricMode, Paradigm, RegionRole, StringId, Type};

/// The clock of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockProperties {
    /// Ticks per second.
    pub resolution: u64,
    /// Start of the trace in ticks: no event is earlier.
    pub offset: u64,
    /// Length of the trace in ticks: no event is later than `offset + length`.
    pub length: u64,
    /// Nanoseconds since 1970-01-01 UTC at `offset`, if known.
    pub realtime: Option<u64>,
}

/// A region, which is entered and left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its name.
    pub name: StringId,
    /// Its description; may be [`StringId::EMPTY`].
    pub description: StringId,
    /// Its role.
    pub role: RegionRole,
    /// The programming model that it belongs to.
    pub paradigm: Paradigm,
}

/// One quantity of a metric class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricMember {
    /// Its name.
    pub name: StringId,
    /// Its description; may be [`StringId::EMPTY`].
    pub description: StringId,
    /// Whether its values are absolute, and for which time they are valid.
    pub mode: MetricMode,
    /// The type of its values: [`Type::U64`], [`Type::I64`] or [`Type::F64`].
    pub ty: Type,
    /// Base of the scale factor of values, which is `base` to the power of `exponent`.
    pub base: Base,
    /// Exponent of the scale factor.
    pub exponent: i64,
    /// The unit, without a prefix: `bytes`, not `MB`.
    pub unit: StringId,
}

/// The location or process that the values of a metric instance describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricScope {
    /// A location other than the one that records the values.
    Location(LocationId),
    /// A process.
    LocationGroup(LocationGroupId),
}
