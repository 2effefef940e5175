//! Filters, measures, formats and statuses, on traces small enough to know the answers.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::sigmund::{Sigmund, figure, program};

/// A trace with all that a cell can hold.
const ODD: &str = "\
type\tdate_tick\tpid\tcpu\tthr\tcode\tname\tparams
USER\t10\t5\t0\t1(my, thread)\t7\tnote\twhat=\"a, \\\"b\\\"\\tc\" n=-3 at=24(eth0) x=?
USER\t20\t5\t0\t1(my, thread)\t8\tUSER_CONTEXT_SWITCH\t2(other)
KERN\t25\t5\t0\t?\t-\tIRQ\t24(eth0)
KERN\t27\t5\t0\t?\t-\tIRQ_EXIT\t24(eth0)
USER\t30\t5\t0\t2(other)\t-\tplain\t
";

/// Figure 3, with the clock of the paper's machine.
fn figure_3() -> Sigmund {
    Sigmund::with_listing("figure3", &format!("# tick_hz=2800000000\n{}", figure(3)))
}

#[test]
fn filters_hold_together_in_any_combination() {
    let sigmund = figure_3();
    // Ticks since 5150000000, to keep this readable.
    let daemon = [163_706, 169_922, 182_646, 172_881_710, 172_893_274, 172_907_374];
    let cases: &[(&[&str], &[u64])] = &[
        (&["--thread", "1"], &daemon),
        (&["--thread", "daemon"], &daemon),
        (&["--thread", "1(daemon)"], &daemon),
        (&["--thread", "daemon", "--level", "kern"], &[169_922, 172_893_274]),
        (&["--thread", "daemon", "--level", "KERN", "--cpu", "1"], &[172_893_274]),
        (&["--thread", "daemon", "--event", "^USER_E"], &[172_907_374]),
        (
            &["--thread", "daemon", "--event", "SYSTEM", "--event", "EVENT"],
            &[169_922, 172_893_274, 172_907_374],
        ),
        (&["--lwp", "1630"], &[20_071_750]),
        (&["--lwp", "1630,2733", "--to", "25ms"], &[2_816_866, 20_071_750, 32_046_038, 61_315_302]),
        (&["--thread", "9,work/10", "--level", "user"], &[2_816_866, 32_046_038]),
        (&["--thread", "9", "--thread", "12"], &[2_816_866, 32_046_038]),
        (&["--cpu", "0,3", "--from", "5170071750", "--to", "5182046038"], &[20_071_750, 32_046_038]),
        (&["--event", "IRQ", "--from", "7ms", "--to", "+7.2ms"], &[20_071_750]),
        (&["--from", "61ms"], &[172_881_710, 172_893_274, 172_907_374]),
        (&["--thread", "daemon", "--cpu", "3"], &[]),
    ];
    for (filters, expected) in cases {
        let said = sigmund.run([&["--list-events", "--format", "csv"], *filters].concat());
        let listing = if expected.is_empty() { said.found_nothing() } else { said.found() };
        let tick = |line: &str| line.split(',').nth(1).unwrap().parse::<u64>().unwrap() - 5_150_000_000;
        let ticks: Vec<u64> = listing.lines().skip(1).map(tick).collect();
        assert_eq!(ticks, *expected, "{filters:?}");
    }
}

#[test]
fn one_input_is_merged_beside_it_and_several_need_a_name() {
    let sigmund = Sigmund::new();
    sigmund.write("one.tsv", figure(2).as_bytes());
    sigmund.write("two.tsv", figure(3).as_bytes());
    sigmund.run(["merge", "one.tsv", "two.tsv"]).complained(&["-o NAME.supertrace", "2 inputs"]);
    sigmund.run(["merge", "."]).complained(&[".: expected -o NAME.supertrace"]);
    // Nothing is written over its input.
    sigmund.write("odd.supertrace", figure(2).as_bytes());
    sigmund.run(["merge", "odd.supertrace", "--force"]).complained(&["odd.supertrace", "expected -o"]);
    assert_eq!(fs::read_to_string(sigmund.path("odd.supertrace")).unwrap(), figure(2));
    sigmund.run(["merge", "one.tsv"]).found();
    sigmund.run(["-f", "one.supertrace", "--list-events"]).found();
    // As the recorder names it.
    sigmund
        .run(["record", "--user-only", "--no-merge", "-o", "RUN", "--", program(), "sumtime", "3", "1", "10"])
        .found();
    sigmund.run(["merge", "RUN"]).found();
    sigmund.run(["check", "RUN.supertrace"]).found();
}

