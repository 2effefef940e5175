//! From one clock to another, through instants that were read on both.
//!
//! ```text
//!   to │                     ·╱   beyond the last knot: the rate of the straight run that ends there
//!      │               ╱─────●
//!      │         ●────●           between two knots: the straight line
//!      │       ╱
//!      │   ···●
//!      └──────────────────────── from
//! ```
//!
//! Differences are taken before anything is multiplied, and multiplied in 128 bits: ticks above 2⁵³ lose nothing, and
//! a knot is converted to itself.
//!
//! What a conversion states about itself:
//! * The **residual** of a knot is its distance from the line between its two neighbours. The line does not go through
//!   the knot, so this says how straight the clocks ran there.
//! * The **bound** of a stretch is what the knots may be off, and beyond it the most that the residuals at its ends
//!   allow the clock to bend or to jump within it. It holds if a clock changes its rate, or jumps, at most once
//!   between two knots and not in the stretches beside that one; faster changes than the knots show cannot be known.
//!   Beyond the ends it grows with the distance, and holds for clocks that keep their rate there. With two knots
//!   nobody has checked the line: it then says what the knots may be off, and no more.

mod scale;

use self::scale::Scale;

/// An instant on two clocks, as a conversion needs it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knot {
    /// What the one clock said.
    pub from: u64,
    /// What the other said.
    pub to: u64,
    /// How far `to` may be off, in its own unit: half the bracket of the reading.
    pub within: f64,
}

/// From one clock to another: piecewise linear, never backwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversion {
    /// In strictly increasing order of both clocks.
    knots: Vec<Knot>,
    /// Behind each knot up to the next; behind the last one for ever.
    stretches: Vec<Stretch>,
    /// Before the first knot.
    before: Stretch,
    residuals: Vec<Option<f64>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Stretch {
    scale: Scale,
    /// How far it may be off, in units of `to`.
    bound: f64,
    /// And how much more for each unit of `from` away from its knot.
    growth: f64,
}

impl Conversion {
    /// Through these knots. `None` with fewer than two, or if one of the clocks does not advance from each to the next.
    pub fn through(knots: &[Knot]) -> Option<Conversion> {
        let advances = |pair: &[Knot]| pair[0].from < pair[1].from && pair[0].to < pair[1].to;
        if knots.len() < 2 || !knots.windows(2).all(advances) {
            return None;
        }
        let inner = knots.windows(3).map(|three| Some(residual(three)));
        let residuals: Vec<_> = [None].into_iter().chain(inner).chain([None]).collect();
        let between = (1..knots.len()).map(|end| between(knots, &residuals, end));
        let (first, after) = (beyond(knots.iter()), beyond(knots.iter().rev()));
        Some(Conversion {
            stretches: between.chain([after]).collect(),
            knots: knots.to_vec(),
            before: first,
            residuals,
        })
    }

    /// Through one knot, with a rate that is known from elsewhere: units of `to` for one of `from`. The true rate may
    /// differ from it by `drift`, a fraction. `None` if the rate is not finite and positive.
    pub fn with_rate(knot: Knot, rate: f64, drift: f64) -> Option<Conversion> {
        let scale = Scale::from_rate(rate)?;
        let stretch = Stretch { scale, bound: knot.within + quantum(rate), growth: rate * drift };
        Some(Conversion {
            knots: vec![knot],
            stretches: vec![stretch],
            before: stretch,
            residuals: vec![None],
        })
    }

    /// An instant of the one clock, on the other. `near` is where the last one was found: start with 0 and pass the same
    /// again, then instants in the order of time are found at once.
    pub fn convert_near(&self, from: u64, near: &mut usize) -> u64 {
        let holds = |at: usize| {
            self.knots.get(at).is_some_and(|knot| knot.from <= from)
                && self.knots.get(at + 1).is_none_or(|next| from < next.from)
        };
        if !holds(*near) {
            match self.stretch_of(from) {
                Some(at) => *near = at,
                None => return self.before_first(from),
            }
        }
        let knot = &self.knots[*near];
        knot.to.saturating_add(self.stretches[*near].scale.apply(from - knot.from))
    }

    /// An instant of the one clock, on the other.
    pub fn convert(&self, from: u64) -> u64 {
        self.convert_near(from, &mut 0)
    }

    /// How far a converted instant may be off, in units of the other clock; see the head of this file.
    pub fn bound(&self, from: u64) -> f64 {
        let (stretch, knot) = match self.stretch_of(from) {
            Some(at) => (&self.stretches[at], &self.knots[at]),
            None => (&self.before, &self.knots[0]),
        };
        stretch.bound + stretch.growth * from.abs_diff(knot.from) as f64
    }

