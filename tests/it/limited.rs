//! A program that runs without the recorder runs under it, and does the same; unrecorded if it must be, which it says once.

use std::process::Command;

use crate::{
    kernel,
    sigmund::{Reported, Sigmund, said},
    zoo::limited::{self, ALL, Limited},
};

const TRACE: &str = "RUN.supertrace";

fn run(sigmund: &Sigmund, limited: &Limited, mut command: Command, rest: &[&str]) -> Reported {
    let empty = sigmund.path("empty");
    std::fs::create_dir_all(&empty).unwrap();
    limited::prepare(&mut command, limited, &empty);
    command.args(rest).current_dir(sigmund.folder()).stdin(std::process::Stdio::null());
    said(command)
}

/// What the program says that it could do.
#[track_caller]
fn account(said: &Reported) -> &str {
    let mut lines = said.stdout.lines().filter_map(|line| line.split_once("account: "));
    lines.next().unwrap_or_else(|| panic!("{said:?}")).1
}

#[test]
fn programs_in_narrow_places_do_the_same_with_and_without_a_recorder() {
    let Some(_alone) = kernel::as_root() else { return };
    let words = limited::words();
    for limited in &ALL {
        let sigmund = Sigmund::new();
        let mut alone = Command::new(&words[0]);
        alone.args(&words[1..]);
        let alone = run(&sigmund, limited, alone, &[]);
        assert_eq!(alone.status, 0, "{}: {alone:?}", limited.name);
        let mut recorder = sigmund.command();
        recorder.args(["record", "--user-only", "-o", "RUN", "--"]);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let recorded = run(&sigmund, limited, recorder, &words);
        assert_eq!(account(&recorded), account(&alone), "{}: {recorded:?}", limited.name);
        assert_eq!(sigmund.fact(TRACE, "ended"), "exit 0", "{}: {recorded:?}", limited.name);
        let complaints = recorded.stderr.matches("fut: this program is not recorded: ").count();
        let events = sigmund.sql(TRACE, "SELECT count(*) FROM events WHERE name = 'limited_step'");
        let events: u64 = events[0][0].parse().unwrap();
        match limited.unrecorded {
            None => {
                assert_eq!((complaints, events), (0, limited::events()), "{}: {recorded:?}", limited.name)
            }
            Some(why) => {
                assert_eq!((complaints, events), (1, 0), "{}: {recorded:?}", limited.name);
                assert!(recorded.stderr.contains(why), "{}: {recorded:?}", limited.name);
            }
        }
        assert_eq!(kernel::held_by(recorded.pid), Vec::<String>::new());
    }
}
