//! The documentation is run: every block of commands is executed as a reader would, or a comment above it gives the reason
//! why not.
//!
//! ```text
//!   <!-- not run: WHY -->          it is not executed
//!   <!-- output varies: WHY -->    commands may find nothing (status 1), and rows of their output are not compared
//!   <!-- alternatives -->          each command in a folder of its own
//! ```
//! Otherwise each command of a `console` block (`$ …`) has to succeed, and to print the lines that are shown, in this order:
//! numbers and white space do not count, `…` stands for anything. Where output varies, only the heading of a table for people is
//! compared. Commands run in one folder for each document, which has a program `myserver`: examples/server for the documents
//! about it, for others a program that has a daemon, too. `sudo` only runs its command here, and `pidof` finds our `myserver`.

use std::{
    env,
    ffi::OsStr,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{kernel, sigmund::program};

#[path = "../../examples/server/requests.rs"]
mod requests;

/// Languages of blocks that a reader runs or puts into a file.
const EXECUTABLE: [&str; 7] = ["console", "sh", "c", "rust", "sql", "python", "toml"];

/// The test binary becomes `myserver` with this in its environment; it serves until the file is removed if it is a path.
const MY_SERVER: &str = "SIGMUND_TEST_MY_SERVER";

/// The document with the program in Rust.
const RUST_PROGRAM: &str = "docs/runtime.md";

/// The documents whose `myserver` is examples/server, and nothing else.
const OF_EXAMPLE_SERVER: [&str; 2] = ["docs/questions.md", "docs/sql.md"];

/// Shorter than documented.
const SHORTER: [(&str, &str); 1] = [("--for 10s", "--for 300ms")];

/// Time that anything here may take, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A fenced block, and the comment in the line above it.
struct Block {
    place: String,
    language: String,
    text: String,
    marker: Marker,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Marker {
    None,
    NotRun,
    OutputVaries,
    Alternatives,
}

impl Marker {
    fn of(line: &str, place: &str) -> Marker {
        let Some(comment) = line.strip_prefix("<!-- ").and_then(|line| line.strip_suffix(" -->")) else {
            return Marker::None;
        };
        let (word, why) = comment.split_once(": ").unwrap_or((comment, ""));
        match word {
            "not run" if !why.is_empty() => Marker::NotRun,
            "output varies" if !why.is_empty() => Marker::OutputVaries,
            "alternatives" => Marker::Alternatives,
            _ => panic!(
                "{place}: expected `not run: WHY`, `output varies: WHY` or `alternatives`, found {comment:?}"
            ),
        }
    }
}

fn blocks(document: &str) -> Vec<Block> {
    let text = fs::read_to_string(root().join(document)).unwrap_or_else(|e| panic!("{document}: {e}"));
    let mut blocks: Vec<Block> = Vec::new();
    let (mut open, mut above) = (false, "");
    for (number, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), open) {
            (Some(language), false) => {
                let place = format!("{document}:{}", number + 1);
                let marker = Marker::of(above, &place);
                blocks.push(Block { place, language: language.into(), text: String::new(), marker });
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => blocks.last_mut().unwrap().text += &format!("{line}\n"),
            (None, false) => {}
        }
        above = line;
    }
    assert!(!open, "{document}: the last block does not end");
    blocks
}

/// All documents of the project with commands in them.
fn documents() -> Vec<String> {
    let mut all: Vec<String> = ["README.md", "fut/c/README.md", "benches/README.md"].map(String::from).into();
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".md") {
            all.push(format!("docs/{name}"));
        }
    }
    all
}

#[test]
fn every_block_of_commands_is_run_by_a_test_here_or_marked_with_the_reason() {
    for document in documents() {
        for block in blocks(&document) {
            let has_commands =
                block.text.lines().any(|line| ["$ ", "cargo "].iter().any(|word| line.starts_with(word)));
            let is_executable = EXECUTABLE.contains(&block.language.as_str());
            assert!(is_executable || block.language == "text", "{}: {:?}", block.place, block.language);
            if block.marker == Marker::NotRun || !(is_executable || has_commands) {
                continue;
            }
            let is_run = match (document.as_str(), block.language.as_str()) {
                ("README.md", "console") | (RUST_PROGRAM, "rust") | ("fut/c/README.md", "c" | "sh") => true,
                // By python/tests, which python.rs runs.
                ("docs/python.md", "python") => true,
                (document, language) => document.starts_with("docs/") && language == "console",
            };
            assert!(is_run, "{}: no test runs this: expected `<!-- not run: WHY -->` above it", block.place);
        }
    }
}

#[allow(unreachable_pub, missing_docs)]
mod shown {
    include!("shown_program.rs");

