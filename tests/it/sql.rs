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
    // Table functions: in the list, with their definitions, and among the nearest names.
    assert!(
        catalog.contains("\nbreakdown,function,") && catalog.contains("\noverlap,function,"),
        "{catalog}"
    );
    for name in ["critical_path", "critical-path", "critical_path()"] {
        let page = sigmund.run(["sql", "t.supertrace", "--schema", name]).found();
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        let measure = sigmund_measures::named("critical-path").unwrap();
        let definition = measure.definition.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(page.starts_with("critical_path(thread, lwp, ") && words.contains(&definition), "{page}");
        assert!(page.contains(" cause ") && page.contains("worst => N"), "{page}");
    }
    let parts = sigmund.run(["sql", "t.supertrace", "--schema", "self_time", "--format", "csv"]).found();
    assert!(parts.starts_with("part,name,type,unit,what\nfunction,self_time,,,"), "{parts}");
    assert!(parts.contains("\nargument,a,") && parts.contains("\ncolumn,self_ns,BIGINT,ns,"), "{parts}");
    // Functions of values: ours, and DataFusion's.
    assert!(catalog.contains("\nto_ns,function of values,"), "{catalog}");
    for (name, words) in
        [("percentile", &["percentile(x, percent)", "nearest rank"][..]), ("date_trunc", &["date_trunc("])]
    {
        let page = sigmund.run(["sql", "t.supertrace", "--schema", name]).found();
        assert!(words.iter().all(|word| page.contains(word)), "{page}");
    }
    sigmund.run(["sql", "t.supertrace", "--schema", "brakdown"]).complained(&["nearest: breakdown()"]);
}

/// The command on a terminal.
struct Terminal {
    child: Child,
    stdin: ChildStdin,
    shown: Arc<Mutex<String>>,
}

impl Terminal {
    fn open(sigmund: &Sigmund) -> Terminal {
        Terminal::open_with(sigmund, "", "cat")
    }

    /// After a command of the shell, and with this pager.
    fn open_with(sigmund: &Sigmund, before: &str, pager: &str) -> Terminal {
        let mut command = Command::new("script");
        // In the shell's place: dash, otherwise, is ended by the Ctrl-C that it hears too.
        let line = format!("{before}exec {} sql t.supertrace", program());
        command.args(["-qec", &line, "/dev/null"]).current_dir(sigmund.folder());
        command
            .env("TERM", "xterm")
            .env("HOME", sigmund.folder())
            .env_remove("XDG_STATE_HOME")
            .env("PAGER", pager);
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
    // A column of a view, a field of an event, an argument of a measure; \d knows tables only.
    terminal.enter(&["SELECT count(on_cpu_n\t) AS m FROM syscalls WHERE false;"]);
    terminal.enter(&["SELECT count(prev_s\t) AS k FROM sched_switch WHERE false;"]);
    terminal.enter(&["SELECT count(*) AS j FROM states(thr\t5) WHERE false;", "\\d span\t"]);
    terminal.enter(&["CREATE VIEW quickly AS SELECT 7 AS q;", "SELECT q FROM quick\t;"]);
    // A column of an alias (several tables have columns that begin so), and a value of a view.
    terminal.enter(&["SELECT s.name || '!' AS p FROM slice s WHERE s.na\t = 'sys_r\t;"]);
    let shown = terminal.end();
    for answer in ["\nn\n2\n", "\nm\n0\n", "\nk\n0\n", "\nj\n0\n", "depth,", "\nq\n7\n", "\np\nsys_read!\n"] {
        assert!(shown.contains(answer), "{answer}: {shown}");
    }
}

#[test]
fn names_of_lwps_and_user_threads_are_completed() {
    let named = listing()
        .replace("next_pid=90", "next_pid=90 next_comm=o'hara")
        .replace("next=6 ", "next=6(talker) ");
    let created = |thread: u64| {
        let tick = 300 + thread;
        format!("USER\t{tick}\t80\t1\t6\t-\tUSER_THREAD_NEW\tnew={thread}(work/{thread})\n")
    };
    let many: String = (100..200).map(created).collect();
    let sigmund = Sigmund::with_listing("t", &(named + &many));
    let mut terminal = Terminal::open(&sigmund);
    terminal.enter(&["\\f csv", "SELECT lwp AS n FROM lwps WHERE name = 'o\t;"]);
    terminal.enter(&["SELECT thread AS m FROM threads t WHERE t.name = 't\t;"]);
    // Of many names what all begin with.
    terminal.enter(&["SELECT count(*) AS k FROM threads WHERE name = 'w\t50';"]);
    // In a list, as an argument, and in a view of Perfetto's.
    terminal.enter(&["SELECT count(*) + 10 AS i FROM threads WHERE name IN ('talker', 'w\t50');"]);
    terminal.enter(&["SELECT count(*) + 20 AS h FROM states(thread => 't\t, \"by\" => 'na\t) WHERE false;"]);
    terminal.enter(&["SELECT utid AS g FROM thread WHERE name LIKE 'o\t;"]);
    let shown = terminal.end();
    for answer in ["\nn\n90\n", "\nm\n6\n", "\nk\n1\n", "\ni\n12\n", "\nh\n20\n", "\ng\n90\n"] {
        assert!(shown.contains(answer), "{answer}: {shown}");
    }
}

#[test]
fn lines_that_are_pasted_are_all_run() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let mut terminal = Terminal::open(&sigmund);
    terminal.enter(&["\\f csv"]);
    terminal.type_("SELECT 71 AS a;\rSELECT 82 AS b;\rSELECT 93 AS c;\r");
    terminal.wait_for(|shown| shown.contains("c\n93\n") && shown.ends_with(READY));
    let shown = terminal.end();
    assert!(shown.contains("a\n71\n") && shown.contains("b\n82\n"), "{shown}");
}

