//! The kernel side, by the best means that are allowed here; which, and why not better ones, is said in one line.

use std::path::Path;

use anyhow::{Result, bail};
use fkt_ingest::live::{PerfRecorder, Plan, Recorder, RecorderOptions, Scope, plan, remove_leftovers};
use sigmund_merge::KernelSide;

use super::subject::Subject;
use crate::{
    cli::{KernelArgs, RecordArgs},
    output,
};

/// File names in the run directory.
const TRACE_DAT: &str = "kernel.dat";
const PERF_DATA: &str = "kernel.perf";

/// The running recording of the kernel.
pub(super) struct Kernel {
    means: Means,
    why: Option<String>,
    scope: Scope,
}

enum Means {
    Tracefs(Recorder),
    Perf(PerfRecorder),
    None,
}

impl Kernel {
    pub(super) fn start(args: &RecordArgs, subject: &Subject, run: &Path) -> Result<Kernel> {
        let scope = subject.scope(args.only);
        let kernel = |means, why| Ok(Kernel { means, why, scope });
        if args.user_only {
            return kernel(Means::None, Some("--user-only".into()));
        }
        match (plan(), subject.pid()) {
            (Plan::Tracefs, _) => {
                remove_leftovers();
                kernel(Means::Tracefs(Recorder::start(&options(&args.kernel), scope, run)?), None)
            }
            (Plan::Perf { why } | Plan::UserOnly { why }, None) => {
                bail!("recording the whole machine: {why}")
            }
            (Plan::Perf { why }, Some(program)) => match PerfRecorder::start(program, &run.join(PERF_DATA)) {
                Ok(recorder) => kernel(Means::Perf(recorder), Some(why)),
                Err(error) => kernel(Means::None, Some(format!("{why}; {error}"))),
            },
            (Plan::UserOnly { why }, Some(_)) => kernel(Means::None, Some(why)),
        }
    }

    /// What is recorded, and why not more.
    pub(super) fn describe(&self) -> String {
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
            (Means::None, _) => "kernel: nothing, so nobody can say when threads really executed",
        };
        match &self.why {
            Some(why) => format!("{what} ({why})"),
            None => what.into(),
        }
    }

    /// Bytes so far.
    pub(super) fn bytes(&self) -> u64 {
        match &self.means {
            Means::Tracefs(recorder) => recorder.progress().bytes,
            Means::Perf(_) | Means::None => 0,
        }
    }

    /// Ends it, and writes its file. A failure costs the kernel side, not the recording.
    pub(super) fn stop(self, run: &Path) -> KernelSide {
        let (file, means) = match &self.means {
            Means::Tracefs(_) => (Some(TRACE_DAT), "tracefs"),
            Means::Perf(_) => (Some(PERF_DATA), "perf"),
            Means::None => (None, "none"),
        };
        let mut side = KernelSide {
            file: file.map(String::from),
            means: means.into(),
            why: self.why,
            others_unseen: matches!(self.scope, Scope::Only(_)),
            ..KernelSide::default()
        };
        let ended = match self.means {
            Means::Tracefs(recorder) => recorder
                .stop()
                .and_then(|recorded| recorded.write_trace_dat(&run.join(TRACE_DAT)))
                .map(|summary| {
                    side.lost = summary.cpus.iter().map(|cpu| (cpu.cpu.0, cpu.lost)).collect();
                    summary.failures.iter().for_each(|failure| output::complain(failure));
                }),
            Means::Perf(recorder) => recorder.stop().map(drop),
            Means::None => Ok(()),
        };
        if let Err(error) = ended {
            output::complain(&format!("the kernel side is lost: {error}"));
            side.file = None;
            side.why = Some(error.to_string());
        }
        side
    }
}

fn options(args: &KernelArgs) -> RecorderOptions {
    let mut options = RecorderOptions {
        filters: args.filter.clone(),
        buffer_kb_per_cpu: args.kernel_buffer,
        sub_buffer_kb: args.kernel_sub_buffer,
        clock: args.kernel_clock.clone(),
        ..RecorderOptions::default()
    };
    // An event with a condition is one that is wanted.
    let known: Vec<String> = options.machine_events.iter().chain(&options.program_events).cloned().collect();
    let conditional = args.filter.iter().map(|filter| &filter.event).filter(|event| !known.contains(event));
    options.machine_events.extend(args.kernel_event.iter().chain(conditional).cloned());
    options
}
