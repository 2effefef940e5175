//! `sigmund record`: runs a program, records the kernel and the program's own events, and merges both.
//!
//! ```text
//!   start: program held at a gate ─▶ kernel recording on ─▶ run.json ─▶ gate opens ─▶ drain arenas until it ends
//!   end:   kernel recording off ─▶ last packets, kernel.dat ─▶ run.json ─▶ merge
//! ```
//!
//! At any time, everything that is known is on the disk (`merge/src/run`). So `sigmund merge RUN` can complete a
//! recording whose recorder was killed, or was made to end at once.
//!
//! The recorder can always be stopped. This thread alone handles signals and checks the time. Everything that may wait
//! for a disk or for another process runs on a separate thread (`work.rs`), and can be given up:
//!
//! 1. The kernel side is stopped first, because that needs no disk and no other process.
//! 2. A process that is asked for its events has a single deadline for everything.
//! 3. The first signal asks the program to end, and the second kills it. If no program is running any more, the first
//!    signal ends the recording. One more signal ends the recorder at once, whatever it is doing.
//!
//! When the program has ended, its descendants may still be alive: see `descendants.rs`. If the user has asked the
//! program to end, they are not waited for.

mod arenas;
mod clocks;
mod conversation;
mod cpu_times;
mod descendants;
mod draining;
mod ending;
mod folder;
mod gate;
mod kernel;
mod namespace;
mod part_counts;
mod processes;
pub(crate) mod rotation;
mod schemata;
mod signals;
mod subject;
mod target;
mod user;
mod work;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Error, Result, bail};
use rustix::time::{ClockId, clock_gettime};
use sigmund_files::Folder;
use sigmund_merge::{Manifest, MergeOptions, Summary};

pub(crate) use gate::hold;
pub(crate) use target::beside;

use crate::{
    Found,
    cli::{Follow, RecordArgs},
    merge,
    output::{self, Progress},
};
use arenas::Arenas;
use clocks::Clocks;
use cpu_times::CpuTimes;
use descendants::Descendants;
use draining::Draining;
use ending::{Ending, Patience};
use folder::SocketFolder;
use kernel::Kernel;
use rotation::Rotation;
use signals::{Asked, Signals};
use subject::{GOES_ON, Stop, Subject};
use target::Target;

/// How long the recorder waits for a signal before it checks the program and the time again.
const LOOK_EVERY: Duration = Duration::from_millis(5);
const PROGRESS_EVERY: Duration = Duration::from_millis(200);
/// The time after which a message reports that the program has ended and its descendants have not.
const TELL_AFTER: Duration = Duration::from_millis(200);
/// If the drain has not polled for this long, it is taken to be waiting for a disk.
const STUCK_AFTER: Duration = Duration::from_secs(2);
/// When `--for` is over: how long the program may take to end after it was asked to.
const END_WITHIN: Duration = Duration::from_secs(3);

/// The result of a recording.
enum Recorded {
    /// The recording is complete and can be merged.
    Whole(UserRecords),
    /// The recording was stopped, and is not merged.
    Stopped,
}

/// The least KiB of a buffer that overwrites its oldest events.
const LEAST_IN_FLIGHT: u32 = 256;

/// What is known of the user side before the merge.
#[derive(Clone, Copy, Debug, Default)]
struct UserRecords {
    /// The number of processes that have recorded.
    processes: usize,
    /// The number of processes that tried to record and could not. The reason has been reported, by the recorder or by
    /// the process.
    failed: u64,
}

pub(crate) fn run(args: &RecordArgs) -> Result<Found> {
    schemata::check_names(&args.schema)?;
    if args.flight && args.user_buffer < LEAST_IN_FLIGHT {
        bail!("--user-buffer {}: expected at least {LEAST_IN_FLIGHT} with --flight", args.user_buffer);
    }
    let target = Target::choose(args)?;
    // From here until the merge is done, a signal ends only the current work, not the process.
    let signals = Signals::register()?;
    let recorded = record(args, &target, &signals)?;
    let user = match recorded {
        Recorded::Whole(user) if !args.no_merge => user,
        _ => {
            output::notice(&format!(
                "{}: recorded; merge it with `sigmund merge {}`",
                target.run.display(),
                output::quoted_path(&target.run)
            ));
            return Ok(if args.no_merge { Found::Something } else { Found::Damaged });
        }
    };
    let summary = merge_run(&target, args.tables.clone().unwrap_or_default().0)?;
    if summary.user_events == 0 && !args.all && args.pid.is_none() {
        report_user_side(user, &summary);
    }
    Ok(if summary.is_damaged() { Found::Damaged } else { Found::Something })
}

