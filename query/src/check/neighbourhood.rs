//! What happened around one event: the stays of its LWP on CPUs, and the events on these CPUs and of the LWP.

use sigmund_model::{Cpu, Level, Lwp, Thread, Ticks};
use sigmund_sql::SuperTrace;

use super::rows;
use crate::Error;

/// The number of events before an event, and after it.
const EVENTS: usize = 4;
/// The number of states of its LWP before the event, and after it. One more state contains the event.
const STATES: usize = 2;
/// The first search covers this many ticks to either side. Each further search covers `WIDER` times as many. The
/// statistics in the files exclude what is farther away.
const FIRST_LOOK: i64 = 1 << 20;
const WIDER: i64 = 64;
const LOOKS: usize = 4;

/// An event near another.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// Its tick.
    pub tick: Ticks,
    /// The side that recorded it.
    pub level: Level,
    /// Its name.
    pub name: String,
    /// The CPU it happened on.
    pub cpu: Option<Cpu>,
    /// The CPU that a probe saw.
    pub cpu_seen: Option<Cpu>,
    /// The LWP that it was on.
    pub lwp: Option<Lwp>,
    /// The user thread that executed.
    pub thread: Option<Thread>,
    /// The LWP that it makes run, wakes or creates.
    pub target_lwp: Option<Lwp>,
}

/// An interval in which an LWP was in one state.
#[derive(Clone, Debug, PartialEq)]
pub struct Stay {
    /// Its start.
    pub tick: Ticks,
    /// Its length; `None` if nothing ended it.
    pub length: Option<Ticks>,
    /// `running`, `runnable`, `sleeping`, …
    pub state: String,
    /// The CPU it ran on, or left.
    pub cpu: Option<Cpu>,
    /// Its end reason.
    pub end_reason: Option<String>,
}

/// The states and events around an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Neighbourhood {
    /// The states of its LWP, in the order of time: some before the event, the one that contains it, some after.
    pub states: Vec<Stay>,
    /// Events on the CPUs in question and of the LWP, in the order of time: some before, the event itself, some after.
    pub events: Vec<Neighbour>,
}

/// Reads the states of one LWP and the events of the LWP and these CPUs around `tick`.
pub(super) async fn around(
    trace: &SuperTrace,
    tick: Ticks,
    lwp: Lwp,
    cpus: Vec<Cpu>,
) -> Result<Neighbourhood, Error> {
    let at = tick.0 as i64;
    let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
    let here = format!("(lwp = {lwp} OR cpu IN ({}))", cpus.join(", "));
    let of_lwp = format!("lwp = {lwp}");
    let before = format!("ts_tick <= {at}");
    let behind = format!("ts_tick > {at}");
    let mut events = Vec::new();
    let mut states = Vec::new();
    // The event itself, and the state that contains it, are the last rows that begin at or before `at`.
    for (side, order, one_more) in [(&before, "DESC", 1), (&behind, "ASC", 0)] {
        let which = format!("{here} AND {side}");
        events.extend(nearest(trace, EVENTS_NEAR, &which, at, order, EVENTS + one_more, event).await?);
        let which = format!("{of_lwp} AND {side}");
        states.extend(nearest(trace, STATES_NEAR, &which, at, order, STATES + one_more, stay).await?);
    }
    events.sort_by_key(|event: &Neighbour| event.tick);
    states.sort_by_key(|stay: &Stay| (stay.tick, stay.length));
    Ok(Neighbourhood { states, events })
}

const EVENTS_NEAR: &str = "SELECT ts_tick, CAST(level AS VARCHAR), CAST(name AS VARCHAR), cpu, cpu_seen, lwp, thread, \
    target_lwp FROM raw_events";
const STATES_NEAR: &str =
    "SELECT ts_tick, dur_tick, CAST(state AS VARCHAR), cpu, CAST(end_reason AS VARCHAR) FROM raw_lwp_states";

fn event(row: rows::Row<'_>) -> Neighbour {
    Neighbour {
        tick: row.tick(0).unwrap_or_default(),
        level: if row.text(1) == Level::User.name() { Level::User } else { Level::Kern },
        name: row.text(2).to_string(),
        cpu: row.cpu(3),
        cpu_seen: row.cpu(4),
        lwp: row.lwp(5),
        thread: row.thread(6),
        target_lwp: row.lwp(7),
    }
}

fn stay(row: rows::Row<'_>) -> Stay {
    Stay {
        tick: row.tick(0).unwrap_or_default(),
        length: row.tick(1),
        state: row.text(2).to_string(),
        cpu: row.cpu(3),
        end_reason: row.maybe_text(4),
    }
}

/// The rows nearest to a tick on one side of it. Searches farther until there are enough.
async fn nearest<T>(
    trace: &SuperTrace,
    select: &str,
    which: &str,
    at: i64,
    order: &str,
    enough: usize,
    read: fn(rows::Row<'_>) -> T,
) -> Result<Vec<T>, Error> {
    let mut reach = FIRST_LOOK;
    let mut found = Vec::new();
    for _ in 0..LOOKS {
        let (from, to) = (at.saturating_sub(reach), at.saturating_add(reach));
        let query = format!(
            "{select} WHERE {which} AND ts_tick BETWEEN {from} AND {to} ORDER BY ts_tick {order} LIMIT {enough}"
        );
        found = rows::of(&trace.sql(&query).await?.collect().await?).map(read).collect();
        if found.len() >= enough {
            break;
        }
        reach = reach.saturating_mul(WIDER);
    }
    Ok(found)
}
