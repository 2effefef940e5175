//! One sample: a separate process does one piece of work once, and prints the cost on one line.

use std::{
    collections::HashMap,
    fmt,
    path::Path,
    process::{Command, Output, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    contenders::Contender, echo::Echo, fair::Waits, live::Live, recorded::Recorded, steps::Steps, work::Work,
};

/// Time limit of a sample: only a runtime that hangs takes longer.
const PATIENCE: Duration = Duration::from_secs(300);

/// The result of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) elapsed: Duration,
    pub(crate) recorded: Option<Recorded>,
    pub(crate) live: Option<Live>,
    pub(crate) echo: Option<Echo>,
    pub(crate) steps: Option<Steps>,
    pub(crate) waits: Option<Waits>,
}

/// The job of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) contender: Contender,
    pub(crate) work: Work,
    pub(crate) cpus: usize,
}

impl Sample {
    /// That long, and nothing else.
    pub(crate) fn of(elapsed: Duration) -> Sample {
        Sample { elapsed, recorded: None, live: None, echo: None, steps: None, waits: None }
    }

    /// Nanoseconds for one operation of `work`.
    pub(crate) fn ns(&self, work: Work) -> f64 {
        self.elapsed.as_secs_f64() * 1e9 / work.operations() as f64
    }

    pub(crate) fn parse(line: &str) -> Result<Sample, String> {
        let words = line.split_whitespace().filter_map(|word| word.split_once('='));
        let numbers: HashMap<&str, u64> = words.filter_map(|(k, v)| Some((k, v.parse().ok()?))).collect();
        let number = |key: &str| numbers.get(key).copied();
        let elapsed = number("elapsed_ns").ok_or(format!("expected elapsed_ns=…, found {line:?}"))?;
        let recorded =
            || Some(Recorded { events: number("events")?, bytes: number("bytes")?, lost: number("lost")? });
        let live = || {
            Some(Live {
                resident: number("resident")?,
                page_tables: number("page_tables")?,
                mappings: number("mappings")?,
                end_ns: number("end_ns")?,
            })
        };
        let echo = || {
            let (p50_ns, p99_ns) = (number("p50_ns")?, number("p99_ns")?);
            Some(Echo { cpu_ns: number("cpu_ns")?, p50_ns, p99_ns })
        };
        let steps = || {
            let (idle_ns, resident) = (number("idle_ns")?, number("steps_resident")?);
            let mut steps = Steps { idle_ns, resident, ..Steps::default() };
            for (step, ns) in steps.cpu_ns.iter_mut().enumerate() {
                *ns = number(&format!("step{step}"))?;
            }
            Some(steps)
        };
        let waits = || {
            Some(Waits {
                count: number("waits")?,
                mean_ns: number("wait_ns")?,
                longest_ns: number("longest_ns")?,
            })
        };
        Ok(Sample {
            elapsed: Duration::from_nanos(elapsed),
            recorded: recorded(),
            live: live(),
            echo: echo(),
            steps: steps(),
            waits: waits(),
        })
    }
}

/// The line that the process prints.
impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "elapsed_ns={}", self.elapsed.as_nanos())?;
        if let Some(Recorded { events, bytes, lost }) = self.recorded {
            write!(f, " events={events} bytes={bytes} lost={lost}")?;
        }
        if let Some(Live { resident, page_tables, mappings, end_ns }) = self.live {
            write!(f, " resident={resident} page_tables={page_tables} mappings={mappings} end_ns={end_ns}")?;
        }
        if let Some(Echo { cpu_ns, p50_ns, p99_ns }) = self.echo {
            write!(f, " cpu_ns={cpu_ns} p50_ns={p50_ns} p99_ns={p99_ns}")?;
        }
        if let Some(Steps { cpu_ns, idle_ns, resident }) = self.steps {
            write!(f, " idle_ns={idle_ns} steps_resident={resident}")?;
            for (step, ns) in cpu_ns.iter().enumerate() {
                write!(f, " step{step}={ns}")?;
            }
        }
        if let Some(Waits { count, mean_ns, longest_ns }) = self.waits {
            write!(f, " waits={count} wait_ns={mean_ns} longest_ns={longest_ns}")?;
        }
        Ok(())
    }
}

