//! One sample: a process, its time and its memory.

use std::{
    io::{self, Read},
    process::{Command, Stdio},
    time::Instant,
};

/// What a process took.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) seconds: f64,
    /// Most resident memory, in bytes.
    pub(crate) memory: u64,
    /// The end of its standard output.
    pub(crate) printed: String,
}

/// How much of the output is kept.
const KEPT: usize = 1 << 16;

/// The sample with the median time.
pub(crate) fn median(rounds: u16, command: impl Fn() -> Command) -> io::Result<Sample> {
    let mut samples = (0..rounds).map(|_| sample(command())).collect::<io::Result<Vec<_>>>()?;
    samples.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    Ok(samples.swap_remove(samples.len() / 2))
}

fn sample(mut command: Command) -> io::Result<Sample> {
    let started = Instant::now();
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut printed = Vec::new();
    if let Some(mut out) = child.stdout.take() {
        let mut chunk = vec![0; KEPT];
        loop {
            let read = out.read(&mut chunk)?;
            if read == 0 {
                break;
            }
            printed.extend_from_slice(&chunk[..read]);
            let surplus = printed.len().saturating_sub(KEPT);
            printed.drain(..surplus);
        }
    }
    let mut complaint = String::new();
    if let Some(mut error) = child.stderr.take() {
        error.by_ref().take(KEPT as u64).read_to_string(&mut complaint)?;
    }
    let (status, memory) = wait(child.id())?;
    let seconds = started.elapsed().as_secs_f64();
    // 1: it found nothing.
    if !(0..=1).contains(&status) {
        let last = complaint.lines().last().unwrap_or_default();
        return Err(io::Error::other(format!("status {status}: {last}")));
    }
    Ok(Sample { seconds, memory, printed: String::from_utf8_lossy(&printed).into_owned() })
}

/// Waits for a child: its status, and its most resident memory.
fn wait(pid: u32) -> io::Result<(i32, u64)> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    let mut status = 0;
    // SAFETY: both places are valid for the call, which fills them if it returns the child.
    if unsafe { libc::wait4(pid.cast_signed(), &raw mut status, 0, usage.as_mut_ptr()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above returned the child, so it is filled.
    let usage = unsafe { usage.assume_init() };
    let status = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -1 };
    Ok((status, usage.ru_maxrss.cast_unsigned() * 1024))
}
