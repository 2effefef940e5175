//! Records tracepoints: of the whole machine, of one program, or both.
//!
//! | scope | scheduling, interrupts | programs' activity (system calls) |
//! |---|---|---|
//! | [`Scope::Program`] | of all, instance `sigmund-<pid>-machine` | of the program, `sigmund-<pid>-program` |
//! | [`Scope::Only`] | of the program, `sigmund-<pid>-machine` | in the same |
//! | [`Scope::System`] | of all, `sigmund-<pid>-machine` | of all, in the same |
//!
//! Events of the program alone are filtered by the kernel, so that other busy programs do not fill its buffer. The
//! filter keeps a switch if either LWP is the program's, and any wakeup of one of the program's LWPs.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sigmund_files::Folder;
use sigmund_model::{Cpu, Pid};

use super::file_names::FileNames;
use super::instance::Instance;
use super::options::{RecorderOptions, Scope};
use super::pump::{NewFiles, Pump, PumpControl, Route, WAKE_AT_PERCENT};
use super::recorded::Recorded;
use super::rotator::{Current, Rotator, stats_path};
use super::stats::{lost, since};
use super::system::System;
use super::tracefs::available_with_clock;
use super::unfinished::{self, BufferCpu, Description, Pages, WHOLE};
use crate::error::{Error, ErrorKind, ParseError};

/// A running recording. When dropped, it stops and removes its instances from tracefs; its data can still be finished
/// ([`finish`](super::finish)).
#[derive(Debug)]
pub struct Recorder {
    buffers: Vec<Running>,
    pumps: Vec<Pump>,
    /// Gives new files to the pumps; has the destinations of each pump's routes.
    switches: Vec<Sender<NewFiles>>,
    places: Vec<Vec<(usize, usize)>>,
    shared: Arc<PumpControl>,
    current: Arc<Mutex<Current>>,
}

#[derive(Debug)]
struct Running {
    /// Its name in the file: the machine's is the top buffer, without a name.
    name: &'static str,
    instance: Instance,
}

/// The progress of a running recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of pages moved to files so far.
    pub bytes: u64,
    /// Events the kernel's buffers have lost so far.
    pub lost: u64,
}

impl Recorder {
    /// Starts recording into `folder`. The folder must not contain parts of another recording: a description of the
    /// trace, or files of pages. [`Recorded::write_trace_dat`] needs these files, or [`finish`](super::finish) if this
    /// process is killed.
    ///
    /// # Errors
    /// If [`available`](super::available) returns an error, an event does not exist, or the kernel has no memory for
    /// the buffers. Nothing is then left in tracefs.
    pub fn start(options: &RecorderOptions, scope: Scope, folder: &Folder) -> Result<Recorder, Error> {
        Recorder::start_files(options, scope, folder, WHOLE)
    }

    /// Like [`start`](Self::start), but records into part 1 of a recording that a [`Rotator`] cuts into parts.
    ///
    /// # Errors
    /// The errors of [`start`](Self::start).
    pub fn start_in_parts(
        options: &RecorderOptions,
        scope: Scope,
        folder: &Folder,
    ) -> Result<Recorder, Error> {
        Recorder::start_files(options, scope, folder, FileNames(Some(1)))
    }

    fn start_files(
        options: &RecorderOptions,
        scope: Scope,
        folder: &Folder,
        files: FileNames,
    ) -> Result<Recorder, Error> {
        let tracefs = available_with_clock(&options.clock).map_err(|why| {
            let expected = "tracefs that may be used".to_owned();
            let parse_error = ParseError { at: 0, part: "live recording", expected, found: why.0 };
            Error::at(ErrorKind::Unsupported, Path::new("tracefs"), parse_error)
        })?;
        let mut buffers = Vec::new();
        for buffer in buffers_of(options, scope) {
            let instance = Instance::create(&tracefs, buffer.purpose)?;
            if let Some(program) = buffer.of {
                instance.follow(program)?;
            }
            buffers.push(prepare(&buffer, instance, options)?);
        }
        let system = System::read(&tracefs, options.machine_events.iter().chain(&options.program_events))?;
        let described = buffers.iter().map(Running::describe).collect::<Result<_, _>>()?;
        let description = Description::new(system, described);

        let shared = Arc::new(PumpControl::new().map_err(|e| Error::io(folder.path(), e))?);
        let pages = Pages::create(folder, files, &description.buffers)?;
        let stats_before =
            description.buffers.iter().map(|buffer| vec![String::new(); buffer.cpus.len()]).collect();
        let current = Arc::new(Mutex::new(Current { files, description, pages, stats_before }));
        let (pumps, switches, places) = (Vec::new(), Vec::new(), Vec::new());
        let mut recorder = Recorder { buffers, pumps, switches, places, shared, current };
        if let Err(error) = recorder.begin(folder) {
            drop(recorder);
            unfinished::remove_files(folder, files)?;
            return Err(error);
        }
        Ok(recorder)
    }

    fn begin(&mut self, folder: &Folder) -> Result<(), Error> {
        let current = Arc::clone(&self.current);
        let current = current.lock().unwrap_or_else(PoisonError::into_inner);
        current.description.write(folder, current.files)?;
        self.start_pumps(folder, &current.pages)?;
        self.buffers.iter().try_for_each(|buffer| buffer.instance.set("tracing_on", "1"))
    }

    /// The [`Rotator`] that cuts the recording into parts, if it was started by
    /// [`start_in_parts`](Self::start_in_parts). It must be dropped before [`stop`](Self::stop).
    pub fn rotator(&self) -> Rotator {
        let (current, pumps) = (Arc::clone(&self.current), self.switches.clone());
        Rotator { current, pumps, places: self.places.clone(), shared: Arc::clone(&self.shared) }
    }