    pub(super) fn run() {
        main().unwrap();
    }
}

#[test]
fn the_rust_program_of_the_docs_compiles_and_runs() {
    let blocks: Vec<Block> =
        blocks(RUST_PROGRAM).into_iter().filter(|block| block.language == "rust").collect();
    assert_eq!(blocks.len(), 1);
    assert_eq!(blocks[0].text, include_str!("shown_program.rs"), "shown_program.rs is {}", blocks[0].place);
    shown::run();
}

#[test]
fn every_question_has_its_command_and_its_output_on_the_page_of_questions() {
    let document = "docs/questions.md";
    let text = fs::read_to_string(root().join(document)).unwrap();
    let flags = sigmund_measures::ALL.iter().map(|measure| format!("--{}", measure.name));
    let others =
        ["--gantt", "--histogram", "--svg", "--format folded", "--next", "--compare"].map(String::from);
    for flag in flags.chain(others) {
        assert!(
            text.lines().any(|line| line.starts_with("$ ") && line.contains(&flag)),
            "{document}: {flag}"
        );
    }
    for section in text.split("\n## ").skip(1) {
        let (question, rest) = section.split_once('\n').unwrap();
        let shown = rest.split("```").skip(1).step_by(2).flat_map(str::lines);
        let has_output = shown.skip(1).any(|line| !line.is_empty() && !line.starts_with("$ "));
        assert!(has_output, "{document}: {question}: expected output of a command, found none");
    }
}

/// The first page is short: the rest is in `docs/`.
#[test]
fn the_readme_has_at_most_1000_words_and_its_links_lead_somewhere() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    assert!(text.split_whitespace().count() <= 1000, "{} words", text.split_whitespace().count());
    for document in documents() {
        let text = fs::read_to_string(root().join(&document)).unwrap();
        let folder = root().join(&document).parent().unwrap().to_path_buf();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { root().join(&document) } else { folder.join(file) };
            assert!(path.exists(), "{document}: {target}");
            let is_there = |line: &str| line.starts_with('#') && anchor(line) == heading;
            let linked = if heading.is_empty() { String::new() } else { fs::read_to_string(&path).unwrap() };
            assert!(heading.is_empty() || linked.lines().any(is_there), "{document}: {target}");
        }
    }
}

/// The anchor that a heading gets on a page.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>().replace(' ', "-")
}

#[test]
fn the_commands_of_the_readme_do_what_it_shows() {
    if !kernel::may_record() {
        return;
    }
    Reader::new().follows("README.md");
}

#[test]
fn the_commands_of_the_docs_do_what_they_show() {
    if !kernel::may_record() {
        return;
    }
    for document in documents().iter().filter(|document| document.starts_with("docs/")) {
        Reader::new().follows(document);
    }
}

/// The daemon compiles as it is shown, and an installed libfut is found as it is shown.
#[test]
fn the_program_of_the_readme_for_c_is_compiled_and_recorded() {
    if !kernel::needs(kernel::has_tool("cc") && kernel::has_tool("pkg-config"), "needs cc and pkg-config") {
        return;
    }
    let reader = Reader::new();
    let (prefix, libraries) = (reader.path("usr"), libraries());
    let installed =
        format!("{}/fut/c/install.sh {} {}", root().display(), prefix.display(), libraries.display());
    let mut last = String::new();
    for block in blocks("fut/c/README.md").iter().filter(|block| block.marker != Marker::NotRun) {
        match block.language.as_str() {
            "c" => fs::write(reader.path("daemon.c"), &block.text).unwrap(),
            "sh" => {
                let script = block.text.replace("fut/c/install.sh /usr/local", &installed);
                let mut command = reader.bash(&format!("set -e\n{script}"), reader.folder.path());
                command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
                last = reader.output(command, &[0], &block.place);
            }
            _ => {}
        }
    }
    assert!(last.contains("| 512 |"), "{last}");
}

