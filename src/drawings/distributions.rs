//! Draws distributions of lengths: as bars, as rows, and as a picture of cumulative distributions.

use anyhow::{Error, Result, bail};
use sigmund_measures::{
    Answer, By, Column, Distribution, Histogram, Kind, MOST_CURVES, Value, cdf_svg, object_text,
};
use sigmund_model::Hertz;
use sigmund_query::{Filter, MeasureOptions, Measured, count_gaps, measure, reactivity};
use sigmund_sql::SuperTrace;

use super::{label, write_picture};
use crate::{
    Found,
    cli::{FormatArg, Question},
    gaps, measured,
    output::{counted, notice},
    terminal,
};

const BAR_WIDTH: usize = 50;

pub(super) async fn run(trace: &SuperTrace, filter: &Filter, question: &Question) -> Result<Found> {
    let mut found = distributions(trace, filter, question).await?;
    found.curves.retain(|(_, lengths)| lengths.count() > 0);
    let rows = found.curves.len();
    if rows > 0 {
        draw(trace, &mut found, question)?;
    }
    found.notes.iter().for_each(|note| notice(note));
    if rows == 0 && found.notes.is_empty() {
        measured::nothing();
    }
    Ok(gaps::finish(rows, found.gaps, question.measure.strict))
}

/// The data of a histogram.
struct Distributions {
    title: String,
    /// Distributions, each with a label.
    curves: Vec<(String, Distribution)>,
    notes: Vec<String>,
    /// The number of gaps in the time of the question.
    gaps: usize,
    /// A hint on how to get fewer curves; empty if there is none.
    fewer: &'static str,
}

fn draw(trace: &SuperTrace, found: &mut Distributions, question: &Question) -> Result<()> {
    let hz = trace.tick_hz();
    if question.format.of_table()? != FormatArg::Human {
        return measured::print(&[(None, &rows(&found.curves, hz), hz)], question);
    }
    if let Some(left_out) = found.curves.len().checked_sub(MOST_CURVES).filter(|left_out| *left_out > 0) {
        found.curves.truncate(MOST_CURVES);
        let left_out = counted(left_out as u64, "more row");
        notice(&format!("not drawn: {left_out}; {}--format tsv prints all", found.fewer));
    }
    // Bounds are round numbers, so zeros after the point are removed.
    let bound = |length: i64, hz: Option<Hertz>| label(length, hz, question.unit).replace(".000 ", " ");
    if let Some(path) = &question.drawing.svg {
        let curves: Vec<_> = found.curves.iter().map(|(of, lengths)| (of.as_str(), lengths)).collect();
        return write_picture(path, &cdf_svg(&found.title, &curves, hz, &bound));
    }
    for (place, (of, lengths)) in found.curves.iter().enumerate() {
        let bars = Histogram::new(lengths, hz).text(BAR_WIDTH, &bound);
        let between = if place == 0 { "" } else { "\n" };
        terminal::block(&if of.is_empty() { bars } else { format!("{between}{of}\n{bars}") })?;
    }
    Ok(())
}

/// The buckets of all curves as rows. If there are several curves, each row has the label of its curve.
fn rows(curves: &[(String, Distribution)], hz: Option<Hertz>) -> Answer {
    let is_labelled = curves.len() > 1;
    let mut all = Answer::default();
    if is_labelled {
        all.columns.push(Column::text("label", "What the lengths are of."));
    }
    for (place, (of, lengths)) in curves.iter().enumerate() {
        let Answer { columns, rows, .. } = Histogram::new(lengths, hz).answer();
        if place == 0 {
            all.columns.extend(columns);
        }
        for cells in rows.iter() {
            let of = is_labelled.then(|| Value::from(of.clone()));
            all.push(of.into_iter().chain(cells).collect());
        }
    }
    all
}

