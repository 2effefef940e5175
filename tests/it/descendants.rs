//! Descendants that outlive the recorded program: waited for, or reported, and never disturbed.

use std::{
    fs,
    path::Path,
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{
    kernel,
    sigmund::{Reported, Running, Sigmund},
    zoo::daemons::{self, FIRST, HALF},
};

const TRACE: &str = "RUN.supertrace";
const STEPS: &str = "SELECT count(*) FROM daemon_step";
/// Processes that were cut at the end of the recording.
const CUT: &str =
    "SELECT detail FROM losses WHERE kind = 'not-recorded' AND level = 'USER' AND severity = 'gap'";

/// Longer than it ever takes.
const SOON: Duration = Duration::from_secs(30);

#[track_caller]
fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < SOON, "{what}");
        sleep(Duration::from_millis(2));
    }
}

/// `record --user-only OPTIONS -- WORDS`, in a role of the zoo.
fn recorded(sigmund: &Sigmund, options: &[&str], role: &str, words: &[String], go: bool) -> Running {
    let mut command = sigmund.command();
    command.args(["record", "--user-only", "-o", "RUN"]).args(options).arg("--").args(words);
    daemons::prepare(&mut command, role, &sigmund.path("account"), go.then(|| sigmund.path("go")).as_deref());
    Running::of(command)
}

/// A shell that leaves the program in the background. Its output must not be ours: we would wait for its end.
fn in_the_background(sigmund: &Sigmund, error: &str) -> Vec<String> {
    let error = sigmund.path(error);
    let script = format!("{}=$$ \"$@\" >/dev/null 2>'{}' & exit 0", daemons::SHELL, error.display());
    let shell = ["sh", "-c", &script, "sh"].map(String::from);
    shell.into_iter().chain(daemons::words()).collect()
}

/// What a daemon says that it did: its number, its events, and whether they were recorded.
fn account(sigmund: &Sigmund) -> (u32, u64, String) {
    let mut line = String::new();
    until("the daemon ends", || {
        line = fs::read_to_string(sigmund.path("account")).unwrap_or_default();
        line.ends_with('\n')
    });
    let mut words = line.trim_end().splitn(3, ' ');
    let mut word = || words.next().unwrap_or_else(|| panic!("{line:?}"));
    (word().parse().unwrap(), word().parse().unwrap(), word().into())
}

/// It may be that nobody has waited for it yet.
fn has_ended(pid: u32) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    stat.is_err() || stat.is_ok_and(|stat| stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
}

fn nothing_is_cut(sigmund: &Sigmund, said: &Reported) {
    assert_eq!(sigmund.sql(TRACE, CUT), Vec::<Vec<String>>::new());
    assert!(said.stderr.contains("no event is lost"), "{said:?}");
    assert!(!said.stderr.contains("no longer recorded"), "{said:?}");
}

#[test]
fn a_daemon_that_records_is_recorded_to_its_end() {
    let _alone = kernel::alone();
    for options in [&[][..], &["--follow", "all"]] {
        let sigmund = Sigmund::new();
        let said = recorded(&sigmund, options, daemons::TWICE, &daemons::words(), false).finish();
        let (pid, events, recorded) = account(&sigmund);
        assert_eq!((events, recorded.as_str()), (2 * HALF, "AlreadyRecording"));
        assert!(has_ended(pid), "the recorder has waited for it");
        assert_eq!(sigmund.number(TRACE, STEPS) as u64, FIRST + events);
        nothing_is_cut(&sigmund, &said);
        assert_eq!(sigmund.fact(TRACE, "ended"), "exit 0");
        assert_eq!(kernel::held_by(said.pid), Vec::<String>::new());
        said.found();
    }
}

