//! This test binary once more, as the program that is recorded. What it prints behind [`ACCOUNT`] is its account.

use std::env;

use crate::sigmund::{Said, Sigmund, said};

/// The super-trace of the program's recording.
pub(super) const TRACE: &str = "RUN.supertrace";
/// Says in the environment that a test is to be the program.
const AS_PROGRAM: &str = "SIGMUND_TEST_ZOO";
const ACCOUNT: &str = "account: ";

/// Whether the test that asks was started as the program.
pub(super) fn is_program() -> bool {
    env::var_os(AS_PROGRAM).is_some()
}

/// The program says this much of what it did.
pub(super) fn account(text: &str) {
    println!("{ACCOUNT}{text}");
}

/// The command line that runs the ignored test of this name as a program.
pub(super) fn command_line(test: &str) -> Vec<String> {
    let program = env::current_exe().unwrap().into_os_string().into_string().unwrap();
    let flags = ["--exact", test, "--ignored", "--nocapture", "--test-threads=1"];
    [program].into_iter().chain(flags.map(String::from)).collect()
}

/// Records that program, with these options of `sigmund record`; its account, line by line.
pub(super) fn recorded(test: &str, options: &[&str]) -> (Sigmund, Vec<String>) {
    let sigmund = Sigmund::new();
    let mut command = sigmund.command();
    command.args(["record", "-o", "RUN"]).args(options).arg("--").args(command_line(test));
    command.env(AS_PROGRAM, "1");
    let account = account_of(&said(command));
    assert_eq!(sigmund.fact(TRACE, "ended"), "exit 0");
    (sigmund, account)
}

fn account_of(said: &Said) -> Vec<String> {
    assert_eq!(said.status, 0, "{said:?}");
    // The harness prints the name of the test before what the test prints, in the same line.
    let lines: Vec<String> =
        said.stdout.lines().filter_map(|line| Some(line.split_once(ACCOUNT)?.1.to_string())).collect();
    assert!(!lines.is_empty(), "the program gave no account: {said:?}");
    lines
}

/// Nothing is missing from the user side, and both witnesses agree about nearly all of its events.
pub(super) fn is_whole(sigmund: &Sigmund) {
    let lost = "SELECT kind, detail FROM losses WHERE level = 'USER' AND severity <> 'note'";
    assert_eq!(sigmund.sql(TRACE, lost), Vec::<Vec<String>>::new());
    let witness = |which: &str| sigmund.fact(TRACE, &format!("witness_{which}")).parse::<u64>().unwrap();
    let (agree, others) = (witness("agree"), witness("disagree") + witness("single"));
    // Some kernels leave out a switch now and then: of a short recording, that may be a few events.
    assert!(others <= 5 + agree / 100, "{agree} agree, {others} do not or have one witness only");
}