/// libfut.so and libfut.a, of which no test of cargo's depends: built into this test's profile.
fn libraries() -> PathBuf {
    let profile = env::current_exe().unwrap().ancestors().nth(2).unwrap().to_path_buf();
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(["build", "--quiet", "--locked", "-p", "fut-c", "--target-dir"]);
    command.arg(profile.parent().unwrap());
    if profile.ends_with("release") {
        command.arg("--release");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
    profile
}

/// Runs what a document shows, as its reader would.
struct Reader {
    folder: TempDir,
    tools: TempDir,
}

impl Reader {
    fn new() -> Reader {
        let reader = Reader { folder: tempfile::tempdir().unwrap(), tools: tempfile::tempdir().unwrap() };
        std::os::unix::fs::symlink(program(), reader.tools.path().join("sigmund")).unwrap();
        reader.script("sudo", "exec \"$@\"");
        reader.script("pidof", &format!("cat {}", reader.pid_file().display()));
        reader
    }

    fn script(&self, name: &str, line: &str) {
        write_script(&self.tools.path().join(name), line);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn pid_file(&self) -> PathBuf {
        self.tools.path().join("pid")
    }

    fn bash(&self, line: &str, folder: &Path) -> Command {
        let mut path = self.tools.path().as_os_str().to_os_string();
        path.push(":");
        path.push(env::var_os("PATH").unwrap_or_default());
        let mut command = Command::new("bash");
        command.current_dir(folder).args(["-c", &format!("exec 2>&1\n{line}")]).stdin(Stdio::null());
        command.env("PATH", path).env_remove(MY_SERVER);
        if env::var_os("USER").is_none() {
            command.env("USER", "root");
        }
        command
    }

    /// What a command printed, on both streams.
    #[track_caller]
    fn output(&self, mut command: Command, statuses: &[i32], place: &str) -> String {
        // The arguments have the line that is typed.
        let records = |word: &OsStr| {
            let line = word.to_string_lossy();
            [" record ", " demo", " ctl ", " snapshot "].iter().any(|word| line.contains(word))
        };
        let _alone = command.get_args().any(records).then(kernel::alone);
        let output = command.output().unwrap_or_else(|e| panic!("{place}: {command:?}: {e}"));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let status = output.status.code();
        assert!(status.is_some_and(|s| statuses.contains(&s)), "{place}: {command:?}: {status:?}\n{text}");
        text
    }

    /// Runs all blocks that are to be run.
    fn follows(&self, document: &str) {
        match OF_EXAMPLE_SERVER.contains(&document) {
            true => example_server_in(self.folder.path()),
            false => my_server_in(self.folder.path()),
        }
        let is_run = |block: &&Block| block.language == "console" && block.marker != Marker::NotRun;
        for block in blocks(document).iter().filter(is_run) {
            let is_of_recorded =
                ["ctl $(pidof", "snapshot $(pidof"].iter().any(|word| block.text.contains(word));
            let server = match block.text.contains("$(pidof") {
                true => Some(Server::start(self, is_of_recorded)),
                false => None,
            };
            self.types(block);
            if let Some(server) = server {
                server.ends();
            }
        }
    }

    fn types(&self, block: &Block) {
        let statuses: &[i32] = if block.marker == Marker::OutputVaries { &[0, 1] } else { &[0] };
        let (mut commands, mut shown): (Vec<String>, Vec<Vec<&str>>) = (Vec::new(), Vec::new());
        for line in block.text.lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                commands.push(
                    SHORTER.iter().fold(command.into(), |line: String, (from, to)| line.replace(from, to)),
                );
                shown.push(Vec::new());
            } else if !line.starts_with("# ") && !line.is_empty() {
                shown
                    .last_mut()
                    .unwrap_or_else(|| panic!("{}: output before a command", block.place))
                    .push(line);
            }
        }
        assert!(!commands.is_empty(), "{}: no command", block.place);
        for (command, shown) in commands.iter().zip(&shown) {
            let own = tempfile::tempdir_in(self.tools.path()).unwrap();
            let folder = match block.marker {
                Marker::Alternatives => {
                    my_server_in(own.path());
                    own.path()
                }
                _ => self.folder.path(),
            };
            let printed = self.output(self.bash(command, folder), statuses, &block.place);
            let shown = match block.marker {
                Marker::OutputVaries => heading(shown),
                _ => shown,
            };
            is_shown_by(shown, &printed, &format!("{}: {command}", block.place));
        }
    }
}

/// The heading of a table for people, in which every line begins with a space.
fn heading<'s, 'l>(shown: &'s [&'l str]) -> &'s [&'l str] {
    let is_table = shown.iter().all(|line| line.starts_with(' ') || line.starts_with('…'));
    if is_table { &shown[..shown.len().min(1)] } else { &[] }
}

/// The lines that are shown are printed, in this order, perhaps with others between them.
fn is_shown_by(shown: &[&str], printed: &str, place: &str) {
    let mut lines = printed.lines();
    for line in shown.iter().filter(|line| **line != "…") {
        let expected = shape(line.split('…').next().unwrap());
        assert!(
            lines.any(|line| shape(line).starts_with(&expected)),
            "{place}: expected a line like {line:?}, after the lines before it, in\n{printed}"
        );
    }
}

