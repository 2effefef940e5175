//! Medians and spreads of a few samples.

/// Samples, sorted. Never empty.
#[derive(Clone, Debug)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    /// Returns the samples, sorted; `None` if there are none.
    pub(crate) fn new(samples: impl IntoIterator<Item = f64>) -> Option<Samples> {
        let mut sorted: Vec<f64> = samples.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        (!sorted.is_empty()).then_some(Samples(sorted))
    }

    pub(crate) fn least(&self) -> f64 {
        self.0[0]
    }

    pub(crate) fn most(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    pub(crate) fn median(&self) -> f64 {
        let middle = self.0.len() / 2;
        if self.0.len() % 2 == 1 { self.0[middle] } else { (self.0[middle - 1] + self.0[middle]) / 2.0 }
    }

    /// A confidence interval of the true median, at 95 % or more: between two samples, by the binomial distribution.
    /// Fewer than six samples are not enough.
    pub(crate) fn median_between(&self) -> Option<(f64, f64)> {
        let len = self.0.len();
        // Probability that the true median is below the sample at this position: that at most this many of the coins
        // show heads.
        let mut below = 0.0;
        let mut exactly = 0.5_f64.powi(len as i32);
        let mut place = 0;
        while 2 * place < len {
            below += exactly;
            if below > 0.025 {
                break;
            }
            place += 1;
            exactly *= (len + 1 - place) as f64 / place as f64;
        }
        let place = place.checked_sub(1)?;
        Some((self.0[place], self.0[len - 1 - place]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_median_and_most() {
        let samples = Samples::new([5.0, 1.0, 2.0, 4.0, 3.0]).unwrap();
        assert_eq!((samples.least(), samples.median(), samples.most()), (1.0, 3.0, 5.0));
        assert_eq!(Samples::new([1.0, 2.0]).unwrap().median(), 1.5);
        assert!(Samples::new([]).is_none());
    }

    /// The positions are those of the usual tables: for 9 samples the second and the eighth, for 25 the eighth and its
    /// mirror image.
    #[test]
    fn the_true_median_is_between_two_samples() {
        let between = |len: u32| Samples::new((1..=len).map(f64::from)).unwrap().median_between();
        assert_eq!(between(1), None);
        assert_eq!(between(5), None);
        assert_eq!(between(6), Some((1.0, 6.0)));
        assert_eq!(between(9), Some((2.0, 8.0)));
        assert_eq!(between(25), Some((8.0, 18.0)));
    }
}
