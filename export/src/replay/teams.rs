//! Reads the teams of user threads: the forking thread, their members, and when they were joined.
//!
//! The number of a team is unique in its process. A team whose fork or join is missing is left out.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sigmund_model::{Level, Thread, names};
use sigmund_query::{EventRow, Filter, Instant, list_events};
use sigmund_sql::SuperTrace;

use super::actor_ids::ActorIds;
use crate::{
    Error,
    timeline::{Actors, ProcessId, Team},
};

/// The teams that these actors forked and joined within the window of their clock.
///
/// # Errors
/// If the trace cannot be read.
pub(super) async fn teams(trace: &SuperTrace, actors: &Actors) -> Result<Vec<Team>, Error> {
    let are_forked = trace.event_types().iter().any(|event| {
        event.ty.level == Level::User && event.ty.name == names::USER_TEAM_FORK && event.events > 0
    });
    if !are_forked || actors.threads.is_empty() {
        return Ok(Vec::new());
    }
    let filter = Filter {
        events: vec!["^USER_TEAM_(FORK|MEMBER|JOIN)$".parse()?],
        level: Some(Level::User),
        from: Some(Instant::Tick(actors.clock.first)),
        to: Some(Instant::Tick(actors.clock.last)),
        ..Filter::default()
    };
    let mut rows = list_events(trace, &filter).await?;
    let mut teams =
        TeamCollector { actors, ids: ActorIds::of(actors), open: HashMap::default(), joined: Vec::new() };
    while let Some(batch) = rows.next().await? {
        for row in batch.rows() {
            teams.event(&row);
        }
    }
    teams.joined.sort_by_key(|team| team.forked);
    Ok(teams.joined)
}

struct TeamCollector<'c> {
    actors: &'c Actors,
    ids: ActorIds,
    /// Teams that are not joined yet, by process and number.
    open: HashMap<(ProcessId, i64), Team, RandomState>,
    joined: Vec<Team>,
}

impl TeamCollector<'_> {
    fn event(&mut self, row: &EventRow<'_>) {
        let mut params = row.params().map(|param| param.number);
        let Some(number) = params.next().flatten() else { return };
        let is_member = row.name == names::USER_TEAM_MEMBER;
        let thread = if is_member {
            params.next().flatten().and_then(|thread| Thread::from_switch(thread as u64))
        } else {
            row.thread
        };
        let Some(thread) = thread.and_then(|thread| self.ids.thread(self.actors, thread, row.tick)) else {
            return;
        };
        let team = (self.actors[thread].process, number);
        if is_member {
            if let Some(open) = self.open.get_mut(&team) {
                open.members.push(thread);
            }
        } else if row.name == names::USER_TEAM_FORK {
            let team_of_one = Team { by: thread, forked: row.tick, joined: row.tick, members: Vec::new() };
            self.open.insert(team, team_of_one);
        } else if let Some(open) = self.open.remove(&team).filter(|open| open.by == thread) {
            self.joined.push(Team { joined: row.tick, ..open });
        }
    }
}
