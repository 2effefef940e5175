//! Records a run of fut so that only the cost of recording is measured.
//!
//! The rings hold the whole run, so no event is lost however slow the drain is. The drain uses only CPUs that the run
//! does not use; if there are none, it runs when they are idle, which is after the run. The trace is read afterwards to
//! count its events.

use std::{
    io,
    path::{Path, PathBuf},
    thread,
};

use fut::{Recording, keys, shm::Geometry, trace::UserTrace};

use crate::machine;

/// Which events are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Events {
    None,
    Scheduling,
    All,
}

/// The result of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recorded {
    pub(crate) events: u64,
    /// Size of the trace in bytes.
    pub(crate) bytes: u64,
    pub(crate) lost: u64,
}

const PACKET_BYTES: u64 = 64 << 10;

impl Events {
    /// Starts to record into a file in `scratch`, if any events are requested, for a runtime of `lwps` LWPs.
    pub(crate) fn start(
        self,
        most_bytes: u64,
        lwps: usize,
        spare_cpus: &[usize],
        scratch: &Path,
    ) -> io::Result<Option<InProgress>> {
        if self == Events::None {
            return Ok(None);
        }
        let packets = most_bytes.div_ceil(PACKET_BYTES).next_power_of_two().clamp(64, 65536) as u32;
        // For the thread that starts the runtime and for the reactor, too.
        let geometry = Geometry { packets, rings: lwps as u32 + 2 };
        let path = scratch.join(format!("{}.fut", std::process::id()));
        let (file, spare_cpus) = (path.clone(), spare_cpus.to_vec());
        // The drain inherits the CPUs and the scheduling policy of the thread that starts it.
        let helper = thread::spawn(move || {
            if spare_cpus.is_empty() {
                machine::run_when_idle()?;
            } else {
                machine::keep_to(&spare_cpus)?;
            }
            Recording::start(&file, geometry)
        });
        let recording = helper.join().map_err(|_| io::Error::other("starting the recording panicked"))??;
        Ok(Some(InProgress { recording, path }))
    }

    /// Stops recording events, except attach and detach of LWPs.
    pub(crate) fn pause(self) {
        if self != Events::None {
            switch(keys::LWP);
        }
    }

    /// Records.
    pub(crate) fn resume(self) {
        match self {
            Events::None => {}
            Events::Scheduling => switch(keys::SCHEDULER | keys::LWP),
            Events::All => switch(keys::ALL),
        }
    }
}

fn switch(mask: u64) {
    keys::set(mask).expect("the kernel lets probes be switched");
}

/// A running recording.
#[derive(Debug)]
pub(crate) struct InProgress {
    recording: Recording,
    path: PathBuf,
}

impl InProgress {
    /// Ends it, counts its events, and removes it.
    pub(crate) fn finish(self) -> io::Result<Recorded> {
        machine::run_normally()?;
        let summary = self.recording.finish()?;
        let events = count_events(&self.path);
        std::fs::remove_file(&self.path)?;
        Ok(Recorded { events: events?, bytes: summary.bytes, lost: summary.lost })
    }
}

fn count_events(path: &Path) -> io::Result<u64> {
    let trace = UserTrace::open(path).map_err(io::Error::other)?;
    let mut events = 0;
    for lwp in trace.lwps() {
        for packet in (0..lwp.len()).filter_map(|index| lwp.packet(index)) {
            let packet = packet?.map_err(|loss| io::Error::other(loss.detail))?;
            events += packet.records().count() as u64;
        }
    }
    Ok(events)
}
