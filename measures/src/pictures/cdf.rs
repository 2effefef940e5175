//! Cumulative distributions as SVG.

use std::fmt::Write;

use sigmund_model::Hertz;

use super::svg;
use crate::{
    Distribution,
    scale::{Unit, powers_of_ten, round_lengths},
};

/// The size of the picture, and the position of the axes in it, in pixels.
const WIDTH: usize = 640;
const PLOT: (f64, f64, f64, f64) = (50.0, 30.0, 620.0, 330.0);
/// The most steps of a curve: a distribution with more lengths is drawn at this many ranks.
const MOST_STEPS: usize = 1000;
/// The most marks of an axis that is not logarithmic.
const MOST_MARKS: i64 = 7;
/// The number of different styles of curves. With more curves in a picture, styles are used again.
pub const MOST_CURVES: usize = 8;
/// Curves differ in dashes too, so that they can be told apart without colours.
const CURVES: [(&str, &str); MOST_CURVES] = [
    ("#1b6ca8", ""),
    ("#c0392b", "6 3"),
    ("#2e8b57", "2 2"),
    ("#8e44ad", "8 3 2 3"),
    ("#b8860b", "16 4"),
    ("#333333", "1 4"),
    ("#d2527f", "8 3 2 3 2 3"),
    ("#008b8b", "16 3 6 3"),
];
/// The length of the line in the legend, so that the longest dash pattern occurs in it twice.
const SAMPLE: f64 = 42.0;

/// Cumulative distributions in one picture, one curve each: at x, the percentage of lengths that are at most x. The
/// axis of lengths is logarithmic if the longest length is at least 100 times the shortest above 0. Lengths under 1
/// tick are then drawn at 1.
///
/// `tick_rate` is the rate of the clock, if it is known. The marks of the axis are then at round numbers of
/// nanoseconds, otherwise at round numbers of ticks. `label` writes a length. It gets the length as a number, and how
/// many of its unit are a second: `None` for ticks without a known rate.
///
/// Each step is as exact as percentiles are. A distribution of more than 1000 lengths is drawn at 1000 of its ranks,
/// among them the first and the last.
pub fn cdf_svg(
    title: &str,
    curves: &[(&str, &Distribution)],
    tick_rate: Option<Hertz>,
    label: &dyn Fn(i64, Option<Hertz>) -> String,
) -> String {
    let unit = Unit::new(tick_rate);
    let shortest =
        |lengths: &Distribution| lengths.iter().map(|(length, _)| length).find(|length| *length > 0);
    let shortest = curves.iter().filter_map(|(_, lengths)| shortest(lengths)).min();
    let scale = Scale::new(shortest, curves.iter().filter_map(|(_, lengths)| lengths.max()).max());
    let (left, top, right, bottom) = PLOT;
    let y = |percent: f64| bottom - (bottom - top) * percent / 100.0;

    let mut content = svg::text((left + right) / 2.0, 18.0, "middle", title);
    for percent in [0, 25, 50, 75, 90, 99, 100] {
        let height = y(f64::from(percent));
        content += &svg::rule((left, height), (right, height));
        // Labels near the top would overlap.
        if percent != 99 {
            content += &svg::text(left - 4.0, height + 4.0, "end", &format!("{percent}%"));
        }
    }
    for length in scale.marks(unit) {
        let x = scale.x(unit.ticks(length));
        content += &svg::rule((x, top), (x, bottom));
        content += &svg::text(x, bottom + 15.0, "middle", &label(length, unit.per_second()));
    }
    for (place, (name, lengths)) in curves.iter().enumerate() {
        let (colour, dashes) = CURVES[place % CURVES.len()];
        let style =
            format!("fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\" stroke-dasharray=\"{dashes}\"");
        if lengths.count() > 0 {
            let path = steps(lengths, &scale, &y);
            let _ = writeln!(content, "<path d=\"{path}\" {style}/>");
        }
        let height = bottom + 36.0 + 16.0 * place as f64;
        let _ = writeln!(content, "<path d=\"M{left:.1} {height:.1}h{SAMPLE}\" {style}/>");
        let name = format!("{name} ({})", lengths.count());
        content += &svg::text(left + SAMPLE + 6.0, height + 4.0, "start", &name);
    }
    svg::document(WIDTH, bottom as usize + 36 + 16 * curves.len(), &content)
}

/// The path of a curve: up at each length, right to the next.
fn steps(lengths: &Distribution, scale: &Scale, y: &dyn Fn(f64) -> f64) -> String {
    let mut lengths_and_counts = lengths.iter();
    let (mut length, mut until) = (0, 0);
    let all = lengths.count();
    let mut path = format!("M{:.1} {:.1}", PLOT.0, y(0.0));
    let count = all.min(MOST_STEPS);
    for step in 0..count {
        // The first rank, the last rank, and ranks at equal distances between them.
        let rank = if count == 1 { 0 } else { step * (all - 1) / (count - 1) };
        while until <= rank {
            let Some((next, count)) = lengths_and_counts.next() else { break };
            (length, until) = (next, until + count);
        }
        let percent = (rank + 1) as f64 * 100.0 / all as f64;
        let _ = write!(path, "H{:.1}V{:.1}", scale.x(length as f64), y(percent));
    }
    let _ = write!(path, "H{:.1}", PLOT.2);
    path
}

/// Where lengths are on the axis.
#[derive(Clone, Copy, Debug)]
struct Scale {
    shortest: i64,
    longest: i64,
    is_log: bool,
}

