//! Answers questions without a subcommand: filters and a measure.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail};
use sigmund_measures::named;
use sigmund_model::{Cpu, Hertz, Level, Thread, Ticks};
use sigmund_query::{
    ActiveTime, Filter, Moment, Reactivity, active_time, count_gaps, list, nearest_values, reactivity,
};
use sigmund_sql::{Fleet, OpenOptions, SuperTrace};

#[cfg(not(feature = "cluster"))]
use crate::cli::WITHOUT_CLUSTERS;
use crate::{
    Found,
    cli::{AnswerFormat, FilterArgs, FormatArg, LevelArg, Question, Unit},
    descriptors, drawings, gaps, measured,
    output::{Cell, counted, print_table, quoted_path},
    terminal,
};

pub(crate) async fn run(mut question: Question) -> Result<Found> {
    let filter = Filter::from(&question.filter);
    pair_by_cause(&mut question)?;
    let compared = question.measure.measure;
    if question.cluster.is_asked() && question.measure.compare.is_some() {
        bail!("--cluster: expected a question about one super-trace, found --compare: leave one of them out");
    }
    if question.cluster.is_asked() && question.memory.is_some() {
        bail!("--memory: expected no --cluster beside it: executors have a --memory of their own");
    }
    if let (Some((a, b)), Some(measure)) = (&question.measure.compare, compared) {
        if question.format == AnswerFormat::Folded {
            bail!(
                "--compare: expected a table, found --format folded: ask each super-trace, with --trace-file"
            );
        }
        let how = question.how();
        let (a, b) = (open(Some(a), how).await?, open(Some(b), how).await?);
        return measured::compare(&a, &b, measure, &filter, &question).await;
    }
    if let Some(folder) = &question.fleet {
        let Some(measure) = question.measure.measure else {
            bail!("--fleet: expected a measure, as --states; sigmund sql --fleet asks for events");
        };
        if question.format == AnswerFormat::Folded {
            bail!("--fleet: expected a table, found --format folded: ask one host, with --trace-file");
        }
        let trace = open_fleet(folder, question.how()).await?;
        question.cluster.join(&trace)?;
        return measured::run(&trace, measure, &filter, &question).await;
    }
    let trace = open(question.trace_file.as_deref(), question.how()).await?;
    if question.cluster.is_asked() {
        let Some(measure) = question.measure.measure.filter(|_| question.format != AnswerFormat::Folded)
        else {
            bail!("--cluster: expected a measure, as --states; sigmund sql --cluster asks for events");
        };
        if question.drawing.is_asked() {
            bail!("--cluster: expected a table, found a drawing: one process makes it, without --cluster");
        }
        question.cluster.join(&trace)?;
        if is_plain_active_time(&trace, &filter, &question) {
            filter.check_known(&trace).await?;
            return print_active_time(&trace, &filter, &question).await;
        }
        return measured::run(&trace, measure, &filter, &question).await;
    }
    if question.format == AnswerFormat::Folded {
        return drawings::stacks(&trace, &filter, &question).await;
    }
    if question.drawing.is_asked() {
        return drawings::run(&trace, &filter, &question).await;
    }
    if is_plain_active_time(&trace, &filter, &question) {
        filter.check_known(&trace).await?;
        return print_active_time(&trace, &filter, &question).await;
    }
    if let Some(measure) = question.measure.measure {
        return measured::run(&trace, measure, &filter, &question).await;
    }
    filter.check_known(&trace).await?;
    if !question.reactivity.is_empty() {
        return print_reactivity(&trace, &filter, &question).await;
    }
    let mut out = terminal::data();
    let rows = list(&trace, &filter, question.format.of_table()?.into(), &mut out).await?;
    out.flush()?;
    Ok(if rows > 0 { Found::Something } else { Found::Nothing })
}

