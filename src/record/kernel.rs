//! Records the kernel side by the best means that are permitted. One line of the output names these means, and why no
//! better ones are used.

use std::{fs, path::Path};

use anyhow::{Result, bail};
use fkt_ingest::live::{
    ClosedPart, PerfRecorder, Plan, Recorder, RecorderOptions, Rotator, Scope, is_unfinished, plan,
    remove_leftovers,
};
use fut::clock;
use sigmund_files::Folder;
use sigmund_merge::{KERNEL_DAT, KERNEL_PERF, KernelSide};
use sigmund_schemata::nearest;

use super::{processes::shows_the_numbers_of_the_kernel, rotation::is_limited, schemata, subject::Subject};
use crate::{
    cli::{KernelArgs, RecordArgs, Witness},
    output,
};

/// The event at which the kernel adds to its own sum of an LWP's time on CPUs.
const STAT_RUNTIME: &str = "sched:sched_stat_runtime";

/// The events of this kernel: a folder for each system, with a folder for each event.
const EVENTS: &str = "/sys/kernel/tracing/events";

/// The running recording of the kernel.
pub(super) struct Kernel {
    means: Means,
    why: Option<String>,
    scope: Scope,
    /// With schemata: the numbers of tracepoints of the machine and of the program, and the tracepoints that the kernel
    /// does not have.
    by_schemata: Option<(usize, usize)>,
    missing: Vec<String>,
    /// The tick at which it was stopped.
    stopped: Option<u64>,
    /// Whether it is recorded in parts.
    is_limited: bool,
}

enum Means {
    Tracefs(Box<Recorder>),
    Perf(PerfRecorder),
    None,
}

impl Kernel {
    pub(super) fn start(args: &RecordArgs, subject: &Subject, run: &Folder) -> Result<Kernel> {
        let scope = subject.scope(args.only);
        let kernel = |means, why| {
            let (by_schemata, missing) = (None, Vec::new());
            Ok(Kernel { means, why, scope, by_schemata, missing, stopped: None, is_limited: false })
        };
        if args.user_only {
            return kernel(Means::None, Some("--user-only".into()));
        }
        let plan = plan();
        if !matches!(plan, Plan::Tracefs) {
            warn_of_unheeded(args);
        }
        match (plan, subject.pid()) {
            (Plan::Tracefs, _) => {
                args.kernel.kernel_event.iter().try_for_each(|event| has_event("--kernel-event", event))?;
                args.kernel.filter.iter().try_for_each(|filter| has_event("--filter", &filter.event))?;
                let mut options = options(&args.kernel);
                let missing = schemata::choose_tracepoints(&args.schema, &args.kernel, &mut options)?;
                let counts = (options.machine_events.len(), options.program_events.len());
                let by_schemata = (!args.schema.is_empty()).then_some(counts);
                // In another PID namespace, recorders that are running would seem to have ended.
                if shows_the_numbers_of_the_kernel() {
                    remove_leftovers();
                }
                let is_limited = is_limited(args);
                let recorder = match is_limited {
                    true => Recorder::start_in_parts(&options, scope, run)?,
                    false => Recorder::start(&options, scope, run)?,
                };
                let means = Means::Tracefs(Box::new(recorder));
                Ok(Kernel { means, why: None, scope, by_schemata, missing, stopped: None, is_limited })
            }
            (Plan::Perf { why } | Plan::UserOnly { why }, None) => {
                bail!("recording the whole machine: {why}")
            }
            (Plan::Perf { why }, Some(_)) if is_limited(args) => bail!(
                "--max-size and --max-time: context switches recorded by perf cannot be limited ({why}); --user-only \
                 records the program alone"
            ),
            (Plan::Perf { why }, Some(program)) => match PerfRecorder::start(program, run, KERNEL_PERF) {
                Ok(recorder) => kernel(Means::Perf(recorder), Some(why)),
                Err(error) => kernel(Means::None, Some(format!("{why}; {error}"))),
            },
            (Plan::UserOnly { why }, Some(_)) => kernel(Means::None, Some(why)),
        }
    }

