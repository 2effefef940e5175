//! Schemata: what is recorded by one travels with the trace, and `report` answers its questions, or gives the reason.

use std::process::Command;

use serde_json::Value;

use crate::{
    kernel,
    sigmund::{Sigmund, program, said},
    views::listing,
};

const OURS: [&str; 8] =
    ["overview", "stopwatch", "scheduler", "latency", "locks", "interrupts", "syscalls", "memory"];

/// Records the server of docs/questions.md into RUN with these options.
pub(crate) fn record(sigmund: &Sigmund, options: &[&str]) -> String {
    crate::docs::my_server_in(sigmund.folder());
    let _alone = kernel::alone();
    let mut command = sigmund.command();
    command.env_remove("FUT_KEYMASK").arg("record").args(options).args(["-o", "RUN", "--", "./myserver"]);
    let reported = said(command);
    assert_eq!(reported.status, 0, "{reported:?}");
    reported.stderr
}

fn report(sigmund: &Sigmund, options: &[&str]) -> Value {
    let json = sigmund.run([&["report", "RUN.supertrace", "--format", "json"], options].concat()).found();
    serde_json::from_str(&json).unwrap()
}

/// The rows of the question that has this word, of the first schema.
#[track_caller]
fn rows<'r>(report: &'r Value, word: &str) -> &'r [Value] {
    let questions = report["schemata"][0]["questions"].as_array().unwrap();
    let has_word = |question: &&Value| question["text"].as_str().unwrap().contains(word);
    let question = questions.iter().find(has_word).unwrap_or_else(|| panic!("{word}: {questions:?}"));
    let rows = question["rows"].as_array().unwrap();
    assert!(!rows.is_empty(), "{question}");
    rows
}

#[track_caller]
fn has_text(rows: &[Value], column: &str, text: &str) {
    assert!(rows.iter().any(|row| row[column] == text), "{column} = {text}: {rows:?}");
}

#[track_caller]
fn sum(rows: &[Value], column: &str) -> i64 {
    rows.iter().map(|row| row[column].as_i64().unwrap_or_else(|| panic!("{column}: {row}"))).sum()
}

#[test]
fn each_of_ours_answers_its_questions_about_a_recording() {
    if !kernel::may_record() {
        return;
    }
    for name in OURS {
        let (sigmund, told, found) = recorded(name);
        assert!(told.contains("tracepoints of the whole machine"), "{told}");
        assert_eq!(found["schemata"][0]["name"], name);
        assert_eq!(found["by_default"], false);
        let questions = found["schemata"][0]["questions"].as_array().unwrap();
        for question in questions {
            assert_eq!(question["error"], Value::Null, "{name}: {question}");
            let is_answered = question["total_rows"].as_u64().unwrap() > 0;
            assert!(is_answered || question["why_none"].is_string(), "{name}: {question}");
        }
        is_true(&sigmund, name, &found);
        let page = sigmund.run(["report"]).found();
        assert!(page.contains(&format!("{name}: ")) && page.lines().count() < 90, "{page}");
        assert!(!page.contains("  error: ") && !page.contains("expected a column"), "{page}");
    }
}

/// A recording by a schema, what was said, and its report. Where other processes have the CPUs it may take some until one has
/// a request that waits for the lock of the cache.
fn recorded(name: &str) -> (Sigmund, String, Value) {
    let mut left = 20;
    loop {
        let sigmund = Sigmund::new();
        let told = record(&sigmund, &["--schema", name]);
        let found = report(&sigmund, &["--top", "50"]);
        left -= 1;
        if left == 0 || name != "overview" || found.to_string().contains("\"kind\":\"mutex\"") {
            return (sigmund, told, found);
        }
    }
}

