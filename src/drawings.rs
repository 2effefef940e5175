//! Timelines, distributions and stacks, as text and as pictures.

use std::{io::Write, path::Path};

use anyhow::{Context, Result, bail};
use sigmund_files::{Destination, Replaceable};
use sigmund_measures::{
    Distribution, Histogram, Kind, Needs, Value, cdf_svg, folded, gantt, gantt_svg, named,
};
use sigmund_model::{Hertz, Ticks};
use sigmund_query::{Filter, MeasureOptions, measure, reactivity, with_history};
use sigmund_sql::SuperTrace;

use crate::{
    Found,
    cli::Question,
    output::length,
    owner::owner,
    terminal::{self, Colour},
};

/// Columns of a drawing in text, beside its labels.
const TEXT_WIDTH: usize = 80;
const BAR_WIDTH: usize = 50;
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
    let (title, distribution) = distribution(trace, filter, question).await?;
    if distribution.count() == 0 {
        return Ok(Found::Nothing);
    }
    if let Some(path) = &drawing.svg {
        return write_picture(path, &cdf_svg(&title, &[("", &distribution)], &lengths));
    }
    terminal::block(&Histogram::new(&distribution).text(BAR_WIDTH, &lengths))?;
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
    let needs = Needs { spans: true, ..Needs::STATES };
    let options = MeasureOptions { by: args.by, subject: args.subject.clone(), ..MeasureOptions::default() };
    let stacks = |history: &_, request: &_| Ok(folded(history, request));
    let stacks = with_history(trace, ("functions", needs), filter, &options, stacks).await?;
    let out = &mut terminal::data();
    out.write_all(stacks.as_bytes())?;
    out.flush()?;
    Ok(if stacks.is_empty() { Found::Nothing } else { Found::Something })
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

/// The lengths that the question is about, and what they are.
async fn distribution(
    trace: &SuperTrace,
    filter: &Filter,
    question: &Question,
) -> Result<(String, Distribution)> {
    if let [from, to] = question.reactivity.as_slice() {
        let pairs = reactivity(trace, from, to, filter).await?.pairs;
        let lengths = pairs.iter().map(|pair| pair.ticks().0 as i64).collect();
        return Ok((format!("{from} to {to}"), lengths));
    }
    let args = &question.measure;
    let Some(latency) = args.measure.filter(|measure| Some(measure.name) == named("latency").map(|m| m.name))
    else {
        bail!("--histogram: expected --latency or --reactivity, which say of what");
    };
    // Every case, one by one.
    let options = MeasureOptions { by: args.by, worst: usize::MAX, ..MeasureOptions::default() };
    let answer = measure(trace, latency, filter, &options).await?.answer;
    let column = answer.columns.iter().position(|column| column.kind == Kind::Length);
    let length = |row: &Vec<Value>| match row.get(column?) {
        Some(Value::Number(ticks)) => Some(*ticks),
        _ => None,
    };
    Ok((latency.question.to_string(), answer.rows.iter().filter_map(length).collect()))
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