    /// Units of the other clock for one of this: from the first knot to the last, or as it was given.
    pub fn rate(&self) -> f64 {
        match (self.knots.first(), self.knots.last()) {
            (Some(first), Some(last)) if first.from < last.from => slope(first, last),
            _ => self.before.scale.rate(),
        }
    }

    /// The knots.
    pub fn knots(&self) -> &[Knot] {
        &self.knots
    }

    /// How far each knot lies from the line between its neighbours, in units of the other clock; `None` for the first
    /// and the last, which no line checks.
    pub fn residuals(&self) -> &[Option<f64>] {
        &self.residuals
    }

    /// The knot that `from` lies behind; `None` before the first.
    fn stretch_of(&self, from: u64) -> Option<usize> {
        self.knots.partition_point(|knot| knot.from <= from).checked_sub(1)
    }

    fn before_first(&self, from: u64) -> u64 {
        let first = &self.knots[0];
        first.to.saturating_sub(self.before.scale.apply(first.from - from))
    }
}

/// The distance of the middle one of three knots from the line between the others.
fn residual(three: &[Knot]) -> f64 {
    let on_line = (three[1].from - three[0].from) as f64 * slope(&three[0], &three[2]);
    ((three[1].to - three[0].to) as f64 - on_line).abs()
}

/// The stretch that ends at knot `end`.
///
/// A clock that changes its rate by Δ at the part `f` of a stretch of length b is off by at most f(1−f)·b·Δ in it, and
/// its ends are off by p = (1−f)·b·Δ and q = f·b·Δ from the lines that come in from either side; one that jumps by J is
/// off by at most J, and both are J. Both are at most min(p, q). A residual is p·a/(a+b), with a the length of the
/// stretch beside.
fn between(knots: &[Knot], residuals: &[Option<f64>], end: usize) -> Stretch {
    let (left, right) = (&knots[end - 1], &knots[end]);
    let length = (right.from - left.from) as f64;
    let off_line = |at: usize, beside: Option<&Knot>| {
        let beside = beside?;
        let residual = residuals[at]? + knots[at].within + left.within.max(right.within).max(beside.within);
        let beside_length = beside.from.abs_diff(knots[at].from) as f64;
        Some((residual + quantum(slope(left, right))) * (1.0 + length / beside_length))
    };
    let before = (end >= 2).then(|| &knots[end - 2]);
    let bend = [off_line(end - 1, before), off_line(end, knots.get(end + 1))];
    let bend = bend.into_iter().flatten().min_by(f64::total_cmp).unwrap_or(0.0);
    let rate = slope(left, right);
    Stretch {
        scale: Scale::from_ratio(right.to - left.to, right.from - left.from),
        bound: left.within.max(right.within) + quantum(rate) + bend,
        growth: 0.0,
    }
}

/// What lies beyond the first of these knots: the rate to the farthest knot of the straight run that begins there, as
/// far as what the knots may be off allows one line through all of them.
fn beyond<'k>(mut knots: impl Iterator<Item = &'k Knot>) -> Stretch {
    let (first, second) = (knots.next(), knots.next());
    let (Some(end), Some(mut far)) = (first, second) else { unreachable!("two knots at least") };
    let around = |far: &Knot| {
        let off =
            (end.within + far.within + quantum(slope_of(end, far))) / end.from.abs_diff(far.from) as f64;
        (slope_of(end, far) - off, slope_of(end, far) + off, off)
    };
    let (mut low, mut high, mut off) = around(far);
    for knot in knots {
        let (lowest, highest, narrower) = around(knot);
        (low, high) = (low.max(lowest), high.min(highest));
        if low > high {
            break;
        }
        (far, off) = (knot, narrower);
    }
    let scale = Scale::from_ratio(end.to.abs_diff(far.to), end.from.abs_diff(far.from));
    Stretch { scale, bound: end.within + quantum(scale.rate()), growth: off }
}

/// What whole numbers cost: a knot and an instant are each cut to a unit of `from`, and the answer to one of `to`.
fn quantum(rate: f64) -> f64 {
    2.0 * rate + 1.0
}

fn slope(left: &Knot, right: &Knot) -> f64 {
    (right.to - left.to) as f64 / (right.from - left.from) as f64
}

/// As [`slope`], in whichever order they are.
fn slope_of(one: &Knot, other: &Knot) -> f64 {
    if one.from < other.from { slope(one, other) } else { slope(other, one) }
}

#[cfg(test)]
mod tests;