#[test]
fn a_program_that_a_shell_leaves_in_the_background_is_waited_for_if_all_are() {
    let _alone = kernel::alone();
    let sigmund = Sigmund::new();
    let words = in_the_background(&sigmund, "errors");
    let said = recorded(&sigmund, &["--follow", "all"], daemons::LATE, &words, false).finish();
    let (_, events, recorded) = account(&sigmund);
    assert_eq!((events, recorded.as_str()), (HALF, "AlreadyRecording"));
    assert_eq!(sigmund.number(TRACE, STEPS) as u64, events);
    assert_eq!(fs::read_to_string(sigmund.path("errors")).unwrap(), "");
    nothing_is_cut(&sigmund, &said);
    said.found();
}

#[test]
fn a_daemon_that_is_not_followed_is_cut_and_that_is_a_loss() {
    let _alone = kernel::alone();
    let sigmund = Sigmund::new();
    let said = recorded(&sigmund, &["--follow", "first"], daemons::TWICE, &daemons::words(), true).finish();
    assert!(said.stderr.contains("no longer recorded: 1 descendant ("), "{said:?}");
    assert!(!said.stderr.contains("no event is lost"), "{said:?}");
    assert_eq!(sigmund.number(TRACE, STEPS) as u64, FIRST + HALF);
    let rows = sigmund.sql(TRACE, CUT);
    // It does what it would have done.
    fs::write(sigmund.path("go"), "").unwrap();
    let (pid, events, _) = account(&sigmund);
    assert_eq!(events, 2 * HALF);
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    assert!(row[0].contains(&format!("process {pid} lived on when the recording ended")), "{row:?}");
    said.found();
}

#[test]
fn a_program_that_outlives_the_recorder_runs_unrecorded_and_says_so_once() {
    let _alone = kernel::alone();
    let sigmund = Sigmund::new();
    let words = in_the_background(&sigmund, "errors");
    let said = recorded(&sigmund, &["--follow", "first"], daemons::LATE, &words, true).finish();
    assert!(said.stderr.contains("no longer recorded: 1 descendant ("), "{said:?}");
    fs::write(sigmund.path("go"), "").unwrap();
    let (_, events, recorded) = account(&sigmund);
    assert_eq!(events, HALF);
    assert!(recorded.starts_with("Failed"), "{recorded}");
    let errors = fs::read_to_string(sigmund.path("errors")).unwrap();
    assert_eq!(errors.matches("fut: this program is not recorded").count(), 1, "{errors}");
    assert!(errors.contains("its recorder cannot be reached"), "{errors}");
    said.found();
}

#[test]
fn a_signal_ends_a_recording_that_waits_for_a_daemon() {
    let _alone = kernel::alone();
    for options in [&[][..], &["--follow", "all"]] {
        let sigmund = Sigmund::new();
        let recorder = recorded(&sigmund, options, daemons::TWICE, &daemons::words(), true);
        let waits = || fs::read_to_string(format!("/proc/{0}/task/{0}/children", recorder.pid()));
        until("the program has begun", || waits().is_ok_and(|children| !children.is_empty()));
        until("the first process has ended", || waits().is_ok_and(|children| children.is_empty()));
        kernel::send(recorder.pid(), Signal::INT);
        let said = recorder.finish();
        fs::write(sigmund.path("go"), "").unwrap();
        assert_eq!(account(&sigmund).1, 2 * HALF);
        assert!(said.stderr.contains("no longer recorded: 1 descendant ("), "{said:?}");
        assert_eq!(sigmund.sql(TRACE, CUT).len(), 1);
        assert_eq!(sigmund.number(TRACE, STEPS) as u64, FIRST + HALF);
        said.found();
    }
}

#[test]
fn what_does_not_record_is_not_waited_for() {
    let _alone = kernel::alone();
    let sigmund = Sigmund::new();
    let begun = Instant::now();
    let options = ["record", "--user-only", "--no-merge", "-o", "RUN", "--"];
    let said = sigmund.run(options.iter().chain(&["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"]));
    assert!(begun.elapsed() < SOON, "{said:?}");
    assert!(said.stderr.contains("no longer recorded: 1 descendant ("), "{said:?}");
    kernel::try_send(said.stdout.trim().parse().unwrap(), Signal::KILL);
    said.found();
}
