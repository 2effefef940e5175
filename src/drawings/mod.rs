//! Timelines, distributions and stacks, as text and as pictures.
//!
//! ```text
//! timeline.rs        --gantt: what each thread did, from left to right
//! distributions.rs   --histogram: distributions of lengths
//! mod.rs             --format folded: stacks; what drawings share
//! ```

mod distributions;
mod timeline;

use std::{io::Write, path::Path};

use anyhow::{Context, Result, bail};
use sigmund_files::{Destination, Replaceable};
use sigmund_measures::{FOLDED, Value};
use sigmund_model::{Hertz, Ticks};
use sigmund_query::{Filter, MeasureOptions, Measured, measure};
use sigmund_sql::SuperTrace;

use crate::{
    Found,
    cli::{FormatArg, Question, Unit},
    gaps, measured,
    output::{length, notice},
    owner::owner,
    terminal,
};

/// Makes the drawing that a question requests.
pub(crate) async fn run(trace: &SuperTrace, filter: &Filter, question: &Question) -> Result<Found> {
    let drawing = &question.drawing;
    if let Some(unit) = question.unit {
        // Fails here if the rate is unknown, so that no label fails later.
        unit.of(Ticks(0), trace.tick_hz())?;
    }
    if drawing.svg.is_some() && question.format.of_table()? != FormatArg::Human {
        bail!("--svg: expected no --format beside it: a picture is SVG");
    }
    match (drawing.gantt, drawing.histogram) {
        (true, _) => timeline::run(trace, filter, question).await,
        (false, true) => distributions::run(trace, filter, question).await,
        (false, false) => bail!("--svg: expected --gantt or --histogram, which say what to draw"),
    }
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
    if args.worst > 0 {
        bail!(
            "--format folded: expected no --worst beside it: each stack is one line, whichever calls had it"
        );
    }
    let options = MeasureOptions { by: args.by, subject: args.subject.clone(), ..MeasureOptions::default() };
    let Measured { answer, gaps } = measure(trace, &FOLDED, filter, &options).await?;
    let out = &mut terminal::data();
    for row in answer.rows.iter() {
        if let [Value::Text(stack), Value::Number(active)] = row.as_slice() {
            writeln!(out, "{stack} {active}")?;
        }
    }
    out.flush()?;
    answer.notes.iter().for_each(|note| notice(note));
    if answer.rows.is_empty() && answer.notes.is_empty() {
        measured::nothing();
    }
    Ok(gaps::finish(answer.rows.len(), gaps, args.strict))
}

/// A length in `unit`, or in a unit that fits it: `0.5 ms`, `500.000 us`.
fn label(ticks: i64, hz: Option<Hertz>, unit: Option<Unit>) -> String {
    if ticks == i64::MAX {
        return "...".into();
    }
    let sign = if ticks < 0 { "-" } else { "" };
    let ticks = Ticks(ticks.unsigned_abs());
    match unit.and_then(|unit| Some((unit, unit.of(ticks, hz).ok()?))) {
        Some((unit, number)) => format!("{sign}{} {}", rounded(number, unit), unit.name()),
        None => format!("{sign}{}", length(ticks, hz)),
    }
}

/// Rounded to nanoseconds, without zeros at the end.
fn rounded(number: f64, unit: Unit) -> String {
    let decimals = match unit {
        Unit::Ns => return format!("{number:.0}"),
        Unit::Us => 3,
        Unit::Ms => 6,
        Unit::S => 9,
    };
    format!("{number:.decimals$}").trim_end_matches('0').trim_end_matches('.').to_string()
}

/// What a picture may replace.
const PICTURE: Replaceable = Replaceable { expected: "a picture", files: true, folder: |_| false };

/// Writes a picture; `-` is standard output.
fn write_picture(path: &Path, svg: &str) -> Result<()> {
    if path == Path::new("-") {
        let out = &mut terminal::data();
        out.write_all(svg.as_bytes())?;
        return Ok(out.flush()?);
    }
    let write = || {
        let mut destination = Destination::new(path, Some(PICTURE), owner())?;
        destination.file()?.write_all(svg.as_bytes())?;
        destination.finish()
    };
    write().with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_in_the_unit_that_was_asked_for() {
        let ns = Hertz::new(1e9);
        assert_eq!(label(500_000, ns, Some(Unit::Ms)), "0.5 ms");
        assert_eq!(label(-20_000, ns, Some(Unit::Us)), "-20 us");
        assert_eq!(label(1, ns, Some(Unit::S)), "0.000000001 s");
        assert_eq!(label(100, ns, Some(Unit::Ns)), "100 ns");
        assert_eq!(label(500_000, ns, None), "500.000 us");
        assert_eq!(label(7, None, None), "7 cycles");
        assert_eq!(label(i64::MAX, ns, Some(Unit::Ms)), "...");
    }
}