impl Scale {
    fn new(shortest: Option<i64>, longest: Option<i64>) -> Scale {
        let (shortest, longest) = (shortest.unwrap_or(1), longest.unwrap_or(1).max(1));
        let is_log = longest / 100 >= shortest;
        Scale { shortest: if is_log { shortest } else { 0 }, longest, is_log }
    }

    /// Of a number of ticks.
    fn x(&self, length: f64) -> f64 {
        let (left, _, right, _) = PLOT;
        let share = if self.is_log {
            (length.max(1.0) / self.shortest as f64).ln() / (self.longest as f64 / self.shortest as f64).ln()
        } else {
            length / self.longest as f64
        };
        left + (right - left) * share.clamp(0.0, 1.0)
    }

    /// The lengths to be marked, in `unit`: powers of ten, or a few multiples of a round step.
    fn marks(&self, unit: Unit) -> Vec<i64> {
        let (shortest, longest) = (unit.of_ticks(self.shortest), unit.of_ticks(self.longest));
        if self.is_log {
            let is_inside = |power: &i64| (shortest..=longest).contains(&(*power as f64));
            return powers_of_ten().filter(is_inside).collect();
        }
        let round_step = round_lengths().find(|step| longest < MOST_MARKS as f64 * *step as f64);
        let Some(step) = round_step else { return vec![0] };
        (0..MOST_MARKS)
            .map_while(|mark| mark.checked_mul(step))
            .take_while(|mark| *mark as f64 <= longest)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn cdf(curves: &[(&str, &Distribution)]) -> String {
        cdf_svg("quanta of <a&b>", curves, None, &|length, _| format!("{length} ns"))
    }

    /// The marks of an axis of lengths in ticks of a clock.
    fn marks(lengths: &[i64], hz: f64) -> Vec<String> {
        let lengths: Distribution = lengths.iter().copied().collect();
        let label = |length: i64, rate: Option<Hertz>| {
            assert_eq!(rate, Hertz::new(1e9));
            format!("{length} ns")
        };
        let svg = cdf_svg("", &[("one", &lengths)], Hertz::new(hz), &label);
        let labels = svg.lines().filter_map(|line| line.strip_suffix(" ns</text>")?.rsplit('>').next());
        labels.map(str::to_string).collect()
    }

    #[test]
    fn marks_are_at_round_lengths_of_the_unit_that_is_shown() {
        assert_eq!(marks(&[2594, 7783], 2.594e9), ["0", "500", "1000", "1500", "2000", "2500", "3000"]);
        assert_eq!(marks(&[900, 130_000_000], 2.594e9), ["1000", "10000", "100000", "1000000", "10000000"]);
        // A tick is 41.67 ns, or 11 days.
        assert_eq!(marks(&[1, 1_000_000], 24e6), ["100", "1000", "10000", "100000", "1000000", "10000000"]);
        assert_eq!(
            marks(&[1, 10], 1e-6),
            [
                "0",
                "2000000000000000",
                "4000000000000000",
                "6000000000000000",
                "8000000000000000",
                "10000000000000000"
            ]
        );
        assert_eq!(marks(&[i64::MAX, i64::MAX - 1], 1e-300), ["0"]);
    }

    // Of 10, 20, 20 and 40 on an axis of 0 to 40: 10 is at 50 + 570 / 4, and 25 % at 330 - 300 / 4.
    #[test]
    fn a_curve_goes_up_at_each_length() {
        let lengths: Distribution = [20, 10, 40, 20].into_iter().collect();
        let svg = cdf(&[("one", &lengths)]);
        let path = "M50.0 330.0H192.5V255.0H335.0V180.0H335.0V105.0H620.0V30.0H620.0";
        assert!(svg.contains(&format!("<path d=\"{path}\"")), "{svg}");
        assert!(svg.contains("quanta of &lt;a&amp;b&gt;") && svg.contains(">one (4)<"));
        assert!(svg.contains(">0 ns<") && svg.contains(">10 ns<") && svg.contains(">40 ns<"));
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n") && !svg.contains("href"));
    }

    #[test]
    fn eight_curves_differ_in_dashes() {
        let lengths: Distribution = [1, 2, 3].into_iter().collect();
        let svg = cdf(&["a", "b", "c", "d", "e", "f", "g", "h"].map(|name| (name, &lengths)));
        let dashes = svg.lines().filter(|line| line.contains("M50.0 330.0"));
        let dashes: BTreeSet<&str> =
            dashes.filter_map(|line| line.split("stroke-dasharray=").nth(1)).collect();
        assert_eq!(dashes.len(), 8, "{dashes:?}");
    }

    #[test]
    fn long_tails_get_a_logarithmic_axis_and_few_steps() {
        let many: Distribution = (0..100_000).collect();
        let none = Distribution::default();
        let svg = cdf(&[("many", &many), ("none", &none)]);
        assert!(svg.contains(">1 ns<") && svg.contains(">10000 ns<") && !svg.contains("NaN"));
        let path = svg.lines().find(|line| line.starts_with("<path d=\"M50.0 330.0")).unwrap();
        assert_eq!(path.matches('V').count(), MOST_STEPS);
        assert!(path.contains("V30.0H620.0\""), "{path}");
        assert!(!cdf(&[]).contains("NaN"));
        let extreme: Distribution = [i64::MIN, 0, i64::MAX].into_iter().collect();
        assert!(!cdf(&[("extreme", &extreme)]).contains("NaN"));
    }
}
