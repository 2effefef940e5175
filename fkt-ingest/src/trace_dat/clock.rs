//! The clocks of a trace.dat: ftrace's names for them, and the options about their relation to other clocks.

use sigmund_model::{ClockDomain, Hertz, Nanos, Snapshot, Ticks};

/// The domain of the clock that ftrace calls `name`.
///
/// The default is `local`, as in ftrace. `counter`, `uptime`, `tai`, `ppc-tb` and names of later kernels are
/// [`ClockDomain::Ticks`], because no other source uses them.
pub(super) fn domain(name: Option<&str>) -> ClockDomain {
    match name {
        None | Some("") => ClockDomain::Local,
        // trace-cmd's name for a TSC whose conversion it knows.
        Some("tsc2nsec") => ClockDomain::Tsc,
        Some(name) => ClockDomain::from_name(name).unwrap_or(ClockDomain::Ticks),
    }
}

/// Whether ticks of this clock are nanoseconds.
pub(super) fn is_nanoseconds(clock: ClockDomain) -> bool {
    !matches!(clock, ClockDomain::Tsc | ClockDomain::Ticks)
}

/// The kernel's conversion of the TSC to nanoseconds: `ns = offset + ((tsc × mult) >> shift)`.
///
/// From the option `TSC2NSEC`, which is missing on many virtual machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TscToNanos {
    /// Multiplier.
    pub mult: u32,
    /// Right shift after the multiplication, in bits.
    pub shift: u32,
    /// Nanoseconds to add.
    pub offset: u64,
}

impl TscToNanos {
    /// The nanoseconds of this tick on the kernel's own clock (`local`).
    pub fn to_nanos(&self, tick: Ticks) -> Nanos {
        let product = u128::from(tick.0) * u128::from(self.mult);
        let ns = product.checked_shr(self.shift).unwrap_or(0) as u64;
        Nanos(ns.wrapping_add(self.offset))
    }

    /// Ticks per second; `None` if the conversion is invalid.
    pub fn hertz(&self) -> Option<Hertz> {
        Hertz::new(2f64.powi(self.shift.min(127) as i32) * 1e9 / f64::from(self.mult))
    }

    /// Two instants by this conversion: at `from`, and `ticks` later.
    pub(super) fn snapshots(&self, from: Ticks, ticks: u64) -> [Snapshot; 2] {
        let to = Ticks(from.0.saturating_add(ticks));
        [from, to].map(|tick| Snapshot { before: tick, after: tick, ns: self.to_nanos(tick) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_are_not_ours_are_ticks_of_their_own() {
        assert_eq!(domain(Some("mono_raw")), ClockDomain::MonotonicRaw);
        assert_eq!((domain(None), domain(Some(""))), (ClockDomain::Local, ClockDomain::Local));
        assert_eq!(
            (domain(Some("counter")), domain(Some("tsc2nsec"))),
            (ClockDomain::Ticks, ClockDomain::Tsc)
        );
    }

    // 2 GHz: mult/2^shift = 1/2.
    #[test]
    fn a_conversion_gives_instants_and_a_rate() {
        let conversion = TscToNanos { mult: 1 << 9, shift: 10, offset: 1000 };
        assert_eq!(conversion.to_nanos(Ticks(u64::MAX / 2)), Nanos(u64::MAX / 4 + 1000));
        assert_eq!(conversion.hertz().map(|hz| hz.per_second()), Some(2e9));
        let [first, second] = conversion.snapshots(Ticks(10), 20);
        assert_eq!((first.ns, second.ns, second.tick()), (Nanos(1005), Nanos(1015), Ticks(30)));
        let absurd = TscToNanos { mult: 0, shift: u32::MAX, offset: 0 };
        assert_eq!((absurd.to_nanos(Ticks(5)), absurd.hertz()), (Nanos(0), None));
    }
}
