//! `sigmund sql`: queries from files and standard input, parameters, the catalog, and the prompt on a terminal.

use std::{
    io::{Read, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::{
    sigmund::{Sigmund, program},
    views::listing,
};

#[test]
fn queries_come_from_a_file_or_from_standard_input_with_values_for_parameters() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let queries = "SELECT ';' AS a; -- the second;\nSELECT count(*) AS n FROM wakeups WHERE lwp = $lwp;\n";
    sigmund.write("q.sql", queries.as_bytes());
    let asked = ["sql", "t.supertrace", "-f", "q.sql", "-p", "lwp=70", "--format", "csv"];
    assert_eq!(sigmund.run(asked).found(), "a\n;\nn\n1\n");
    let mut piped = sigmund.command();
    piped.args(["sql", "t.supertrace", "-p", "$lwp=7", "--format", "csv"]).stdin(Stdio::piped());
    let mut piped = piped.stdout(Stdio::piped()).spawn().unwrap();
    piped.stdin.take().unwrap().write_all(queries.as_bytes()).unwrap();
    let piped = piped.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), "a\n;\nn\n0\n");
    assert_eq!(
        sigmund.run(["sql", "t.supertrace", "-c", "SELECT 1 AS x", "--format", "csv"]).found(),
        "x\n1\n"
    );
    let sql = |words: &[&str], complaints: &[&str]| {
        sigmund.run([&["sql", "t.supertrace"], words].concat()).complained(complaints);
    };
    sql(&["-f", "q.sql"], &["parameter that has a value", "$lwp"]);
    sql(&["-f", "nothing.sql"], &["nothing.sql"]);
    sql(&["SELECT 1", "-p", "lwp"], &["NAME=VALUE"]);
    sql(&["SELECT * FROM wakups"], &["nearest: wakeups"]);
    sql(&["SELECT * FROM states(thred => 5)"], &["found thred"]);
}

#[test]
fn the_catalog_is_a_table_in_every_format() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let catalog = sigmund.run(["sql", "t.supertrace", "--schema", "--format", "csv"]).found();
    assert!(catalog.starts_with("name,kind,what\nactive,table,"), "{catalog}");
    assert!(catalog.contains("\nsched_switch,event,KERN: 6 events of t.tsv.\n"), "{catalog}");
    let columns = sigmund.run(["sql", "t.supertrace", "--schema", "off_cpu", "--format", "csv"]).found();
    assert!(columns.contains("\ndur_ns,BIGINT,ns,"), "{columns}");
    let described = sigmund.run(["sql", "t.supertrace", "DESCRIBE off_cpu", "--format", "csv"]).found();
    assert_eq!(described, columns);
    sigmund.run(["sql", "t.supertrace", "--schema", "of_cpu"]).complained(&["nearest: off_cpu"]);
}

/// The command on a terminal.
struct Terminal {
    child: Child,
    stdin: ChildStdin,
    shown: Arc<Mutex<String>>,
}

impl Terminal {
    fn open(sigmund: &Sigmund) -> Terminal {
        let mut command = Command::new("script");
        // In the shell's place: dash, otherwise, is ended by the Ctrl-C that it hears too.
        let line = format!("exec {} sql t.supertrace", program());
        command.args(["-qec", &line, "/dev/null"]).current_dir(sigmund.folder());
        command
            .env("TERM", "xterm")
            .env("HOME", sigmund.folder())
            .env_remove("XDG_STATE_HOME")
            .env("PAGER", "cat");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let shown = Arc::new(Mutex::new(String::new()));
        let all = Arc::clone(&shown);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = stdout.read(&mut bytes) {
                *all.lock().unwrap() += &String::from_utf8_lossy(&bytes[..read]).replace('\r', "");
            }
        });
        let terminal = Terminal { child, stdin, shown };
        terminal.wait_for(|shown| prompts(shown) == 1);
        terminal
    }

    fn wait_for(&self, is_there: impl Fn(&str) -> bool) {
        let begin = Instant::now();
        while !is_there(&self.shown.lock().unwrap()) {
            assert!(begin.elapsed() < Duration::from_secs(60), "{}", self.shown.lock().unwrap());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Types, and does not wait.
    fn type_(&mut self, text: &str) {
        self.stdin.write_all(text.as_bytes()).unwrap();
    }

    /// Types lines, and waits after each until the next may be typed.
    fn enter(&mut self, lines: &[&str]) {
        for line in lines {
            let before = prompts(&self.shown.lock().unwrap());
            self.type_(&format!("{line}\r"));
            self.wait_for(|shown| prompts(shown) > before && shown.ends_with(READY));
        }
    }

    /// Ends the command; gives all that was shown.
    fn end(mut self) -> String {
        self.type_("\\q\r");
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {}", self.shown.lock().unwrap());
        std::mem::take(&mut *self.shown.lock().unwrap())
    }
}

/// What the terminal gets last before the next line is read: the end of a synchronized update.
const READY: &str = "\x1b[?2026l";

fn prompts(shown: &str) -> usize {
    shown.matches("sigmund> ").count()
}

#[test]
fn the_prompt_takes_commands_and_statements_over_several_lines() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let mut terminal = Terminal::open(&sigmund);
    terminal.enter(&["\\d off_cpu", "\\timing", "\\f csv", "\\set lwp 70"]);
    terminal.enter(&["SELECT $lwp AS a,", "2 AS b;", "SELECT * FROM wakups;", "\\x"]);
    let shown = terminal.end();
    for part in [
        "dur_ns      BIGINT   ns",
        "timing is on",
        "a,b\n70,2\n",
        "1 row, ",
        "nearest: wakeups",
        "expected a command (\\? lists them) or a query, found \\x",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let history = std::fs::read_to_string(sigmund.path(".local/state/sigmund_history")).unwrap();
    assert!(history.contains("2 AS b;"), "{history}");
}

#[test]
fn names_and_values_are_completed() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let mut terminal = Terminal::open(&sigmund);
    terminal.enter(&["\\f csv", "SELECT count(*) AS n FROM lwp_st\t WHERE state = 'sle\t;"]);
    let shown = terminal.end();
    assert!(shown.contains("\nn\n2\n"), "{shown}");
}