#[test]
fn a_listing_as_tsv_merges_to_a_trace_that_lists_and_answers_the_same() {
    for (listing, question) in [
        (figure(2), vec!["--active-time", "--format", "csv"]),
        (figure(3), vec!["--reactivity", "IRQ", "received_msg", "--list-events", "--format", "csv"]),
        (ODD.to_string(), vec!["--list-events", "--format", "json"]),
    ] {
        let first = Sigmund::with_listing("first", &listing);
        let tsv = first.run(["--list-events", "--format", "tsv"]).found();
        assert_eq!(tsv.lines().count(), listing.lines().count());
        let second = Sigmund::with_listing("second", &tsv);
        assert_eq!(second.run(["--list-events", "--format", "tsv"]).found(), tsv);
        assert_eq!(second.run(&question).found(), first.run(&question).found());
    }
}

#[test]
fn every_format_says_what_the_listing_said() {
    let sigmund = Sigmund::with_listing("odd", ODD);
    let listed = |format: &str| sigmund.run(["--list-events", "--format", format]).found();
    assert_eq!(listed("tsv"), ODD);
    assert_eq!(
        listed("csv").lines().nth(1).unwrap(),
        r#"USER,10,5,0,"1(my, thread)",7,note,"what=""a, \""b\""\tc"" n=-3 at=24(eth0) x=?""#
    );
    let array: Value = serde_json::from_str(&listed("json")).unwrap();
    let lines = listed("ndjson");
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(array, Value::Array(lines));
    assert_eq!(
        array[0],
        json!({"type": "USER", "date_tick": 10, "pid": 5, "cpu": 0, "thr": 1, "thr_name": "my, thread", "code": 7,
            "name": "note", "params":
                {"what": "a, \"b\"\tc", "n": -3, "at": {"number": 24, "name": "eth0"}, "x": null}})
    );
    assert_eq!((&array[2]["thr"], &array[2]["name"]), (&Value::Null, &json!("IRQ")));
}

#[test]
fn active_time_is_one_figure_for_one_thread_and_a_row_each_for_more_or_for_all() {
    let sigmund = figure_3();
    let asked = |more: &[&str]| sigmund.run([&["--active-time"], more].concat()).found();
    assert_eq!(asked(&["--thread", "daemon"]), "44604 cycles\n");
    assert_eq!(
        asked(&["--thread", "daemon,work/6", "--format", "csv"]),
        "thr,name,active_cycles\n1,daemon,44604\n8,work/6,23939312\n"
    );
    let table = asked(&["--thread", "daemon,work/6"]);
    let cells: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(cells[0], ["thr", "name", "active_cycles"]);
    assert_eq!(cells[2], ["8", "work/6", "23939312"]);
    // All of them: the daemon, and the workers that the figure shows.
    let all = asked(&["--format", "tsv"]);
    assert_eq!(all.lines().count(), 1 + 20);
    assert!(all.contains("\n1\tdaemon\t44604\n") && all.contains("\n9\twork/7\t0\n"), "{all}");
    // In a window, the part inside counts; on a CPU, the part there.
    assert_eq!(asked(&["--thread", "daemon", "--cpu", "2"]), "18940 cycles\n");
    assert_eq!(asked(&["--thread", "daemon", "--from", "5150163800", "--to", "5150163900"]), "100 cycles\n");
}

