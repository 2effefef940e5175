//! Runs the built command in a folder of its own, and gives what it said.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

/// The command in a folder of its own, which is gone when this is.
pub(crate) struct Sigmund {
    folder: TempDir,
}

impl Sigmund {
    pub(crate) fn new() -> Sigmund {
        Sigmund { folder: tempfile::tempdir().unwrap() }
    }

    /// A folder with one super-trace, `NAME.supertrace`, merged from this listing.
    pub(crate) fn with_listing(name: &str, listing: &str) -> Sigmund {
        let sigmund = Sigmund::new();
        sigmund.merge_listing(name, listing);
        sigmund
    }

    /// Merges a listing to `NAME.supertrace`.
    pub(crate) fn merge_listing(&self, name: &str, listing: &str) {
        let input = format!("{name}.tsv");
        self.write(&input, listing.as_bytes());
        self.run(["merge", &input, "-o", &format!("{name}.supertrace")]).found();
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    /// The command, to be run in the folder.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(program());
        command.current_dir(self.folder()).stdin(Stdio::null());
        command
    }

    /// Runs the command to its end.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Reported {
        let mut command = self.command();
        command.args(args);
        said(command)
    }

    /// Starts the command, and goes on.
    pub(crate) fn start<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Running {
        let mut command = self.command();
        command.args(args);
        start(command)
    }

    /// The rows that a query gives, cell by cell.
    pub(crate) fn sql(&self, trace: &str, query: &str) -> Vec<Vec<String>> {
        let said = self.run(["sql", trace, query, "--format", "tsv"]);
        assert!(said.status < 2, "{query}: {said:?}");
        let row = |line: &str| line.split('\t').map(String::from).collect();
        said.stdout.lines().skip(1).map(row).collect()
    }

    /// The one number that a query gives.
    pub(crate) fn number(&self, trace: &str, query: &str) -> i64 {
        let rows = self.sql(trace, query);
        let [row] = rows.as_slice() else { panic!("{query}: {rows:?}") };
        row[0].parse().unwrap_or_else(|e| panic!("{query}: {e}: {rows:?}"))
    }

    /// Pairs that a query gives, as from a name to a count.
    pub(crate) fn counts(&self, trace: &str, query: &str) -> BTreeMap<String, u64> {
        let pair = |row: Vec<String>| (row[0].clone(), row[1].parse().unwrap());
        self.sql(trace, query).into_iter().map(pair).collect()
    }

    /// A fact from the table `info`; empty if it is not there.
    pub(crate) fn fact(&self, trace: &str, key: &str) -> String {
        let rows = self.sql(trace, &format!("SELECT value FROM info WHERE key = '{key}'"));
        rows.first().map_or(String::new(), |row| row[0].clone())
    }
}

/// The program under test.
pub(crate) fn program() -> &'static str {
    env!("CARGO_BIN_EXE_sigmund")
}

/// A file of `tests/fixtures`.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// A listing of the paper.
pub(crate) fn figure(number: u32) -> String {
    let path = fixture(&format!("paper/figure{number}.tsv"));
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The user traces in a run.
pub(crate) fn user_traces(run: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(run).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|e| e == "fut")).collect()
}

/// Runs any command to its end.
pub(crate) fn said(command: Command) -> Reported {
    start(command).finish()
}

fn start(mut command: Command) -> Running {
    let shown = format!("{command:?}");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    Running { child: child.unwrap_or_else(|e| panic!("{shown}: {e}")), shown }
}

/// A command that has been started.
pub(crate) struct Running {
    pub(crate) child: Child,
    shown: String,
}

impl Running {
    /// Starts any command.
    pub(crate) fn of(command: Command) -> Running {
        start(command)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end.
    pub(crate) fn finish(self) -> Reported {
        let pid = self.pid();
        let output = self.child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        let said = Reported {
            command: self.shown,
            pid,
            // A command that was killed has no status.
            status: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        };
        assert!(!said.stderr.contains("panicked"), "{said:?}");
        said
    }
}

/// What a command said, and how it ended.
#[derive(Debug)]
pub(crate) struct Reported {
    #[expect(dead_code, reason = "shown when an assertion fails")]
    command: String,
    pub(crate) pid: u32,
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Reported {
    /// It found something: status 0. Gives what it printed.
    #[track_caller]
    pub(crate) fn found(self) -> String {
        assert_eq!(self.status, 0, "{self:?}");
        self.stdout
    }

    /// It found nothing, and that is no error: status 1.
    #[track_caller]
    pub(crate) fn found_nothing(self) -> String {
        assert_eq!(self.status, 1, "{self:?}");
        assert!(!self.stderr.contains("error"), "{self:?}");
        self.stdout
    }

    /// It complained, with all these words: status 2. Gives what it printed nevertheless.
    #[track_caller]
    pub(crate) fn complained(self, words: &[&str]) -> String {
        assert_eq!(self.status, 2, "{self:?}");
        assert!(self.stderr.contains("error"), "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "expected {word:?} in {self:?}");
        }
        self.stdout
    }
}
