//! tracefs itself: its path, whether it may be used, and instances left by killed recorders.

use std::ffi::CStr;
use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::Error;

const TRACEFS: &str = "/sys/kernel/tracing";
const TRACEFS_C: &CStr = c"/sys/kernel/tracing";
/// The path on kernels before 4.1, and on some systems still.
const IN_DEBUGFS: &str = "/sys/kernel/debug/tracing";

/// Prefix of our instances' names, followed by the recorder's pid, `-`, and the purpose.
pub(super) const INSTANCE_PREFIX: &str = "sigmund-";

/// Why something cannot be recorded here, in one line for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable(pub String);

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unavailable {}

/// Whether tracepoints of the whole machine can be recorded. Mounts tracefs if that is necessary and permitted.
///
/// # Errors
/// The reason why they cannot.
pub fn available() -> Result<(), Unavailable> {
    available_with_clock(super::options::CLOCK_TSC).map(|_| ())
}

/// Like [`available`], for the clock with this name; returns the path of tracefs.
pub(super) fn available_with_clock(clock: &str) -> Result<PathBuf, Unavailable> {
    let no = |why: String| Err(Unavailable(why));
    let root = match find() {
        Some(root) => root,
        None if !is_root() => return no("the kernel's tracing (tracefs) needs root".to_owned()),
        None => match mount() {
            Ok(()) => PathBuf::from(TRACEFS),
            Err(error) => return no(format!("tracefs cannot be mounted at {TRACEFS}: {error}")),
        },
    };
    let instances = root.join("instances");
    if let Err(error) = may_write(&instances) {
        return no(match error.kind() {
            io::ErrorKind::PermissionDenied => "the kernel's tracing (tracefs) needs root".to_owned(),
            io::ErrorKind::NotFound => format!("this kernel has no {}", instances.display()),
            _ => format!("{}: {error}", instances.display()),
        });
    }
    let clocks = root.join("trace_clock");
    match fs::read_to_string(&clocks) {
        Ok(text) if text.split_whitespace().any(|c| c.trim_matches(['[', ']']) == clock) => Ok(root),
        Ok(text) => no(format!("the kernel's tracing has no clock {clock}, only {}", text.trim())),
        Err(error) => no(format!("{}: {error}", clocks.display())),
    }
}

/// Removes instances of recorders that were killed.
///
/// An instance that cannot be removed is kept: another process may be reading it.
pub fn remove_leftovers() {
    let Some(root) = find() else { return };
    let Ok(entries) = fs::read_dir(root.join("instances")) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(recorder_pid);
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            // A leftover that cannot be removed is retried at the next start; no caller needs the error.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// `sigmund-4711-machine` → 4711.
fn recorder_pid(instance: &str) -> Option<u32> {
    instance.strip_prefix(INSTANCE_PREFIX)?.split_once('-')?.0.parse().ok()
}

fn find() -> Option<PathBuf> {
    [TRACEFS, IN_DEBUGFS].into_iter().map(PathBuf::from).find(|root| {
        match root.join("trace_clock").try_exists() {
            Ok(exists) => exists,
            // An ordinary user may not list it, but it exists.
            Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
        }
    })
}

fn is_root() -> bool {
    // SAFETY: geteuid(2) takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

fn may_write(folder: &Path) -> io::Result<()> {
    let path = std::ffi::CString::new(folder.as_os_str().as_encoded_bytes())?;
    // SAFETY: `path` is a C string that lives until the call returns; access(2) only reads it.
    let result = unsafe { libc::access(path.as_ptr(), libc::W_OK) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn mount() -> io::Result<()> {
    let name = c"tracefs".as_ptr();
    // SAFETY: source, target and type are C strings with static lifetime; tracefs takes no data, so NULL.
    let result = unsafe { libc::mount(name, TRACEFS_C.as_ptr(), name, 0, std::ptr::null()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads a control file, in pieces of 64 KiB.
///
/// `events/header_page` and `header_event` return their whole content at the first read and nothing at a second
/// (`show_header`, kernel/trace/trace_events.c, v6.12): `fs::read`, which probes with 32 bytes, would get only those.
pub(super) fn read(path: &Path) -> Result<String, Error> {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 64 << 10];
    let mut file = fs::File::open(path).map_err(|e| Error::io(path, e))?;
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Ok(n) => bytes.extend(&piece[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io(path, error)),
        }
    }
}

/// Writes a control file in one write, as the kernel expects it.
pub(super) fn write(path: &Path, value: &str) -> Result<(), Error> {
    let written = fs::OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(path)
        .and_then(|mut file| file.write_all(value.as_bytes()));
    written.map_err(|e| Error::io(path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_instances_have_a_recorder() {
        assert_eq!(recorder_pid("sigmund-4711-machine"), Some(4711));
        assert_eq!(recorder_pid("sigmund-4711"), None);
        assert_eq!(recorder_pid("trace-cmd-4711-x"), None);
    }
}
