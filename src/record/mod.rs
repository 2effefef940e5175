//! `sigmund record`: runs a program, records the kernel beneath it and what it records itself, merges both.
//!
//! ```text
//!   start: program held at a gate ─▶ kernel recording on ─▶ gate opens ─▶ drain arenas until it ends
//!   end:   last packets ─▶ kernel recording off, kernel.dat ─▶ run.json ─▶ merge
//! ```

mod arenas;
mod gate;
mod kernel;
mod signals;
mod subject;
mod target;

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use fut::clock;
use rustix::time::{ClockId, clock_gettime};
use sigmund_merge::{Manifest, ManifestSnapshot, MergeOptions, Summary};

pub(crate) use gate::hold;

use crate::{
    Found,
    cli::RecordArgs,
    merge,
    output::{self, Progress},
};
use arenas::Arenas;
use kernel::Kernel;
use signals::{Asked, Signals};
use subject::Subject;
use target::Target;

/// How long the recorder sleeps when there is nothing to take: a ring of 4 MiB takes 4 ms to fill, at the fastest.
const NAP: Duration = Duration::from_millis(1);
/// How long, if nothing is ever to be taken: threads of their own move the pages of the kernel.
const LONG_NAP: Duration = Duration::from_millis(20);
const SNAPSHOT_EVERY: Duration = Duration::from_secs(1);
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

pub(crate) fn run(args: &RecordArgs) -> Result<Found> {
    let target = Target::choose(args)?;
    record(args, &target)?;
    if args.no_merge {
        output::say(&format!("{}: recorded; merge it with `sigmund merge`", target.run.display()));
        return Ok(Found::Something);
    }
    let summary = merge_run(&target)?;
    tell_about_user_side(args, &summary);
    Ok(if summary.is_damaged() { Found::Damaged } else { Found::Something })
}

fn merge_run(target: &Target) -> Result<Summary> {
    let options = MergeOptions { force: target.force, ..MergeOptions::default() };
    merge::merge(std::slice::from_ref(&target.run), &target.supertrace, &options)
}

fn tell_about_user_side(args: &RecordArgs, summary: &Summary) {
    if summary.user_events == 0 && !args.all {
        output::say(
            "the program recorded no event of its own: link `fut` and call `fut::init()`, or use its runtime",
        );
    }
}

/// Records both sides into the run directory.
fn record(args: &RecordArgs, target: &Target) -> Result<()> {
    let signals = Signals::register()?;
    let mut arenas = Arenas::create(&target.run)?;
    let started = Subject::choose(args, arenas.folder())
        .and_then(|subject| Ok((Kernel::start(args, &subject, &target.run)?, subject)));
    let mut manifest = manifest();
    snapshot(&mut manifest);
    let (kernel, mut subject) = started.inspect_err(|_| nothing_was_recorded(target))?;
    manifest.command = subject.command(args);
    output::say(&format!("recording {}; {}", subject.describe(), kernel.describe()));
    if let Err(error) = subject.release() {
        drop(kernel);
        nothing_was_recorded(target);
        return Err(error);
    }
    let (start, used_before) = (Instant::now(), cpu_time());
    let waited = wait(&mut subject, &mut arenas, &kernel, &signals, &mut manifest, args.length);
    // Whatever happened: what was recorded is kept.
    manifest.user_side = arenas.finish();
    manifest.user_side.extend(subject.user_side(&target.run));
    manifest.recorded_ns = start.elapsed().as_nanos() as u64;
    manifest.kernel_side = kernel.stop(&target.run);
    manifest.recorder_cpu_ns = (cpu_time() - used_before).as_nanos() as u64;
    snapshot(&mut manifest);
    manifest.ended = waited?;
    manifest.write(&target.run)?;
    if !["exit 0", "goes on"].contains(&manifest.ended.as_str()) {
        output::say(&format!("{} ended with {}", subject.describe(), manifest.ended));
    }
    output::say(&cost(&manifest));
    Ok(())
}

/// Nothing stays, and the next try finds the place free.
fn nothing_was_recorded(target: &Target) {
    let _ = fs::remove_dir_all(&target.run);
}

/// Time that this process had on CPUs.
fn cpu_time() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec.unsigned_abs() as u32)
}

fn cost(manifest: &Manifest) -> String {
    let seconds = manifest.recorded_ns as f64 / 1e9;
    let percent = 100.0 * manifest.recorder_cpu_ns as f64 / manifest.recorded_ns.max(1) as f64;
    format!("recorded {seconds:.3} s; the recorder itself used {percent:.1} % of one CPU")
}

/// Until the program has ended, or the time is over. Says how it ended.
fn wait(
    subject: &mut Subject,
    arenas: &mut Arenas,
    kernel: &Kernel,
    signals: &Signals,
    manifest: &mut Manifest,
    length: Option<Duration>,
) -> Result<String> {
    // The drain keeps up with the program only if it gets the CPU when it wants it; not everybody may ask. Only now:
    // the program must not inherit it.
    let _ = rustix::process::setpriority_process(None, -20);
    let progress = Progress::new();
    let start = Instant::now();
    let mut left = length;
    let nap = if subject.is_drained() { NAP } else { LONG_NAP };
    let (mut last_snapshot, mut last_progress) = (start, start);
    loop {
        let taken = arenas.poll();
        if let Some(how) = subject.ended()? {
            progress.clear();
            return Ok(how);
        }
        let is_over = left.take_if(|length| start.elapsed() >= *length).is_some();
        let asked = if is_over { Some(Asked::by_the_clock()) } else { signals.next() };
        if let Some(how) = asked.and_then(|asked| subject.stop(asked)) {
            progress.clear();
            return Ok(how);
        }
        if last_snapshot.elapsed() >= SNAPSHOT_EVERY {
            snapshot(manifest);
            last_snapshot = Instant::now();
        }
        if last_progress.elapsed() >= PROGRESS_EVERY {
            let seconds = start.elapsed().as_secs_f64();
            let (user, kernel) = (arenas.bytes() as f64 / 1e6, kernel.bytes() as f64 / 1e6);
            progress.show(&format!("{seconds:.1} s, program {user:.1} MB, kernel {kernel:.1} MB"));
            last_progress = Instant::now();
        }
        if taken == 0 {
            std::thread::sleep(nap);
        }
    }
}

fn snapshot(manifest: &mut Manifest) {
    let snapshots = clock::snapshots().into_iter().map(|(domain, s)| ManifestSnapshot::new(domain, s));
    manifest.snapshots.extend(snapshots);
}

fn manifest() -> Manifest {
    let kernel_fact = |name: &str| {
        let path = Path::new("/proc/sys/kernel").join(name);
        std::fs::read_to_string(path).unwrap_or_default().trim().to_string()
    };
    Manifest {
        host: kernel_fact("hostname"),
        kernel: format!("{} {} {}", kernel_fact("ostype"), kernel_fact("osrelease"), kernel_fact("version")),
        cpus: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        recorder: concat!("sigmund ", env!("CARGO_PKG_VERSION")).into(),
        ..Manifest::default()
    }
}

/// Records a program for another subcommand, and merges.
pub(crate) fn record_and_merge(args: &RecordArgs) -> Result<(Target, Summary)> {
    let target = Target::choose(args)?;
    record(args, &target).context("recording")?;
    let summary = merge_run(&target)?;
    Ok((target, summary))
}
