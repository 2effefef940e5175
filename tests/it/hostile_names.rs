//! Names that others chose, and that would clear the screen, retitle the window or turn a line around: for people every
//! subcommand shows them as escapes, on stdout and on stderr; formats for programs keep them.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::{fs::DirBuilderExt, net::UnixListener},
    thread,
};

use fut::{Builder, Runtime};
use serde_json::json;

use crate::{
    kernel,
    sigmund::{Reported, Sigmund},
};

/// Escape sequences (7 and 8 bits), DEL, an override, a line separator, a zero-width space; and a letter that stays.
const HOSTILE: &str = "\x1b[2J\x1b]0;mine\x07\u{9b}2J\x7f\u{202e}\u{2028}\u{200b}é";
/// How it is shown.
const SHOWN: &str = r"\u{1b}[2J\u{1b}]0;mine\u{7}\u{9b}2J\u{7f}\u{202e}\u{2028}\u{200b}é";
/// As a file name.
const FILE: &str = "\x1b[2J\u{9b}\u{202e}\nsigmund: forged";

/// An event and its parameter, a thread, all of hostile names. Only a parameter may hold a line break here.
fn listing() -> String {
    let (name, quoted) = (HOSTILE, json!(HOSTILE).to_string());
    let mut listing = String::from("type\tdate_tick\tpid\tcpu\tthr\tcode\tname\tparams\n");
    for (tick, line) in [
        (1, "KERN\tTICK\t1\t0\t?\t1\tIRQ\t24".to_string()),
        (2, format!("USER\tTICK\t7\t0\t8({name})\t2\t{name}\t{quoted}")),
        (3, format!("USER\tTICK\t7\t0\t8({name})\t3\tanswer\t1({quoted})")),
        (4, "USER\tTICK\t7\t0\t9(other)\t3\tanswer\t2".to_string()),
        (5, format!("USER\tTICK\t7\t0\t9(other)\t4\tnote\t{}", json!("a\nb\tc"))),
    ] {
        listing += &line.replace("TICK", &(tick * 1000).to_string());
        listing.push('\n');
    }
    listing
}

/// No character on stdout or stderr is obeyed by a terminal, and no line is forged.
#[track_caller]
fn is_printable(said: &Reported) {
    for stream in [&said.stdout, &said.stderr] {
        let obeyed = |c: char| (c.is_control() && c != '\n') || "\u{202e}\u{2028}\u{200b}".contains(c);
        assert!(!stream.contains(obeyed), "{said:?}");
        assert!(!stream.lines().any(|line| line.starts_with("sigmund: forged")), "{said:?}");
    }
}

/// It is printable, and what is hostile is in it.
#[track_caller]
fn shows(said: &Reported, name: &str) {
    is_printable(said);
    assert!(said.stdout.contains(name) || said.stderr.contains(name), "expected {name} in {said:?}");
}

#[test]
fn names_in_a_trace_cannot_steer_the_terminal() {
    let sigmund = Sigmund::with_listing("out", &listing());
    let run = |words: &[&str]| sigmund.run(words);
    let view = format!("SELECT * FROM \"{HOSTILE}\"");
    let no_column = format!("SELECT nothing FROM \"{HOSTILE}\"");
    for words in [
        &["--list-events"][..],
        &["--active-time"],
        &["--active-time", "--thread", "8"],
        &["--reactivity", HOSTILE, "answer@8", "--list-events"],
        &["info", "out.tsv"],
        &["info", "out.supertrace"],
        &["check", "out.supertrace", "--all"],
        &["sql", "out.supertrace", "SELECT * FROM events"],
        &["sql", "out.supertrace", "SELECT name AS \"\u{1b}[2J\" FROM threads"],
        &["sql", "out.supertrace", &view],
        &["sql", "out.supertrace", &no_column],
        &["--list-events", "--thread", HOSTILE, "--event", HOSTILE],
        &["--reactivity", HOSTILE, "no@such@thing"],
        &["sql", "out.supertrace", HOSTILE],
        &["no-such-command\u{1b}[2J"],
        &["check", "--only", HOSTILE],
    ] {
        is_printable(&run(words));
    }
    shows(&run(&["--list-events"]), r"\u{9b}2J\u{7f}\u{202e}\u{2028}\u{200b}é");
    shows(&run(&["--active-time"]), SHOWN);
    shows(&run(&["info", "out.tsv"]), SHOWN);
    shows(&run(&["info", "out.supertrace"]), SHOWN);
    shows(&run(&["sql", "out.supertrace", "SELECT name FROM threads"]), SHOWN);
    shows(&run(&["sql", "out.supertrace", &view]), SHOWN);
    shows(&run(&["sql", "out.supertrace", "SELECT x FROM \"\u{1b}[2J\""]), r"\u{1b}[2J");
}

