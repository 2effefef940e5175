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
mod target;

use std::{
    fs,
    path::Path,
    process::ExitStatus,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use fut::clock;
use sigmund_merge::{Manifest, ManifestSnapshot, MergeOptions, Summary};

pub(crate) use gate::hold;

use crate::{
    Found,
    cli::RecordArgs,
    merge,
    output::{self, Progress},
};
use arenas::Arenas;
use gate::Held;
use kernel::Kernel;
use signals::Signals;
use target::Target;

/// How long the recorder sleeps when there is nothing to take: a ring of 4 MiB takes 4 ms to fill, at the fastest.
const NAP: Duration = Duration::from_millis(1);
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
    tell_about_user_side(&summary);
    Ok(if summary.is_damaged() { Found::Damaged } else { Found::Something })
}

fn merge_run(target: &Target) -> Result<Summary> {
    let options = MergeOptions { force: target.force, ..MergeOptions::default() };
    merge::merge(std::slice::from_ref(&target.run), &target.supertrace, &options)
}

fn tell_about_user_side(summary: &Summary) {
    if summary.user_events == 0 {
        output::say(
            "the program recorded no event of its own: link `fut` and call `fut::init()`, or use its runtime",
        );
    }
}

/// Records both sides into the run directory.
fn record(args: &RecordArgs, target: &Target) -> Result<()> {
    let signals = Signals::register()?;
    let mut arenas = Arenas::create(&target.run)?;
    let mut program = Held::start(args, arenas.folder())?;
    let mut manifest = manifest(args);
    snapshot(&mut manifest);
    let kernel = Kernel::start(args, program.pid(), &target.run)?;
    output::say(&format!("recording {}; {}", args.program[0].display(), kernel.describe()));
    if let Err(error) = program.release() {
        // Nothing was recorded: nothing stays, and the next try finds the place free.
        drop(kernel);
        let _ = fs::remove_dir_all(&target.run);
        return Err(error);
    }
    let waited = wait(&mut program, &mut arenas, &kernel, &signals, &mut manifest);
    // Whatever happened: what was recorded is kept.
    manifest.user_side = arenas.finish();
    manifest.kernel_side = kernel.stop(&target.run);
    snapshot(&mut manifest);
    manifest.ended = ended(&waited?);
    manifest.write(&target.run)?;
    if manifest.ended != "exit 0" {
        output::say(&format!("the program ended with {}", manifest.ended));
    }
    Ok(())
}

/// Until the program has ended.
fn wait(
    program: &mut Held,
    arenas: &mut Arenas,
    kernel: &Kernel,
    signals: &Signals,
    manifest: &mut Manifest,
) -> Result<ExitStatus> {
    // The drain keeps up with the program only if it gets the CPU when it wants it; not everybody may ask. Only now:
    // the program must not inherit it.
    let _ = rustix::process::setpriority_process(None, -20);
    let progress = Progress::new();
    let start = Instant::now();
    let (mut last_snapshot, mut last_progress) = (start, start);
    loop {
        let taken = arenas.poll();
        if let Some(status) = program.ended()? {
            progress.clear();
            return Ok(status);
        }
        if let Some(asked) = signals.next() {
            program.interrupt(asked);
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
            std::thread::sleep(NAP);
        }
    }
}

fn snapshot(manifest: &mut Manifest) {
    let snapshots = clock::snapshots().into_iter().map(|(domain, s)| ManifestSnapshot::new(domain, s));
    manifest.snapshots.extend(snapshots);
}

fn manifest(args: &RecordArgs) -> Manifest {
    let kernel_fact = |name: &str| {
        let path = Path::new("/proc/sys/kernel").join(name);
        std::fs::read_to_string(path).unwrap_or_default().trim().to_string()
    };
    Manifest {
        command: args.program.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
        host: kernel_fact("hostname"),
        kernel: format!("{} {} {}", kernel_fact("ostype"), kernel_fact("osrelease"), kernel_fact("version")),
        cpus: std::thread::available_parallelism().map_or(0, |n| n.get() as u32),
        recorder: concat!("sigmund ", env!("CARGO_PKG_VERSION")).into(),
        ..Manifest::default()
    }
}

fn ended(status: &ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// Records a program for another subcommand, and merges.
pub(crate) fn record_and_merge(args: &RecordArgs) -> Result<(Target, Summary)> {
    let target = Target::choose(args)?;
    record(args, &target).context("recording")?;
    let summary = merge_run(&target)?;
    Ok((target, summary))
}