/// What is known of the server: 200 requests with a span each, most of which wait for the lock of the cache.
fn is_true(sigmund: &Sigmund, name: &str, found: &Value) {
    match name {
        "overview" => {
            has_text(rows(found, "ran most"), "what", "cpu");
            has_text(rows(found, "all the time"), "state", "active");
            has_text(rows(found, "locks"), "kind", "mutex");
        }
        "stopwatch" => {
            let spans = rows(found, "How long do spans");
            let request = spans.iter().find(|row| row["name"] == "request").unwrap();
            assert_eq!(request["count"], 200);
            // Each sleeps for 100 us.
            assert!(request["min_ns"].as_i64().unwrap() >= 100_000, "{request}");
            // By nearest rank: a length that occurred.
            let has_median = format!(
                "SELECT count(*) FROM spans WHERE name = 'request' AND dur_ns = {}",
                request["median_ns"]
            );
            assert!(sigmund.number("RUN.supertrace", &has_median) > 0, "{request}");
            // Five of them fill the cache, in 2 ms.
            let fill = spans.iter().find(|row| row["kind"] == "function").unwrap();
            assert!(fill["count"] == 5 && fill["median_ns"].as_i64().unwrap() >= 1_900_000, "{fill}");
        }
        "scheduler" => {
            has_text(rows(found, "all the time"), "name", "request");
            has_text(rows(found, "quanta"), "ended_by", "block");
            // Those of the runtime run, and are given the CPU.
            has_text(rows(found, "LWPs that carry them do"), "state", "running");
            has_text(rows(found, "the kernel gives to the LWPs"), "ended_by", "all");
            has_text(rows(found, "queues"), "kind", "ready-queue");
            has_text(rows(found, "queues"), "kind", "run-queue");
            // Where the kernel left out switches of the idle task, none may be counted.
            let questions = found["schemata"][0]["questions"].as_array().unwrap();
            let cost =
                questions.iter().find(|question| question["text"].as_str().unwrap().contains("switch cost"));
            let cost = cost.unwrap();
            assert!(
                cost["total_rows"].as_u64() > Some(0) || cost["notes"].to_string().contains("not counted"),
                "{cost}"
            );
        }
        "latency" => {
            has_text(rows(found, "threads wait to run"), "name", "request");
            let worst = rows(found, "longest");
            assert!(worst.len() == 5 && sum(worst, "latency_tick") > 0, "{worst:?}");
            rows(found, "LWPs wait");
            let wakers = rows(found, "What woke whom");
            has_text(wakers, "woken", "request");
            assert!(sum(wakers, "times") > 200, "{wakers:?}");
        }
        "locks" => {
            let locks = rows(found, "Which locks");
            has_text(locks, "kind", "mutex");
            // Holds are recorded: each of the 200 requests took the lock of the cache, and served counts messages.
            let mutexes: Vec<Value> = locks.iter().filter(|row| row["kind"] == "mutex").cloned().collect();
            assert!(sum(&mutexes, "holds") >= 200, "{mutexes:?}");
            assert!(sum(rows(found, "critical sections"), "count") >= 200);
            rows(found, "waits were the longest");
        }
        "interrupts" => {
            rows(found, "Which interrupts");
            let taken = rows(found, "each CPU");
            assert!(taken.iter().all(|row| row["total_ns"].as_i64() >= row["max_ns"].as_i64()), "{taken:?}");
        }
        "syscalls" => {
            let calls = rows(found, "take the time");
            assert!(calls.iter().any(|row| row["name"] == "mmap"), "{calls:?}");
            assert!(calls.iter().any(|row| row["name"] == "execve"), "{calls:?}");
            rows(found, "split");
            // The loader looks for files that are not there.
            has_text(rows(found, "fail"), "error", "ENOENT");
        }
        "memory" => {
            has_text(rows(found, "system calls"), "name", "mmap");
            if !found["missing_tracepoints"].to_string().contains("page_fault_user") {
                assert!(sum(rows(found, "Who has page faults"), "faults") > 100);
            }
        }
        other => panic!("{other}: expected what is true of it"),
    }
}

