//! Awkward but right questions are answered, wrong ones are refused with what would be right, and what fails names what it
//! failed on.

use std::{path::Path, process::Command};

use crate::sigmund::{Reported, Sigmund, figure, fixture, program, said};

/// Runs a line of bash, in which `sigmund` is the command.
fn bash(sigmund: &Sigmund, line: &str) -> Reported {
    let mut command = Command::new("bash");
    let line = format!("sigmund() {{ '{}' \"$@\"; }}; {line}", program());
    command.current_dir(sigmund.folder()).args(["-c", &line]);
    said(command)
}

/// Threads that are called `4`, `a,b`, `name:x` and `8(y)`; thread 4 is called `other`.
fn odd_threads() -> Sigmund {
    let mut listing = String::from("type\tdate_tick\tpid\tcpu\tname\tparams\n");
    for (at, (thread, name)) in
        [(3, "4"), (4, "other"), (5, "a,b"), (6, "name:x"), (7, "8(y)"), (8, "back\\,slash")]
            .iter()
            .enumerate()
    {
        let at = at as u64 * 100;
        let name = serde_json::json!(name);
        listing += &format!("USER\t{}\t7\t0\tUSER_THREAD_NEW\tnew={thread} name={name}\n", 1000 + at);
        listing += &format!("USER\t{}\t7\t0\tUSER_CONTEXT_SWITCH\tnext={thread}\n", 1010 + at);
        listing += &format!("USER\t{}\t7\t0\tmark{thread}\t1\n", 1020 + at);
    }
    Sigmund::with_listing("odd", &listing)
}

#[test]
fn a_thread_of_any_name_can_be_asked_for() {
    let sigmund = odd_threads();
    let threads = |words: &str| {
        let said = sigmund.run(["--list-events", "--thread", words, "--event", "mark", "--format", "ndjson"]);
        let lines: Vec<String> = said.found().lines().map(String::from).collect();
        let mut marks: Vec<String> = Vec::new();
        for line in lines {
            let row: serde_json::Value = serde_json::from_str(&line).unwrap();
            marks.push(row["name"].as_str().unwrap().trim_start_matches("mark").to_string());
        }
        marks.join(" ")
    };
    for (words, expected) in [
        ("4", "4"),
        ("name:4", "3"),
        ("name:4,other", "3 4"),
        (r"a\,b", "5"),
        (r"name:a\,b,4", "4 5"),
        ("name:name:x", "6"),
        ("name:8(y)", "7"),
        (r"back\\\,slash", "8"),
        ("other,3", "3 4"),
    ] {
        assert_eq!(threads(words), expected, "{words}");
    }
    let help = sigmund.run(["--help"]).found();
    assert!(help.contains("name:4") && help.contains("\\,"), "{help}");
    // Of a selector everything after the @ is one name.
    let answered = |to: &str| {
        let said = sigmund.run(["--reactivity", "USER_THREAD_NEW", to, "--next", "--format", "csv"]);
        said.stdout.lines().nth(1).map(|line| line.split(',').next().unwrap().to_string())
    };
    assert_eq!(answered("mark3@name:4"), Some("1".into()));
    assert_eq!(answered("mark5@a,b"), Some("3".into()));
}

#[test]
fn a_window_that_ends_before_it_begins_is_refused_by_every_measure() {
    let sigmund = Sigmund::new();
    sigmund.write("t.tsv", format!("# tick_hz=1000000000\n{}", figure(3)).as_bytes());
    sigmund.run(["merge", "t.tsv", "-o", "t.supertrace"]).found();
    let window = ["--from", "5322893274", "--to", "5150163706"];
    for question in [
        &["--list-events"][..],
        &["--active-time"],
        &["--reactivity", "IRQ", "received_msg"],
        &["export", "t.supertrace", "--format", "chrome", "-o", "-"],
        &["export", "t.supertrace", "--format", "csv", "-o", "-"],
    ] {
        let said = sigmund.run(question.iter().chain(&window));
        said.complained(&["--from 5322893274", "--to 5150163706", "after"]);
    }
    sigmund.run(["--list-events", "--from", "2ms", "--to", "1ms"]).complained(&["2ms", "1ms"]);
    // One tick is no empty window.
    sigmund.run(["--list-events", "--from", "5150163706", "--to", "5150163706"]).found();
}

#[test]
fn an_event_that_the_trace_does_not_have_is_refused_with_names_like_it() {
    let sigmund = Sigmund::with_listing("t", &figure(3));
    for (from, to, nearest) in [
        ("IRC", "received_msg", "IRQ"),
        ("IRQ", "SYSTEM_CAL", "SYSTEM_CALL"),
        ("IRQ", "context_switch", "USER_CONTEXT_SWITCH"),
        ("nobody_knows", "received_msg", "sigmund info"),
    ] {
        let unknown = if from == "IRQ" { to } else { from };
        sigmund.run(["--reactivity", from, to]).complained(&["no event", unknown, nearest]);
    }
}

#[test]
fn a_reader_that_has_seen_enough_of_an_export_is_no_error() {
    let sigmund = Sigmund::new();
    let input = fixture("small-tsc-v7-zstd.dat");
    sigmund.run(["merge", input.to_str().unwrap(), "-o", "k.supertrace"]).found();
    let statuses = "; echo \"${PIPESTATUS[0]}\"";
    for format in ["perfetto", "chrome", "paje", "csv", "tsv", "ndjson", "arrow"] {
        let line =
            format!("sigmund export k.supertrace --format {format} -o - | head -c 10 >/dev/null{statuses}");
        let said = bash(&sigmund, &line);
        assert_eq!((said.stdout.as_str(), said.stderr.as_str()), ("0\n", ""), "{format}");
    }
    let listed = bash(&sigmund, &format!("sigmund --list-events | head -c 10 >/dev/null{statuses}"));
    assert_eq!((listed.stdout.as_str(), listed.stderr.as_str()), ("0\n", ""));
}

#[test]
fn more_inputs_than_the_soft_limit_of_descriptors_are_merged() {
    let sigmund = Sigmund::new();
    const INPUTS: usize = 60;
    for input in 0..INPUTS {
        let line = format!("prog-{} [000] ..... {}.5: sys_exit: NR 1 = 1", 1000 + input, 100 + input);
        sigmund.write(&format!("{input}.txt"), format!("# tracer: nop\n#\n  {line}\n").as_bytes());
    }
    // Each is open while it is merged.
    bash(&sigmund, "ulimit -Sn 32; sigmund merge *.txt -o all.supertrace").found();
    assert_eq!(sigmund.number("all.supertrace", "SELECT count(*) FROM events"), INPUTS as i64);
}

#[test]
fn what_cannot_be_written_is_named() {
    let sigmund = Sigmund::with_listing("t", &figure(3));
    if Path::new("/dev/full").exists() {
        for line in [
            "--list-events",
            "--active-time",
            "info t.supertrace",
            "check t.supertrace",
            "sql t.supertrace 'SELECT * FROM events'",
            "sql t.supertrace 'SELECT * FROM events' --format csv",
            "export t.supertrace --format csv -o -",
            "export t.supertrace --format chrome -o -",
            "completions bash",
            "man",
        ] {
            let said = bash(&sigmund, &format!("sigmund {line} >/dev/full"));
            said.complained(&["standard output", "No space left on device"]);
        }
    }
    for out in ["nowhere/x.json", "t.tsv/x.json"] {
        sigmund.run(["export", "t.supertrace", "--format", "chrome", "-o", out]).complained(&[out]);
        sigmund.run(["export", "t.supertrace", "--format", "csv", "-o", out]).complained(&[out]);
    }
}
