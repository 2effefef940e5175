//! Compares two traces in the same measure: what differs for each name, and whether it differs by more than the spread
//! inside each trace.
//!
//! **Rows** of the two answers are matched by their texts before the first figure (name, state, lock site, ...). What
//! changes from run to run is not part of the match: the numbers of threads, LWPs and processes, addresses, and numbers
//! in the texts of culprits and of the objects that were waited for. Rows that become equal in this way are merged:
//! their sums are added, and their distributions are not compared. Rows are by pattern (`worker/*`) unless the request
//! has another grouping. Rows of interrupts are not grouped.
//!
//! **Figures** are sums and counts per second of the window, the percentiles p50 and p99, and the mean if a measure has
//! no percentiles. All times are in nanoseconds, so the two clocks may differ. A figure that is 0 in both traces is
//! left out. So is a figure with the same values in both as an earlier figure of its row.
//!
//! **Spread**: the window of each trace is cut into equal slices, one for each second, but at least 8 and at most 16.
//! The measure is computed for each slice. The slices are divided into two halves in seven ways: the odd and the even
//! ones, the odd pairs and the even pairs, the first four of each eight and the others, and the four combinations of
//! these. For a sum or count, the two halves are compared per second. For a percentile or mean, the medians (by nearest
//! rank) of its values in the two halves are compared. The spread is the largest of these differences in A and in B.
//! (Odd and even slices alone are not enough. For two traces of nothing but noise, with 8 slices of normal
//! distribution, 23 % of the figures differ by more than that; only 1.5 % differ by more than the largest of seven.
//! Noise that lasts longer than a slice is still underestimated: for slices that correlate by 0.5, 13 % differ.)
//!
//! **Verdict**: `differs` if the difference between A and B is larger than the spread (and, of a percentile or mean, than a tick of
//! either clock); else `within the spread`; `only
//! in A` and `only in B` for rows that only one answer has; `too few` if the odd or the even slices of A or B have no
//! value, if a median or mean is of fewer than 8 lengths in A or B, or if a p99 is of fewer than 20.

mod figures;
mod slices;
mod table;

use std::cmp::Ordering;

use sigmund_model::Hertz;

use self::{
    figures::{Figure, Unit, keys},
    slices::Slices,
    table::{Key, Table},
};
use crate::{Answer, By, Column, Interval, Measure, Request, Value};
pub use slices::slices_to_compare;

/// One of the two traces: its answers, window and clock.
#[derive(Clone, Debug)]
pub struct Side {
    /// The answer for the window.
    pub whole: Answer,
    /// The answers for each of the [`slices_to_compare`], in their order.
    pub slices: Vec<Answer>,
    /// The window, cut to the trace.
    pub window: Interval,
    /// The rate of the clock.
    pub hz: Hertz,
}

/// The request to compute for a comparison.
pub fn request_to_compare(measure: &Measure, request: &Request) -> Request {
    // All rows of a summary are needed: a row that is not among the first ten is not missing.
    let worst = if measure.name == "summary" { usize::MAX } else { 0 };
    // Interrupts are compared as a whole, not by the threads that they hit.
    let by = if measure.name == "interrupts" { None } else { Some(By::Pattern) };
    Request { by: request.by.or(by), worst, ..request.clone() }
}

/// Relative differences up to this are rounding errors, from the conversion of the two clocks.
const ROUNDING: f64 = 1e-9;

/// Compares the answers of a measure to two requests; see the column docs of the answer.
///
/// The most important rows come first: those that differ, by the size of the difference, times before counts.
///
/// # Errors
/// When a window has no time in it, and when the two answers have different columns.
pub fn compare(a: &Side, b: &Side) -> Result<Answer, String> {
    let (a, b) = (Compared::new(a, "A")?, Compared::new(b, "B")?);
    if a.whole.names != b.whole.names {
        let names = |side: &Compared| side.whole.names.join(", ");
        return Err(format!("expected the columns of A ({}) in B, found {}", names(&a), names(&b)));
    }
    let mut rows = Vec::new();
    for key in a.whole.rows.keys().chain(b.whole.rows.keys().filter(|key| !a.whole.rows.contains_key(*key))) {
        let of_key = rows.len();
        for found in a.whole.figures.iter().filter_map(|figure| row(key, figure, &a, &b)) {
            if !found.is_zero() && !rows[of_key..].iter().any(|before: &Row| before.has_values_of(&found)) {
                rows.push(found);
            }
        }
    }
    rows.sort_by(Row::order);
    let mut answer = Answer::new(columns(a.whole.keys.clone()));
    answer.rows = rows.into_iter().map(Row::cells).collect();
    answer.notes = a.notes.into_iter().chain(b.notes).collect();
    Ok(answer)
}

/// One of the two: its answer for the whole window, and for each slice.
struct Compared {
    /// The length of a tick of its clock.
    tick_ns: f64,
    whole: Table,
    slices: Slices,
    notes: Vec<String>,
}

/// With fewer lengths than this, a median or mean means nothing. A p99 needs more: up to 99 lengths it is the longest.
const FEWEST: i64 = 8;
const FEWEST_OF_P99: i64 = 20;

impl Compared {
    /// Whether a row has too few lengths in one of the two traces.
    fn has_few(&self, key: &Key, figure: &Figure, other: &Compared) -> bool {
        let fewest = if figure.name == "p99" { FEWEST_OF_P99 } else { FEWEST };
        [self, other].iter().any(|side| side.whole.lengths(key).is_some_and(|lengths| lengths < fewest))
    }