impl Job {
    /// Runs the process.
    ///
    /// # Errors
    /// The reason why there is no sample, in one line for the table.
    pub(crate) fn sample(&self, scratch: &Path) -> Result<Sample, String> {
        let program = std::env::current_exe().map_err(|error| format!("this program's path: {error}"))?;
        let contender = clap::ValueEnum::to_possible_value(&self.contender).ok_or("not a contender")?;
        let mut command = Command::new(program);
        command.args(["one", contender.get_name(), &self.work.to_string(), &self.cpus.to_string()]);
        let output = run(command.arg(scratch))?;
        let said = String::from_utf8_lossy(&output.stdout);
        if output.status.success() {
            return Sample::parse(said.trim());
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        Err(format!("{}; {}", output.status, first_sentence(&complaint)))
    }
}

fn run(command: &mut Command) -> Result<Output, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
    let pid = Pid::from_child(&child);
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(child.wait_with_output()));
    let ended = receiver.recv_timeout(PATIENCE).map_err(|_| {
        let _ = kill_process(pid, Signal::KILL);
        let _ = receiver.recv();
        format!("no answer after {} s", PATIENCE.as_secs())
    })?;
    ended.map_err(|error| error.to_string())
}

/// The line of standard error with the reason: the line after `panicked at`, or the first.
fn first_sentence(complaint: &str) -> &str {
    let mut lines = complaint.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next().unwrap_or("it said nothing");
    if first.contains("panicked at") { lines.next().unwrap_or(first) } else { first }
}

/// The samples of one job.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) job: Job,
    pub(crate) samples: Vec<Sample>,
    /// The reason why there are no more.
    pub(crate) failed: Option<String>,
}

/// Runs all jobs once, then all a second time, and so on, so that changes of the machine's load affect all jobs. Each
/// round begins with a different job. A job that fails is not tried again.
pub(crate) fn rounds(jobs: &[Job], rounds: usize, scratch: &Path) -> Vec<Outcome> {
    let begun = |job: &Job| {
        let failed = job.contender.prepare(scratch).err();
        Outcome { job: *job, samples: Vec::new(), failed }
    };
    let mut outcomes: Vec<Outcome> = jobs.iter().map(begun).collect();
    for round in 0..rounds {
        for index in 0..jobs.len() {
            let outcome = &mut outcomes[(round + index) % jobs.len()];
            if outcome.failed.is_none() {
                match outcome.job.sample(scratch) {
                    Ok(sample) => outcome.samples.push(sample),
                    Err(why) => outcome.failed = Some(why),
                }
            }
        }
    }
    outcomes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_line_is_parsed_to_the_same_result() {
        let plain = Sample::of(Duration::from_nanos(1500));
        let recorded = Sample { recorded: Some(Recorded { events: 3, bytes: 90, lost: 0 }), ..plain };
        let echo = Sample { echo: Some(Echo { cpu_ns: 5, p50_ns: 2, p99_ns: 9 }), ..plain };
        let cpu_ns = [1, 2, 3, 4, 5, 6, 7, 8];
        let steps = Sample { steps: Some(Steps { cpu_ns, idle_ns: 9, resident: 10 }), ..plain };
        let waits = Sample { waits: Some(Waits { count: 1, mean_ns: 2, longest_ns: 3 }), ..plain };
        for sample in [plain, recorded, echo, steps, waits] {
            assert_eq!(Sample::parse(&sample.to_string()), Ok(sample));
        }
        assert!(Sample::parse("panic: 7").unwrap_err().contains("panic: 7"));
    }

    #[test]
    fn the_reason_of_a_panic_is_its_message() {
        let complaint = "\nthread 'main' panicked at src/x.rs:1:2:\nno memory\nnote: run with …\n";
        assert_eq!(first_sentence(complaint), "no memory");
        assert_eq!(first_sentence(""), "it said nothing");
    }
}
