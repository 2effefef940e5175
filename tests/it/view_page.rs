//! The page of `sigmund view`: in a real browser, and its modules by themselves.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::Command,
    sync::{Mutex, MutexGuard},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    docs, kernel,
    sigmund::{Running, Sigmund, program},
    view::Server,
    views::listing,
};

const TRACE: &str = "t.supertrace";

/// Names that a page must show as text.
const HOSTILE: [&str; 4] =
    ["<img/src=x/onerror=alert(1)>", "a\"b'c&amp;", "\u{202e}live", "</script><script>alert(2)</script>"];

#[test]
fn the_page_does_what_a_hand_expects_in_a_real_browser() {
    let (Some(_page), Some(alone)) = (page_tools(), kernel::as_root()) else { return };
    let sigmund = Sigmund::new();
    sigmund.run(["record", "-o", "RUN", "--", program(), "sumtime", "9", "4", "20000"]).found();
    drop(alone);
    let server = Server::start(&sigmund, "RUN.supertrace", &[]);
    let shown = drive(&sigmund, &server, "page.mjs");
    assert_eq!(shown["passed"].as_array().unwrap().len(), 29, "{shown}");
}

#[test]
fn what_is_copied_from_the_page_gives_the_numbers_that_it_shows() {
    let (Some(_page), Some(alone)) = (page_tools(), kernel::as_root()) else { return };
    let sigmund = Sigmund::new();
    sigmund.run(["record", "-o", "RUN", "--", program(), "sumtime", "9", "4", "20000"]).found();
    drop(alone);
    let server = Server::start(&sigmund, "RUN.supertrace", &[]);
    let shown = drive(&sigmund, &server, "hand.mjs");
    let copied = shown["copied"].as_array().unwrap();
    assert_eq!(copied.len(), 3, "{shown}");
    for copy in copied {
        let (command, sql) = (copy["command"].as_str().unwrap(), copy["SQL"].as_str().unwrap());
        let of_command = table(&in_shell(&sigmund, &format!("{command} --format tsv")));
        let of_sql = table(&sigmund.run(["sql", "RUN.supertrace", sql, "--format", "tsv"]).found());
        let Some(text) = copy["text"].as_str() else {
            assert_eq!(of_command.len(), copy["rows"].as_u64().unwrap() as usize, "{command}");
            assert_eq!(of_command.len(), of_sql.len(), "{sql}");
            continue;
        };
        let shown = text.lines().map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            (cells[0].to_string(), cells[1].parse::<i64>().unwrap())
        });
        let shown: BTreeMap<String, i64> = shown.collect();
        assert!(!shown.is_empty(), "{copy}");
        assert_eq!(by_state(&of_command), shown, "{command}");
        assert_eq!(by_state(&of_sql), shown, "{sql}");
    }
}

/// What a shell writes for a command that begins with `sigmund`.
fn in_shell(sigmund: &Sigmund, command: &str) -> String {
    let rest = command.strip_prefix("sigmund ").unwrap_or_else(|| panic!("{command}"));
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!("exec \"$SIGMUND\" {rest}"))
        .env("SIGMUND", program())
        .current_dir(sigmund.folder())
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Rows by the names of columns.
fn table(tsv: &str) -> Vec<BTreeMap<String, String>> {
    let mut lines = tsv.lines();
    let columns: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
    let row = |line: &str| {
        let cells = columns.iter().zip(line.split('\t'));
        cells.map(|(column, cell)| (column.to_string(), cell.to_string())).collect()
    };
    lines.map(row).collect()
}

fn by_state(rows: &[BTreeMap<String, String>]) -> BTreeMap<String, i64> {
    let mut states = BTreeMap::new();
    for row in rows {
        *states.entry(row["state"].clone()).or_default() += row["total_tick"].parse::<i64>().unwrap();
    }
    states
}

#[test]
fn panels_show_what_the_tables_have() {
    let (Some(_page), Some(alone)) = (page_tools(), kernel::as_root()) else { return };
    let sigmund = Sigmund::new();
    docs::my_server_in(&sigmund.path(""));
    sigmund.run(["record", "-o", "RUN", "--", "./myserver"]).found();
    drop(alone);
    let server = Server::start(&sigmund, "RUN.supertrace", &[]);
    let shown = drive(&sigmund, &server, "panels.mjs");
    assert_eq!(shown["passed"].as_array().unwrap().len(), 8, "{shown}");
}

