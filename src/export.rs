//! `sigmund export`: a super-trace for a viewer, or a table of it for a program.

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
    Viewer,
    tables::{TableFormat, write_table},
    telling::{self, Told},
    timeline::Cast,
};
use sigmund_files::Destination;
use sigmund_model::Ticks;
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
    let trace = answer::open(Some(&args.trace)).await?;
    let filter = Filter::from(&args.filter);
    match args.format.kind() {
        ExportKind::Viewer(viewer) => picture(&trace, &filter, viewer, &args).await,
        ExportKind::Table(format) => table(&trace, &filter, format, &args).await,
    }
}

async fn picture(trace: &SuperTrace, filter: &Filter, viewer: Viewer, args: &ExportArgs) -> Result<Found> {
    let cast = Arc::new(telling::cast(trace, filter).await?);
    let stop = Stop::new()?;
    let mut progress = Rate::new();
    let mut follow = |told: &Told, reached: Ticks| {
        progress.show(told.events, share(&cast, reached));
        stop.ask()
    };
    let to_stdout = is_stdout(&args.output);
    if to_stdout && viewer.is_folder() {
        bail!("--output -: this format is a folder, so it needs a name");
    }
    let (told, left_out) = if to_stdout {
        let mut sink = viewer.write(terminal::data(), &cast, args.coarse)?;
        (telling::tell(trace, filter, &cast, &mut sink, &mut follow).await?, sink.left_out())
    } else {
        let mut destination = destination(args)?;
        let created = viewer.create(&mut destination, &cast, args.coarse);
        let mut sink = created.with_context(|| shown(&args.output))?;
        let told = telling::tell(trace, filter, &cast, &mut sink, &mut follow).await;
        let told = told.map_err(|error| in_output(error, &args.output))?;
        let left_out = sink.left_out();
        drop(sink);
        destination.finish().with_context(|| shown(&args.output))?;
        (told, left_out)
    };
    progress.clear();
    if cast.clock.rate.is_none() {
        output::notice("warning: the tick rate is unknown: one tick is written as one nanosecond");
    }
    report_repairs(&told);
    left_out.iter().for_each(|line| output::notice(line));
    output::notice(&describe(viewer, &args.output, &cast, &told));
    Ok(if told.states + told.events > 0 { Found::Something } else { Found::Nothing })
}

async fn table(trace: &SuperTrace, filter: &Filter, format: TableFormat, args: &ExportArgs) -> Result<Found> {
    if args.coarse.is_some() {
        bail!("--coarse is for viewers; tables are exact");
    }
    let stop = Stop::new()?;
    let mut progress = Rate::new();
    let mut follow = |rows: u64| {
        progress.show(rows, None);
        stop.ask()
    };
    let rows = if is_stdout(&args.output) {
        write_table(trace, args.table, filter, format, terminal::data(), &mut follow).await?
    } else {
        let mut destination = destination(args)?;
        let file = destination.file().with_context(|| shown(&args.output))?;
        let out = BufWriter::with_capacity(1 << 16, file);
        let rows = write_table(trace, args.table, filter, format, out, &mut follow).await;
        let rows = rows.map_err(|error| in_output(error, &args.output))?;
        destination.finish().with_context(|| shown(&args.output))?;
        rows
    };
    progress.clear();
    let empty = if rows == 0 { ": nothing matched, it is empty" } else { "" };
    output::notice(&format!("{}: {}{empty}", shown(&args.output), counted(rows, "row")));
    Ok(if rows > 0 { Found::Something } else { Found::Nothing })
}

/// Where the export goes.
fn destination(args: &ExportArgs) -> Result<Destination> {
    let replaceable = args.force.then_some(Viewer::REPLACEABLE);
    Destination::new(&args.output, replaceable, owner()).with_context(|| shown(&args.output))
}

/// An error of the output names it; others name what they are about.
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

/// Reports what the export had to repair.
fn report_repairs(told: &Told) {
    let Told { ends_without_begin, begins_without_end, broken_holds, of_strangers, .. } = *told;
    if ends_without_begin > 0 {
        let slices = counted(ends_without_begin, "slice");
        output::notice(&format!("left out {slices} whose begin is not in the trace"));
    }
    if begins_without_end > 0 {
        let slices = counted(begins_without_end, "slice");
        output::notice(&format!("{slices} without an end in the trace: ended with the enclosing slice"));
    }
    if broken_holds > 0 {
        let holds = counted(broken_holds, "hold");
        output::notice(&format!("completed {holds} of locks without a begin or end in the trace"));
    }
    if of_strangers > 0 {
        let rows = counted(of_strangers, "row");
        output::notice(&format!(
            "warning: left out {rows} with an LWP, user thread or event that is in no table"
        ));
    }
}

fn describe(viewer: Viewer, path: &Path, cast: &Cast, told: &Told) -> String {
    if told.states + told.events == 0 {
        return format!("{}: nothing matched, it is empty", shown(path));
    }
    let span = Ticks(cast.clock.last.0 - cast.clock.first.0);
    let states = match viewer.has_events_only() {
        true => String::new(),
        false => format!(" and {}", counted(told.states, "state")),
    };
    format!(
        "{}: {}{states} of {}, {} and {}, over {}",
        shown(path),
        counted(told.events, "event"),
        counted(cast.threads.len() as u64, "user thread"),
        counted(cast.lwps.len() as u64, "LWP"),
        counted(cast.cpus.len() as u64, "CPU"),
        output::length(span, cast.clock.rate),
    )
}

/// The share of the trace's time that has been written.
fn share(cast: &Cast, reached: Ticks) -> Option<f64> {
    let (first, last) = (cast.clock.first.0, cast.clock.last.0);
    (last > first).then(|| reached.0.saturating_sub(first) as f64 / (last - first) as f64)
}

/// A bar on a terminal, a few times a second.
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

/// A signal that ends programs ends the export and removes its output.
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
