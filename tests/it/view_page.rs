//! The page of `sigmund view`: in a real browser, and its modules by themselves.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    kernel,
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
    let (Some(_alone), Some(_)) = (kernel::as_root(), page_tools()) else { return };
    let sigmund = Sigmund::new();
    sigmund.run(["record", "-o", "RUN", "--", program(), "sumtime", "9", "4", "20000"]).found();
    let server = Server::start(&sigmund, "RUN.supertrace", &[]);
    let shown = drive(&sigmund, &server, "page.mjs");
    assert_eq!(shown["passed"].as_array().unwrap().len(), 29, "{shown}");
}

#[test]
fn names_of_strangers_are_text_in_the_page() {
    let Some(()) = page_tools() else { return };
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
    let is_waiting =
        |live: &Value| live["threads"].as_array().unwrap().iter().any(|thread| thread["state"] == "blocked");
    let mut live = server.json("live");
    while !is_waiting(&live) {
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
    if page_tools().is_some() {
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
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("view/tests/browser");
    let url = format!("http://{}/#token={}", server.address, server.token);
    let output = Command::new("node")
        .arg(scripts.join(script))
        .arg(url)
        .arg(sigmund.path("pictures"))
        .output()
        .unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}\n{err}"))
}

/// Whether node and a browser are there; on CI they must be.
fn page_tools() -> Option<()> {
    let is_there = |program: &str| {
        Command::new(program).arg("--version").output().is_ok_and(|found| found.status.success())
    };
    let missing: Vec<&str> = ["node", "chromium"].into_iter().filter(|program| !is_there(program)).collect();
    if missing.is_empty() {
        return Some(());
    }
    crate::skipped::skipped(&format!("{} needed, to open the page in a browser", missing.join(" and ")));
    None
}