#[test]
fn many_threads_can_be_selected() {
    let switch = |next: u64| {
        let before = if next == 1 { "?".to_string() } else { (next - 1).to_string() };
        let cells =
            ["USER", &(100 + next).to_string(), "70", "0", &before, "-", "USER_CONTEXT_SWITCH"].join("\t");
        format!("{cells}\tnext={next} reason=0 on=0 blocked_for=0\n")
    };
    let head = "# tick_hz=1000000000\ntype\tdate_tick\tpid\tcpu\tthr\tcode\tname\tparams\n";
    let listing = head.to_string() + &(1..=300).map(switch).collect::<String>();
    let sigmund = Sigmund::with_listing("t", &listing);
    let listed = |most: u64| {
        let threads = (1..=most).map(|thread| thread.to_string()).collect::<Vec<_>>().join(",");
        sigmund.run(["--list-events", "--thread", &threads, "--format", "csv"]).found().lines().count() as u64
    };
    // The heading, the switches to each, and that from the last one.
    for most in [1, 100, 101, 250] {
        assert_eq!(listed(most), 1 + most + 1);
    }
}

#[test]
fn what_the_trace_does_not_have_is_refused_with_the_nearest_names() {
    let sigmund = figure_3();
    for measure in ["--list-events", "--active-time", "--states"] {
        let refused = |flag: &str, found: &str, words: &[&str]| {
            sigmund
                .run([measure, flag, found])
                .complained(&[&[flag, "expected", "found", found], words].concat());
        };
        refused("--thread", "deamon", &["a user thread of this trace", "nearest: daemon"]);
        refused("--thread", "999", &["a user thread of this trace"]);
        refused("--thread", "wrok/*", &["nearest: work/"]);
        refused("--lwp", "2734", &["an LWP of this trace", "nearest: 2731, 2732, 2733"]);
        refused("--cpu", "9", &["a CPU of this trace"]);
        let covered = ["an instant of the trace", "the trace covers ticks"];
        sigmund.run([measure, "--from", "99s"]).complained(&[&["--from", "after it"][..], &covered].concat());
        sigmund.run([measure, "--to", "1"]).complained(&[&["--to", "before it"][..], &covered].concat());
        let backwards = sigmund.run([measure, "--from", "50ms", "--to", "10ms"]);
        backwards.complained(&["--from 50ms --to 10ms: expected an end after the beginning", covered[1]]);
    }
    let events = sigmund.run(["--list-events", "--event", "CONTEXT_SWICH"]);
    events.complained(&[
        "--event: expected an event of this trace, found CONTEXT_SWICH",
        "USER_CONTEXT_SWITCH",
    ]);
    let workers = sigmund.run(["--active-time", "--thread", "work/*", "--format", "csv"]).found();
    assert_eq!(workers.lines().count(), 1 + 19, "{workers}");
}

#[test]
fn pairs_of_events_obey_filters_of_who_was_affected() {
    let sigmund = figure_3();
    let asked = ["--reactivity", "IRQ", "received_msg"];
    let filters = [
        (["--thread", "daemon"], 0),
        (["--thread", "work/*"], 1),
        (["--lwp", "2731"], 0),
        (["--lwp", "2732"], 1),
        (["--cpu", "1"], 0),
        (["--cpu", "2"], 1),
    ];
    for (filter, status) in filters {
        let filtered = [&asked[..], &filter].concat();
        let found = sigmund.run(&filtered);
        assert_eq!(found.status, status, "{found:?}");
        for plain in ["--list-events", "--next"] {
            let refused = sigmund.run([&filtered[..], &[plain]].concat());
            refused.complained(&["--reactivity: expected no", filter[0], "beside", plain]);
        }
    }
}

