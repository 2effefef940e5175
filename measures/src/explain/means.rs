//! Means in whole ticks whose sum is exact.

use std::collections::BTreeMap;

use super::walked::Band;
use crate::Key;

/// Divides each number by `divisor`, and rounds each quotient down or up such that they sum to the divided sum, which
/// is rounded down. The quotients with the largest remainders are rounded up.
pub(super) fn divided(numbers: &[i128], divisor: i128) -> Vec<i64> {
    let mut quotients: Vec<i128> = numbers.iter().map(|number| number.div_euclid(divisor)).collect();
    let rest = numbers.iter().sum::<i128>().div_euclid(divisor) - quotients.iter().sum::<i128>();
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by_key(|place| -numbers[*place].rem_euclid(divisor));
    for place in order.into_iter().take(rest as usize) {
        quotients[place] += 1;
    }
    quotients.into_iter().map(|quotient| quotient as i64).collect()
}

/// The parts of a difference: the category, whether it is the thread's own, and what was waited for.
type Of<'b> = (&'static str, bool, Option<&'b str>);

/// How much longer the mean of `slow` is than that of `other`, for each category, whether it is the thread's own, and
/// what was waited for. The largest difference comes first.
pub(super) fn differences<'b>(slow: &'b Band, other: &'b Band) -> Vec<(Of<'b>, i64)> {
    let (of_slow, of_other) = (slow.instances as i128, other.instances as i128);
    let mut sums: BTreeMap<Of<'_>, i128> = BTreeMap::new();
    for (key, ticks) in &slow.sums {
        *sums.entry(of(key)).or_default() += i128::from(*ticks) * of_other;
    }
    for (key, ticks) in &other.sums {
        *sums.entry(of(key)).or_default() -= i128::from(*ticks) * of_slow;
    }
    let numbers: Vec<i128> = sums.values().copied().collect();
    let quotients = divided(&numbers, of_slow * of_other);
    let mut differences: Vec<_> = sums.into_keys().zip(quotients).collect();
    differences.sort_by_key(|(_, ticks)| -ticks);
    differences
}

fn of(key: &Key) -> Of<'_> {
    (key.cause, key.is_own, key.waits_for.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_sum_to_the_quotient_of_the_sum() {
        assert_eq!(divided(&[10, 10, 10], 4), [3, 2, 2]);
        assert_eq!(divided(&[1, -1, 3], 2), [1, -1, 1]);
        assert_eq!(divided(&[-7, 2], 3), [-2, 0]);
        assert_eq!(divided(&[], 3), Vec::<i64>::new());
    }
}
