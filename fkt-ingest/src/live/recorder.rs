//! Records tracepoints: of the whole machine, of one program, or both.
//!
//! | scope | who is on which CPU, interrupts | what programs do (system calls) |
//! |---|---|---|
//! | [`Scope::Program`] | of all, instance `sigmund-<pid>-machine` | of the program, `sigmund-<pid>-program` |
//! | [`Scope::Only`] | of the program, `sigmund-<pid>-machine` | in the same |
//! | [`Scope::System`] | of all, `sigmund-<pid>-machine` | of all, in the same |
//!
//! What is only of the program is filtered by the kernel, so that a busy neighbour does not fill its buffer. That
//! filter lets a switch through if either of the two is the program's, and a wakeup of the program's by anybody.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sigmund_model::{Cpu, Pid};

use super::instance::Instance;
use super::options::{RecorderOptions, Scope};
use super::pump::{Pump, Route, Shared, WAKE_AT_PERCENT};
use super::recorded::{BufferFiles, CpuFile, Recorded};
use super::system::System;
use super::tracefs::available_with_clock;
use crate::error::{Error, ErrorKind, Misfit};

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
    pub fn start(options: &RecorderOptions, scope: Scope, scratch_dir: &Path) -> Result<Recorder, Error> {
        let tracefs = available_with_clock(&options.clock).map_err(|why| {
            let expected = "tracefs that may be used".to_owned();
            let misfit = Misfit { at: 0, part: "live recording", expected, found: why.0 };
            Error::at(ErrorKind::Unsupported, Path::new("tracefs"), misfit)
        })?;
        let mut buffers = Vec::new();
        for buffer in buffers_of(options, scope) {
            let instance = Instance::create(&tracefs, buffer.purpose)?;
            if let Some(program) = buffer.of {
                instance.follow(program)?;
            }
            buffers.push(prepare(&buffer, instance, options, scratch_dir)?);
        }
        let system = System::read(&tracefs, options.machine_events.iter().chain(&options.program_events))?;

        let shared = Arc::new(Shared::new().map_err(|e| Error::io(scratch_dir, e))?);
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
        let (failures, pump_time) = self.stop_pumps();
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
        Ok(Recorded { system, buffers, failures, pump_time })
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

    /// Says what went wrong, and how much time the pumps had on CPUs.
    fn stop_pumps(&mut self) -> (Vec<String>, Duration) {
        let (mut failures, mut used) = (Vec::new(), Duration::ZERO);
        for buffer in &self.buffers {
            if let Err(error) = buffer.instance.set("tracing_on", "0") {
                failures.push(error.to_string());
            }
        }
        self.shared.stop();
        for pump in self.pumps.drain(..) {
            match pump.join() {
                Ok(time) => used += time,
                Err(error) => failures.push(format!("moving pages to their file: {error}")),
            }
        }
        (failures, used)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop_pumps();
    }
}

/// A buffer that is to be made.
struct Buffer<'o> {
    /// Its name in the file: empty for the top buffer.
    name: &'static str,
    /// Last part of the instance's name.
    purpose: &'static str,
    events: Vec<&'o String>,
    /// Only events of this program and its children.
    of: Option<Pid>,
}

fn buffers_of(options: &RecorderOptions, scope: Scope) -> Vec<Buffer<'_>> {
    let all = || options.machine_events.iter().chain(&options.program_events).collect();
    let machine = |events, of| Buffer { name: "", purpose: "machine", events, of };
    match scope {
        Scope::System => vec![machine(all(), None)],
        Scope::Only(program) => vec![machine(all(), Some(program))],
        Scope::Program(_) if options.program_events.is_empty() => {
            vec![machine(options.machine_events.iter().collect(), None)]
        }
        Scope::Program(program) => {
            let events = options.program_events.iter().collect();
            let of_program = Buffer { name: "program", purpose: "program", events, of: Some(program) };
            vec![machine(options.machine_events.iter().collect(), None), of_program]
        }
    }
}

fn prepare(
    buffer: &Buffer<'_>,
    instance: Instance,
    options: &RecorderOptions,
    scratch_dir: &Path,
) -> Result<Running, Error> {
    // The clock first: changing it later empties the buffer. Then the sub-buffers: the size is rounded up to them.
    instance.set("trace_clock", &options.clock)?;
    if let Some(kb) = options.sub_buffer_kb {
        instance.set("buffer_subbuf_size_kb", &kb.to_string())?;
    }
    instance.set("buffer_size_kb", &options.buffer_kb_per_cpu.to_string())?;
    // Kernels before 5.0 wake at every page: that only costs time.
    let _ = instance.set("buffer_percent", &WAKE_AT_PERCENT.to_string());
    for event in &buffer.events {
        for filter in options.filters.iter().filter(|filter| filter.event == **event) {
            instance.filter(event, &filter.condition)?;
        }
        instance.enable(event)?;
    }
    let mut files = Vec::new();
    for cpu in instance.cpus() {
        let file = scratch(scratch_dir, &format!("{}-cpu{cpu}", buffer.purpose))?;
        files.push(CpuFile { cpu: *cpu, file, stats: String::new(), lost: 0 });
    }
    Ok(Running { name: buffer.name, instance, files })
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
