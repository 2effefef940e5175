//! Scopes as teams: compares forks, members and joins in a trace with the program's own notes.

mod common;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Mutex,
};

use fut::{
    Recording, Runtime, current,
    model::{Effect, Event, EventStream, Thread},
    scope,
    shm::Geometry,
    yield_now,
};

fut::events! {
    /// The thread works, somewhere between fork and join of its team.
    fn works();
}

/// Who forked a team, and who was created for it.
type Teams = BTreeSet<(Thread, BTreeSet<Thread>)>;

static NOTED: Mutex<Teams> = Mutex::new(Teams::new());

fn here() -> Thread {
    current().expect("a user thread")
}

fn note(members: BTreeSet<Thread>) {
    NOTED.lock().unwrap().insert((here(), members));
}

/// Forks a team of which each member forks one of its own, and creates one more in the outer one.
fn program() {
    for _ in 0..20 {
        let late = Mutex::new(BTreeSet::new());
        let members = scope(|outer| {
            let member = |_| {
                outer.spawn(|| {
                    works();
                    note(scope(|inner| (0..3).map(|_| inner.spawn(works).id()).collect()));
                    yield_now();
                    let another = outer.spawn(works);
                    late.lock().unwrap().insert(another.id());
                    works();
                })
            };
            (0..4).map(|n| member(n).id()).collect::<BTreeSet<_>>()
        });
        note(members.union(&late.lock().unwrap()).copied().collect());
        note(scope(|_| BTreeSet::new()));
    }
}

/// A team as the trace tells it.
struct Told {
    by: Thread,
    forked: u64,
    members: BTreeSet<Thread>,
    joined: Option<u64>,
}

// main     |-fork--------------------------- join-|
// member      |-fork--------- join-|-works-|
// theirs         |-works-|
#[test]
fn a_trace_shows_forks_and_members_and_no_member_works_after_the_join() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("user.fut");
    let recording = Recording::start(&path, Geometry::default()).unwrap();
    Runtime::builder().lwps(3).build().unwrap().run(program);
    recording.finish().unwrap();

    let trace = common::opened(&path);
    let types = trace.event_types();
    let mut all = Vec::new();
    for mut stream in trace.streams() {
        let (mut event, mut mounted) = (Event::default(), None);
        while stream.next_into(&mut event).unwrap() {
            let name = types[event.kind as usize].name.as_str();
            let number = |index: usize| event.params.get(index)?.number.map(|number| number as u64);
            all.push((event.tick.0, name, mounted, number(0), number(1).map(Thread)));
            if let Effect::UserSwitch { next, .. } = event.effect {
                mounted = next;
            }
        }
    }
    all.sort_by_key(|(tick, ..)| *tick);

    let mut teams: BTreeMap<u64, Told> = BTreeMap::new();
    let mut works = Vec::new();
    for (tick, name, mounted, team, member) in all {
        let (mounted, team) = (move || mounted.expect("only user threads do this"), team.unwrap_or(0));
        match name {
            "works" => works.push((tick, mounted())),
            "USER_TEAM_FORK" => {
                let told = Told { by: mounted(), forked: tick, members: BTreeSet::new(), joined: None };
                assert!(teams.insert(team, told).is_none(), "team {team} is forked twice");
            }
            "USER_TEAM_MEMBER" => {
                let told = teams.get_mut(&team).expect("it is forked first");
                assert!(told.joined.is_none() && told.members.insert(member.unwrap()));
            }
            "USER_TEAM_JOIN" => {
                let told = teams.get_mut(&team).expect("it is forked first");
                assert_eq!((told.by, told.joined.replace(tick)), (mounted(), None));
            }
            _ => {}
        }
    }
    assert_eq!(teams.len(), 20 * 6);
    assert_eq!(works.len(), 20 * (4 * 2 + 4 * 3 + 4));
    for (tick, thread) in works {
        let mut of = teams.values().filter(|team| team.members.contains(&thread));
        let team = of.next().expect("all who work are of a team");
        assert!(of.next().is_none(), "{thread} is of two teams");
        assert!(team.forked < tick && tick < team.joined.expect("it is joined"), "{thread} works at {tick}");
    }
    let told: Teams = teams.into_values().map(|team| (team.by, team.members)).collect();
    let noted = NOTED.lock().unwrap();
    // The empty teams of one thread are one here.
    assert_eq!(told, *noted);
}
