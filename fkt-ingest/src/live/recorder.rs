//! Records tracepoints of the whole machine, and some only of one program.
//!
//! Two tracefs instances: `sigmund-<pid>-machine` for events that say who is on which CPU, and
//! `sigmund-<pid>-program` for those that are only of interest in the program (its system calls). The second
//! has a pid filter, so a busy neighbour does not fill its buffer.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sigmund_model::{Cpu, Pid};

use super::instance::Instance;
use super::pump::{Pump, Route, Shared};
use super::recorded::{BufferFiles, CpuFile, Recorded};
use super::system::System;
use super::tracefs::available_with_clock;
use crate::error::{Error, ErrorKind, Misfit};

/// ftrace's name of the time-stamp counter: the very counter that probes read.
pub(super) const CLOCK_TSC: &str = "x86-tsc";

/// What to record, and how much room for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecorderOptions {
    /// Tracepoints of the whole machine, `system:event`.
    pub machine_events: Vec<String>,
    /// Tracepoints of the program's LWPs only, `system:event`. Not recorded without a program.
    pub program_events: Vec<String>,
    /// Size of the kernel's buffer for each CPU and instance, in KiB.
    pub buffer_kb_per_cpu: usize,
    /// ftrace's name of the clock.
    pub clock: String,
}

impl Default for RecorderOptions {
    /// Who is on which CPU and why, interrupts; and the program's system calls.
    fn default() -> RecorderOptions {
        let owned = |events: &[&str]| events.iter().map(|e| (*e).to_owned()).collect();
        RecorderOptions {
            machine_events: owned(&[
                "sched:sched_switch",
                "sched:sched_waking",
                "sched:sched_wakeup",
                "sched:sched_wakeup_new",
                "sched:sched_migrate_task",
                "sched:sched_process_fork",
                "sched:sched_process_exec",
                "sched:sched_process_exit",
                "irq:irq_handler_entry",
                "irq:irq_handler_exit",
                "irq:softirq_entry",
                "irq:softirq_exit",
                "irq:softirq_raise",
            ]),
            program_events: owned(&["raw_syscalls:sys_enter", "raw_syscalls:sys_exit"]),
            buffer_kb_per_cpu: 8192,
            clock: CLOCK_TSC.to_owned(),
        }
    }
}

/// A recording that runs. Dropped, it stops and leaves nothing behind in tracefs.
#[derive(Debug)]
pub struct Recorder {
    buffers: Vec<Running>,
    pumps: Vec<Pump>,
    shared: Arc<Shared>,
    system: System,
}

#[derive(Debug)]
struct Running {
    /// Its name in the file: the machine's is the top buffer, and has none.
    name: &'static str,
    instance: Instance,
    files: Vec<CpuFile>,
}

/// How far a running recording is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of pages moved to files so far.
    pub bytes: u64,
    /// Events the kernel's buffers have lost so far.
    pub lost: u64,
}

impl Recorder {
    /// Starts recording. Pages go to files in `scratch_dir`, which must exist; they are unlinked at once, so
    /// nothing is left there even after a kill.
    ///
    /// # Errors
    /// When [`available`](super::available) would say no, an event does not exist, or the kernel has no memory
    /// for the buffers. Nothing is left behind then.
    pub fn start(
        options: RecorderOptions,
        program: Option<Pid>,
        scratch_dir: &Path,
    ) -> Result<Recorder, Error> {
        let tracefs = available_with_clock(&options.clock).map_err(|why| {
            let expected = "tracefs that may be used".to_owned();
            let misfit = Misfit { at: 0, part: "live recording", expected, found: why.0 };
            Error::at(ErrorKind::Unsupported, Path::new("tracefs"), misfit)
        })?;
        let machine = Instance::create(&tracefs, "machine")?;
        let mut buffers = vec![prepare("", machine, &options, &options.machine_events, scratch_dir)?];
        if let Some(program) = program
            && !options.program_events.is_empty()
        {
            let instance = Instance::create(&tracefs, "program")?;
            instance.follow(program)?;
            buffers.push(prepare("program", instance, &options, &options.program_events, scratch_dir)?);
        }
        let events = options.machine_events.iter().chain(&options.program_events);
        let system = System::read(&tracefs, events)?;

        let shared = Arc::new(Shared::default());
        let mut recorder = Recorder { buffers, pumps: Vec::new(), shared, system };
        recorder.start_pumps(scratch_dir)?;
        for buffer in &recorder.buffers {
            buffer.instance.set("tracing_on", "1")?;
        }
        Ok(recorder)
    }

