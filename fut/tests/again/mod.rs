//! Runs a test case in a separate process, because it may end the process, or changes state of the process.

use std::{
    env,
    process::{Command, Output},
};

const CASE: &str = "FUT_TEST_CASE";

/// Runs the test `name` of this program again, as a process that only runs `body`, and returns its output. `None` in
/// that process, which has done it.
pub(crate) fn run(name: &str, body: impl FnOnce()) -> Option<Output> {
    command(name, body).map(|mut command| command.output().unwrap())
}

/// The command that runs it, for a test that watches it or stops it.
pub(crate) fn command(name: &str, body: impl FnOnce()) -> Option<Command> {
    if env::var_os(CASE).is_some_and(|case| case == name) {
        body();
        return None;
    }
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([name, "--exact", "--nocapture"]).env(CASE, name);
    Some(command)
}