#[test]
fn times_come_in_a_unit_if_the_trace_says_what_a_tick_is() {
    let sigmund = figure_3();
    let ms = ["--active-time", "--thread", "daemon", "--unit", "ms"];
    // 44604 / 2.8 GHz
    assert_eq!(sigmund.run(ms).found(), "44604 cycles, 0.015930 ms\n");
    let pairs = ["--reactivity", "IRQ", "received_msg", "--next", "--unit", "us", "--format", "json"];
    let csv = sigmund.run(pairs).found();
    let json: Value = serde_json::from_str(&csv).unwrap();
    let us = json[0]["median_us"].as_f64().unwrap();
    assert!((us - 152_835_624.0 / 2800.0).abs() < 1e-6, "{us}");

    // What the input says counts.
    let other = ["merge", "figure3.tsv", "-o", "other.supertrace", "--hz", "1GHz"];
    let said = sigmund.run(other);
    assert!(said.stderr.contains("2800000000 ticks, as the inputs say; not 1000000000"), "{said:?}");
    let of_other = [["-f", "other.supertrace"].as_slice(), &ms].concat();
    assert_eq!(sigmund.run(of_other).found(), "44604 cycles, 0.015930 ms\n");

    let unknown = Sigmund::with_listing("unknown", &figure(3));
    unknown.run(ms).complained(&["--unit ms", "--hz"]);
    unknown.run(["--list-events", "--from", "1ms"]).complained(&["rate of its clock is not known"]);
    let merge = ["merge", "unknown.tsv", "-o", "unknown.supertrace", "--force", "--hz", "2.8GHz"];
    unknown.run(merge).found();
    assert_eq!(unknown.run(ms).found(), "44604 cycles, 0.015930 ms\n");
}

#[test]
fn a_question_that_cannot_be_meant_is_refused_in_words() {
    let sigmund = figure_3();
    for (args, words) in [
        (&["--reactivity", "IRQ(", "received_msg"][..], &["IRQ(", "closing parenthesis"][..]),
        (&["--reactivity", "IRQ(nothing=1)", "received_msg"], &["IRQ(nothing=1)"]),
        (&["--active-time", "--list-events"], &["--active-time", "--list-events"]),
        (&["--active-time", "--event", "IRQ"], &["event"]),
        (&["--reactivity", "IRQ@deamon", "received_msg"], &["selector `IRQ@deamon`", "nearest: daemon"]),
        (&["-f", "figrue3.supertrace", "--summary"], &["not a super-trace", "nearest: figure3.supertrace"]),
        (&["--event", "("], &["("]),
        (&["--from", "soon"], &["soon"]),
        (&["--lwp", "me"], &["me"]),
        (&["merge", "figure3.tsv", "-o", "x.supertrace", "--hz", "fast"], &["fast"]),
        (&["record", "--user-buffer", "100", "true"], &["power of two"]),
        (&["no-such-command"], &["no-such-command"]),
    ] {
        assert_eq!(sigmund.run(args).complained(words), "", "{args:?}");
    }
}

// No event has it, which only a look at all of them tells: so it is no error.
#[test]
fn a_value_that_no_event_has_gets_the_nearest_values() {
    let sigmund = Sigmund::with_listing("odd", ODD);
    for more in [&["--next"][..], &[]] {
        let nothing = sigmund.run([&["--reactivity", "note(what=a)", "plain"], more].concat());
        assert_eq!(nothing.status, 1, "{nothing:?}");
        assert!(nothing.stderr.contains("no event has this value; nearest: a, \"b\""), "{nothing:?}");
    }
}

#[test]
fn a_super_trace_needs_no_name_if_it_is_the_only_one_here() {
    let sigmund = Sigmund::new();
    for args in [&["--list-events"][..], &["info"], &["check"]] {
        sigmund.run(args).complained(&["no super-trace in this folder", "--trace-file"]);
    }
    sigmund.merge_listing("one", &figure(2));
    let listing = sigmund.run(["--list-events"]).found();
    assert_eq!(sigmund.run(["-f", "one.supertrace", "--list-events"]).found(), listing);
    sigmund.run(["check"]).found();

    sigmund.merge_listing("two", &figure(3));
    for args in [&["--list-events"][..], &["info"]] {
        sigmund.run(args).complained(&["several", "one.supertrace", "two.supertrace", "as their argument"]);
    }
    assert_eq!(sigmund.run(["-f", "one.supertrace", "--list-events"]).found(), listing);
}