#[test]
fn ctrl_c_cancels_a_query_and_not_the_prompt() {
    let sigmund = Sigmund::with_listing("t", &listing());
    // 17 events: 17^9 rows take hours. Their number alone would be known without a row.
    let joins = "abcdefghi".chars().map(|name| format!("events AS {name}")).collect::<Vec<_>>().join(", ");
    let mut terminal = Terminal::open(&sigmund);
    terminal.enter(&["\\f csv"]);
    terminal.type_(&format!("SELECT sum(a.ts_tick + e.ts_tick * i.ts_tick) AS s FROM {joins};\r"));
    // The terminal is no longer raw: the query runs.
    terminal.wait_for(|shown| shown.contains("AS i;") && shown.ends_with("\x1b[?2004l\n"));
    terminal.type_("\x03");
    terminal.wait_for(|shown| shown.contains("cancelled") && shown.ends_with(READY));
    terminal.enter(&["SELECT 6 * 7 AS answer;"]);
    let shown = terminal.end();
    assert!(shown.contains("answer\n42\n"), "{shown}");
}

#[test]
fn several_super_traces_are_asked_at_once() {
    let sigmund = Sigmund::with_listing("t", &listing());
    sigmund.merge_listing(
        "before",
        &listing().lines().take(9).map(|line| format!("{line}\n")).collect::<String>(),
    );
    let query = "SELECT (SELECT count(*) FROM now.events) - (SELECT count(*) FROM before.events) AS more, \
        (SELECT count(*) FROM events) AS of_first";
    let asked = ["sql", "now=t.supertrace", "before=before.supertrace"];
    let said = sigmund.run([&asked[..], &[query, "--format", "csv"]].concat()).found();
    let (all, some) = (
        sigmund.number("t.supertrace", "SELECT count(*) FROM events"),
        sigmund.number("before.supertrace", "SELECT count(*) FROM events"),
    );
    assert_eq!(said, format!("more,of_first\n{},{all}\n", all - some));
    let by_option = sigmund.run([&asked[..], &["-c", "SELECT 1 AS one", "--format", "csv"]].concat()).found();
    assert_eq!(by_option, "one\n1\n");
    sigmund
        .run([&asked[..], &["SELECT 1", "SELECT 2"]].concat())
        .complained(&["expected one query", "SELECT 2"]);
    sigmund
        .run([&asked[..], &["SELECT 1", "-c", "SELECT 2"]].concat())
        .complained(&["--command", "found both"]);
    sigmund.run(["sql", "a=t.supertrace", "a=t.supertrace", "SELECT 1"]).complained(&["another name", "`a`"]);
    sigmund.run(["sql", "a=t.supertrace", "b=none.supertrace", "SELECT 1"]).complained(&["none.supertrace"]);
    // A path that has such a form is a path.
    std::fs::rename(sigmund.path("t.supertrace"), sigmund.path("a=t.supertrace")).unwrap();
    assert_eq!(sigmund.number("a=t.supertrace", "SELECT count(*) FROM events"), all);
}

#[test]
fn a_query_keeps_within_its_memory_or_says_so() {
    let sigmund = Sigmund::with_listing("t", &listing());
    // 32 MB, sorted in parts that go to temporary files.
    let sorted = "SELECT max(n) AS n FROM (SELECT row_number() OVER (ORDER BY value * 7919 % 1000003, value) AS n \
        FROM generate_series(1, 2000000))";
    let within = |memory: &str, query: &str| {
        sigmund.run(["sql", "t.supertrace", query, "--memory", memory, "--format", "csv"])
    };
    assert_eq!(within("16MiB", sorted).found(), "n\n2000000\n");
    // One value of 170 MB cannot be parted.
    let whole =
        "SELECT length(string_agg(repeat(a.name, 1000), '')) AS n FROM events AS a, events AS b, events AS c";
    within("1MiB", whole).complained(&["memory limit of 1024.0 KB (--memory)"]);
    within("1MB", whole).complained(&["expected a size, as in 512MiB"]);
    within("0KiB", whole).complained(&["expected a size"]);
}
