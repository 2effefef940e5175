//! The scopes of a program, from its own recording to what `otf2-print` reads of them.

use std::process::{Command, Stdio};

use crate::{
    kernel,
    sigmund::{Sigmund, said},
};

/// Scopes, each with so many threads, and as many scopes inside of each.
const SCOPES: usize = 6;
const THREADS: usize = 3;

fn program() {
    for _ in 0..SCOPES {
        fut::scope(|outer| {
            for _ in 0..THREADS {
                outer.spawn(|| {
                    fut::scope(|inner| {
                        for _ in 0..THREADS {
                            inner.spawn(fut::yield_now);
                        }
                    });
                });
            }
        });
    }
}

#[test]
fn the_teams_of_a_recorded_program_are_forked_and_joined_in_otf2() {
    let sigmund = Sigmund::new();
    let recording = fut::Recording::start(&sigmund.path("user.fut"), fut::shm::Geometry::default()).unwrap();
    fut::Runtime::builder().lwps(2).build().unwrap().run(program);
    recording.finish().unwrap();
    sigmund.run(["merge", "user.fut", "-o", "t.supertrace"]).found();
    sigmund.run(["export", "t.supertrace", "--format", "otf2", "-o", "t"]).found();
    if !kernel::has_tool("otf2-print") {
        return;
    }
    let mut print = Command::new("otf2-print");
    print.arg("t/traces.otf2").current_dir(sigmund.folder()).stdin(Stdio::null());
    let text = said(print).found();
    let count = |record: &str| text.lines().filter(|line| line.starts_with(record)).count();
    let (teams, threads) = (SCOPES * (1 + THREADS), SCOPES * (THREADS + THREADS * THREADS));
    assert_eq!((count("THREAD_FORK "), count("THREAD_JOIN ")), (teams, teams));
    assert_eq!(
        (count("THREAD_TEAM_BEGIN "), count("THREAD_TEAM_END ")),
        (teams + threads, teams + threads),
        "who forks a team is of it"
    );
    assert!(!text.contains("INVALID"), "{text}");
    let size = format!("# Requested Threads: {}", THREADS + 1);
    assert!(
        text.lines().filter(|line| line.starts_with("THREAD_FORK ")).all(|line| line.contains(&size)),
        "{text}"
    );
}