/// The lengths that the question is about.
async fn distributions(trace: &SuperTrace, filter: &Filter, question: &Question) -> Result<Distributions> {
    if let ([from, to], None) = (question.reactivity.as_slice(), question.measure.measure) {
        let pairs = reactivity(trace, from, to, filter).await?.pairs;
        let lengths = pairs.iter().map(|pair| pair.ticks().0 as i64).collect();
        let (title, curves) = (format!("{from} to {to}"), vec![(String::new(), lengths)]);
        let gaps = count_gaps(trace, filter).await?;
        return Ok(Distributions { title, curves, notes: Vec::new(), gaps, fewer: "" });
    }
    let args = &question.measure;
    let Some(asked) = args.measure else {
        bail!("--histogram: expected a measure whose lengths it draws, as in --latency --histogram");
    };
    let options = MeasureOptions { with_lengths: true, ..measured::options(question) };
    let Measured { mut answer, gaps } = measure(trace, asked, filter, &options).await?;
    let curves = std::mem::take(&mut answer.distributions);
    if curves.is_empty() && !answer.rows.is_empty() {
        bail!(
            "--histogram: expected a measure of many lengths (--latency, --quanta, --functions ...), found --{}{}",
            asked.name,
            if args.worst > 0 { " with --worst" } else { "" }
        );
    }
    let labels: Vec<String> = answer.rows.iter().map(|row| row_label(&answer, &row)).collect();
    answer.rows.check().map_err(Error::msg)?;
    let curves = labels.into_iter().zip(curves).collect();
    let fewer = fewer(args.by, &answer);
    Ok(Distributions { title: asked.question.to_string(), curves, notes: answer.notes, gaps, fewer })
}

/// A hint on how to get fewer rows than this answer has.
fn fewer(by: Option<By>, answer: &Answer) -> &'static str {
    let first = answer.columns.first().map_or("", |column| &*column.name);
    match (by, first) {
        (Some(By::Pattern), _) => "",
        (Some(By::Name), _) => "--by pattern makes fewer, ",
        (_, "thread" | "lwp") => "--by name or --by pattern makes fewer, ",
        _ => "",
    }
}

/// The label of a row: `thread 5, worker/1, span request`. It consists of the cells before the first length or count of
/// lengths.
fn row_label(answer: &Answer, row: &[Value<'_>]) -> String {
    let is_figure = |column: &Column| column.kind == Kind::Length || column.name == "count";
    let until = answer.columns.iter().position(is_figure).unwrap_or(row.len());
    let mut parts: Vec<String> = Vec::new();
    let mut last = "";
    for (column, value) in answer.columns.iter().zip(row).take(until) {
        match (column.kind, value) {
            // The name of a span follows its kind in the same part.
            (Kind::Text, Value::Text(text)) if (last, &*column.name) == ("kind", "function") => {
                if let Some(kind) = parts.last_mut() {
                    *kind += &format!(" {text}");
                }
            }
            (Kind::Text, Value::Text(text)) => parts.push(text.to_string()),
            (Kind::Count, Value::Number(number)) => parts.push(format!("{} {number}", column.name)),
            (Kind::Object, Value::Number(object)) => {
                parts.push(format!("{} {}", column.name, object_text(*object)));
            }
            _ => {}
        }
        last = &column.name;
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_labelled_by_what_it_is_of_and_not_by_its_figures() {
        let mut answer = Answer::new(vec![
            Column::text("name", ""),
            Column::text("kind", ""),
            Column::text("function", ""),
            Column::length("inclusive_tick", ""),
            Column::count("active_unknown", ""),
            Column::count("count", ""),
        ]);
        let row = [
            Value::from("request"),
            "span".into(),
            "request".into(),
            7_i64.into(),
            2_i64.into(),
            1_i64.into(),
        ];
        answer.push(row.to_vec());
        assert_eq!(row_label(&answer, &row), "request, span request");
        answer.columns[0] = Column::count("thread", "");
        assert_eq!(row_label(&answer, &[&[5_i64.into()], &row[1..]].concat()), "thread 5, span request");
    }

    #[test]
    fn several_distributions_are_rows_with_a_label() {
        let lengths: Distribution = [1, 1, 3].into_iter().collect();
        let one = rows(&[("a".into(), lengths.clone())], None);
        assert_eq!((one.columns[0].name.as_ref(), one.rows.len()), ("from_tick", 2));
        let two = rows(&[("a".into(), lengths.clone()), ("b".into(), lengths)], None);
        assert_eq!((two.columns[0].name.as_ref(), two.rows.len()), ("label", 4));
        assert_eq!(two.rows.cell(3, 0), "b".into());
    }

    #[test]
    fn only_what_makes_fewer_rows_is_proposed() {
        let answer = |name| Answer::new(vec![Column::text(name, "")]);
        assert_eq!(fewer(Some(By::Pattern), &answer("name")), "");
        assert_eq!(fewer(Some(By::Name), &answer("name")), "--by pattern makes fewer, ");
        assert_eq!(fewer(None, &answer("thread")), "--by name or --by pattern makes fewer, ");
        // Each is a function.
        assert_eq!(fewer(None, &answer("kind")), "");
    }
}