#[test]
fn a_terminal_that_closes_leaves_the_history() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let mut terminal = Terminal::open(&sigmund);
    terminal.enter(&["SELECT 1 AS one;", "SELECT 2 AS two;"]);
    // Not ended: what holds the terminal is killed.
    terminal.child.kill().unwrap();
    terminal.child.wait().unwrap();
    let history = std::fs::read_to_string(sigmund.path(".local/state/sigmund_history")).unwrap();
    assert!(history.contains("1 AS one;") && history.contains("2 AS two;"), "{history}");
}

#[test]
fn what_does_not_fit_the_terminal_goes_to_the_pager() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let mut terminal = Terminal::open_with(&sigmund, "stty rows 5 cols 40; ", "sed s/^/paged:/");
    terminal.enter(&["\\d", "\\d spans"]);
    let shown = terminal.end();
    assert!(shown.contains("paged: active ") && shown.contains("paged: depth "), "{shown}");
}

#[test]
fn a_table_for_people_has_all_rows_and_needs_little_memory() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let numbers = "SELECT value, value * 3 AS thrice, 'some text' AS text FROM generate_series(1, 400000)";
    let mut command = sigmund.command();
    command.args(["sql", "t.supertrace", numbers]).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (mut drawn, mut peak) = (String::new(), 0);
    let mut out = child.stdout.take().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut bytes = [0; 1 << 16];
    while let Ok(read @ 1..) = out.read(&mut bytes) {
        drawn += &String::from_utf8_lossy(&bytes[..read]);
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let of = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = of.and_then(|kib| kib.trim().trim_end_matches(" kB").parse::<u64>().ok());
        peak = peak.max(kib.unwrap_or(0));
    }
    assert!(child.wait().unwrap().success());
    assert_eq!(drawn.lines().count(), 400_000 + 4);
    assert!(drawn.ends_with("+\n") && drawn.contains("| 400000 | 1200000 | some text |\n"));
    assert!(0 < peak && peak < 250 << 10, "{peak} KiB");
}

