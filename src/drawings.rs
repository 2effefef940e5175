//! Timelines, distributions and stacks, as text and as pictures.

use std::{io::Write, path::Path};

use anyhow::{Context, Result, bail};
use sigmund_files::{Destination, Replaceable};
use sigmund_measures::{
    Answer, Distribution, FOLDED, Histogram, Kind, Needs, Value, cdf_svg, gantt, gantt_svg,
};
use sigmund_model::{Hertz, Ticks};
use sigmund_query::{Filter, MeasureOptions, Measured, measure, reactivity, with_history};
use sigmund_sql::SuperTrace;

use crate::{
    Found,
    cli::Question,
    output::{length, notice},
    owner::owner,
    terminal::{self, Colour},
};

/// Columns of a drawing in text, beside its labels.
const TEXT_WIDTH: usize = 80;
const BAR_WIDTH: usize = 50;
/// The most rows of an answer that are drawn.
const MOST_CURVES: usize = 8;
/// Pixels.
const PICTURE_WIDTH: usize = 1000;

pub(crate) async fn run(trace: &SuperTrace, filter: &Filter, question: &Question) -> Result<Found> {
    let (drawing, options) = (&question.drawing, &question.measure);
    let hz = trace.tick_hz();
    let lengths = |ticks: i64| label(ticks, hz);
    if drawing.gantt {
        let first = trace.first_tick().map_or(0, |tick| tick.0 as i64);
        let instants = |tick: i64| label(tick - first, hz);
        let needs = ("gantt", Needs::STATES);
        let options = MeasureOptions { by: options.by, ..MeasureOptions::default() };
        return if let Some(path) = &drawing.svg {
            let draw = |history: &_, request: &_| gantt_svg(history, request, PICTURE_WIDTH, &instants);
            write_picture(path, &with_history(trace, needs, filter, &options, draw).await?)
        } else {
            let draw = |history: &_, request: &_| gantt(history, request, TEXT_WIDTH, &instants);
            terminal::coloured(&with_history(trace, needs, filter, &options, draw).await?, &colour)?;
            Ok(Found::Something)
        };
    }
    if !drawing.histogram {
        bail!("--svg: expected --gantt or --histogram, which say what to draw");
    }
    let Distributions { title, mut curves, notes } = distributions(trace, filter, question).await?;
    curves.retain(|(_, lengths)| lengths.count() > 0);
    if curves.is_empty() {
        return Ok(Found::Nothing);
    }
    if let Some(left_out) = curves.len().checked_sub(MOST_CURVES).filter(|left_out| *left_out > 0) {
        curves.truncate(MOST_CURVES);
        notice(&format!("{left_out} more rows are not drawn: --by name or --by pattern makes fewer"));
    }
    notes.iter().for_each(|note| notice(note));
    if let Some(path) = &drawing.svg {
        let curves: Vec<_> = curves.iter().map(|(label, lengths)| (label.as_str(), lengths)).collect();
        return write_picture(path, &cdf_svg(&title, &curves, &lengths));
    }
    for (place, (label, distribution)) in curves.iter().enumerate() {
        let bars = Histogram::new(distribution).text(BAR_WIDTH, &lengths);
        let between = if place == 0 { "" } else { "\n" };
        terminal::block(&if label.is_empty() { bars } else { format!("{between}{label}\n{bars}") })?;
    }
    Ok(Found::Something)
}

/// Stacks of functions and spans with their active time, for flame graphs.
pub(crate) async fn stacks(trace: &SuperTrace, filter: &Filter, question: &Question) -> Result<Found> {
    let args = &question.measure;
    if args.measure.is_none_or(|measure| measure.name != "functions") {
        bail!("--format folded: expected --functions, whose stacks it lists");
    }
    if question.drawing.is_asked() {
        bail!("--format folded: expected no drawing beside it");
    }
    let options = MeasureOptions { by: args.by, subject: args.subject.clone(), ..MeasureOptions::default() };
    let Measured { answer, .. } = measure(trace, &FOLDED, filter, &options).await?;
    let out = &mut terminal::data();
    for row in answer.rows.iter() {
        if let [Value::Text(stack), Value::Number(active)] = row.as_slice() {
            writeln!(out, "{stack} {active}")?;
        }
    }
    out.flush()?;
    Ok(if answer.rows.is_empty() { Found::Nothing } else { Found::Something })
}