#[test]
fn a_line_break_in_a_name_begins_no_row() {
    let sigmund = Sigmund::with_listing("out", &listing());
    for words in [&["--list-events"][..], &["sql", "out.supertrace", "SELECT * FROM note"]] {
        let said = sigmund.run(words);
        is_printable(&said);
        assert_eq!(said.stdout.lines().filter(|line| line.contains(r"a\nb\tc")).count(), 1, "{said:?}");
    }
    // What plans say has a step in each line.
    let plan = sigmund.run(["sql", "out.supertrace", "EXPLAIN SELECT name FROM threads"]).found();
    assert!(plan.lines().count() > 6 && !plan.contains(r"\n"), "{plan}");
}

#[test]
fn formats_for_programs_keep_names_as_they_are() {
    let sigmund = Sigmund::with_listing("out", &listing());
    for format in ["csv", "tsv"] {
        let said = sigmund.run(["sql", "out.supertrace", "SELECT name FROM threads", "--format", format]);
        assert!(said.found().contains(HOSTILE), "{format}");
        assert!(sigmund.run(["--active-time", "--format", format]).found().contains(HOSTILE), "{format}");
    }
    for words in [&["sql", "out.supertrace", "SELECT name FROM threads"][..], &["--active-time"]] {
        let said = sigmund.run(words.iter().chain(&["--format", "json"])).found();
        let rows: serde_json::Value = serde_json::from_str(&said).unwrap();
        assert!(rows.as_array().unwrap().iter().any(|row| row["name"] == HOSTILE), "{said}");
    }
}

#[test]
fn names_of_files_cannot_steer_the_terminal() {
    let _alone = kernel::alone();
    let sigmund = Sigmund::new();
    let input = format!("{FILE}.tsv");
    let trace = format!("{FILE}.supertrace");
    let folder = format!("{FILE}.folder");
    sigmund.write(&input, listing().as_bytes());
    fs::create_dir(sigmund.path(&folder)).unwrap();
    sigmund.write(&format!("{folder}/x.dat"), b"no trace");
    for words in [
        &["merge", &input, "-o", &trace][..],
        &["merge", &input, "-o", &trace],
        &["merge", &folder, "-o", "other.supertrace"],
        &["info", &input],
        &["info", &trace],
        &["info", &folder],
        &["check", &trace],
        &["export", &trace, "--format", "chrome", "-o", &format!("{FILE}.json")],
        &["export", &trace, "--format", "csv", "-o", &format!("{FILE}.csv")],
        &["export", &trace, "--format", "csv", "-o", &trace],
        &["--trace-file", &folder, "--list-events"],
        &["sql", &folder, "SELECT 1"],
        &["record", "--user-only", "-o", "RUN", "--", &input],
    ] {
        shows(&sigmund.run(words), r"\u{1b}[2J");
        let _ = fs::remove_dir_all(sigmund.path("RUN"));
    }
}

/// Not a test: a program of hostile names, for the test below.
#[test]
fn a_program_of_hostile_names() {
    if std::env::var_os("SIGMUND_TEST_HOSTILE").is_none() {
        return;
    }
    fs::write("/proc/self/comm", "\x1b[2J\u{9b}").unwrap();
    let body = || {
        let runtime = Runtime::builder().lwps(2).build().unwrap();
        runtime.run(|| {
            let threads: Vec<_> = (0..3)
                .map(|_| Builder::new().name(HOSTILE).spawn(|| std::io::stdin().lines().next().is_some()))
                .collect();
            threads.into_iter().for_each(|thread| drop(thread.join()));
        });
    };
    thread::Builder::new().name("\x1b]0;lwp\x07".into()).spawn(body).unwrap().join().unwrap();
}