#[test]
fn sql_reads_and_never_writes() {
    let sigmund = figure_3();
    let before = files(&sigmund);
    for query in [
        "CREATE TABLE x (a INT)",
        "DROP TABLE info",
        "INSERT INTO info VALUES ('a', 'b')",
        "DELETE FROM info",
        "COPY events TO 'out.parquet'",
        "CREATE EXTERNAL TABLE x STORED AS CSV LOCATION 'figure3.tsv'",
        "SET datafusion.execution.batch_size = 1",
    ] {
        assert_eq!(sigmund.run(["sql", "figure3.supertrace", query]).complained(&["query"]), "", "{query}");
    }
    sigmund.run(["sql", "figure3.supertrace", "CREATE VIEW x AS SELECT 1 AS a; SELECT a FROM x"]).found();
    assert_eq!(files(&sigmund), before);
}

/// Every file here and below, with its bytes.
fn files(sigmund: &Sigmund) -> Vec<(String, Vec<u8>)> {
    let mut folders = vec![sigmund.folder().to_path_buf()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push((path.display().to_string(), fs::read(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn sql_knows_every_table_and_a_view_for_each_event() {
    let sigmund = Sigmund::with_listing("odd", ODD);
    let shown = sigmund.sql("odd.supertrace", "SHOW TABLES");
    let names: Vec<&str> = shown.iter().map(|row| row[2].as_str()).collect();
    for table in ["events", "active", "thread_states", "lwp_states", "threads", "lwps", "cpus", "event_types"]
    {
        assert!(names.contains(&table), "{table} in {names:?}");
    }
    for other in ["losses", "clocks", "info", "note", "IRQ", "USER_CONTEXT_SWITCH"] {
        assert!(names.contains(&other), "{other} in {names:?}");
    }
    let note = "SELECT ts_tick, thread, n, what FROM note";
    let json = sigmund.run(["sql", "odd.supertrace", note, "--format", "json"]).found();
    let rows: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(rows, json!([{"ts_tick": 10, "thread": 1, "n": -3, "what": "a, \"b\"\tc"}]));
}

#[test]
fn sql_answers_with_the_columns_even_if_there_is_no_row() {
    let sigmund = figure_3();
    let asked = |format: &str| {
        let query = "SELECT thread, dur_tick FROM active WHERE thread = 99";
        sigmund.run(["sql", "figure3.supertrace", query, "--format", format]).found_nothing()
    };
    assert_eq!(asked("csv"), "thread,dur_tick\n");
    assert_eq!(serde_json::from_str::<Value>(&asked("json")).unwrap(), json!([]));
    assert!(asked("human").contains("dur_tick"), "{}", asked("human"));
}

#[test]
fn sql_says_once_what_is_wrong_with_a_query() {
    let said = figure_3().run(["sql", "figure3.supertrace", "SELECT nothing FROM active"]);
    assert_eq!(said.stderr.matches("No field named nothing").count(), 1, "{said:?}");
    said.complained(&["nothing"]);
}

#[test]
fn info_says_what_a_trace_is_and_holds() {
    let text = figure_3().run(["info", "figure3.supertrace"]).found();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    for expected in [
        &["time", "61.694", "ms,", "ticks", "5150163706", "to", "5322907374"][..],
        &["schema_version", "4"],
        &["tick_hz", "2800000000"],
        &["kernel_events", "3"],
        &["user_events", "20"],
    ] {
        assert!(lines.iter().any(|line| line == expected), "{expected:?} in {text}");
    }
    let rows = |table: &str| lines.iter().find(|l| l.first() == Some(&table)).map(|l| l[1]);
    assert_eq!(
        (rows("events"), rows("threads"), rows("losses")),
        (Some("23"), Some("20"), Some("0")),
        "{text}"
    );
    assert!(text.contains("| USER  | USER_CONTEXT_SWITCH | 19 "), "{text}");
}

#[test]
fn a_listing_of_the_paper_keeps_every_invariant() {
    let text = figure_3().run(["check"]).found();
    assert!(text.contains(" of 23 invariants hold"), "{text}");
    assert!(!text.contains("broken  "), "{text}");
    let kept = text.lines().filter(|line| line.starts_with("ok ")).count();
    // All but those that need the kernel, which has no event of these LWPs; and there are no spans, locks or wakeups.
    assert_eq!(kept, 11, "{text}");
}

#[test]
fn completions_and_the_man_page_know_the_commands() {
    let sigmund = Sigmund::new();
    let bash = sigmund.run(["completions", "bash"]).found();
    assert!(bash.contains("complete -F _sigmund") && bash.contains("--reactivity"), "no completions");
    let man = sigmund.run(["man"]).found();
    assert!(man.contains(".TH sigmund 1") && man.contains("\\-\\-active\\-time"), "no man page");
    let is_point = |line: &&str| line.starts_with("\\- ");
    let lines: Vec<&str> = man.lines().collect();
    assert!(lines.iter().filter(|line| is_point(line)).count() > 50, "no points");
    let joined = lines.windows(2).find(|two| !two[0].is_empty() && is_point(&two[1]));
    assert_eq!(joined, None, "roff fills both into one paragraph");
    std::fs::create_dir(sigmund.path("man1")).unwrap();
    sigmund.run(["man", "--all", "man1"]).found();
    let page = |name: &str| std::fs::read_to_string(sigmund.path("man1").join(name)).unwrap_or_default();
    assert!(
        page("sigmund.1").contains("\\-\\-active\\-time")
            && page("sigmund-record.1").contains("\\-\\-max\\-size")
    );
    assert!(!sigmund.path("man1/sigmund-hold.1").exists(), "it is internal");
    sigmund.run(["man", "--all", "none"]).complained(&["man pages to none", "No such file"]);
    let help = sigmund.run(["--help"]).found();
    for command in ["record", "merge", "info", "check", "sql", "demo"] {
        assert!(man.contains(&format!("sigmund\\-{command}")), "{command} in the man page");
        assert!(help.contains(&format!("\n  {command} ")), "{command} in {help}");
    }
    for internal in ["hold", "sumtime"] {
        assert!(!help.contains(&format!("\n  {internal}")), "{internal} in {help}");
    }
}

#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    // More than a pipe holds.
    let mut listing = String::from("type\tdate_tick\tpid\tcpu\tthr\tname\tparams\n");
    for tick in 0..20_000 {
        listing += &format!("USER\t{tick}\t1\t0\t1\tstep\t{tick}\n");
    }
    let sigmund = Sigmund::with_listing("long", &listing);
    for args in [
        &["--list-events"][..],
        &["--list-events", "--format", "json"],
        &["--reactivity", "step", "step", "--list-events", "--format", "json"],
        &["sql", "long.supertrace", "SELECT * FROM events"],
        &["completions", "bash"],
    ] {
        let mut command = sigmund.command();
        let mut child = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::with_capacity(16, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(!first.is_empty(), "{args:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), stderr.as_ref()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn what_would_be_ignored_or_destroy_its_input_is_refused() {
    let sigmund = figure_3();
    let inside = "figure3.supertrace/events/part-00000.parquet";
    let export = ["export", "figure3.supertrace", "--force", "-o"];
    let exported = |output, words: &[&str]| sigmund.run(export.iter().chain(&[output]).chain(words));
    exported(inside, &["--format", "csv"]).complained(&[inside, "outside of the super-trace"]);
    exported("x.paje", &["--format", "paje", "--table", "threads"]).complained(&["--table"]);
    sigmund.run(["-f", "figure3.supertrace", "--list-events"]).found();
    for (option, value) in
        [("--kernel-event", "no:such"), ("--filter", "no:such:id==0"), ("--kernel-clock", "mono")]
    {
        sigmund
            .run(["record", "--user-only", option, value, "--", "true"])
            .complained(&["--user-only", option]);
    }
    sigmund.run(["record", "--user-only", "--only", "--", "true"]).complained(&["--user-only", "--only"]);
    let flight = ["record", "--flight", "--user-buffer", "128", "--", "true"];
    sigmund.run(flight).complained(&["--user-buffer 128", "256"]);
}
