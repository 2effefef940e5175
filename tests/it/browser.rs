//! The page of `sigmund view` in a real browser.

use std::{
    collections::BTreeMap,
    panic,
    path::Path,
    process::Command,
    sync::{Mutex, MutexGuard},
};

use serde_json::{Value, json};

use crate::{
    docs, kernel,
    sigmund::{Sigmund, program},
    view::Server,
};

/// Names that a page must show as text.
const HOSTILE: [&str; 4] =
    ["<img/src=x/onerror=alert(1)>", "a\"b'c&amp;", "\u{202e}live", "</script><script>alert(2)</script>"];

/// One test, since two browsers would wait for each other's pictures: of several, all but one would wait, each in the place of
/// a test that could run beside the browser.
#[test]
fn the_page_in_a_real_browser() {
    let Some(_only) = tools() else { return };
    let parts: [(&str, fn()); 6] = [
        (
            "the page does what a hand expects in a real browser",
            the_page_does_what_a_hand_expects_in_a_real_browser,
        ),
        (
            "what is copied from the page gives the numbers that it shows",
            what_is_copied_from_the_page_gives_the_numbers_that_it_shows,
        ),
        ("panels show what the tables have", panels_show_what_the_tables_have),
        ("two super traces are compared on one page", two_super_traces_are_compared_on_one_page),
        (
            "nothing of the page is a serious obstacle to anybody",
            nothing_of_the_page_is_a_serious_obstacle_to_anybody,
        ),
        ("names of strangers are text in the page", names_of_strangers_are_text_in_the_page),
    ];
    let fails = |&(name, part): &(&str, fn())| {
        println!("{name}");
        panic::catch_unwind(part).is_err()
    };
    let failed: Vec<&str> = parts.iter().filter(|part| fails(part)).map(|(name, _)| *name).collect();
    assert!(failed.is_empty(), "see above: {failed:?}");
}

fn the_page_does_what_a_hand_expects_in_a_real_browser() {
    let Some(alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    sigmund.run(["record", "-o", "RUN", "--", program(), "sumtime", "9", "4", "20000"]).found();
    drop(alone);
    let server = Server::start(&sigmund, "RUN.supertrace", &[]);
    let shown = drive(&sigmund, &server, "page.mjs");
    assert_eq!(shown["passed"].as_array().unwrap().len(), 29, "{shown}");
}

fn what_is_copied_from_the_page_gives_the_numbers_that_it_shows() {
    let Some(alone) = kernel::as_root() else { return };
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

fn panels_show_what_the_tables_have() {
    let Some(alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    docs::my_server_in(&sigmund.path(""));
    sigmund.run(["record", "-o", "RUN", "--", "./myserver"]).found();
    drop(alone);
    let server = Server::start(&sigmund, "RUN.supertrace", &[]);
    let shown = drive(&sigmund, &server, "panels.mjs");
    assert_eq!(shown["passed"].as_array().unwrap().len(), 8, "{shown}");
}

fn two_super_traces_are_compared_on_one_page() {
    let Some(alone) = kernel::as_root() else { return };
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

fn nothing_of_the_page_is_a_serious_obstacle_to_anybody() {
    let Some(alone) = kernel::as_root() else { return };
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

fn names_of_strangers_are_text_in_the_page() {
    let mut listing =
        "# tick_hz=1000000000\ntype\tdate_tick\tpid\tcpu\tthr\tcode\tname\tparams\n".to_string();
    listing.push_str("KERN\t100\t0\t0\t?\t-\tsched_switch\tprev_state=0 next_pid=70\n");
    for (place, name) in HOSTILE.iter().enumerate() {
        let tick = 110 + 10 * place;
        listing.push_str(&format!("USER\t{tick}\t70\t0\t?\t-\tUSER_CONTEXT_SWITCH\t{}({name})\n", place + 1));
    }
    let sigmund = Sigmund::with_listing("t", &listing);
    let server = Server::start(&sigmund, "t.supertrace", &[]);
    let named = server.json("rows?kind=thread");
    assert_eq!(named["rows"][0]["name"], json!(HOSTILE[0]), "{named}");
    drive(&sigmund, &server, "names.mjs");
}

/// Runs a script against a server, and gives what it prints.
pub(crate) fn drive(sigmund: &Sigmund, server: &Server, script: &str) -> Value {
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
pub(crate) fn tools() -> Option<MutexGuard<'static, ()>> {
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