#[test]
fn the_file_with_all_parts_in_the_documentation_is_a_schema() {
    if !kernel::may_record() {
        return;
    }
    let page = include_str!("../../docs/schemata.md");
    let (_, rest) = page.split_once("A file with all parts:\n\n```text\n").unwrap();
    let sigmund = Sigmund::new();
    sigmund.write("requests.toml", rest.split("```").next().unwrap().as_bytes());
    record(&sigmund, &["--schema", "./requests.toml"]);
    let found = report(&sigmund, &[]);
    assert_eq!(found["schemata"][0]["name"], "requests");
    has_text(rows(&found, "slow requests"), "category", "duration");
    has_text(rows(&found, "message"), "name", "daemon");
    has_text(rows(&found, "all the time"), "state", "blocked");
    assert_eq!(found["schemata"][0]["questions"][3]["error"], Value::Null, "{found}");
}

#[test]
fn what_a_schema_records_is_what_it_names_and_what_options_add() {
    if !kernel::may_record() {
        return;
    }
    let sigmund = Sigmund::new();
    let mine = "name = \"mine\"\nabout = \"Mine.\"\n[kernel]\nmachine = [\"sched:no_such_event?\", \"sched:sched_waking\", \"irq:no_such_event?\"]\n\
        [program]\nkeys = [\"scheduler\"]\nevents = [\"never_declared\"]\n\
        [[question]]\ntext = \"Calls?\"\nsql = \"SELECT * FROM sys_enter\"\nneeds = [\"irq:no_such_event\", \"sched:no_such_event\"]\n\
        [[question]]\ntext = \"Who?\"\nmeasure = \"summary\"\n";
    sigmund.write("mine.toml", mine.as_bytes());
    let options = ["--schema", "mine.toml", "--kernel-event", "irq:irq_handler_entry"];
    let told = record(&sigmund, &options);
    assert!(told.contains("2 tracepoints: sched:no_such_event, irq:no_such_event"), "{told}");
    let kernel = sigmund.sql(
        "RUN.supertrace",
        "SELECT DISTINCT name FROM event_types WHERE level = 'KERN' AND (events > 0 OR name LIKE 'irq%') AND name NOT LIKE 'sched_process%' ORDER BY name",
    );
    assert_eq!(kernel.concat(), ["irq_handler_entry", "sched_switch", "sched_waking", "task_newtask"]);
    assert_eq!(sigmund.number("RUN.supertrace", "SELECT count(*) FROM spans"), 0);
    let page = sigmund.run(["report"]).found();
    let unknown = "no_such_event (this kernel does not have it)";
    let why = &format!("not recorded: irq:{unknown}, sched:{unknown}");
    assert!(page.contains(why), "{page}");
    assert!(page.contains("the program did not record: never_declared"), "{page}");
    // The text is kept as it was.
    assert_eq!(report(&sigmund, &[])["schemata"][0]["name"], "mine");
    let info = sigmund.run(["info", "RUN.supertrace"]).found();
    assert!(info.contains("recorded_schema_mine"), "{info}");
    let needed = mine.replace("no_such_event?", "no_such_event");
    sigmund.write("needed.toml", needed.as_bytes());
    let two = ["record", "--schema", "mine.toml", "--schema", "needed.toml", "-o", "NEW", "--", "true"];
    sigmund.run(two).complained(&["--schema", "called mine, found two that differ"]);
    let refused = sigmund.run(["record", "--schema", "./needed.toml", "-o", "NEW", "--", "true"]);
    refused.complained(&["needed.toml:4: sched:no_such_event", "this kernel has no such event"]);
    sigmund.write("near.toml", mine.replace("sched:sched_waking", "sched:sched_wakin").as_bytes());
    let refused = sigmund.run(["record", "--schema", "./near.toml", "-o", "NEW", "--", "true"]);
    refused.complained(&[
        "near.toml:4: sched:sched_wakin: this kernel has no such event; nearest: sched:sched_waking",
    ]);
    let refused = sigmund.run(["record", "--kernel-event", "sched:sched_wakin", "-o", "NEW", "--", "true"]);
    refused.complained(&["--kernel-event sched:sched_wakin", "nearest: sched:sched_waking"]);
    assert!(!sigmund.path("NEW").exists());
}

