//! The state of this process's buffers: fill levels and lost records.

use std::{fs, time::SystemTime};

use super::reply::{Cell, Reply};
use crate::{
    declared_events, keys,
    session::Session,
    shm::{Mode, PACKET_LEN, Ring, RingState},
};

pub(super) fn status(session: &Session, since: SystemTime) -> Reply {
    let arena = &session.arena;
    let mut reply = Reply::default();
    let comm = fs::read_to_string("/proc/self/comm").unwrap_or_default();
    reply.add_fact("pid", session.pid.0);
    reply.add_fact("program", comm.trim_end());
    reply.add_fact("fut", env!("CARGO_PKG_VERSION"));
    reply.add_fact("recording", if keys::mask() == 0 { "nothing" } else { "yes" });
    let seconds = since.elapsed().map_or(0.0, |elapsed| elapsed.as_secs_f64());
    reply.add_fact("for_seconds", (seconds * 1000.0).round() / 1000.0);
    let mode = match arena.mode() {
        Mode::Discard => "discard",
        Mode::Overwrite => "overwrite",
    };
    reply.add_fact("mode", mode);
    reply.add_fact("drained_by", drained_by(session));
    reply.add_fact("key_mask", format!("{:#x}", keys::mask()));
    reply.add_fact("events", declared_events().count());
    reply.add_fact("events_on", declared_events().filter(crate::EventInfo::is_on).count());
    reply.add_fact("ring_packets", arena.geometry().packets);
    reply.add_fact("packet_bytes", PACKET_LEN);
    reply.add_fact("rings", arena.geometry().rings);
    reply.add_fact("lost_without_ring", arena.unattached_lost());
    if arena.mode() == Mode::Overwrite {
        reply.add_fact("overwritten_lwps", arena.overwritten_lwps().lwps);
    }
    reply.columns =
        ["lwp", "name", "state", "mounted", "in_use", "percent", "packets", "bytes", "lost", "overwritten"]
            .map(String::from)
            .into();
    reply.rows = arena.rings().filter_map(|ring| lwp(&ring)).collect();
    reply
}

fn drained_by(session: &Session) -> &'static str {
    match (session.arena.mode(), session.has_recorder) {
        (Mode::Discard, true) => "the recorder",
        (Mode::Discard, false) => "a thread of its own",
        (Mode::Overwrite, true) => "the recorder, at the end",
        (Mode::Overwrite, false) => "nobody",
    }
}

/// The row of an LWP; `None` for an unused ring.
fn lwp(ring: &Ring<'_>) -> Option<Vec<Cell>> {
    let state = match ring.state() {
        RingState::Live => "live",
        RingState::Ended => "ended",
        RingState::Free | RingState::Busy => return None,
    };
    let fill = ring.fill();
    let tid = ring.lwp().0;
    let name = fs::read_to_string(format!("/proc/self/task/{tid}/comm")).ok();
    let percent = 100.0 * fill.in_use as f64 / fill.capacity as f64;
    Some(vec![
        tid.into(),
        name.map(|name| name.trim_end().to_string()).into(),
        state.into(),
        fill.mounted.map(|thread| thread.0).into(),
        fill.in_use.into(),
        ((percent * 10.0).round() / 10.0).into(),
        fill.packets.into(),
        fill.bytes.into(),
        ring.lost().into(),
        fill.overwritten.into(),
    ])
}