#[test]
fn two_super_traces_are_compared_on_one_page() {
    let (Some(_page), Some(alone)) = (page_tools(), kernel::as_root()) else { return };
    let sigmund = Sigmund::new();
    for (run, depth) in [("A", "9"), ("B", "8")] {
        sigmund.run(["record", "-o", run, "--", program(), "sumtime", depth, "4", "20000"]).found();
    }
    drop(alone);
    let server = Server::of(&sigmund, &["A.supertrace", "B.supertrace", "--cache", "cache"]);
    let shown = drive(&sigmund, &server, "compare.mjs");
    assert_eq!(shown["passed"].as_array().unwrap().len(), 9, "{shown}");
    // The commands of the page: of the whole, and of a window.
    for (question, command) in [("compare?name=states", "command"), ("", "windowed")] {
        let command = shown[command].as_str().unwrap();
        let rows = table(&in_shell(&sigmund, &format!("{command} --format tsv")));
        assert!(!rows.is_empty(), "{command}");
        if question.is_empty() {
            continue;
        }
        let asked = server.json(question);
        let columns: Vec<&str> = asked["columns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|column| column["name"].as_str().unwrap())
            .collect();
        let asked = asked["rows"].as_array().unwrap();
        assert_eq!(asked.len(), rows.len(), "{command}");
        for (asked, row) in asked.iter().zip(&rows) {
            for (column, value) in columns.iter().zip(asked.as_array().unwrap()) {
                match value {
                    Value::String(text) => assert_eq!(&row[*column], text, "{column}"),
                    Value::Number(number) => {
                        let (number, cell) = (number.as_f64().unwrap(), row[*column].parse::<f64>().unwrap());
                        // The command writes fractions with fewer digits.
                        let close = (number - cell).abs() <= 1e-3 * number.abs().max(1.0);
                        assert!(close, "{column}: {number} {cell}");
                    }
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn nothing_of_the_page_is_a_serious_obstacle_to_anybody() {
    let (Some(_page), Some(alone)) = (page_tools(), kernel::as_root()) else { return };
    let axe = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/page/node_modules/axe-core/axe.min.js");
    if !axe.exists() {
        crate::skipped::skipped("axe-core needed: view/tests/install target/page");
        return;
    }
    let sigmund = Sigmund::new();
    for run in ["A", "B"] {
        sigmund.run(["record", "-o", run, "--", program(), "sumtime", "7", "4", "20000"]).found();
    }
    drop(alone);
    let axe = axe.to_str().unwrap();
    for traces in [&["A.supertrace"][..], &["A.supertrace", "B.supertrace"]] {
        let server = Server::of(&sigmund, &[traces, &["--cache", "cache"]].concat());
        let shown = drive_with(&sigmund, &server, "accessible.mjs", &[axe]);
        assert!(shown["passed"].as_array().unwrap().len() >= 21, "{shown}");
    }
}

#[test]
fn names_of_strangers_are_text_in_the_page() {
    let Some(_page) = page_tools() else { return };
    let mut listing =
        "# tick_hz=1000000000\ntype\tdate_tick\tpid\tcpu\tthr\tcode\tname\tparams\n".to_string();
    listing.push_str("KERN\t100\t0\t0\t?\t-\tsched_switch\tprev_state=0 next_pid=70\n");
    for (place, name) in HOSTILE.iter().enumerate() {
        let tick = 110 + 10 * place;
        listing.push_str(&format!("USER\t{tick}\t70\t0\t?\t-\tUSER_CONTEXT_SWITCH\t{}({name})\n", place + 1));
    }
    let sigmund = Sigmund::with_listing("t", &listing);
    let server = Server::start(&sigmund, TRACE, &[]);
    let named = server.json("rows?kind=thread");
    assert_eq!(named["rows"][0]["name"], json!(HOSTILE[0]), "{named}");
    drive(&sigmund, &server, "names.mjs");
}

#[test]
fn a_running_program_is_shown_and_frozen_to_a_timeline() {
    let sigmund = Sigmund::new();
    let mut command = sigmund.command();
    command.args(["record", "--user-only", "--flight", "--no-merge", "-o", "RUN", "--"]);
    command.args([program(), "sumtime", "14", "3", "2000000"]);
    let recorder = Running::of(command);
    let sumtime = kernel::program_of(recorder.pid(), "sumtime");
    let pid = sumtime.number().to_string();
    let begun = Instant::now();
    while sigmund.run(["ctl", &pid, "status"]).status != 0 {
        assert!(begun.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(20));
    }
    let server = Server::of(&sigmund, &["--pid", &pid]);
    assert_eq!(server.json("trace"), json!({ "live": true }));
    assert_eq!(server.get("rows?kind=thread").status, 404, "nothing is frozen yet");
    // A dozen threads have begun, and one waits for another.
    let is_under_way = |live: &Value| {
        let threads = live["threads"].as_array().unwrap();
        threads.len() > 10 && threads.iter().any(|thread| thread["state"] == "blocked")
    };
    let mut live = server.json("live");
    while !is_under_way(&live) {
        assert!(begun.elapsed() < Duration::from_secs(30), "{live}");
        std::thread::sleep(Duration::from_millis(50));
        live = server.json("live");
    }
    assert_eq!((&live["pid"], &live["facts"]["mode"]), (&json!(sumtime.number()), &json!("overwrite")));
    assert!(live["threads"].as_array().unwrap().iter().any(|thread| thread["state"] == "blocked"), "{live}");
    assert_eq!(
        live["lwps"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|lwp| lwp["name"].as_str().unwrap().starts_with("lwp/"))
            .count(),
        3
    );
    assert_eq!(server.get("freeze").status, 400, "a link does not freeze anything");
    assert_eq!(server.post("freeze", &json!({})).json(), json!({ "frozen": true }));
    let threads = server.json("rows?kind=thread&limit=5");
    assert!(threads["total"].as_u64().unwrap() > 10, "{threads}");
    if let Some(_page) = page_tools() {
        drive(&sigmund, &Server::of(&sigmund, &["--pid", &pid]), "live.mjs");
    }
    // It continues, until it is ended.
    assert_eq!(server.json("live")["pid"], json!(sumtime.number()));
    sumtime.kill();
    recorder.finish();
    let gone = server.get("live");
    assert_eq!(gone.status, 404, "{}", String::from_utf8_lossy(&gone.body));
    assert_eq!(server.get("rows?kind=thread").status, 200, "what was frozen stays");
}

#[test]
fn every_file_of_the_page_is_served_and_has_no_script_of_its_own() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let server = Server::start(&sigmund, TRACE, &[]);
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("view/web");
    let mut folders = vec![web.clone()];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(&web).unwrap().to_str().unwrap().to_string();
            if path.is_dir() {
                if name != "tests" {
                    folders.push(path);
                }
                continue;
            }
            let reply = server.request("GET", &format!("/{name}"), &[("Host", &server.address)], "");
            assert!(reply.status == 200 && reply.body == fs::read(&path).unwrap(), "{name} is not embedded");
            files += 1;
        }
    }
    assert!(files > 0);
    let page = fs::read_to_string(web.join("index.html")).unwrap();
    assert!(
        !page.contains("style=")
            && !page.contains("onclick")
            && !page.contains("http://")
            && !page.contains("https://")
    );
}

#[test]
fn the_modules_of_the_page_are_right_by_themselves() {
    if !Command::new("node").arg("--version").output().is_ok_and(|found| found.status.success()) {
        crate::skipped::skipped("node needed, to run the page's own tests");
        return;
    }
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("view/tests/page");
    let files = fs::read_dir(tests).unwrap().map(|entry| entry.unwrap().path());
    let output = Command::new("node").arg("--test").args(files).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// Runs a script against a server, and gives what it prints.
fn drive(sigmund: &Sigmund, server: &Server, script: &str) -> Value {
    drive_with(sigmund, server, script, &[])
}

fn drive_with(sigmund: &Sigmund, server: &Server, script: &str, more: &[&str]) -> Value {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("view/tests/browser");
    let url = format!("http://{}/#token={}", server.address, server.token);
    let output = Command::new("node")
        .arg(scripts.join(script))
        .arg(url)
        .arg(sigmund.path("pictures"))
        .args(more)
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}\n{err}"))
}

/// The only browser, if there is one, and node; on CI they must be there.
fn page_tools() -> Option<MutexGuard<'static, ()>> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let is_there = |program: &str| {
        Command::new(program).arg("--version").output().is_ok_and(|found| found.status.success())
    };
    let missing: Vec<&str> = ["node", "chromium"].into_iter().filter(|program| !is_there(program)).collect();
    if missing.is_empty() {
        return Some(ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    }
    crate::skipped::skipped(&format!("{} needed, to open the page in a browser", missing.join(" and ")));
    None
}