/// A line without what differs from run to run: numbers, alignment, and whether an invariant holds in spite of gaps.
fn shape(line: &str) -> String {
    let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let words = ["ok ", "gaps "].iter().find_map(|verdict| words.strip_prefix(verdict)).unwrap_or(&words);
    let mut shape = String::new();
    for c in words.chars() {
        match c {
            '0'..='9' if shape.ends_with('0') => {}
            '0'..='9' => shape.push('0'),
            '.' if shape.ends_with('0') => {}
            _ => shape.push(c),
        }
    }
    shape
}

#[test]
fn the_shape_of_a_line_is_without_its_numbers() {
    assert_eq!(shape("  agree 1216,  percent 99.98; x"), "agree 0, percent 0; x");
    assert_eq!(shape("gaps        Events lie in order."), shape("ok    Events lie in order."));
    is_shown_by(&["a 1", "…", "c 3…"], "a 20\nb\nc 4 d\n", "here");
    is_shown_by(&[" a  b  …", "…"], " a  b    c\n", "here");
    assert_eq!(heading(&[" a  b", " 1  2", "…"]), [" a  b"]);
    assert_eq!(heading(&["a;b 1", " 1"]), [""; 0]);
    assert!(std::panic::catch_unwind(|| is_shown_by(&["c", "a"], "a\nc\n", "here")).is_err());
}

fn write_script(path: &Path, line: &str) {
    fs::write(path, format!("#!/bin/sh\n{line}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Puts the program that documents call `myserver` into a folder.
pub(crate) fn my_server_in(folder: &Path) {
    program_in(folder, "my_server");
}

/// Puts examples/server into a folder, as `myserver`.
fn example_server_in(folder: &Path) {
    program_in(folder, "example_server");
}

fn program_in(folder: &Path, test: &str) {
    let this = env::current_exe().unwrap();
    let line = format!(
        "export {MY_SERVER}=\"${{{MY_SERVER}:-}}\"\nexec '{}' docs::{test} --exact --nocapture",
        this.display()
    );
    write_script(&folder.join("myserver"), &line);
}

/// A `myserver` that runs beside the commands of a block, recorded or not.
struct Server {
    child: Child,
    serving: PathBuf,
}

impl Server {
    fn start(reader: &Reader, recorded: bool) -> Server {
        let serving = reader.tools.path().join("serving");
        fs::write(&serving, "").unwrap();
        let line = match recorded {
            true => "exec sigmund record --flight --user-only --no-merge --force -o served -- ./myserver",
            false => "exec ./myserver",
        };
        let mut command = reader.bash(line, reader.folder.path());
        let child = command.env(MY_SERVER, &serving).stdout(Stdio::null()).spawn().unwrap();
        let mut server = Server { child, serving };
        let start = Instant::now();
        let number = loop {
            // It writes its process number when its threads run.
            let number = fs::read_to_string(&server.serving).unwrap();
            if number.ends_with('\n') {
                break number;
            }
            let ended = server.child.try_wait().unwrap();
            assert!(ended.is_none() && start.elapsed() < PATIENCE, "myserver does not serve: {ended:?}");
            thread::sleep(Duration::from_millis(5));
        };
        fs::write(reader.pid_file(), number).unwrap();
        server
    }

    fn ends(mut self) {
        fs::remove_file(&self.serving).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It ends when the file is gone.
        let _ = fs::remove_file(&self.serving);
        let _ = self.child.wait();
    }
}

/// Not a test: what examples/server does.
#[test]
fn example_server() {
    if env::var_os(MY_SERVER).is_none() {
        return;
    }
    let runtime = fut::Runtime::builder().lwps(2).build().unwrap();
    runtime.run(|| requests::serve(400));
}

/// Not a test: the program that documents call `myserver`.
#[test]
fn my_server() {
    let Some(serving) = env::var_os(MY_SERVER) else { return };
    let serving = (!serving.is_empty()).then(|| PathBuf::from(serving));
    let start = Instant::now();
    let runtime = fut::Runtime::builder().lwps(2).build().unwrap();
    let served = fut::sync::Mutex::new(0_u64);
    let daemon = move || {
        for message in 1_u64.. {
            *served.lock() += 1;
            shown::received_msg(message, "10.0.0.1");
            fut::sleep(Duration::from_millis(1));
            match &serving {
                _ if message < 10 => {}
                None => return,
                Some(serving) if !serving.exists() || start.elapsed() > 2 * PATIENCE => return,
                Some(serving) if message == 10 => {
                    fs::write(serving, format!("{}\n", std::process::id())).unwrap();
                }
                Some(_) => {}
            }
        }
    };
    runtime.run(|| {
        let daemon = fut::Builder::new().name("daemon").spawn(daemon);
        requests::serve(200);
        daemon.join().expect("the daemon panicked");
    });
}
