//! Executes requests and builds their answers.

use std::{fs::File, time::SystemTime};

use super::{
    costs,
    reply::{Cell, Reply},
    request::Request,
    sample, status,
};
use crate::{
    EventInfo, declared_events, keys,
    model::EventType,
    probe::name_fits,
    session::{Session, declared_late},
    switch_events,
    trace::Declaration,
};

/// Size of a record before its parameters, in bytes.
const RECORD_HEADER_BYTES: usize = 16;

pub(super) fn answer(
    request: &Request,
    file: Option<File>,
    session: &'static Session,
    since: SystemTime,
) -> Result<Reply, String> {
    match request {
        Request::List => Ok(list(session)),
        Request::Enable(pattern) => switch(pattern, true),
        Request::Disable(pattern) => switch(pattern, false),
        Request::Keys(mask) => keys(*mask),
        Request::Status => Ok(status::status(session, since)),
        Request::Threads => threads(),
        Request::Snapshot => snapshot(file, session),
    }
}

fn list(session: &Session) -> Reply {
    let in_buffers = sample::records_in_buffers(&session.arena);
    let count = |code| in_buffers.as_ref().map(|counts| counts.of(code));
    let ours = declared_events().map(|event| {
        let fields = event.fields().iter().map(|(name, ty)| format!("{name}: {}", ty.name())).collect();
        let place = (event.file(), event.line());
        row(
            event.name(),
            (event.key(), if event.is_on() { "on" } else { "off" }),
            fields,
            place,
            (costs::ticks(&event), count(event.code())),
        )
    });
    let of_c = declared_late().into_iter().map(|Declaration { event, file, line }| {
        let fields =
            event.fields.iter().map(|field| format!("{}: {}", field.name, field.ty.name())).collect();
        let key = key_of_c(&event);
        let switch = (key, state(key));
        row(&event.name, switch, fields, (&file, line), (None, count(event.code.unwrap_or(0))))
    });
    let names = ["name", "key", "state", "bytes", "cost_ticks", "in_buffers", "fields", "declared_at"];
    Reply { columns: names.map(String::from).into(), rows: ours.chain(of_c).collect(), ..Reply::default() }
}

/// The keys of an event of a C program, which is switched only by keys. Each probe chooses its keys, unless the event
/// is one of libfut's own.
fn key_of_c(event: &EventType) -> u64 {
    if event.key == 0 { keys::C_PROGRAM } else { event.key }
}

/// Whether these keys are on; "by key" if some of them are.
fn state(key: u64) -> &'static str {
    match keys::mask() & key {
        0 => "off",
        on if on == key => "on",
        _ => "by key",
    }
}

fn row(
    name: &str,
    (key, state): (u64, &str),
    fields: Vec<String>,
    (file, line): (&str, u32),
    (cost, in_buffers): (Option<f64>, Option<u64>),
) -> Vec<Cell> {
    vec![
        name.into(),
        key_name(key).into(),
        state.into(),
        (RECORD_HEADER_BYTES + 8 * fields.len()).into(),
        cost.into(),
        in_buffers.into(),
        fields.join(", ").into(),
        format!("{file}:{line}").into(),
    ]
}

/// Names of the key groups, for display.
const KEYS: [(&str, u64); 8] = [
    ("scheduler", keys::SCHEDULER),
    ("lwp", keys::LWP),
    ("sync", keys::SYNC),
    ("locks", keys::LOCKS),
    ("spans", keys::SPANS),
    ("program", keys::PROGRAM),
    ("functions", keys::FUNCTIONS),
    ("c", keys::C_PROGRAM),
];

fn key_name(key: u64) -> String {
    let known = KEYS.iter().find(|(_, bits)| *bits == key);
    known.map_or_else(|| format!("{key:#x}"), |(name, _)| (*name).into())
}

