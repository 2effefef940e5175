//! One perf event: it counts nothing, and reports the context switches of one LWP on one CPU.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use perf_event_open_sys::bindings::perf_event_attr;
use perf_event_open_sys::{ioctls, perf_event_open};

use crate::perf_data::layout::{ATTR_SIZE, OUR_SAMPLE_TYPE, PERF_COUNT_SW_DUMMY, PERF_TYPE_SOFTWARE};

const PERF_FLAG_FD_CLOEXEC: u64 = 1 << 3;

/// An open event, not enabled.
#[derive(Debug)]
pub(super) struct SwitchEvent(OwnedFd);

fn attr() -> perf_event_attr {
    let mut attr = perf_event_attr {
        type_: PERF_TYPE_SOFTWARE,
        size: ATTR_SIZE as u32,
        config: PERF_COUNT_SW_DUMMY,
        sample_type: OUR_SAMPLE_TYPE,
        clockid: libc::CLOCK_MONOTONIC_RAW,
        ..perf_event_attr::default()
    };
    attr.set_disabled(1);
    attr.set_inherit(1);
    // Ordinary users may not record in the kernel. Context switches are reported nevertheless.
    attr.set_exclude_kernel(1);
    attr.set_exclude_hv(1);
    attr.set_comm(1);
    attr.set_task(1);
    attr.set_sample_id_all(1);
    attr.set_context_switch(1);
    attr.set_use_clockid(1);
    attr
}

/// The attribute as in a perf.data: the non-zero fields, at their positions.
pub(super) fn attr_bytes() -> [u8; ATTR_SIZE as usize] {
    let attr = attr();
    let flags = attr._bitfield_1.get(0, 64);
    let mut bytes = [0; ATTR_SIZE as usize];
    bytes[0..4].copy_from_slice(&attr.type_.to_le_bytes());
    bytes[4..8].copy_from_slice(&attr.size.to_le_bytes());
    bytes[8..16].copy_from_slice(&attr.config.to_le_bytes());
    bytes[24..32].copy_from_slice(&attr.sample_type.to_le_bytes());
    bytes[40..48].copy_from_slice(&flags.to_le_bytes());
    bytes[92..96].copy_from_slice(&attr.clockid.to_le_bytes());
    bytes
}

impl SwitchEvent {
    /// Opens the event for an LWP (0: the calling one) on a CPU (-1: any).
    pub(super) fn open(tid: i32, cpu: i32) -> io::Result<SwitchEvent> {
        let mut attr = attr();
        // SAFETY: `attr` is a whole attribute of this function's own; the kernel may write its `size`. The event only
        // requests records, so it does not affect the LWP otherwise.
        let fd = unsafe { perf_event_open(&mut attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the kernel has just given this descriptor to us, and no other code has it.
        Ok(SwitchEvent(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Redirects this event's records to the ring of another event, of the same CPU.
    pub(super) fn output_to(&self, ring_of: BorrowedFd<'_>) -> io::Result<()> {
        // SAFETY: both descriptors are open perf events.
        checked(unsafe { ioctls::SET_OUTPUT(self.0.as_raw_fd(), ring_of.as_raw_fd()) })
    }

    /// The number that identifies the event in its records.
    pub(super) fn id(&self) -> io::Result<u64> {
        let mut id = 0;
        // SAFETY: the descriptor is an open perf event, and the kernel writes one u64 to `id`.
        checked(unsafe { ioctls::ID(self.0.as_raw_fd(), &mut id) })?;
        Ok(id)
    }

    pub(super) fn enable(&self) -> io::Result<()> {
        // SAFETY: the descriptor is an open perf event; the argument is a flag, 0 is "this event only".
        checked(unsafe { ioctls::ENABLE(self.0.as_raw_fd(), 0) })
    }

    pub(super) fn disable(&self) -> io::Result<()> {
        // SAFETY: as for `enable`.
        checked(unsafe { ioctls::DISABLE(self.0.as_raw_fd(), 0) })
    }
}

impl AsFd for SwitchEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Why the kernel refused to open the event, in one line for users.
pub(super) fn refusal(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => {
            let paranoid = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
            match paranoid.trim() {
                "" => "perf events are not allowed here".to_owned(),
                level => {
                    format!(
                        "perf events are not allowed here (kernel.perf_event_paranoid is {level}, at most 2 is needed)"
                    )
                }
            }
        }
        Some(libc::ENOSYS | libc::ENOENT | libc::ENODEV) => "this kernel has no perf events".to_owned(),
        _ => format!("perf events: {error}"),
    }
}