#[test]
fn errors_of_sql_are_one_line_of_what_can_be_done() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let asked = |query: &str| sigmund.run(["sql", "a=t.supertrace", "b=t.supertrace", query]);
    let line = asked("SELECT nam FROM\n\tspans");
    assert!(!line.stderr.contains("\\n") && !line.stderr.contains("\\t"), "{line:?}");
    line.complained(&["No field named nam", "Valid fields are"]);
    let cased = asked("SELECT NAME FROM spans");
    assert!(!cased.stderr.contains("normalization"), "{cased:?}");
    asked("SELECT * FROM EVENTS").complained(&["nearest: events"]);
    asked("SELECT * FROM c.spans").complained(&["name of a super-trace", "found `c`; nearest: a, b"]);
    asked("SELECT * FROM stats()").complained(&["table function, found `stats`; nearest: states"]);
    asked("SELECT * FROM b.states()").complained(&["about the first super-trace", "`b.`"]);
    asked("SELECT * FROM states(thread => 99)").complained(&["states: thread: expected a user thread"]);
    let external = asked("SELECT * FROM states(thread => 99)");
    assert!(!external.stderr.contains("External error"), "{external:?}");
    asked("SELECT * FROM states(\"from\" => '5s')").complained(&["5s: expected an instant of the trace"]);
    asked("SELECT * FROM states(of => 'x')").complained(&["states: expected thread", "found of"]);
    asked("SELECT * FROM states(thread => 5, thread => 6)").complained(&["expected thread once"]);
    sigmund
        .run(["--states", "--worst", "3"])
        .complained(&["states: expected a measure that lists cases", "found worst"]);
    sigmund.run(["--functions", "nothing"]).complained(&["name of a span or function, found `nothing`"]);
    sigmund.run(["--locks", "0x10"]).complained(&["locks: expected the address", "found 0x10"]);
    asked("SELECT CAST(name AS BIGINT) FROM events").complained(&["query: Cannot cast string", "in quotes"]);
    let large = asked("SELECT percentile(u64_bits(-ts_tick), 50) FROM events");
    assert!(
        large.stderr.contains("Can't cast value 1844") && !large.stderr.contains("in quotes"),
        "{large:?}"
    );
    asked("SELECT percentile(ts_tick, cpu) FROM events").complained(&["found 0 and 1"]);
}

#[test]
fn parameters_in_quotes_are_texts_and_commands_may_be_several() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let sql = |words: &[&str]| {
        sigmund.run([&["sql", "t.supertrace"], words, &["--format", "csv"]].concat()).found()
    };
    assert_eq!(sql(&["SELECT arrow_typeof($x) AS t", "-p", "x='5'"]), "t\nUtf8\n");
    assert_eq!(sql(&["SELECT arrow_typeof($x) AS t", "-p", "x=5"]), "t\nInt64\n");
    assert_eq!(sql(&["SELECT ? AS a, ? AS b", "-p", "1=7", "-p", "2=x"]), "a,b\n7,x\n");
    assert_eq!(sql(&["-c", "SELECT 1 AS a; SELECT 2 AS b"]), "a\n1\nb\n2\n");
    let mut piped = sigmund.command();
    piped.args(["sql", "t.supertrace", "-f", "-", "--format", "csv"]).stdin(Stdio::piped());
    let mut piped = piped.stdout(Stdio::piped()).spawn().unwrap();
    piped.stdin.take().unwrap().write_all(b"SELECT 3 AS c;").unwrap();
    assert_eq!(piped.wait_with_output().unwrap().stdout, b"c\n3\n");
}

#[test]
fn explain_does_not_compute_a_measure_and_analyze_says_how_long_it_took() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let sql = |query: &str| sigmund.run(["sql", "t.supertrace", query, "--format", "csv"]).found();
    let plan = sql("EXPLAIN SELECT state FROM states()");
    assert!(plan.contains("AnswerExec: states, columns=[state]") && !plan.contains("elapsed"), "{plan}");
    let rows = sql("SELECT state FROM states()").lines().count() - 1;
    let plan = sql("EXPLAIN ANALYZE SELECT state FROM states()");
    let exec = plan.lines().find(|line| line.contains("AnswerExec: states")).unwrap_or_default();
    assert!(exec.contains(&format!("output_rows={rows}")) && exec.contains("elapsed_compute="), "{plan}");
    let overlap = "FROM overlap(thread_states, lwp_states, lwp)";
    let rows = sql(&format!("SELECT count(*) AS n {overlap}"));
    let rows = rows.lines().last().unwrap_or_default();
    let plan = sql(&format!("EXPLAIN ANALYZE SELECT * {overlap}"));
    let exec = plan.lines().find(|line| line.contains("IntervalExec: overlap")).unwrap_or_default();
    assert!(exec.contains(&format!("output_rows={rows},")), "{rows} in {plan}");
    // What is wrong with the question is found when it is computed.
    sigmund.run(["sql", "t.supertrace", "EXPLAIN SELECT * FROM states(thread => 99)"]).found();
}

#[cfg(not(feature = "cluster"))]
#[test]
fn a_command_without_clusters_says_so() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let without = "built without clusters";
    let said = sigmund.run(["scheduler"]);
    assert!(!said.stderr.contains("similar"), "{said:?}");
    said.complained(&[without]);
    sigmund.run(["executor"]).complained(&[without]);
    sigmund.run(["sql", "t.supertrace", "SELECT 1", "--cluster", "http://x:1"]).complained(&[without]);
    sigmund.run(["--states", "--cluster", "http://x:1"]).complained(&[without]);
    sigmund.run(["sql", "s3://bucket/t.supertrace", "SELECT 1"]).complained(&["s3://bucket", without]);
}