#[test]
fn names_of_a_recorded_program_cannot_steer_the_terminal() {
    let _alone = kernel::alone();
    let sigmund = Sigmund::new();
    let mut command = sigmund.command();
    command.env("SIGMUND_TEST_HOSTILE", "1").stdin(std::process::Stdio::piped());
    command.args(["record", "--user-only", "-o", "RUN", "--"]).arg(std::env::current_exe().unwrap());
    command.args(["hostile_names::a_program_of_hostile_names", "--exact", "--nocapture"]);
    let mut recorder = crate::sigmund::Running::of(command);
    let input = recorder.child.stdin.take();
    let traced = kernel::program_of(recorder.pid(), "hostile_names::a_program_of_hostile_names");
    let pid = traced.number().to_string();
    let threads = loop {
        let said = sigmund.run(["ctl", &pid, "threads"]);
        if said.stdout.contains("mine") {
            break said;
        }
        is_printable(&said);
        thread::sleep(std::time::Duration::from_millis(20));
    };
    shows(&threads, SHOWN);
    is_printable(&sigmund.run(["ctl", &pid, "list"]));
    is_printable(&sigmund.run(["ctl", &pid, "status"]));
    is_printable(&sigmund.run(["ctl", &pid, "disable", HOSTILE]));
    // The threads read a line each.
    drop(input);
    // Of the program's own output nothing is ours to change.
    let said = recorder.finish();
    assert_eq!(said.status, 0, "{said:?}");
    assert!(!said.stderr.contains(|c: char| c.is_control() && c != '\n'), "{said:?}");
    shows(&sigmund.run(["info", "RUN"]), r"\u{1b}");
    shows(&sigmund.run(["info", "RUN.supertrace"]), "USER_THREAD_NEW");
    shows(&sigmund.run(["sql", "RUN.supertrace", "SELECT name FROM threads"]), SHOWN);
    is_printable(&sigmund.run(["check", "RUN.supertrace", "--all"]));
    is_printable(&sigmund.run(["-f", "RUN.supertrace", "--list-events"]));
}

/// What a process answers on its control socket is its own choice: this one is such a process.
#[test]
fn answers_of_a_process_cannot_steer_the_terminal() {
    let _alone = kernel::alone();
    let sigmund = Sigmund::new();
    let folder = sigmund.path("fut");
    fs::DirBuilder::new().mode(0o700).create(&folder).unwrap();
    let pid = std::process::id().to_string();
    let server = UnixListener::bind(folder.join(format!("{pid}.sock"))).unwrap();
    let table = format!(
        "fut-control 1 ok\nfact\t{HOSTILE}\tt{HOSTILE}\nfact\tmatched\tn1\ncolumns\t{HOSTILE}\tx\n\
         row\tt{HOSTILE}\\nforged\tn1\nend\n"
    );
    let refusal = format!("fut-control 1 error\t{HOSTILE}\\nsigmund: forged\nend\n");
    let garbage = format!("{HOSTILE}\n");
    // Each is given to four questions. Not joined: if one does not come, the test fails below.
    let answers = [table, refusal, garbage];
    thread::spawn(move || {
        for answer in answers.iter().flat_map(|answer| [answer; 4]) {
            let (mut stream, _) = server.accept().unwrap();
            BufReader::new(&stream).read_line(&mut String::new()).unwrap();
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    for (status, echoes) in [(0, true), (2, true), (2, false)] {
        for verb in [&["list"][..], &["threads"], &["status"], &["enable", "*"]] {
            let mut command = sigmund.command();
            command.env("XDG_RUNTIME_DIR", sigmund.folder()).args(["ctl", &pid]).args(verb);
            let said = crate::sigmund::said(command);
            assert_eq!(said.status, status, "{verb:?}: {said:?}");
            is_printable(&said);
            if echoes && (status == 2 || verb[0] != "enable") {
                shows(&said, r"\u{9b}2J");
            }
        }
    }
}