#[test]
fn the_caller_s_key_mask_is_obeyed_instead() {
    let sigmund = Sigmund::new();
    crate::docs::my_server_in(sigmund.folder());
    let spans = |mask: Option<&str>| {
        let mut command: Command = sigmund.command();
        command.args([
            "record",
            "--force",
            "--user-only",
            "--schema",
            "stopwatch",
            "-o",
            "RUN",
            "--",
            "./myserver",
        ]);
        command.env_remove("FUT_KEYMASK");
        mask.into_iter().for_each(|mask| _ = command.env("FUT_KEYMASK", mask));
        said(command).found();
        sigmund.number("RUN.supertrace", "SELECT count(*) FROM spans WHERE name = 'request'")
    };
    assert_eq!(spans(None), 200);
    assert_eq!(spans(Some("scheduler")), 0);
    // The kernel was not recorded, and the report says so.
    let page = sigmund.run(["report", "--schema", "interrupts"]).found_nothing();
    assert!(page.contains("the kernel was not recorded: --user-only"), "{page}");
}

#[test]
fn a_trace_without_a_schema_has_an_overview_and_others_on_request() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let page = sigmund.run(["report"]).found();
    assert!(page.starts_with("t.supertrace") && page.contains("recorded without a schema"), "{page}");
    assert!(page.contains("Who ran most?") && page.contains("\n  no answer: "), "{page}");
    let both = sigmund.run(["report", "t.supertrace", "--schema", "locks", "--schema", "syscalls"]).found();
    assert!(both.find("\nlocks: ").unwrap() < both.find("\nsyscalls: ").unwrap(), "{both}");
    assert!(!both.contains("recorded without a schema") && !both.contains("overview"), "{both}");
    let markdown = sigmund.run(["report", "--format", "markdown"]).found();
    assert!(markdown.starts_with("# t.supertrace\n") && markdown.contains("\n| --- |"), "{markdown}");
    sigmund.run(["report", "--schema", "memory"]).found_nothing();
    assert_eq!(sigmund.run(["report", "--strict"]).status, 0);
}

#[test]
fn gaps_are_told_under_each_answer_and_strictly_status_3() {
    // CPU 0 goes from 70 to 90 unseen: 90 is what leaves it at 170.
    let unseen: String =
        listing().lines().filter(|line| !line.contains("\t150\t")).map(|l| format!("{l}\n")).collect();
    let sigmund = Sigmund::with_listing("t", &unseen);
    let strict = sigmund.run(["report", "--strict"]);
    assert_eq!(strict.status, 3, "{strict:?}");
    assert!(strict.stdout.contains("\n  events are missing in this time"), "{strict:?}");
    assert!(strict.stdout.contains("\nevents are missing ("), "{strict:?}");
}