#[test]
fn ctrl_c_cancels_a_query_and_not_the_prompt() {
    let sigmund = Sigmund::with_listing("t", &listing());
    // 17 events: 17^9 rows take hours. Their number alone would be known without a row.
    let joins = "abcdefghi".chars().map(|name| format!("events AS {name}")).collect::<Vec<_>>().join(", ");
    let mut terminal = Terminal::open(&sigmund);
    terminal.enter(&["\\f csv"]);
    terminal.type_(&format!("SELECT sum((a.ts_tick + e.ts_tick * i.ts_tick) % 7) AS s FROM {joins};\r"));
    // The terminal is no longer raw: the query runs.
    terminal.wait_for(|shown| shown.contains("AS i;") && shown.ends_with("\x1b[?2004l\n"));
    terminal.type_("\x03");
    terminal.wait_for(|shown| shown.contains("cancelled") && shown.ends_with(READY));
    terminal.enter(&["SELECT 6 * 7 AS answer;"]);
    let shown = terminal.end();
    assert!(shown.contains("answer\n42\n"), "{shown}");
}

// DataFusion evaluates equal subqueries once, and calls of one function looked equal to it whatever their arguments were.
#[test]
fn subqueries_with_different_calls_of_a_function_are_different() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let one = |query: &str| sigmund.run(["sql", "t.supertrace", query, "--format", "csv"]).found();
    let of = |what: &str, from: &str| {
        let found = one(&format!("SELECT {what} FROM {from}"));
        found.lines().nth(1).unwrap().to_string()
    };
    let events = "(SELECT * FROM active)";
    for (what, calls) in [
        ("sum(total_tick)", ["states(thread => 5)", "states(thread => 6)"]),
        ("count(*)", ["states()", "states(\"by\" => 'name')"]),
        ("sum(count)", ["latency()", "latency(\"by\" => 'lwp')"]),
        ("sum(dur_tick)", [&*format!("merged({events})"), "merged((SELECT * FROM active WHERE thread = 5))"]),
        ("count(*)", ["overlap(active, thread_states, thread)", "overlap(thread_states, lwp_states, lwp)"]),
    ] {
        let expected = calls.map(|call| of(what, call));
        assert_ne!(expected[0], expected[1], "{calls:?}");
        for alias in ["", " AS t"] {
            let [a, b] = calls.map(|call| format!("(SELECT {what} FROM {call}{alias})"));
            let both = one(&format!("SELECT {a} AS a, {b} AS b"));
            assert_eq!(both, format!("a,b\n{}\n", expected.join(",")), "{calls:?}");
        }
    }
    let either = "SELECT count(*) FROM threads WHERE thread IN (SELECT thread FROM states(thread => 5)) \
        OR thread IN (SELECT thread FROM states(thread => 6))";
    assert_eq!(sigmund.number("t.supertrace", either), 2);
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
    sigmund
        .run(["sql", "SELECT 1"])
        .complained(&["expected a super-trace before the query", "sigmund sql T"]);
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
    // 10 MB of hashed rows: the query begins anew with sorted ones, in temporary files.
    let joined = "SELECT count(*) AS n FROM generate_series(1, 300000) AS a(v) JOIN generate_series(1, 600000) AS b(w) ON v = w";
    assert_eq!(within("4MiB", joined).found(), "n\n300000\n");
    // One value of 17 MB cannot be parted.
    let whole = "SELECT length(string_agg(repeat(a.name, 2), '')) AS n FROM events AS a, events AS b, events AS c, generate_series(1, 100)";
    let said = within("1MiB", whole);
    assert_eq!(said.stderr.matches("1MiB").count(), 1, "{said:?}");
    assert!(!said.stderr.contains("datafusion"), "{said:?}");
    said.complained(&["memory limit of 1MiB (--memory)"]);
    // The result of a function for a batch of rows has half of it.
    let long = "SELECT max(length(repeat(CAST(value AS VARCHAR), 1000))) AS n FROM generate_series(1, 10000)";
    assert_eq!(within("128MiB", long).found(), "n\n5000\n");
    within("16MiB", long).complained(&[
        "repeat",
        "at most half of the memory limit of 16MiB (--memory)",
        "rows, found 30 MiB",
    ]);
    within("1XB", whole).complained(&["expected a size, such as 512M"]);
    within("0KiB", whole).complained(&["expected a size"]);
}