/// Whether only the times of whole user threads are asked for. Rows of LWPs, and rows for parts of the time, come from the measure.
fn is_plain_active_time(trace: &SuperTrace, filter: &Filter, question: &Question) -> bool {
    let is_of_threads = !filter.threads.is_empty() || filter.lwps.is_empty() && filter.cpus.is_empty();
    let is_of_all = filter.level.is_none() && filter.processes.is_empty() && is_of_threads;
    let has_rows = !filter.threads.is_empty() || trace.has_threads();
    question.measure.is_plain_active_time() && is_of_all && has_rows
}

/// Makes pairs of events a measure, unless each FROM is paired with the next TO event.
fn pair_by_cause(question: &mut Question) -> Result<()> {
    if question.reactivity.is_empty() {
        return Ok(());
    }
    let args = &mut question.measure;
    let plain = match (question.list_events, args.next) {
        (true, _) => "list-events",
        (false, true) => "next",
        (false, false) => {
            args.measure = named("reactivity");
            return Ok(());
        }
    };
    let filter = &question.filter;
    let options = [
        ("by", args.by.is_some()),
        ("worst", args.worst > 0),
        ("strict", args.strict),
        ("level", filter.level.is_some()),
        ("thread", !filter.thread.is_empty()),
        ("lwp", !filter.lwp.is_empty()),
        ("process", !filter.process.is_empty()),
        ("cpu", !filter.cpu.is_empty()),
    ];
    match options.iter().find(|(_, is_asked)| *is_asked) {
        Some((option, _)) => bail!("--reactivity: expected no --{option} beside --{plain}, found one"),
        None => Ok(()),
    }
}

/// The file that marks a folder as a recording.
const RUN_FILE: &str = "run.json";

/// Opens a super-trace. If none is named: the only one in this folder.
pub(crate) async fn open(path: Option<&Path>, how: OpenOptions) -> Result<SuperTrace> {
    let path = match path {
        Some(path) => path.to_path_buf(),
        None => only_supertrace()?,
    };
    let trace = open_at(&path, how).await.map_err(|error| with_nearest(error, &path))?;
    report_left_out(&path, trace.left_out());
    Ok(trace)
}

/// Opens a super-trace in a folder; in a store if the path is a URL and this command supports stores.
async fn open_at(path: &Path, how: OpenOptions) -> Result<SuperTrace> {
    #[cfg(feature = "cluster")]
    return Ok(sigmund_cluster::stores::open_files(path, how)?.super_trace().await?);
    #[cfg(not(feature = "cluster"))]
    {
        refuse_store(path)?;
        Ok(how.open(path).await?)
    }
}