/// The colour of each character of a line of a timeline: letters of states in the bar and in the legend. The letter says
/// the same.
fn colour(line: &str) -> Vec<Option<Colour>> {
    let mut colours = vec![None; line.chars().count()];
    let bars: Vec<usize> =
        line.chars().enumerate().filter(|(_, c)| *c == '|').map(|(place, _)| place).collect();
    if let [.., begin, end] = bars.as_slice() {
        for (place, letter) in line.chars().enumerate().take(*end).skip(begin + 1) {
            colours[place] = of_state(letter);
        }
    }
    colours
}

fn of_state(letter: char) -> Option<Colour> {
    match letter {
        'A' => Some(Colour::Green),
        's' => Some(Colour::Red),
        'k' => Some(Colour::Cyan),
        'r' => Some(Colour::Yellow),
        'b' => Some(Colour::Blue),
        '?' => Some(Colour::Magenta),
        _ => None,
    }
}

/// What a histogram shows.
struct Distributions {
    title: String,
    /// Lengths, each with what they are of.
    curves: Vec<(String, Distribution)>,
    notes: Vec<String>,
}

/// The lengths that the question is about.
async fn distributions(trace: &SuperTrace, filter: &Filter, question: &Question) -> Result<Distributions> {
    if let [from, to] = question.reactivity.as_slice() {
        let pairs = reactivity(trace, from, to, filter).await?.pairs;
        let lengths = pairs.iter().map(|pair| pair.ticks().0 as i64).collect();
        let (title, curves) = (format!("{from} to {to}"), vec![(String::new(), lengths)]);
        return Ok(Distributions { title, curves, notes: Vec::new() });
    }
    let args = &question.measure;
    let Some(asked) = args.measure else {
        bail!("--histogram: expected a measure whose lengths it draws, as in --latency --histogram");
    };
    let options = MeasureOptions {
        by: args.by,
        subject: args.subject.clone(),
        worst: args.worst,
        pair: args.pair.clone(),
        with_lengths: true,
    };
    let mut answer = measure(trace, asked, filter, &options).await?.answer;
    let curves = std::mem::take(&mut answer.distributions);
    if curves.is_empty() && !answer.rows.is_empty() {
        bail!(
            "--histogram: expected a measure of many lengths (--latency, --quanta, --functions ...), found --{}{}",
            asked.name,
            if args.worst > 0 { " with --worst" } else { "" }
        );
    }
    let labels: Vec<String> = answer.rows.iter().map(|row| row_label(&answer, &row)).collect();
    let curves = labels.into_iter().zip(curves).collect();
    Ok(Distributions { title: asked.question.to_string(), curves, notes: answer.notes })
}

/// What a row is of: its cells up to the number of lengths, without lengths.
fn row_label(answer: &Answer, row: &[Value]) -> String {
    let until = answer.column("count").unwrap_or(row.len());
    let cells =
        answer.columns.iter().zip(row).take(until).filter_map(|(column, value)| match (column.kind, value) {
            (Kind::Text, Value::Text(text)) => Some(text.to_string()),
            (Kind::Count, Value::Number(number)) => Some(format!("{} {number}", column.name)),
            _ => None,
        });
    cells.collect::<Vec<_>>().join(", ")
}

fn label(ticks: i64, hz: Option<Hertz>) -> String {
    let sign = if ticks < 0 { "-" } else { "" };
    if ticks == i64::MAX {
        return "...".into();
    }
    format!("{sign}{}", length(Ticks(ticks.unsigned_abs()), hz))
}

/// What a picture may take the place of.
const PICTURE: Replaceable = Replaceable { expected: "a picture", files: true, folder: |_| false };

fn write_picture(path: &Path, svg: &str) -> Result<Found> {
    let write = || {
        let mut destination = Destination::new(path, Some(PICTURE), owner())?;
        destination.file()?.write_all(svg.as_bytes())?;
        destination.finish()
    };
    write().with_context(|| path.display().to_string())?;
    Ok(Found::Something)
}