    /// The tracepoints of schemata that the kernel does not have.
    pub(super) fn missing_tracepoints(&self) -> &[String] {
        &self.missing
    }

    /// What is recorded, and why not more.
    pub(super) fn describe(&self) -> String {
        if let Some((machine, program)) = self.by_schemata {
            let machine = output::counted(machine as u64, "tracepoint");
            return format!(
                "kernel: {machine} of {}, {program} of what programs do",
                match self.scope {
                    Scope::Only(_) => "the program only",
                    Scope::Program(_) | Scope::System => "the whole machine",
                }
            );
        }
        let what = match (&self.means, self.scope) {
            (Means::Tracefs(_), Scope::Program(_)) => {
                "kernel: scheduler and interrupts of the whole machine, system calls of the program"
            }
            (Means::Tracefs(_), Scope::Only(_)) => {
                "kernel: scheduler, interrupts and system calls of the program only"
            }
            (Means::Tracefs(_), Scope::System) => {
                "kernel: scheduler, interrupts and system calls of the whole machine"
            }
            (Means::Perf(_), _) => "kernel: only context switches of the program's own LWPs",
            (Means::None, _) => "kernel: not recorded, so when threads executed is unknown",
        };
        match &self.why {
            Some(why) => format!("{what} ({why})"),
            None => what.into(),
        }
    }

    /// The handle that changes to the next part, if it is recorded in parts.
    pub(super) fn rotator(&self) -> Option<Rotator> {
        match &self.means {
            Means::Tracefs(recorder) if self.is_limited => Some(recorder.rotator()),
            _ => None,
        }
    }

    /// Bytes recorded so far.
    pub(super) fn bytes(&self) -> u64 {
        match &self.means {
            Means::Tracefs(recorder) => recorder.progress().bytes,
            Means::Perf(_) | Means::None => 0,
        }
    }

    /// Stops recording. This needs no disk and no other process.
    pub(super) fn halt(&mut self) {
        // Taken before: what the kernel records after this tick may be incomplete.
        self.stopped = Some(clock::ticks());
        let halted = match &self.means {
            Means::Tracefs(recorder) => recorder.halt(),
            Means::Perf(recorder) => recorder.halt(),
            Means::None => Ok(()),
        };
        if let Err(error) = halted {
            output::report_error(&format!("cannot stop tracing in the kernel: {error}"));
        }
    }

    /// The entry in the manifest while it runs.
    pub(super) fn side(&self) -> KernelSide {
        let (file, means) = match &self.means {
            Means::Tracefs(_) => (Some(KERNEL_DAT), "tracefs"),
            Means::Perf(_) => (Some(KERNEL_PERF), "perf"),
            Means::None => (None, "none"),
        };
        KernelSide {
            file: file.map(String::from),
            means: means.into(),
            why: self.why.clone(),
            others_unseen: matches!(self.scope, Scope::Only(_)),
            // perf uses the numbers of its caller's namespace.
            has_other_numbers: matches!(self.means, Means::Tracefs(_)) && !shows_the_numbers_of_the_kernel(),
            stopped_tick: self.stopped.filter(|_| file.is_some()),
            ..KernelSide::default()
        }
    }