    /// How far the recording is.
    pub fn progress(&self) -> Progress {
        let cpus = self.buffers.iter().flat_map(|b| b.instance.cpus().iter().map(move |cpu| (b, *cpu)));
        let lost = cpus.filter_map(|(b, cpu)| Some(lost(&stats(&b.instance, cpu).ok()?))).sum();
        // Relaxed: a number for people.
        Progress { bytes: self.shared.bytes.load(Ordering::Relaxed), lost }
    }

    /// Stops recording, fetches what is still in the kernel's buffers, and removes the instances.
    ///
    /// # Errors
    /// When the kernel's control files cannot be read. A pump that failed (disk full) costs its CPU's later
    /// events, and is told in [`Summary::failures`](super::Summary::failures).
    pub fn stop(mut self) -> Result<Recorded, Error> {
        let failures = self.stop_pumps();
        let mut buffers = Vec::new();
        for buffer in std::mem::take(&mut self.buffers) {
            let mut cpus = buffer.files;
            for cpu in &mut cpus {
                cpu.stats = stats(&buffer.instance, cpu.cpu)?;
                cpu.lost = lost(&cpu.stats);
            }
            let clock = buffer.instance.get("trace_clock")?;
            let page_size = buffer.instance.page_size();
            buffers.push(BufferFiles { name: buffer.name, clock, page_size, cpus });
        }
        let mut system = std::mem::take(&mut self.system);
        system.read_names();
        Ok(Recorded { system, buffers, failures })
    }

    fn start_pumps(&mut self, scratch_dir: &Path) -> Result<(), Error> {
        let Some(first) = self.buffers.first() else { return Ok(()) };
        for cpu in first.instance.cpus().to_vec() {
            let mut routes = Vec::new();
            for buffer in &self.buffers {
                for file in buffer.files.iter().filter(|f| f.cpu == cpu) {
                    routes.push(Route {
                        pages: buffer.instance.open_pages(cpu)?,
                        page_size: buffer.instance.page_size(),
                        file: file.file.try_clone().map_err(|e| Error::io(scratch_dir, e))?,
                    });
                }
            }
            // A thread's name has at most 15 bytes.
            let pump = Pump::start(format!("sigmund-cpu{cpu}"), routes, Arc::clone(&self.shared));
            self.pumps.push(pump.map_err(|e| Error::io(scratch_dir, e))?);
        }
        Ok(())
    }

    fn stop_pumps(&mut self) -> Vec<String> {
        let mut failures = Vec::new();
        for buffer in &self.buffers {
            if let Err(error) = buffer.instance.set("tracing_on", "0") {
                failures.push(error.to_string());
            }
        }
        // Release: pairs with the Acquire in the pumps; tracing is off before they look for the last time.
        self.shared.stop.store(true, Ordering::Release);
        for pump in self.pumps.drain(..) {
            if let Err(error) = pump.join() {
                failures.push(format!("moving pages to their file: {error}"));
            }
        }
        failures
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop_pumps();
    }
}

fn prepare(
    name: &'static str,
    instance: Instance,
    options: &RecorderOptions,
    events: &[String],
    scratch_dir: &Path,
) -> Result<Running, Error> {
    // The clock first: changing it later empties the buffer.
    instance.set("trace_clock", &options.clock)?;
    instance.set("buffer_size_kb", &options.buffer_kb_per_cpu.to_string())?;
    for event in events {
        instance.enable(event)?;
    }
    let mut files = Vec::new();
    for cpu in instance.cpus() {
        let file = scratch(scratch_dir, &format!("{name}-cpu{cpu}"))?;
        files.push(CpuFile { cpu: *cpu, file, stats: String::new(), lost: 0 });
    }
    Ok(Running { name, instance, files })
}

/// A file that loses its name at once, and so disappears with this process.
fn scratch(folder: &Path, name: &str) -> Result<File, Error> {
    let path = folder.join(format!("sigmund-{}-{name}.pages", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path);
    let file = file.map_err(|e| Error::io(&path, e))?;
    std::fs::remove_file(&path).map_err(|e| Error::io(&path, e))?;
    Ok(file)
}

fn stats(instance: &Instance, cpu: Cpu) -> Result<String, Error> {
    instance.get(&format!("per_cpu/cpu{cpu}/stats"))
}

/// Events of `stats` that did not stay in the buffer until they were read.
fn lost(stats: &str) -> u64 {
    let keys = ["overrun: ", "commit overrun: ", "dropped events: "];
    let counts = stats.lines().filter_map(|line| {
        let value = keys.iter().find_map(|key| line.strip_prefix(key))?;
        value.trim().parse::<u64>().ok()
    });
    counts.sum()
}
