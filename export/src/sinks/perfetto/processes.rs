//! The first packets: the clock, and the processes and their threads.

use super::{
    batch::Batch,
    bundles::SEQUENCE,
    schema::{clock_snapshot, packet, process_tree},
    wire::Wire,
};
use crate::timeline::{Actors, LwpId};

/// Writes the clock snapshot. Times are relative to the beginning of the trace, and declared as time since boot, the
/// clock of ftrace's bundles. The time of day at the beginning is written if it is known.
pub(super) fn clock(actors: &Actors, batch: &mut Batch) {
    packet(0, packet::CLOCK_SNAPSHOT, batch, |out| {
        out.number(clock_snapshot::PRIMARY_TRACE_CLOCK, clock_snapshot::BOOTTIME);
        clock_now(out, clock_snapshot::BOOTTIME, 0);
        if let Some(realtime) = actors.clock.realtime_at_first {
            clock_now(out, clock_snapshot::REALTIME, realtime);
        }
    });
}

fn clock_now(out: &mut Vec<u8>, clock: u64, now: i64) {
    out.message(clock_snapshot::CLOCKS, |out| {
        out.number(clock_snapshot::CLOCK_ID, clock);
        out.signed(clock_snapshot::TIMESTAMP, now);
    });
}

/// Writes the processes with a pid.
pub(super) fn processes(actors: &Actors, batch: &mut Batch) {
    packet(0, packet::PROCESS_TREE, batch, |out| {
        for process in &actors.processes {
            let Some(pid) = process.pid else { continue };
            out.message(process_tree::PROCESSES, |out| {
                out.number(process_tree::PROCESS_PID, u64::from(pid.0));
                if let Some(name) = &process.name {
                    out.text(process_tree::PROCESS_CMDLINE, name);
                }
            });
        }
    });
}

/// Writes the process of an LWP. If it is unknown, only ftrace's events contain the LWP's name.
pub(super) fn describe_lwp(actors: &Actors, lwp: LwpId, at: u64, batch: &mut Batch) {
    let lwp = &actors[lwp];
    let Some(pid) = actors[lwp.process].pid else { return };
    packet(at, packet::PROCESS_TREE, batch, |out| {
        out.message(process_tree::THREADS, |out| {
            out.number(process_tree::THREAD_TID, u64::from(lwp.lwp.0));
            if let Some(name) = &lwp.name {
                out.text(process_tree::THREAD_NAME, name);
            }
            out.number(process_tree::THREAD_TGID, u64::from(pid.0));
        });
    });
}

fn packet(at: u64, kind: u32, batch: &mut Batch, fill: impl FnOnce(&mut Vec<u8>)) {
    batch.packet(|out| {
        out.number(packet::TIMESTAMP, at);
        out.number(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
        out.message(kind, fill);
    });
}
