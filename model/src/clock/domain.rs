//! Clocks by name.

/// A clock that timestamps events, or that snapshots were taken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClockDomain {
    /// The time-stamp counter (`rdtsc`; ftrace's `x86-tsc`).
    Tsc,
    /// `CLOCK_MONOTONIC_RAW`, nanoseconds.
    MonotonicRaw,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    Monotonic,
    /// `CLOCK_BOOTTIME`, nanoseconds.
    Boottime,
    /// `CLOCK_REALTIME`, nanoseconds since 1970.
    Realtime,
    /// ftrace's `local` and perf's default clock, nanoseconds.
    Local,
    /// Ticks of an unknown clock, as in a listing.
    Ticks,
}

impl ClockDomain {
    /// The name used in run directories and in the table `clocks`.
    pub fn name(self) -> &'static str {
        match self {
            ClockDomain::Tsc => "tsc",
            ClockDomain::MonotonicRaw => "monotonic_raw",
            ClockDomain::Monotonic => "monotonic",
            ClockDomain::Boottime => "boottime",
            ClockDomain::Realtime => "realtime",
            ClockDomain::Local => "local",
            ClockDomain::Ticks => "ticks",
        }
    }

    /// Whether it counts nanoseconds. The others count ticks.
    pub fn counts_nanos(self) -> bool {
        !matches!(self, ClockDomain::Tsc | ClockDomain::Ticks)
    }

    /// The clock of this name, as [`name`](Self::name) or as ftrace's `trace_clock` writes it.
    pub fn from_name(name: &str) -> Option<ClockDomain> {
        Some(match name {
            "tsc" | "x86-tsc" => ClockDomain::Tsc,
            "monotonic_raw" | "mono_raw" => ClockDomain::MonotonicRaw,
            "monotonic" | "mono" => ClockDomain::Monotonic,
            "boottime" | "boot" => ClockDomain::Boottime,
            "realtime" => ClockDomain::Realtime,
            "local" | "global" | "perf" => ClockDomain::Local,
            "ticks" => ClockDomain::Ticks,
            _ => return None,
        })
    }
}