    fn new(side: &Side, name: &str) -> Result<Compared, String> {
        let Side { whole, slices, window, hz } = side;
        if window.ticks() <= 0 {
            return Err(format!("{name}: expected a window with time in it, found none"));
        }
        let mut notes: Vec<String> = whole.notes.iter().map(|note| format!("{name}: {note}")).collect();
        let whole = Table::new(whole, *hz, *window);
        if whole.merged > 0 {
            notes.push(format!(
                "{name}: {} rows were added to rows with the same key: distributions are not compared.",
                whole.merged
            ));
        }
        Ok(Compared {
            tick_ns: 1e9 / hz.per_second(),
            whole,
            slices: Slices::new(slices, *window, *hz),
            notes,
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Differs,
    OnlyInA,
    OnlyInB,
    Within,
    TooFew,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Verdict::Differs => "differs",
            Verdict::OnlyInA => "only in A",
            Verdict::OnlyInB => "only in B",
            Verdict::Within => "within the spread",
            Verdict::TooFew => "too few",
        }
    }
}

struct Row {
    key: Key,
    figure: String,
    unit: Unit,
    a: Option<f64>,
    b: Option<f64>,
    spread: Option<f64>,
    verdict: Verdict,
}

/// The row of a figure; `None` if neither trace has the figure.
fn row(key: &Key, figure: &Figure, a: &Compared, b: &Compared) -> Option<Row> {
    let (of_a, of_b) = (a.whole.value(key, figure), b.whole.value(key, figure));
    let spreads = (a.slices.spread(key, figure), b.slices.spread(key, figure));
    let known = |of: Option<f64>, spread: Option<f64>| of.and(spread);
    let spread = match (of_a, of_b, spreads) {
        (None, None, _) => return None,
        (Some(_), Some(_), (a, b)) => a.zip(b).map(|(a, b)| a.max(b)),
        (_, _, (a, b)) => known(of_a, a).or(known(of_b, b)),
    };
    let verdict = match (of_a, of_b, spread) {
        (Some(_), None, _) if !b.whole.rows.contains_key(key) => Verdict::OnlyInA,
        (None, Some(_), _) if !a.whole.rows.contains_key(key) => Verdict::OnlyInB,
        (Some(_), Some(_), Some(_)) if !figure.unit.is_sum() && a.has_few(key, figure, b) => Verdict::TooFew,
        (Some(of_a), Some(of_b), Some(spread)) => {
            // A length is no more exact than a tick of its clock.
            let tick = if figure.unit.is_sum() { 0.0 } else { a.tick_ns.max(b.tick_ns) };
            let rounding = ROUNDING * of_a.abs().max(of_b.abs());
            match (of_b - of_a).abs() > spread.max(tick) + rounding {
                true => Verdict::Differs,
                false => Verdict::Within,
            }
        }
        _ => Verdict::TooFew,
    };
    let figure = (figure.name.clone(), figure.unit);
    Some(Row { key: key.clone(), figure: figure.0, unit: figure.1, a: of_a, b: of_b, spread, verdict })
}

impl Row {
    /// Whether it is 0 in both traces.
    fn is_zero(&self) -> bool {
        self.size() == 0.0 && self.a == Some(0.0)
    }

    /// Whether two figures have the same values. For example, the part, the total and the time on CPUs of a system call
    /// may be equal.
    fn has_values_of(&self, other: &Row) -> bool {
        (self.unit, self.a, self.b, self.spread) == (other.unit, other.a, other.b, other.spread)
    }

    /// A trace without the figure counts as 0.
    fn size(&self) -> f64 {
        (self.b.unwrap_or(0.0) - self.a.unwrap_or(0.0)).abs()
    }

    fn order(&self, other: &Row) -> Ordering {
        (self.verdict, self.unit)
            .cmp(&(other.verdict, other.unit))
            .then_with(|| other.size().total_cmp(&self.size()))
            .then_with(|| (&self.key, &self.figure).cmp(&(&other.key, &other.figure)))
    }

    fn cells<'a>(self) -> Vec<Value<'a>> {
        let difference = self.a.zip(self.b).map(|(a, b)| b - a);
        let percent = difference.zip(self.a).filter(|(_, a)| *a != 0.0).map(|(by, a)| by * 100.0 / a);
        let mut cells: Vec<Value<'_>> = self.key.into_iter().map(Value::from).collect();
        cells.extend([
            self.figure.into(),
            self.unit.name().into(),
            self.a.into(),
            self.b.into(),
            difference.into(),
            percent.into(),
            self.spread.into(),
            self.verdict.name().into(),
        ]);
        cells
    }
}

/// The columns of a comparison of answers like this one.
pub fn columns_to_compare(answer: &Answer) -> Vec<Column> {
    columns(
        keys(&answer.columns).into_iter().map(|place| table::key_column(&answer.columns[place])).collect(),
    )
}

fn columns(keys: Vec<Column>) -> Vec<Column> {
    let fraction = |name: &'static str, doc: &'static str| Column {
        name: name.into(),
        kind: crate::Kind::Fraction,
        doc: doc.into(),
    };
    let mut columns = keys;
    columns.extend([
        Column::text("figure", "The column of the measure; without `_tick`."),
        Column::text("unit", "ns/s (time per second of the window), ns, or 1/s (how many per second)."),
        fraction("a", "The figure in A."),
        fraction("b", "The figure in B."),
        fraction("difference", "B minus A."),
        Column::percent("difference_percent", "difference as a percentage of a."),
        fraction(
            "spread",
            "The largest difference between two halves of A, or of B: odd and even slices of time, and six other ways.",
        ),
        Column::text(
            "verdict",
            "differs (the difference is larger than the spread), within the spread, only in A, only in B, or too few \
             (no value in the odd or the even slices, or fewer than 8 lengths; of a p99, 20).",
        ),
    ]);
    columns
}
