//! The kernel side, by the best means that are allowed here; which, and why not better ones, is said in one line.

use std::path::Path;

use anyhow::Result;
use fkt_ingest::live::{PerfRecorder, Plan, Recorder, RecorderOptions, plan, remove_leftovers};
use sigmund_merge::KernelSide;
use sigmund_model::Pid;

use crate::{cli::RecordArgs, output};

/// File names in the run directory.
const TRACE_DAT: &str = "kernel.dat";
const PERF_DATA: &str = "kernel.perf";

/// The running recording of the kernel.
pub(super) struct Kernel {
    means: Means,
    why: Option<String>,
}

enum Means {
    Tracefs(Recorder),
    Perf(PerfRecorder),
    None,
}

impl Kernel {
    pub(super) fn start(args: &RecordArgs, program: Pid, run: &Path) -> Result<Kernel> {
        if args.user_only {
            return Ok(Kernel { means: Means::None, why: Some("--user-only".into()) });
        }
        match plan() {
            Plan::Tracefs => {
                remove_leftovers();
                let mut options =
                    RecorderOptions { buffer_kb_per_cpu: args.kernel_buffer, ..Default::default() };
                options.machine_events.extend(args.kernel_event.iter().cloned());
                let recorder = Recorder::start(options, Some(program), run)?;
                Ok(Kernel { means: Means::Tracefs(recorder), why: None })
            }
            Plan::Perf { why } => match PerfRecorder::start(program, &run.join(PERF_DATA)) {
                Ok(recorder) => Ok(Kernel { means: Means::Perf(recorder), why: Some(why) }),
                Err(error) => Ok(Kernel { means: Means::None, why: Some(format!("{why}; {error}")) }),
            },
            Plan::UserOnly { why } => Ok(Kernel { means: Means::None, why: Some(why) }),
        }
    }

    /// What is recorded, and why not more.
    pub(super) fn describe(&self) -> String {
        let what = match self.means {
            Means::Tracefs(_) => {
                "kernel: scheduler and interrupts of the whole machine, system calls of the program"
            }
            Means::Perf(_) => "kernel: only context switches of the program's own LWPs",
            Means::None => "kernel: nothing, so nobody can say when threads really executed",
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
        let mut side =
            KernelSide { file: file.map(String::from), means: means.into(), why: self.why, lost: Vec::new() };
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