fn merge_run(target: &Target, left_out_tables: Vec<String>) -> Result<Summary> {
    let options = MergeOptions { force: target.force, left_out_tables, ..MergeOptions::default() };
    merge::merge(std::slice::from_ref(&target.run), &target.supertrace, &options)
}

/// Reports why a recorded program has no user events.
fn report_user_side(user: UserRecords, summary: &Summary) {
    output::notice(match user {
        UserRecords { failed: 1.., .. } => "no user events: the program could not be recorded, see above",
        UserRecords { processes: 1.., .. } if summary.lost_events() > 0 => {
            "no user events: all events of the program were lost"
        }
        UserRecords { processes: 1.., .. } => {
            "no user events: the program was ready to record, and fired no probe"
        }
        UserRecords { .. } => {
            "no user events: link `fut` and call `fut::init()`, or use its runtime; a program that does and could not \
             be recorded has printed why, in a line that begins with `fut:`"
        }
    });
}

/// Records both sides into the run directory.
fn record(args: &RecordArgs, target: &Target, signals: &Signals) -> Result<Recorded> {
    let starts_a_program = args.pid.is_none() && !args.all;
    // Done before anything is recorded, so no event of the recording is older.
    let plan = rotation::Plan::of(args);
    let arenas = starts_a_program.then(|| Arenas::create(&target.folder, args)).transpose();
    let arenas = arenas.inspect_err(|_| nothing_was_recorded(target))?;
    // A drain that is given up keeps its arenas, and with them the folder.
    let folder = RemovedAtTheEnd(arenas.as_ref().map(Arenas::folder));
    let started = Subject::choose(args, folder.0.as_ref().map(|folder| folder.path()), signals)
        .and_then(|subject| Ok((Kernel::start(args, &subject, &target.folder)?, subject)));
    let (kernel, subject) = started.inspect_err(|_| nothing_was_recorded(target))?;
    let mut manifest = manifest();
    manifest.command = subject.command(args);
    manifest.kernel_side = kernel.side();
    schemata::describe(args, &kernel, &mut manifest);
    // Not earlier: LWPs that are created from here on have an event.
    if manifest.kernel_side.file.is_some() {
        manifest.processes = processes::read();
    }
    if let Some(plan) = &plan {
        plan.begin(&mut manifest, &target.folder).inspect_err(|_| nothing_was_recorded(target))?;
    }
    // Writes what is known already to the disk, in case this process is killed.
    let clocks =
        Clocks::begin(&mut manifest, &target.folder).inspect_err(|_| nothing_was_recorded(target))?;
    output::notice(&format!("recording {}; {}", subject.describe(), kernel.describe()));
    if manifest.kernel_side.has_other_numbers {
        output::notice(
            "warning: this recorder runs in a PID namespace, but kernel events have the numbers of the initial one: \
             they cannot be assigned to LWPs of the program",
        );
    }
    if let Some(user) = user::sudo_caller().filter(|_| starts_a_program && args.user.is_none()) {
        output::notice(&format!("{} runs as root; --user {user} runs it as {user}", subject.describe()));
    }
    let before = (Instant::now(), cpu_time());
    let cpu_times = CpuTimes::start(subject.pid());
    let arenas_folder = folder.0.as_ref().map(|folder| folder.path().to_path_buf());
    let follow = args.follow;
    let mut running = Running {
        subject,
        kernel,
        draining: None,
        rotation: None,
        cpu_times,
        clocks,
        manifest,
        signals,
        arenas_folder,
        follow,
    };
    let begun = running.begin(arenas, plan, &target.folder);
    let waited = begun.and_then(|()| running.wait(args.length));
    if let Ok(Waited::NeverBegan(error)) = waited {
        nothing_was_recorded(target);
        return Err(error);
    }
    running.complete(waited, target, before)
}

/// Removes a folder when it is dropped.
struct RemovedAtTheEnd(Option<Arc<SocketFolder>>);

impl Drop for RemovedAtTheEnd {
    fn drop(&mut self) {
        if let Some(folder) = &self.0 {
            // Usually it was removed already.
            folder.remove();
        }
    }
}

/// Removes everything, so that the next try finds the place free.
fn nothing_was_recorded(target: &Target) {
    if let Ok(folder) = Folder::open_own(&target.run, target.folder.owner()) {
        let _ = folder.remove();
    }
}

/// A running recording.
struct Running<'s> {
    subject: Subject,
    kernel: Kernel,
    draining: Option<Draining>,
    rotation: Option<Rotation>,
    cpu_times: CpuTimes,
    clocks: Clocks,
    manifest: Manifest,
    signals: &'s Signals,
    /// The folder of the arenas, if a program was started.
    arenas_folder: Option<PathBuf>,
    follow: Option<Follow>,
}

/// When the recording began, and when its progress was last shown.
struct Pace {
    progress: Progress,
    start: Instant,
    last_progress: Instant,
}

