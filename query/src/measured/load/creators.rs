//! Who created the LWPs, and the user threads that no user thread created: their creation events say it.

use std::{collections::BTreeMap, sync::Arc};

use datafusion::{
    common::runtime::SpawnedTask,
    logical_expr::{Expr, ident, lit},
};
use sigmund_measures::{Actor, Creators, Names};
use sigmund_model::{
    tables::EVENTS,
    vocabulary::{KnownEvent, Meaning},
};
use sigmund_sql::SuperTrace;

use super::cells::{Small, Wide};
use crate::Error;

const OF_CREATIONS: [&str; 5] = ["ts_tick", "lwp", "thread", "target_lwp", "target_thread"];

/// Reads the row groups that contain the beginning of one of these LWPs and threads.
pub(super) async fn read(trace: &SuperTrace, names: &Names) -> Result<Creators, Error> {
    let Some(condition) = condition(trace) else { return Ok(Creators::default()) };
    let lwps = names.lwps.iter().map(|(_, life)| life);
    let orphans = names.threads.iter().map(|(_, life)| life).filter(|life| life.created_by.is_none());
    let mut births: Vec<i64> = lwps.chain(orphans).map(|life| life.interval.from).collect();
    births.sort_unstable();
    let condition = trace.row_condition(&EVENTS, condition)?;
    let mut columns = OF_CREATIONS.to_vec();
    columns.extend(condition.columns().filter(|column| !OF_CREATIONS.contains(column)));
    let groups = trace.row_groups(&EVENTS, &columns)?;
    let (conditions, names) = ([condition], names.clone());
    let find = move || {
        let mut creators = BTreeMap::new();
        for group in 0..groups.len() {
            let has_birth = |(first, last): (i64, i64)| {
                births.get(births.partition_point(|birth| *birth < first)).is_some_and(|birth| *birth <= last)
            };
            if groups.bounds(group, "ts_tick").is_some_and(|bounds| !has_birth(bounds)) {
                continue;
            }
            let batch = groups.read_if(group, &conditions)?;
            let (tick, lwp, thread) = (Wide::of(&batch, 0), Small::of(&batch, 1), Wide::of(&batch, 2));
            let (new_lwp, new_thread) = (Small::of(&batch, 3), Wide::of(&batch, 4));
            for row in 0..batch.num_rows() {
                let created = new_thread.thread(row).map(Actor::Thread).or(new_lwp.get(row).map(Actor::Lwp));
                let by_lwp = lwp.get(row).filter(|lwp| *lwp != 0).map(Actor::Lwp);
                let creator = thread.thread(row).map(Actor::Thread).or(by_lwp);
                let (Some(created), Some(creator)) = (created, creator) else { continue };
                let life = match created {
                    Actor::Thread(thread) => names.threads.get(thread),
                    Actor::Lwp(lwp) => names.lwps.get(lwp),
                };
                // Its number may have been another's before.
                let is_born = life.is_some_and(|life| life.interval.from == tick.or_zero(row));
                if is_born && creator != created {
                    creators.entry(created).or_insert(creator);
                }
            }
        }
        Ok::<_, sigmund_sql::Error>(creators)
    };
    let creators = SpawnedTask::spawn_blocking(find).join().await.map_err(Error::of_task)??;
    Ok(Creators(Arc::new(creators)))
}

/// The condition on creation events; `None` if the trace has none.
fn condition(trace: &SuperTrace) -> Option<Expr> {
    let with_events = trace.event_types().iter().filter(|declared| declared.events > 0);
    let creates = with_events.filter_map(|declared| {
        let is_named = ident("name").eq(lit(declared.ty.name.as_str()));
        match KnownEvent::of(&declared.ty)?.meaning() {
            Meaning::LwpNew | Meaning::Clone => Some(is_named),
            // There may be millions that user threads created.
            Meaning::ThreadNew => Some(is_named.and(ident("thread").is_null())),
            _ => None,
        }
    });
    creates.reduce(Expr::or)
}
