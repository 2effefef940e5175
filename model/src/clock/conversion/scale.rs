//! Multiplication of a length by a rate without loss of precision.

/// A rate as `mult / 2^shift`, with 62 significant bits or more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scale {
    mult: u64,
    shift: u32,
}

impl Scale {
    /// `to / from`; neither is 0.
    pub(super) fn from_ratio(to: u64, from: u64) -> Scale {
        let bits = |n: u64| 64 - n.leading_zeros();
        // `to << shift` has at most 62 + 64 bits, and the quotient at most 63.
        let shift = (62 + bits(from)).saturating_sub(bits(to));
        let mult = (u128::from(to) << shift) / u128::from(from.max(1));
        Scale { mult: u64::try_from(mult).unwrap_or(u64::MAX), shift }
    }

    /// `None` if the rate is not finite and positive, or is too large for any clock.
    pub(super) fn from_rate(rate: f64) -> Option<Scale> {
        if !(1e-12..=1e12).contains(&rate) {
            return None;
        }
        let shift = (62 - rate.log2().floor() as i32).clamp(0, 125) as u32;
        Some(Scale { mult: (rate * 2f64.powi(shift as i32)) as u64, shift })
    }

    /// The length times the rate, rounded to the nearest.
    pub(super) fn apply(self, length: u64) -> u64 {
        let product = u128::from(length) * u128::from(self.mult);
        let rounded = product.saturating_add((1 << self.shift) >> 1) >> self.shift;
        u64::try_from(rounded).unwrap_or(u64::MAX)
    }

    pub(super) fn rate(self) -> f64 {
        self.mult as f64 / 2f64.powi(self.shift as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_gives_its_ends_back() {
        let lengths = [1, 2, 3, 1_000_000_007, 2_596_147_841, (1 << 53) + 1, (1 << 61) - 1];
        for to in lengths {
            for from in lengths {
                assert_eq!(Scale::from_ratio(to, from).apply(from), to, "{to} / {from}");
            }
        }
    }

    #[test]
    fn a_rate_beyond_all_clocks_is_none() {
        assert!([f64::NAN, 0.0, -1.0, f64::INFINITY, 1e13].iter().all(|r| Scale::from_rate(*r).is_none()));
        assert_eq!(Scale::from_rate(2.5).unwrap().apply(1 << 60), (1 << 61) + (1 << 59));
    }
}