#[test]
fn a_schema_that_is_none_is_refused_with_its_line() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let all = OURS.join(", ");
    sigmund.run(["report", "--schema", "lokcs"]).complained(&["nearest: locks", &all]);
    sigmund.run(["record", "--schema", "lokcs", "--", "true"]).complained(&["nearest: locks", &all]);
    sigmund.run(["schema", "lokcs"]).complained(&["nearest: locks", &all]);
    sigmund.run(["report", "--schema", "no.toml"]).complained(&["no.toml: "]);
    sigmund
        .write("bad.toml", b"name = \"a\"\nabout = \"b\"\n[[question]]\ntext = \"c\"\nmeasure = \"lock\"\n");
    sigmund.run(["report", "--schema", "bad.toml"]).complained(&["bad.toml:5: ", "nearest: locks"]);
    sigmund.write("bad.toml", b"\"\\u001b[31m\" = 3\n");
    let reported = sigmund.run(["report", "--schema", "bad.toml"]);
    assert!(!reported.stderr.contains('\x1b'), "{reported:?}");
    reported.complained(&["bad.toml:1: "]);
    let misspelt = "name = \"a\"\nabout = \"b\"\n[[question]]\ntext = \"c\"\nmeasure = \"summary\"\n\
        columns = [\"pattern\", \"totl\"]\n";
    sigmund.write("misspelt.toml", misspelt.as_bytes());
    let refused = sigmund.run(["report", "--schema", "misspelt.toml"]);
    refused.complained(&["misspelt.toml:6: ", "found \"totl\"; nearest: total"]);
    let of_sql = misspelt.replace("measure = \"summary\"", "sql = \"SELECT 1 AS total_ns, 'a' AS lwp\"");
    sigmund.write("of_sql.toml", of_sql.as_bytes());
    let page = sigmund.run(["report", "--schema", "of_sql.toml"]).found();
    assert!(page.contains("found \"totl\"; nearest: total") && !page.contains("\"pattern\""), "{page}");
    // A mistake that only the trace shows is an error of that question; the others are answered.
    let wrong = "name = \"a\"\nabout = \"b\"\n[[question]]\ntext = \"c\"\nsql = \"SELECT nothing FROM nowhere\"\n\
        [[question]]\ntext = \"d\"\nsql = \"SELECT nothing FROM events\"\n[[question]]\ntext = \"e\"\nmeasure = \"summary\"\n";
    sigmund.write("wrong.toml", wrong.as_bytes());
    let page =
        sigmund.run(["report", "--schema", "wrong.toml"]).complained(&["question 1 of", "question 2 of"]);
    assert!(page.contains("  error: ") && page.contains("lwp"), "{page}");
}

#[test]
fn a_mistake_is_reported_before_anything_is_recorded() {
    let sigmund = Sigmund::new();
    let head = "name = \"a\"\nabout = \"b\"\n[[question]]\ntext = \"c\"\n";
    for (question, words) in [
        ("sql = \"SELEC 1\"", &["bad.toml:5: ", "SELEC"][..]),
        ("sql = \"DROP TABLE events\"", &["bad.toml:5: ", "expected a SELECT"]),
        (
            "measure = \"reactivity\"\nfrom = \"sched_waking(\"\nto = \"x\"",
            &["bad.toml:6: ", "sched_waking("],
        ),
        ("measure = \"critical-path\"", &["bad.toml:5: ", "expected subject"]),
        ("measure = \"states\"\ncolumns = [\"totl\"]", &["bad.toml:6: ", "nearest: total"]),
        ("measure = \"states\"\nneeds = [\"raw_syscalls:sys_enter\"]", &["bad.toml:6: ", "[kernel]"]),
    ] {
        sigmund.write("bad.toml", format!("{head}{question}\n").as_bytes());
        sigmund.run(["record", "--schema", "bad.toml", "-o", "RUN", "--", "true"]).complained(words);
        assert!(!sigmund.path("RUN").exists(), "{question}");
    }
}