    /// Ends it, and writes its file. A recording in parts closes its last part, and returns it. If this fails, only the
    /// kernel side is lost, not the recording.
    pub(super) fn stop(self, run: &Folder) -> (KernelSide, Option<ClosedPart>) {
        let (mut side, mut last_part) = (self.side(), None);
        let ended = match self.means {
            Means::Tracefs(recorder) if self.is_limited => {
                recorder.stop().and_then(|recorded| recorded.close_part(run)).map(|(closed, failures)| {
                    failures.iter().for_each(|failure| output::report_error(failure));
                    last_part = Some(closed);
                })
            }
            Means::Tracefs(recorder) => recorder
                .stop()
                .and_then(|recorded| recorded.write_trace_dat(run, KERNEL_DAT))
                .map(|summary| {
                    side.lost = summary.cpus.iter().map(|cpu| (cpu.cpu.0, cpu.lost)).collect();
                    summary.failures.iter().for_each(|failure| output::report_error(failure));
                }),
            Means::Perf(recorder) => recorder.stop().map(drop),
            Means::None => Ok(()),
        };
        if let Err(error) = ended {
            let lost = if is_unfinished(run) { "is not written" } else { "is lost" };
            output::report_error(&format!("the kernel side {lost}: {error}"));
            // A recording in parts still has its closed parts.
            if !self.is_limited {
                side.file = None;
            }
            side.why = Some(error.to_string());
        }
        (side, last_part)
    }
}

/// Names the options that cannot be followed, since tracefs does not record the kernel.
fn warn_of_unheeded(args: &RecordArgs) {
    let mut options = args.kernel.given();
    options.extend(args.only.then_some("--only"));
    if !options.is_empty() {
        let options = options.join(", ");
        output::notice(&format!("warning: {options}: ignored, because tracefs does not record the kernel"));
    }
}

/// Whether the kernel has this event; `None` if its events cannot be listed.
pub(super) fn kernel_has(event: &str) -> Option<bool> {
    let (system, name) = event.split_once(':')?;
    let events = Path::new(EVENTS);
    events.is_dir().then(|| events.join(system).join(name).join("enable").is_file())
}

/// Checks that the kernel has this event. If its events cannot be listed, the kernel reports the error later.
pub(super) fn has_event(option: &str, event: &str) -> Result<()> {
    let Some((system, name)) =
        event.split_once(':').filter(|(system, name)| !system.is_empty() && !name.is_empty())
    else {
        bail!("{option} {event}: expected SYSTEM:EVENT, as in sched:sched_switch");
    };
    let events = Path::new(EVENTS);
    if !events.is_dir() || events.join(system).join(name).join("enable").is_file() {
        return Ok(());
    }
    let list = format!("{EVENTS}/{}", if events.join(system).is_dir() { system } else { "" });
    let names = names_in(events);
    let near = match nearest(event, names.iter().map(String::as_str)) {
        near if near.is_empty() => String::new(),
        near => format!("; nearest: {}", near.join(", ")),
    };
    bail!("{option} {event}: this kernel has no such event{near}; {list} lists its events")
}

/// The names of all events as SYSTEM:EVENT, sorted, as far as they can be listed.
fn names_in(events: &Path) -> Vec<String> {
    let in_folder = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|ty| ty.is_dir()));
        folders.filter_map(|entry| entry.file_name().into_string().ok()).collect::<Vec<_>>()
    };
    let of_system = |system: String| {
        let names = in_folder(&events.join(&system));
        names.into_iter().map(move |name| format!("{system}:{name}"))
    };
    let mut names: Vec<String> = in_folder(events).into_iter().flat_map(of_system).collect();
    names.sort();
    names
}

fn options(args: &KernelArgs) -> RecorderOptions {
    let mut options = RecorderOptions {
        filters: args.filter.clone(),
        buffer_kb_per_cpu: args.kernel_buffer,
        sub_buffer_kb: args.kernel_sub_buffer,
        clock: args.kernel_clock.clone(),
        ..RecorderOptions::default()
    };
    // An event with a condition is recorded even if no other option names it.
    let known: Vec<String> = options.machine_events.iter().chain(&options.program_events).cloned().collect();
    let conditional = args.filter.iter().map(|filter| &filter.event).filter(|event| !known.contains(event));
    options.machine_events.extend(args.kernel_event.iter().chain(conditional).cloned());
    // For all LWPs: the time of an LWP may be added up by another LWP that wakes a thread on its CPU. A filter by
    // process would lose that event.
    if args.witness.contains(&Witness::Runtime) && !options.machine_events.iter().any(|e| e == STAT_RUNTIME) {
        options.machine_events.push(STAT_RUNTIME.into());
    }
    options
}