fn switch(pattern: &str, on: bool) -> Result<Reply, String> {
    let were_on: Vec<bool> = declared_events().map(|event| event.is_on()).collect();
    let matched = switch_events(pattern, on).map_err(|error| error.to_string())?;
    let changed = declared_events().zip(were_on).filter(|(event, was_on)| event.is_on() != *was_on);
    let (changed, mask) = (changed.count(), keys::mask());
    let by_key = declared_late().iter().filter(|declared| name_fits(pattern, &declared.event.name)).count();
    if matched == 0 && by_key > 0 {
        return Err(format!(
            "{pattern}: matches {by_key} events of C, which are switched by their keys and not by name: see `keys`"
        ));
    }
    let mut reply = Reply::default();
    reply.add_fact("matched", matched);
    reply.add_fact("changed", changed);
    reply.add_fact("key_mask", mask);
    if by_key > 0 {
        reply.add_fact("switched_by_key_only", by_key);
    }
    Ok(reply)
}

fn keys(mask: Option<u64>) -> Result<Reply, String> {
    let (before, now) = match mask {
        None => (keys::mask(), keys::mask()),
        Some(mask) => match keys::replace(mask).map_err(|error| error.to_string())? {
            Some(before) => (before, mask),
            None => return Err("keys: this process no longer records: nothing was changed".into()),
        },
    };
    let mut reply = Reply::default();
    reply.add_fact("key_mask_before", before);
    reply.add_fact("key_mask", now);
    let mut groups: Vec<u64> =
        declared_events().map(|event| event.key()).chain(KEYS.map(|(_, key)| key)).collect();
    groups.sort_unstable();
    groups.dedup();
    reply.columns = ["key", "mask", "state", "events", "on"].map(String::from).into();
    reply.rows = groups.into_iter().map(group).collect();
    Ok(reply)
}

fn group(key: u64) -> Vec<Cell> {
    let of_it = || declared_events().filter(|event| event.key() == key);
    vec![
        key_name(key).into(),
        format!("{key:#x}").into(),
        state(key).into(),
        of_it().count().into(),
        of_it().filter(EventInfo::is_on).count().into(),
    ]
}

#[cfg(feature = "runtime")]
fn threads() -> Result<Reply, String> {
    Ok(super::threads::threads())
}

#[cfg(not(feature = "runtime"))]
fn threads() -> Result<Reply, String> {
    Err("threads: this program was built without the feature `runtime`, so it has no user threads".into())
}

#[cfg(feature = "drain")]
fn snapshot(file: Option<File>, session: &Session) -> Result<Reply, String> {
    let Some(file) = file else {
        return Err("snapshot: expected the descriptor of a file with the request, found none".into());
    };
    // Writing to a pipe without a reader would block for ever.
    let found = file.metadata().map_err(|error| format!("snapshot: {error}"))?;
    if !found.is_file() || found.len() > 0 {
        return Err(
            "snapshot: expected an empty regular file, found another kind of file, or one that is not empty"
                .into(),
        );
    }
    if session.arena.mode() == crate::shm::Mode::Discard {
        return Err("snapshot: this process is not a flight recorder: its trace is written while it runs; start it under \
                    `sigmund record --flight`, or with a FlightRecorder"
            .into());
    }
    let summary =
        crate::drain::snapshot_of_own(&session.arena, file).map_err(|error| format!("snapshot: {error}"))?;
    let mut reply = Reply::default();
    for (name, count) in [
        ("records", summary.records),
        ("packets", summary.packets),
        ("bytes", summary.bytes),
        ("lost", summary.lost),
        ("unfinished", summary.unfinished),
        ("overwritten_packets", summary.overwritten_packets),
        ("overwritten_bytes", summary.overwritten_bytes),
    ] {
        reply.add_fact(name, count);
    }
    Ok(reply)
}

#[cfg(not(feature = "drain"))]
fn snapshot(_: Option<File>, _: &Session) -> Result<Reply, String> {
    Err("snapshot: this program was built without the feature `drain`".into())
}