#[test]
fn the_page_names_the_command_that_prints_all_and_that_does() {
    let sigmund = Sigmund::with_listing("a b", &listing());
    let mine = "name = \"a\"\nabout = \"b\"\n[[question]]\ntext = \"c\"\nmeasure = \"explain\"\nfrom = \"sched_waking\"\nto = \"sys_exit\"\ntop = 1\n\
        [[question]]\ntext = \"d\"\nsql = \"SELECT lwp FROM lwps\"\ntop = 1\n";
    sigmund.write("mine.toml", mine.as_bytes());
    let page = sigmund.run(["report", "--schema", "mine.toml"]).found();
    let whole = |page: &str| page.split_once("all of them: ").unwrap().1.lines().next().unwrap().to_string();
    let command = whole(&page);
    assert_eq!(command, "sigmund -f 'a b.supertrace' --explain sched_waking sys_exit");
    let answered = |command: &str| {
        let mut shell = Command::new("sh");
        let line = command.replacen("sigmund", program(), 1);
        shell.args(["-c", &line]).current_dir(sigmund.folder());
        said(shell).found()
    };
    assert!(answered(&command).contains("stalled"), "{command}");
    // A query is in the schema: the page shows more rows of it, and for programs it is whole.
    let more = page.split_once(" rows; --top ").unwrap().1.split_whitespace().next().unwrap();
    let page = sigmund.run(["report", "--schema", "mine.toml", "--top", more]).found();
    assert!(!page.contains(" rows; --top "), "{page}");
    let json = sigmund.run(["report", "--schema", "mine.toml", "--format", "json"]).found();
    let json: Value = serde_json::from_str(&json).unwrap();
    let query = json["schemata"][0]["questions"][1]["answered_by"].as_str().unwrap();
    assert!(answered(query).contains("70"), "{query}");
}

#[test]
fn a_page_of_many_rows_has_all_that_were_asked_for() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let mine = "name = \"a\"\nabout = \"b\"\n[[question]]\ntext = \"c\"\nsql = \"SELECT value FROM range(0, 1500)\"\n";
    sigmund.write("mine.toml", mine.as_bytes());
    let page = sigmund.run(["report", "--schema", "mine.toml", "--top", "99999"]);
    assert!(!page.stderr.contains("--format"), "{page:?}");
    assert!(page.found().contains("1499"));
}

#[test]
fn events_that_contradict_the_switches_are_gaps_and_no_lost_events() {
    // CPU 0 goes from 70 to 90 unseen: 90 is what leaves it at 170.
    let unseen: String =
        listing().lines().filter(|line| !line.contains("\t150\t")).map(|l| format!("{l}\n")).collect();
    let sigmund = Sigmund::with_listing("t", &unseen);
    let counted =
        sigmund.number("t.supertrace", "SELECT sum(count) FROM losses WHERE kind = 'contradiction'");
    assert!(counted > 0, "{counted}");
    let json = sigmund.run(["report", "--format", "json"]).found();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["lost_events"], json["gaps"].as_u64() > Some(0)), (&0.into(), true), "{json}");
    let page = sigmund.run(["report"]).found();
    assert!(page.contains("\nevents are missing (1 gap): `sigmund check` lists them"), "{page}");
}

#[test]
fn rows_can_be_sorted_by_a_column() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let totals = |sort: &str| {
        let mine =
            "name = \"a\"\nabout = \"b\"\n[[question]]\ntext = \"c\"\nmeasure = \"states\"\nby = \"lwp\"\n";
        sigmund.write("mine.toml", format!("{mine}{sort}").as_bytes());
        let json =
            sigmund.run(["report", "--schema", "mine.toml", "--top", "50", "--format", "json"]).found();
        let json: Value = serde_json::from_str(&json).unwrap();
        let rows = json["schemata"][0]["questions"][0]["rows"].as_array().unwrap().clone();
        rows.iter().map(|row| row["total_tick"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    let (usual, sorted) = (totals(""), totals("sort = \"total\"\n"));
    assert!(!usual.is_sorted_by(|a, b| a >= b) && sorted.is_sorted_by(|a, b| a >= b), "{usual:?} {sorted:?}");
    assert_eq!(usual.iter().sum::<i64>(), sorted.iter().sum::<i64>());
}

#[test]
fn ours_are_listed_and_printed_to_be_changed() {
    let sigmund = Sigmund::new();
    let list = sigmund.run(["schema"]).found();
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, OURS);
    for name in OURS {
        let text = sigmund.run(["schema", name]).found();
        assert!(text.contains(&format!("name = \"{name}\"")) && text.contains("[[question]]"), "{text}");
    }
    assert_eq!(
        said({
            let mut command = Command::new(program());
            command.args(["schemata"]);
            command
        })
        .found(),
        list
    );
}