    /// The progress of the recording.
    pub fn progress(&self) -> Progress {
        let cpus = self.buffers.iter().flat_map(|b| b.instance.cpus().iter().map(move |cpu| (b, *cpu)));
        let lost = cpus.filter_map(|(b, cpu)| Some(lost(&stats(&b.instance, cpu).ok()?))).sum();
        // Relaxed: a number for people.
        Progress { bytes: self.shared.bytes.load(Ordering::Relaxed), lost }
    }

    /// Stops recording events immediately, without waiting for a disk: it only switches tracing off in the kernel.
    /// [`stop`](Recorder::stop) fetches what was recorded before.
    ///
    /// # Errors
    /// If the kernel refuses, which is not expected. The other buffers are then switched off.
    pub fn halt(&self) -> Result<(), Error> {
        let switched = self.buffers.iter().map(|buffer| buffer.instance.set("tracing_on", "0"));
        // Tries all buffers before it returns the first error.
        switched.collect::<Vec<_>>().into_iter().collect()
    }

    /// Stops recording, fetches what is still in the kernel's buffers, and removes the instances.
    ///
    /// # Errors
    /// If the kernel's control files cannot be read; the recording can be finished nevertheless. A pump that failed
    /// (disk full) loses later events of its CPU; its error is in [`Summary::failures`](super::Summary::failures).
    pub fn stop(mut self) -> Result<Recorded, Error> {
        let (failures, pump_time) = self.stop_pumps();
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffers = Vec::new();
        for (running, before) in std::mem::take(&mut self.buffers).into_iter().zip(&current.stats_before) {
            let mut buffer = running.describe()?;
            for (cpu, before) in buffer.cpus.iter_mut().zip(before) {
                cpu.stats = since(&stats(&running.instance, Cpu(cpu.cpu))?, before);
                cpu.lost = lost(&cpu.stats);
            }
            buffers.push(buffer);
        }
        let mut system = std::mem::take(&mut current.description.system);
        system.read_names();
        let pages = std::mem::replace(&mut current.pages, Pages(Vec::new()));
        let (files, description) = (current.files, Description::new(system, buffers));
        drop(current);
        Ok(Recorded { files, description, pages, failures, pump_time })
    }

    fn start_pumps(&mut self, folder: &Folder, pages: &Pages) -> Result<(), Error> {
        let io = |error| Error::io(folder.path(), error);
        let Some(first) = self.buffers.first() else { return Ok(()) };
        for cpu in first.instance.cpus().to_vec() {
            let (mut routes, mut places) = (Vec::new(), Vec::new());
            for (number, (buffer, files)) in self.buffers.iter().zip(&pages.0).enumerate() {
                let of_buffer = buffer.instance.cpus().iter().zip(files).enumerate();
                for (place, (_, file)) in of_buffer.filter(|(_, (of, _))| **of == cpu) {
                    routes.push(Route {
                        pages: buffer.instance.open_pages(cpu)?,
                        page_size: buffer.instance.page_size(),
                        file: file.try_clone().map_err(io)?,
                        stats: stats_path(buffer.instance.path(), cpu),
                    });
                    places.push((number, place));
                }
            }
            let (switch, new_files) = channel();
            // A thread's name has at most 15 bytes.
            let pump = Pump::start(format!("sigmund-cpu{cpu}"), routes, Arc::clone(&self.shared), new_files);
            self.pumps.push(pump.map_err(io)?);
            self.switches.push(switch);
            self.places.push(places);
        }
        Ok(())
    }

    /// Waits for the pumps; returns their failures and their CPU time.
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

/// A buffer to create.
struct Buffer<'o> {
    /// Its name in the file: empty for the top buffer.
    name: &'static str,
    /// Last part of the instance's name.
    purpose: &'static str,
    events: Vec<&'o String>,
    /// Whether it is limited to events of this program and its children.
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

impl Running {
    fn describe(&self) -> Result<unfinished::Buffer, Error> {
        let cpu = |cpu: &Cpu| BufferCpu { cpu: cpu.0, stats: String::new(), lost: 0 };
        Ok(unfinished::Buffer {
            name: self.name.to_owned(),
            clock: self.instance.get("trace_clock")?,
            page_size: self.instance.page_size(),
            cpus: self.instance.cpus().iter().map(cpu).collect(),
        })
    }
}

fn prepare(buffer: &Buffer<'_>, instance: Instance, options: &RecorderOptions) -> Result<Running, Error> {
    // The clock is set first, because changing it later empties the buffer. Then the size of the sub-buffers is set:
    // the buffer's size is rounded up to a multiple of it.
    instance.set("trace_clock", &options.clock)?;
    if let Some(kb) = options.sub_buffer_kb {
        instance.set("buffer_subbuf_size_kb", &kb.to_string())?;
    }
    instance.set("buffer_size_kb", &options.buffer_kb_per_cpu.to_string())?;
    // Kernels before 5.0 wake at every page, which only costs time.
    let _ = instance.set("buffer_percent", &WAKE_AT_PERCENT.to_string());
    for event in &buffer.events {
        for filter in options.filters.iter().filter(|filter| filter.event == **event) {
            instance.filter(event, &filter.condition)?;
        }
        instance.enable(event)?;
    }
    Ok(Running { name: buffer.name, instance })
}

fn stats(instance: &Instance, cpu: Cpu) -> Result<String, Error> {
    instance.get(&format!("per_cpu/cpu{cpu}/stats"))
}
