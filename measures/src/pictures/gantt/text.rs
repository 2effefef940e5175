//! A timeline of threads as text.

use super::{Drawn, Timeline, shown::Shown};
use crate::percent;

impl Timeline {
    /// The timeline as text: an axis, a line for each thread, and a legend. `label` writes an instant of the time axis,
    /// given in ticks of the main clock.
    ///
    /// A column has the letter of what it shows. A state may have the largest share of no column. Therefore each line ends
    /// with the share of every state that the thread was in during its life, however short (`<1%`). Shares are relative to
    /// the time in which it was alive and in the filter.
    pub fn text(&self, label: &dyn Fn(i64) -> String) -> String {
        let widest = self.widest_label();
        let mut text = format!("{:widest$} {}\n", "", self.axis(self.scale.columns, label));
        for line in &self.lines {
            let letters = |run: &super::Run| run.shown.letter().to_string().repeat(run.columns);
            let columns: String = line.runs.iter().map(letters).collect();
            text += &format!("{:widest$} |{columns}| {}\n", printable(&line.label), shares(line));
        }
        let legend: Vec<String> = Shown::ALL
            .into_iter()
            .filter(|shown| self.has(*shown))
            .map(|shown| format!("{} {}", shown.letter(), shown.name(self.level)))
            .collect();
        if !legend.is_empty() {
            text += &format!("{}\n", legend.join(", "));
        }
        text
    }

    /// The number of characters of the longest line beside its bar, if the bars had so many columns.
    pub fn beside_bars(&self, columns: usize, label: &dyn Fn(i64) -> String) -> usize {
        let widest = self.widest_label();
        let axis = (widest + 1 + self.axis(columns, label).chars().count()).saturating_sub(columns);
        let lines = self.lines.iter().map(|line| widest + " || ".len() + shares(line).chars().count());
        lines.max().unwrap_or(0).max(axis)
    }

    fn widest_label(&self) -> usize {
        self.lines.iter().map(|line| printable(&line.label).chars().count()).max().unwrap_or(0)
    }

    /// The time axis: the start of every tenth column, where there is room, and the end.
    fn axis(&self, columns: usize, label: &dyn Fn(i64) -> String) -> String {
        let scale = super::Scale::new(self.scale.window, columns);
        let mut axis = String::new();
        let mut length = 0;
        for column in (0..scale.columns).step_by(10).chain([scale.columns]) {
            let place = column + 1;
            if length > 0 && length + 1 > place {
                continue;
            }
            let mark = format!("{}{}", " ".repeat(place - length), label(scale.begin(column)));
            length += mark.chars().count();
            axis += &mark;
        }
        axis
    }
}

/// The shares of a line, for example `A 51%, s 30%, k <1%`, of the time in which the thread was alive and in the
/// filter.
fn shares(line: &Drawn) -> String {
    let states = Shown::ALL.into_iter().filter(|shown| shown.is_state());
    let life = states.map(|shown| line.sums[shown as usize]).fold(0, i64::saturating_add);
    let share = |shown: Shown| {
        let ticks = line.sums[shown as usize];
        let share = percent(ticks, life);
        match ticks {
            0 => None,
            _ if share < 1.0 => Some(format!("{} <1%", shown.letter())),
            // Rounded down, so that only the whole is 100 %.
            _ => Some(format!("{} {}%", shown.letter(), share as i64)),
        }
    };
    let shares: Vec<String> =
        Shown::ALL.into_iter().filter(|shown| shown.is_state()).filter_map(share).collect();
    shares.join(", ")
}

/// A name in one line.
fn printable(label: &str) -> String {
    label.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}