/// Adds hints to the error of opening a path. If nothing is there: the names of super-traces nearest to it. If it is a
/// recording: its super-trace.
fn with_nearest(error: anyhow::Error, path: &Path) -> anyhow::Error {
    if path.join(RUN_FILE).is_file() {
        let merged = path.with_extension("supertrace");
        let hint = match merged.is_dir() {
            true => format!("its super-trace is {}", merged.display()),
            false => format!("`sigmund merge {}` makes a super-trace of it", quoted_path(path)),
        };
        return anyhow!("{}: expected a super-trace, found a recording; {hint}", path.display());
    }
    if path.exists() {
        return error;
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let names: Vec<String> = names.filter(|name| name.ends_with(".supertrace")).collect();
    let sought = path.file_name().unwrap_or_default().to_string_lossy();
    let near = sigmund_sql::nearest(&sought, names.iter().map(String::as_str));
    if near.is_empty() { error } else { anyhow!("{error}; nearest: {}", near.join(", ")) }
}

async fn fleet_at(folder: &Path, how: OpenOptions) -> Result<Fleet> {
    #[cfg(feature = "cluster")]
    if let Some(url) = folder.to_str().filter(|_| sigmund_cluster::stores::is_url(folder)) {
        return Ok(sigmund_cluster::stores::open_fleet(url, how).await?);
    }
    #[cfg(not(feature = "cluster"))]
    refuse_store(folder)?;
    Ok(how.open_fleet(folder).await?)
}

/// Refuses the URL of a store, which is no path.
#[cfg(not(feature = "cluster"))]
fn refuse_store(path: &Path) -> Result<()> {
    match path.to_str().is_some_and(|path| path.starts_with("s3://")) {
        true => bail!("{}: {WITHOUT_CLUSTERS}", path.display()),
        false => Ok(()),
    }
}

/// Opens all super-traces of a folder as one.
pub(crate) async fn open_fleet(folder: &Path, how: OpenOptions) -> Result<SuperTrace> {
    descriptors::raise_limit();
    let Fleet { trace, left_out } = fleet_at(folder, how).await?;
    report_each(&left_out);
    if !left_out.is_empty() {
        let hosts = counted(left_out.len() as u64, "host");
        terminal::notice(&format!("left out {hosts} of {}: answers lack their rows", folder.display()));
    }
    trace.hosts().iter().for_each(|(_, host)| report_left_out(host.path(), host.left_out()));
    Ok(trace)
}

/// Reports which files of a super-trace were left out.
fn report_left_out(path: &Path, errors: &[sigmund_sql::Error]) {
    report_each(errors);
    if !errors.is_empty() {
        let files = counted(errors.len() as u64, "file");
        terminal::notice(&format!("left out {files} of {}: answers lack their rows", path.display()));
    }
}

/// Reports errors. The exit status is then 2.
fn report_each(errors: &[sigmund_sql::Error]) {
    errors.iter().for_each(|error| terminal::report_error(&format!("left out: {error}")));
}

/// How a super-trace is named; a question has it as an option, and other commands as an argument.
const NAME_ONE: &str =
    "expected the name of one: for a question with --trace-file, for other commands as their argument";

fn only_supertrace() -> Result<PathBuf> {
    let entries = std::fs::read_dir(".").context("looking for a super-trace in this folder")?;
    let is_one = |path: &PathBuf| path.extension().is_some_and(|e| e == "supertrace");
    let mut found: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_one).collect();
    found.sort();
    match found.as_slice() {
        [one] => Ok(one.strip_prefix(".").unwrap_or(one).to_path_buf()),
        [] => bail!("no super-trace in this folder: {NAME_ONE}"),
        several => {
            let names: Vec<_> = several.iter().map(|p| p.display().to_string()).collect();
            bail!("several super-traces in this folder ({}): {NAME_ONE}", names.join(", "))
        }
    }
}

impl From<&FilterArgs> for Filter {
    fn from(args: &FilterArgs) -> Filter {
        Filter {
            threads: args.thread.iter().flat_map(|list| list.0.clone()).collect(),
            lwps: args.lwp.iter().flat_map(|list| list.0.clone()).collect(),
            processes: args.process.iter().flat_map(|list| list.0.clone()).collect(),
            cpus: args.cpu.iter().map(|cpu| Cpu(*cpu)).collect(),
            events: args.event.clone(),
            level: args.level.map(|level| match level {
                LevelArg::Kern => Level::Kern,
                LevelArg::User => Level::User,
            }),
            from: args.from,
            to: args.to,
        }
    }
}

async fn print_active_time(trace: &SuperTrace, filter: &Filter, question: &Question) -> Result<Found> {
    let times = active_time(trace, filter).await?;
    if let ([one], [_], FormatArg::Human) =
        (times.as_slice(), filter.threads.as_slice(), question.format.of_table()?)
    {
        let mut text = format!("{} cycles", one.active.0);
        if let Some(unit) = question.unit {
            text += &format!(", {:.6} {}", unit.of(one.active, trace.tick_hz())?, unit.name());
        }
        terminal::line(text)?;
        return Ok(gaps::finish(1, count_gaps(trace, filter).await?, false));
    }
    let in_unit = question.unit.map(|unit| format!("active_{}", unit.name()));
    let mut columns = vec!["thr", "name", "active_cycles"];
    columns.extend(in_unit.as_deref());
    let rows: Result<Vec<_>> = times.iter().map(|t| active_row(t, question.unit, trace.tick_hz())).collect();
    print_table(&columns, &rows?, question.format.of_table()?)?;
    Ok(gaps::finish(times.len(), count_gaps(trace, filter).await?, false))
}

