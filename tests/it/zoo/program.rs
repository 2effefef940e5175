//! This test binary as the program that is recorded: it runs one ignored test, which prints `account NAME=VALUE …`.

use std::{collections::HashMap, env, process::Command};

use crate::sigmund::{Reported, Sigmund, said};

/// The super-trace of a program's recording.
pub(super) const TRACE: &str = "RUN.supertrace";

/// Is in the environment of a program, with the name of what it is to be.
pub(super) const PROGRAM: &str = "SIGMUND_TEST_ZOO";

/// The command line of the program that is the ignored test of this path.
pub(super) fn command_line(test: &str) -> Vec<String> {
    let binary = env::current_exe().unwrap().into_os_string().into_string().unwrap();
    let args = ["--exact", test, "--ignored", "--nocapture", "--test-threads=1"];
    [binary].into_iter().chain(args.map(String::from)).collect()
}

/// Tells the program, by its environment, that it is one.
pub(super) fn told(command: &mut Command, what: &str) {
    command.env(PROGRAM, what);
}

/// Whether this process is the program.
pub(super) fn is(what: &str) -> bool {
    env::var(PROGRAM).is_ok_and(|said| said == what)
}

/// Records the program that is the ignored test of this path, and is to be `what`.
pub(super) fn recorded(test: &str, what: &str) -> (Sigmund, Account) {
    let sigmund = Sigmund::new();
    let mut command = sigmund.command();
    command.args(["record", "-o", "RUN", "--"]).args(command_line(test));
    told(&mut command, what);
    let said = said(command);
    assert_eq!(said.status, 0, "{said:?}");
    assert_eq!(sigmund.fact(TRACE, "ended"), "exit 0", "{said:?}");
    (sigmund, Account::of(&said))
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

/// What the program printed about itself.
pub(super) struct Account(HashMap<String, String>);

impl Account {
    pub(super) fn of(said: &Reported) -> Account {
        Account::in_text(&said.stdout).unwrap_or_else(|| panic!("no account: {said:?}"))
    }

    /// `None` if the text has none, or not all of it yet.
    pub(super) fn in_text(text: &str) -> Option<Account> {
        // The harness writes its own words before it, on the same line.
        let accounts = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let words = accounts
            .filter_map(|line| line.split_once("account "))
            .flat_map(|(_, rest)| rest.split_whitespace());
        let pairs: HashMap<String, String> =
            words.filter_map(|word| word.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect();
        (!pairs.is_empty()).then_some(Account(pairs))
    }

    /// All of it.
    pub(super) fn pairs(&self) -> &HashMap<String, String> {
        &self.0
    }

    pub(super) fn text(&self, name: &str) -> &str {
        self.0.get(name).unwrap_or_else(|| panic!("no {name} in {:?}", self.0))
    }

    pub(super) fn number(&self, name: &str) -> i64 {
        self.text(name).parse().unwrap_or_else(|e| panic!("{name}: {e}: {:?}", self.0))
    }
}

/// The LWP that runs the caller, asked of the kernel.
pub(super) fn lwp() -> i64 {
    // SAFETY: takes no argument and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) }
}
