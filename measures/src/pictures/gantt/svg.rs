//! A timeline of threads as SVG.

use std::fmt::Write;

use super::{Drawn, Timeline, shown::Shown};
use crate::pictures::svg;

/// Heights in pixels.
const LINE: usize = 18;
const AXIS: usize = 24;
/// The assumed maximum width of a character in a label.
const CHARACTER: usize = 7;

impl Timeline {
    /// The timeline as SVG, with bars of `width` pixels. Each stretch of one state is a rectangle. It has the state's letter
    /// in it if there is room, and a title with the line's name, the state and the times.
    pub fn svg(&self, width: usize, label: &dyn Fn(i64) -> String) -> String {
        let longest = self.lines.iter().map(|line| line.label.chars().count()).max().unwrap_or(0);
        let left = longest * CHARACTER + 10;
        let legend_y = AXIS + self.lines.len() * LINE;
        // If the window has fewer ticks than `width`, a column is wider than a pixel.
        let scale = width as f64 / self.scale.columns as f64;
        let x = |column: usize| left as f64 + column as f64 * scale;

        let mut content = String::new();
        for tenth in 0..=5 {
            let column = self.scale.columns * tenth / 5;
            content += &svg::rule((x(column), AXIS as f64 - 6.0), (x(column), legend_y as f64));
            let anchor = ["start", "middle", "middle", "middle", "middle", "end"][tenth];
            content += &svg::text(x(column), 14.0, anchor, &label(self.scale.begin(column)));
        }
        for (place, line) in self.lines.iter().enumerate() {
            let y = AXIS + place * LINE;
            content += &svg::text(left as f64 - 6.0, y as f64 + 13.0, "end", &line.label);
            for (from, to, shown) in runs(line) {
                if shown == Shown::NotThere {
                    continue;
                }
                let times = format!("{} to {}", label(self.scale.begin(from)), label(self.scale.begin(to)));
                let title = format!("{}: {}, {times}", line.label, shown.name(self.level));
                let _ = writeln!(
                    content,
                    "<rect x=\"{:.1}\" y=\"{}\" width=\"{:.1}\" height=\"{}\" fill=\"{}\"><title>{}</title></rect>",
                    x(from),
                    y + 2,
                    x(to) - x(from),
                    LINE - 4,
                    colour(shown),
                    svg::escape(&title),
                );
                if x(to) - x(from) >= 12.0 {
                    let middle = (x(from) + x(to)) / 2.0;
                    content += &svg::text(middle, y as f64 + 13.0, "middle", &shown.letter().to_string());
                }
            }
        }
        let mut at = 10;
        for shown in Shown::ALL.into_iter().filter(|shown| *shown != Shown::NotThere && self.has(*shown)) {
            let name = format!("{} {}", shown.letter(), shown.name(self.level));
            let y = legend_y + 8;
            let _ = writeln!(
                content,
                "<rect x=\"{at}\" y=\"{y}\" width=\"10\" height=\"10\" fill=\"{}\"/>",
                colour(shown)
            );
            content += &svg::text(at as f64 + 14.0, y as f64 + 9.0, "start", &name);
            at += 24 + name.chars().count() * CHARACTER;
        }
        svg::document((left + width + 10).max(at), legend_y + 26, &content)
    }
}

/// From which column to which a line shows what.
fn runs(line: &Drawn) -> impl Iterator<Item = (usize, usize, Shown)> {
    let mut at = 0;
    line.runs.iter().map(move |run| {
        let from = at;
        at += run.columns;
        (from, at, run.shown)
    })
}

/// Light colours, so that the letters on them are readable.
fn colour(shown: Shown) -> &'static str {
    match shown {
        Shown::Active => "#7fc97f",
        Shown::Stalled => "#f4786e",
        Shown::InKernel => "#9ec9e8",
        Shown::Ready => "#fdd07a",
        Shown::Blocked => "#cccccc",
        Shown::Stopped => "#c9a6d9",
        Shown::Off => "#e8d8c0",
        Shown::Unknown => "#f5f5f5",
        Shown::NotSelected => "#eef1f7",
        Shown::NotThere => "white",
    }
}