impl Pace {
    fn new() -> Pace {
        let start = Instant::now();
        Pace { progress: Progress::new(), start, last_progress: start }
    }
}

/// Why the recording ends.
enum Waited {
    /// The subject has ended. `how` it ended, and whether a signal ended the wait for its descendants.
    Ended { how: String, by_signal: bool },
    /// The subject continues. `by_signal`: whether a signal ended the recording.
    Left { by_signal: bool },
    /// A signal requested to end at once.
    AtOnce,
    /// The program could not be started.
    NeverBegan(Error),
}

impl Running<'_> {
    /// Lets the program begin, and drains what it records.
    fn begin(
        &mut self,
        arenas: Option<Arenas>,
        plan: Option<rotation::Plan>,
        run: &Arc<Folder>,
    ) -> Result<()> {
        self.draining = arenas.map(Draining::start).transpose()?;
        if let Some(plan) = plan {
            let drain = self.draining.as_mut().and_then(Draining::parts);
            self.rotation = Some(Rotation::start(plan, run, self.kernel.rotator(), drain)?);
        } else {
            self.draining.as_mut().and_then(Draining::parts);
        }
        self.subject.release()
    }

    /// Waits until the subject has ended, the time is over, or a signal comes.
    fn wait(&mut self, length: Option<Duration>) -> Result<Waited> {
        let mut pace = Pace::new();
        let waited = self.wait_for_subject(length, &mut pace);
        pace.progress.clear();
        self.manifest.recorded_ns = pace.start.elapsed().as_nanos() as u64;
        waited
    }

    fn wait_for_subject(&mut self, length: Option<Duration>, pace: &mut Pace) -> Result<Waited> {
        let (mut left, mut patience, mut is_asked) = (length, None, false);
        loop {
            // The end is checked first: a program that could not begin has stored its reason before it ended.
            let has_ended = self.subject.has_ended()?;
            if let Err(error) = self.subject.has_begun() {
                return Ok(Waited::NeverBegan(error));
            }
            if has_ended {
                // It has ended, but its pid is still reserved.
                self.cpu_times.read();
                let how = self.subject.ended()?;
                return self.wait_for_descendants(how, is_asked, left, pace);
            }
            let is_over = left.take_if(|length| pace.start.elapsed() >= *length).is_some();
            let asked =
                if is_over { Some(Asked::by_the_clock()) } else { self.signals.next_within(LOOK_EVERY) };
            is_asked |= asked.is_some();
            match asked.map(|asked| self.subject.stop(asked)) {
                Some(Stop::Now) => return Ok(Waited::Left { by_signal: !is_over }),
                Some(Stop::AtOnce) => return Ok(Waited::AtOnce),
                Some(Stop::AtItsEnd) if is_over => patience = Some(Instant::now() + END_WITHIN),
                Some(Stop::AtItsEnd) | None => {}
            }
            if patience.is_some_and(|end| Instant::now() >= end) {
                if let Err(error) = self.subject.leave() {
                    return Ok(Waited::NeverBegan(error));
                }
                let what = self.subject.describe();
                output::notice(&format!("{what} has not ended in 3 s: it continues unrecorded"));
                return Ok(Waited::Left { by_signal: false });
            }
            self.keep_up(pace);
        }
    }

    /// The program has ended. Waits until the descendants to be recorded have ended, the time is over, or a signal
    /// comes.
    fn wait_for_descendants(
        &mut self,
        how: String,
        is_asked: bool,
        left: Option<Duration>,
        pace: &mut Pace,
    ) -> Result<Waited> {
        let Some(folder) = &self.arenas_folder else {
            return Ok(Waited::Ended { how, by_signal: false });
        };
        let follow = if is_asked { Some(Follow::First) } else { self.follow };
        let mut descendants = Descendants::search(folder, follow)?;
        let (begun, mut is_told, mut by_signal) = (Instant::now(), false, false);
        let (mut polls, mut last_poll) = (0, begun);
        loop {
            let (recording, now) =
                self.draining.as_ref().map_or((0, 0), |draining| (draining.recording(), draining.polls()));
            if now != polls {
                (polls, last_poll) = (now, Instant::now());
            }
            // If a disk does not answer, it is waited for at the end, with a message.
            let is_stuck = last_poll.elapsed() >= STUCK_AFTER;
            let is_over = left.is_some_and(|length| pace.start.elapsed() >= length);
            if is_stuck || is_over || !descendants.are_waited_for(recording, LOOK_EVERY) {
                break;
            }
            if self.signals.next().is_some() {
                by_signal = true;
                break;
            }
            if !is_told && begun.elapsed() >= TELL_AFTER {
                let who = descendants.describe().unwrap_or_else(|| "descendants".into());
                let what = self.subject.describe();
                output::notice(&format!("{what} has ended; waiting for {who}; Ctrl-C ends the recording"));
                is_told = true;
            }
            self.keep_up(pace);
        }
        if let Some(who) = descendants.describe() {
            let what = self.subject.describe();
            output::notice(&format!("{what} has ended; no longer recorded: {who}"));
        }
        self.cpu_times.read();
        Ok(Waited::Ended { how, by_signal })
    }

    /// The periodic tasks while a recording is running.
    fn keep_up(&mut self, pace: &mut Pace) {
        self.cpu_times.read_now_and_then();
        self.clocks.read_when_due(&mut self.manifest);
        if pace.last_progress.elapsed() >= PROGRESS_EVERY {
            let seconds = pace.start.elapsed().as_secs_f64();
            let user = self.draining.as_ref().map_or(0, Draining::bytes) as f64 / 1e6;
            let kernel = self.kernel.bytes() as f64 / 1e6;
            pace.progress.show(&format!("{seconds:.1} s, program {user:.1} MB, kernel {kernel:.1} MB"));
            pace.last_progress = Instant::now();
        }
    }

    /// Writes what was recorded, however the recording ended.
    /// `before`: when it began, and the CPU time that this process had used until then.
    fn complete(
        self,
        waited: Result<Waited>,
        target: &Target,
        before: (Instant, Duration),
    ) -> Result<Recorded> {
        let Running {
            subject,
            mut kernel,
            draining,
            rotation,
            mut cpu_times,
            mut clocks,
            mut manifest,
            signals,
            ..
        } = self;
        if matches!(waited, Ok(Waited::Left { .. })) {
            cpu_times.read();
        }
        // Before the kernel side is halted, which may take long: until then, parts would become too old, and be removed.
        rotation.iter().for_each(Rotation::stop);
        kernel.halt();
        clocks.read(&mut manifest);
        cpu_times.store(&mut manifest);
        let mut ending = Ending::begin(kernel, draining, rotation, subject.to_be_asked(), &target.folder)?;
        let patience = match &waited {
            Ok(Waited::AtOnce) => Patience::None,
            Ok(Waited::Left { by_signal: true } | Waited::Ended { by_signal: true, .. }) => {
                Patience::UntilTheNextSignal
            }
            _ => Patience::UntilTheSecondSignal,
        };
        let ended = ending.wait(signals, patience)?;
        let (processes, unrecorded) = (ended.user.len(), ended.unrecorded.processes);
        (manifest.kernel_side, manifest.user_side) = (ended.kernel, ended.user);
        manifest.unrecorded_processes = ended.unrecorded.processes;
        manifest.unrecorded_why = ended.unrecorded.why;
        manifest.recorder_cpu_ns = (cpu_time() - before.1).as_nanos() as u64;
        manifest.recorder_ns = before.0.elapsed().as_nanos() as u64;
        manifest.ended = match waited? {
            Waited::Ended { how, .. } => how,
            _ => GOES_ON.into(),
        };
        if !["exit 0", GOES_ON].contains(&manifest.ended.as_str()) {
            let how = match manifest.ended.as_str() {
                "ended" => "ended".into(),
                how => format!("ended with {how}"),
            };
            output::notice(&format!("{} {how}", subject.describe()));
        }
        output::notice(&cost(&manifest));
        ending::write(clocks, manifest, ended.parts, &target.folder, signals)?;
        let is_stopped = ended.is_stopped || signals.next().is_some();
        let failed = unrecorded + ended.never_began;
        Ok(if is_stopped { Recorded::Stopped } else { Recorded::Whole(UserRecords { processes, failed }) })
    }
}

/// The time that this process has spent on CPUs.
fn cpu_time() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(used.tv_sec.unsigned_abs(), used.tv_nsec.unsigned_abs() as u32)
}

fn cost(manifest: &Manifest) -> String {
    let seconds = manifest.recorded_ns as f64 / 1e9;
    let percent = 100.0 * manifest.recorder_cpu_ns as f64 / manifest.recorder_ns.max(1) as f64;
    format!("recorded {seconds:.3} s; the recorder itself used {percent:.1} % of one CPU")
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

/// Records a program for another subcommand, and merges the recording.
#[cfg(feature = "sql")]
pub(crate) fn record_and_merge(args: &RecordArgs) -> Result<(Target, Summary)> {
    use anyhow::Context;

    let target = Target::choose(args)?;
    // From here until the merge is done, a signal ends only the current work, not the process.
    let signals = Signals::register()?;
    if let Recorded::Stopped = record(args, &target, &signals).context("recording")? {
        bail!("{}: recorded, and not merged: stopped by a signal", target.run.display());
    }
    let summary = merge_run(&target, Vec::new())?;
    Ok((target, summary))
}
