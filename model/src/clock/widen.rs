//! Extends narrow counters to 64 bits.

/// Extends the values of a narrow counter that wraps to 0: FxT's 32-bit ticks, CTF's 27-bit timestamps.
///
/// Correct if any two consecutive values are less than one period of the counter apart and no value decreases: a value
/// smaller than the previous one means that the counter has wrapped.
///
/// ```
/// use sigmund_model::Widen;
///
/// let mut ticks = Widen::new(32, 0);
/// assert_eq!(ticks.widen(0xffff_fff0), 0xffff_fff0);
/// assert_eq!(ticks.widen(0x0000_0010), 0x1_0000_0010);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widen {
    mask: u64,
    last: u64,
}

impl Widen {
    /// A counter of `bits` bits (1 to 64), after the full value `last`: 0, or the value in a packet's header.
    #[inline]
    pub fn new(bits: u32, last: u64) -> Widen {
        Widen { mask: u64::MAX >> (64 - bits.clamp(1, 64)), last }
    }

    /// The full value: the smallest one not below the last that has these low bits. Higher bits of `narrow` are
    /// ignored.
    #[inline]
    pub fn widen(&mut self, narrow: u64) -> u64 {
        let ahead = narrow.wrapping_sub(self.last) & self.mask;
        self.last = self.last.wrapping_add(ahead);
        self.last
    }

    /// As [`widen`](Self::widen), for values that may be out of order. A value at most `late` before the newest one is
    /// taken as an earlier value, not as one of the next period, and the newest one does not change. A value that would
    /// be before 0 becomes 0.
    #[inline]
    pub fn widen_late(&mut self, narrow: u64, late: u64) -> u64 {
        let back = self.last.wrapping_sub(narrow) & self.mask;
        if back != 0 && back <= late {
            return self.last.saturating_sub(back);
        }
        self.widen(narrow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_turns_goes_on() {
        let mut ticks = Widen::new(27, 5 << 27);
        let full = [3, 0x7ff_ffff, 0, 0, 17].map(|narrow| ticks.widen(narrow));
        assert_eq!(full, [(5 << 27) + 3, (6 << 27) - 1, 6 << 27, 6 << 27, (6 << 27) + 17]);
    }

    #[test]
    fn every_step_below_one_turn_is_found() {
        let mut full = 0x1234_5678_9abc_u64;
        let mut ticks = Widen::new(32, full);
        for step in [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, 12] {
            full += step;
            assert_eq!(ticks.widen(full & 0xffff_ffff), full);
        }
    }

    #[test]
    fn a_wide_counter_is_left_alone() {
        let mut ticks = Widen::new(64, 7);
        assert_eq!([u64::MAX, 3].map(|value| ticks.widen(value)), [u64::MAX, 3]);
    }

    // newest     0x1_0000_0010
    // 32 late    0x0_ffff_fff0
    // 33 late    is taken as a value of the next period
    #[test]
    fn a_late_value_is_before_the_newest_and_does_not_move_it() {
        let mut ticks = Widen::new(32, 0x1_0000_0010);
        assert_eq!(ticks.widen_late(0xffff_fff0, 32), 0xffff_fff0);
        assert_eq!(ticks.widen_late(0x10, 32), 0x1_0000_0010);
        assert_eq!(ticks.widen_late(0x20, 32), 0x1_0000_0020);
        assert_eq!(ticks.widen_late(0xffff_ffff, 32), 0x1_ffff_ffff);
        assert_eq!(Widen::new(32, 3).widen_late(0xffff_ffff, 32), 0);
    }
}
