//! The fields of the longer definitions.

use crate::{Base, LocationGroupId, LocationId, MetricMode, Paradigm, RegionRole, StringId, Type};

/// The clock of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockProperties {
    /// Ticks per second.
    pub resolution: u64,
    /// The time of the earliest event, or an earlier one, in ticks.
    pub offset: u64,
    /// Length of the trace: no event is later than `offset + length`, in ticks.
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
    /// What its values mean.
    pub mode: MetricMode,
    /// The type of its values: [`Type::U64`], [`Type::I64`] or [`Type::F64`].
    pub ty: Type,
    /// The factor of values is `base` to the power of `exponent`.
    pub base: Base,
    /// See `base`.
    pub exponent: i64,
    /// The unit, without any prefix: `bytes`, not `MB`.
    pub unit: StringId,
}

/// What the values of a metric instance are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricScope {
    /// A location, other than the one that records them.
    Location(LocationId),
    /// A process.
    LocationGroup(LocationGroupId),
}