fn active_row(time: &ActiveTime, unit: Option<Unit>, tick_hz: Option<Hertz>) -> Result<Vec<Cell<'_>>> {
    let name = time.name.as_deref().map_or(Cell::Nothing, Cell::from);
    let mut row = vec![Cell::Count(time.thread.0 as i64), name, Cell::Count(time.active.0 as i64)];
    if let Some(unit) = unit {
        row.push(Cell::Fraction(unit.of(time.active, tick_hz)?));
    }
    Ok(row)
}

async fn print_reactivity(trace: &SuperTrace, filter: &Filter, question: &Question) -> Result<Found> {
    let [from, to] = question.reactivity.as_slice() else { bail!("--reactivity: expected FROM and TO") };
    let found = reactivity(trace, from, to, filter).await?;
    let mut near = Vec::new();
    if found.count() == 0 {
        for selector in [from, to] {
            near.extend(nearest_values(trace, selector).await?);
        }
    }
    if question.list_events {
        print_pairs(trace, &found, question)?;
    }
    // In formats for programs, the table of pairs is the only output.
    if !question.list_events || question.format.of_table()? == FormatArg::Human {
        print_summary(&found, question, trace.tick_hz())?;
    }
    near.iter().for_each(|near| terminal::notice(near));
    Ok(gaps::finish(found.count(), count_gaps(trace, filter).await?, false))
}

fn print_summary(found: &Reactivity, question: &Question, tick_hz: Option<Hertz>) -> Result<()> {
    let figures =
        [("min", found.min()), ("median", found.median()), ("p99", found.p99()), ("max", found.max())];
    let mut columns = vec!["count".to_string()];
    let mut row = vec![Cell::Count(found.count() as i64)];
    for (name, ticks) in figures {
        columns.push(format!("{name}_cycles"));
        row.push(ticks.map_or(Cell::Nothing, |t| Cell::Count(t.0 as i64)));
        if let Some(unit) = question.unit {
            columns.push(format!("{name}_{}", unit.name()));
            row.push(ticks.map(|t| unit.of(t, tick_hz)).transpose()?.map_or(Cell::Nothing, Cell::Fraction));
        }
    }
    columns.push("unanswered".into());
    row.push(Cell::Count(found.unanswered as i64));
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    print_table(&columns, &[row], question.format.of_table()?)
}

fn print_pairs(trace: &SuperTrace, found: &Reactivity, question: &Question) -> Result<()> {
    let mut columns = vec![
        "from_tick",
        "from_pid",
        "from_cpu",
        "from_thr",
        "to_tick",
        "to_pid",
        "to_cpu",
        "to_thr",
        "cycles",
    ];
    columns.extend(question.unit.map(Unit::name));
    let mut rows = Vec::with_capacity(found.count());
    for pair in &found.pairs {
        let mut row = Vec::from(moment(trace, &pair.from)?);
        row.extend(moment(trace, &pair.to)?);
        row.push(Cell::Count(pair.ticks().0 as i64));
        if let Some(unit) = question.unit {
            row.push(Cell::Fraction(unit.of(pair.ticks(), trace.tick_hz())?));
        }
        rows.push(row);
    }
    print_table(&columns, &rows, question.format.of_table()?)
}

fn moment(trace: &SuperTrace, moment: &Moment) -> Result<[Cell<'static>; 4]> {
    let count = |n: Option<u32>| n.map_or(Cell::Nothing, |n| Cell::Count(n.into()));
    let Moment { tick: Ticks(tick), cpu, lwp, thread } = *moment;
    let thread = thread.map_or(Ok("?".into()), |thread| thread_label(trace, thread))?;
    let thread = Cell::from(thread);
    Ok([Cell::Count(tick as i64), count(lwp.map(|l| l.0)), count(cpu.map(|c| c.0)), thread])
}

/// `15`, or `8(work/6)`.
pub(crate) fn thread_label(trace: &SuperTrace, thread: Thread) -> Result<String> {
    Ok(trace.threads()?.name(thread).map_or(thread.to_string(), |name| format!("{thread}({name})")))
}
