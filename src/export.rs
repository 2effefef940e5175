//! `sigmund export`: writes a super-trace for a viewer, or a table of it for a program.

use std::{
    io::{self, BufWriter},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use sigmund_export::{
    ViewerFormat,
    replay::{self, Replayed},
    tables::{TableFormat, write_table},
    timeline::Actors,
};
use sigmund_files::Destination;
use sigmund_model::{Ticks, tables::EVENTS};
use sigmund_query::Filter;
use sigmund_sql::SuperTrace;

use crate::{
    Found, answer,
    cli::{ExportArgs, ExportKind},
    output::{self, Progress, counted},
    owner::owner,
    signals, terminal,
};

pub(crate) async fn run(args: ExportArgs) -> Result<Found> {
    let trace = answer::open(Some(&args.trace), args.damage.into()).await?;
    let filter = Filter::from(&args.filter);
    filter.check_window(&trace)?;
    match args.format.kind() {
        ExportKind::ViewerFormat(_) if args.table.is_some() => {
            bail!("--table is for csv, tsv, ndjson, arrow and parquet; viewers get all tables")
        }
        ExportKind::ViewerFormat(viewer) => export_to_viewer(&trace, &filter, viewer, &args).await,
        ExportKind::Table(format) => table(&trace, &filter, format, &args).await,
    }
}

async fn export_to_viewer(
    trace: &SuperTrace,
    filter: &Filter,
    viewer: ViewerFormat,
    args: &ExportArgs,
) -> Result<Found> {
    let actors = Arc::new(replay::read_actors(trace, filter).await?);
    let stop = Stop::new()?;
    let mut progress = Rate::new();
    let mut follow = |replayed: &Replayed, reached: Ticks| {
        progress.show(replayed.events, share(&actors, reached));
        stop.ask()
    };
    let to_stdout = is_stdout(&args.output);
    if to_stdout && viewer.is_folder() {
        bail!("--output -: this format is a folder, so it needs a name");
    }
    let (replayed, left_out) = if to_stdout {
        let mut sink = viewer.write(terminal::data(), &actors, args.coarse)?;
        (replay::replay(trace, filter, &actors, &mut sink, &mut follow).await?, sink.left_out())
    } else {
        let mut destination = destination(args)?;
        let created = viewer.create(&mut destination, &actors, args.coarse);
        let mut sink = created.with_context(|| shown(&args.output))?;
        let result = replay::replay(trace, filter, &actors, &mut sink, &mut follow).await;
        let replayed = result.map_err(|error| in_output(error, &args.output))?;
        let left_out = sink.left_out();
        drop(sink);
        destination.finish().with_context(|| shown(&args.output))?;
        (replayed, left_out)
    };
    progress.clear();
    if actors.clock.rate.is_none() {
        output::notice("warning: the tick rate is unknown: one tick is written as one nanosecond");
    }
    report_corrections(&replayed);
    if !viewer.has_events_only() {
        report_left_out_tables(trace);
    }
    left_out.iter().for_each(|line| output::notice(line));
    output::notice(&describe(viewer, &args.output, &actors, &replayed));
    Ok(if replayed.states + replayed.events > 0 { Found::Something } else { Found::Nothing })
}

async fn table(trace: &SuperTrace, filter: &Filter, format: TableFormat, args: &ExportArgs) -> Result<Found> {
    if args.coarse.is_some() {
        bail!("--coarse is for viewers; tables are exact");
    }
    let table = args.table.unwrap_or(&EVENTS);
    let stop = Stop::new()?;
    let mut progress = Rate::new();
    let mut follow = |rows: u64| {
        progress.show(rows, None);
        stop.ask()
    };
    let rows = if is_stdout(&args.output) {
        write_table(trace, table, filter, format, &mut terminal::data(), &mut follow).await?
    } else {
        let mut destination = destination(args)?;
        let file = destination.file().with_context(|| shown(&args.output))?;
        let mut out = BufWriter::with_capacity(1 << 16, file);
        let rows = write_table(trace, table, filter, format, &mut out, &mut follow).await;
        drop(out);
        let rows = rows.map_err(|error| in_output(error, &args.output))?;
        destination.finish().with_context(|| shown(&args.output))?;
        rows
    };
    progress.clear();
    let empty = if rows == 0 { ": nothing matched, it is empty" } else { "" };
    output::notice(&format!("{}: {}{empty}", shown(&args.output), counted(rows, "row")));
    Ok(if rows > 0 { Found::Something } else { Found::Nothing })
}

/// The destination of the export.
fn destination(args: &ExportArgs) -> Result<Destination> {
    let canonical = |path: &Path| path.canonicalize().ok();
    let folder =
        args.output.parent().map(|folder| if folder == Path::new("") { Path::new(".") } else { folder });
    if let (Some(trace), Some(folder)) = (canonical(&args.trace), folder.and_then(canonical))
        && folder.starts_with(&trace)
    {
        bail!("{}: expected a place outside of the super-trace that is exported", shown(&args.output));
    }
    let replaceable = args.force.then_some(ViewerFormat::REPLACEABLE);
    Destination::new(&args.output, replaceable, owner()).with_context(|| shown(&args.output))
}

/// Adds the path of the output to errors about the output. Other errors already name their subject.
fn in_output(error: sigmund_export::Error, path: &Path) -> anyhow::Error {
    let is_of_output = matches!(error.kind(), sigmund_export::ErrorKind::Output(_));
    let error = anyhow::Error::from(error);
    if is_of_output { error.context(shown(path)) } else { error }
}

fn is_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

fn shown(path: &Path) -> String {
    if is_stdout(path) { "standard output".into() } else { path.display().to_string() }
}

/// Reports the corrections that the export made.
fn report_corrections(replayed: &Replayed) {
    let Replayed { slices_without_end, cut_slices, holds_without_end, unknown_actors, .. } = *replayed;
    if slices_without_end > 0 {
        let slices = counted(slices_without_end, "slice");
        output::notice(&format!("{slices} without a recorded end: drawn as far as known"));
    }
    if cut_slices > 0 {
        let slices = counted(cut_slices, "slice");
        output::notice(&format!("cut {slices} that ended after the enclosing slice"));
    }
    if holds_without_end > 0 {
        let holds = counted(holds_without_end, "hold");
        output::notice(&format!("{holds} of locks without a recorded release: drawn as far as known"));
    }
    if unknown_actors > 0 {
        let rows = counted(unknown_actors, "row");
        output::notice(&format!(
            "warning: left out {rows} of LWPs, user threads or events that are in no table"
        ));
    }
}

/// Reports the kinds of intervals that are missing because the merge left out their tables.
fn report_left_out_tables(trace: &SuperTrace) {
    let names: Vec<&str> = replay::left_out_tables(trace).iter().map(|table| table.name).collect();
    if !names.is_empty() {
        let names = names.join(", ");
        output::notice(&format!("the merge left out {names} (--tables): they are missing from the export"));
    }
}

fn describe(viewer: ViewerFormat, path: &Path, actors: &Actors, replayed: &Replayed) -> String {
    if replayed.states + replayed.events == 0 {
        return format!("{}: nothing matched, it is empty", shown(path));
    }
    let span = Ticks(actors.clock.last.0 - actors.clock.first.0);
    let states = match viewer.has_events_only() {
        true => String::new(),
        false => format!(" and {}", counted(replayed.states, "state")),
    };
    format!(
        "{}: {}{states} of {}, {} and {}, over {}",
        shown(path),
        counted(replayed.events, "event"),
        counted(actors.threads.len() as u64, "user thread"),
        counted(actors.lwps.len() as u64, "LWP"),
        counted(actors.cpus.len() as u64, "CPU"),
        output::length(span, actors.clock.rate),
    )
}

/// The share of the time that was replayed so far.
fn share(actors: &Actors, reached: Ticks) -> Option<f64> {
    let (first, last) = (actors.clock.first.0, actors.clock.last.0);
    (last > first).then(|| reached.0.saturating_sub(first) as f64 / (last - first) as f64)
}

/// A progress bar on a terminal, updated a few times per second.
struct Rate {
    progress: Progress,
    started: Instant,
    shown: Instant,
}

impl Rate {
    fn new() -> Rate {
        let now = Instant::now();
        Rate { progress: Progress::new(), started: now, shown: now }
    }

    fn show(&mut self, rows: u64, share: Option<f64>) {
        if self.shown.elapsed() < Duration::from_millis(200) {
            return;
        }
        self.shown = Instant::now();
        let rate = rows as f64 / self.started.elapsed().as_secs_f64() / 1e6;
        let bar = share.map_or(String::new(), |share| {
            let full = (share * 20.0) as usize;
            format!("[{}{}] {:.0} %, ", "=".repeat(full), " ".repeat(20 - full.min(20)), share * 100.0)
        });
        self.progress.show(&format!("exporting, {bar}{rows} rows, {rate:.1} M rows/s"));
    }

    fn clear(&self) {
        self.progress.clear();
    }
}

/// A signal that ends programs ends the export, and its output is removed.
struct Stop(Arc<AtomicBool>);

impl Stop {
    fn new() -> Result<Stop> {
        Ok(Stop(signals::stop_at_signals()?.0))
    }

    fn ask(&self) -> io::Result<()> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(io::Error::new(io::ErrorKind::Interrupted, "stopped by a signal")),
            false => Ok(()),
        }
    }
}
