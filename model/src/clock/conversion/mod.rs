//! Conversion from one clock to another, through instants that were read on both.
//!
//! ```text
//!   to │                     ·╱   beyond the last knot: the rate of the straight section that ends there
//!      │               ╱─────●
//!      │         ●────●           between two knots: the straight line
//!      │       ╱
//!      │   ···●
//!      └──────────────────────── from
//! ```
//!
//! Differences are computed before any multiplication, and the multiplication has 128 bits. So ticks above 2⁵³ lose no
//! precision, and a knot is converted to itself.
//!
//! Two quantities describe the error of a conversion:
//! * The **residual** of a knot is its distance from the line between its two neighbours. The line does not go through
//!   the knot, so the residual shows how straight the clocks ran there.
//! * The **bound** of a segment is the uncertainty of its knots, plus the largest bend or jump of the clock within the
//!   segment that the residuals at its ends allow. It holds if a clock changes its rate, or jumps, at most once between
//!   two knots and not in the neighbouring segments; changes faster than the knots cannot be detected. Outside the
//!   first and last knots it grows with the distance, and holds for clocks that keep their rate there. With only two
//!   knots nothing checks the line, and the bound is the uncertainty of the knots alone.

mod scale;

use self::scale::Scale;

/// An instant on two clocks, as a conversion uses it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Knot {
    /// The reading of the source clock.
    pub from: u64,
    /// The reading of the target clock.
    pub to: u64,
    /// The uncertainty of `to`, in its own unit: half the bracket of the reading.
    pub within: f64,
}

/// A conversion from one clock to another: piecewise linear, never decreasing.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversion {
    /// In strictly increasing order of both clocks.
    knots: Vec<Knot>,
    /// `segments[i]` is from knot `i` to the next; the last one is unbounded.
    segments: Vec<Segment>,
    /// The part before the first knot.
    before: Segment,
    residuals: Vec<Option<f64>>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Segment {
    scale: Scale,
    /// Its largest error, in units of `to`.
    bound: f64,
    /// The additional error for each unit of `from` away from its knot.
    growth: f64,
}

impl Conversion {
    /// A conversion through these knots. `None` with fewer than two knots, or if one of the clocks does not advance
    /// from each knot to the next.
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
            segments: between.chain([after]).collect(),
            knots: knots.to_vec(),
            before: first,
            residuals,
        })
    }

    /// A conversion through one knot with a given rate, in units of `to` per unit of `from`. The true rate may differ
    /// from it by `drift`, a fraction. `None` if the rate is not finite and positive.
    pub fn with_rate(knot: Knot, rate: f64, drift: f64) -> Option<Conversion> {
        let scale = Scale::from_rate(rate)?;
        let segment = Segment { scale, bound: knot.within + quantum(rate), growth: rate * drift };
        Some(Conversion {
            knots: vec![knot],
            segments: vec![segment],
            before: segment,
            residuals: vec![None],
        })
    }

    /// Converts an instant. `near` caches the position of the last one: begin with 0 and pass the same variable each
    /// time. Instants in time order are then found without a search.
    pub fn convert_near(&self, from: u64, near: &mut usize) -> u64 {
        let holds = |at: usize| {
            self.knots.get(at).is_some_and(|knot| knot.from <= from)
                && self.knots.get(at + 1).is_none_or(|next| from < next.from)
        };
        if !holds(*near) {
            match self.segment_of(from) {
                Some(at) => *near = at,
                None => return self.before_first(from),
            }
        }
        let knot = &self.knots[*near];
        knot.to.saturating_add(self.segments[*near].scale.apply(from - knot.from))
    }

    /// Converts an instant.
    pub fn convert(&self, from: u64) -> u64 {
        self.convert_near(from, &mut 0)
    }

    /// The largest error of a converted instant, in units of the target clock; see the top of this file.
    pub fn bound(&self, from: u64) -> f64 {
        let (segment, knot) = match self.segment_of(from) {
            Some(at) => (&self.segments[at], &self.knots[at]),
            None => (&self.before, &self.knots[0]),
        };
        segment.bound + segment.growth * from.abs_diff(knot.from) as f64
    }

    /// Units of the target clock per unit of the source clock: from the first knot to the last, or as given.
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

    /// The distance of each knot from the line between its neighbours, in units of the target clock; `None` for the
    /// first and the last, which no line checks.
    pub fn residuals(&self) -> &[Option<f64>] {
        &self.residuals
    }

    /// The last knot that is not after `from`; `None` before the first.
    fn segment_of(&self, from: u64) -> Option<usize> {
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

/// The segment that ends at knot `end`.
///
/// A clock that changes its rate by Δ at the fraction `f` of a segment of length b is off by at most f(1−f)·b·Δ in it,
/// and its ends are off by p = (1−f)·b·Δ and q = f·b·Δ from the lines that come in from either side; a clock that jumps
/// by J is off by at most J, and both p and q are J. So the error is at most min(p, q). A residual is p·a/(a+b), where
/// a is the length of the neighbouring segment.
fn between(knots: &[Knot], residuals: &[Option<f64>], end: usize) -> Segment {
    let (left, right) = (&knots[end - 1], &knots[end]);
    let length = (right.from - left.from) as f64;
    let off_line = |at: usize, neighbour: Option<&Knot>| {
        let neighbour = neighbour?;
        let residual =
            residuals[at]? + knots[at].within + left.within.max(right.within).max(neighbour.within);
        let neighbour_length = neighbour.from.abs_diff(knots[at].from) as f64;
        Some((residual + quantum(slope(left, right))) * (1.0 + length / neighbour_length))
    };
    let before = (end >= 2).then(|| &knots[end - 2]);
    let bend = [off_line(end - 1, before), off_line(end, knots.get(end + 1))];
    let bend = bend.into_iter().flatten().min_by(f64::total_cmp).unwrap_or(0.0);
    let rate = slope(left, right);
    Segment {
        scale: Scale::from_ratio(right.to - left.to, right.from - left.from),
        bound: left.within.max(right.within) + quantum(rate) + bend,
        growth: 0.0,
    }
}

/// The segment before the first of these knots, or after it if the knots are in reverse order. Its rate is that of the
/// line from the first knot to the last knot of the straight section: the section ends where no single line through the
/// first knot passes all others within their uncertainty.
fn beyond<'k>(mut knots: impl Iterator<Item = &'k Knot>) -> Segment {
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
    Segment { scale, bound: end.within + quantum(scale.rate()), growth: off }
}

/// The rounding error: a knot and an instant are each rounded to a unit of `from`, and the result to one of `to`.
fn quantum(rate: f64) -> f64 {
    2.0 * rate + 1.0
}

fn slope(left: &Knot, right: &Knot) -> f64 {
    (right.to - left.to) as f64 / (right.from - left.from) as f64
}

/// As [`slope`], in either order.
fn slope_of(one: &Knot, other: &Knot) -> f64 {
    if one.from < other.from { slope(one, other) } else { slope(other, one) }
}

#[cfg(test)]
mod tests;
