//! The files of the page of `sigmund view`, its modules by themselves, and the page of a running program.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    browser, kernel,
    sigmund::{Running, Sigmund, program},
    view::Server,
    views::listing,
};

const TRACE: &str = "t.supertrace";

#[test]
fn a_running_program_is_shown_and_frozen_to_a_timeline() {
    // Before the program runs, which would end while the browser is busy elsewhere.
    let page = browser::tools();
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
    // Several clients at once, one of which asks about what was frozen before.
    std::thread::scope(|scope| {
        let freeze = || server.post("freeze", &json!({})).json();
        let freezing: Vec<_> = (0..3).map(|_| scope.spawn(freeze)).collect();
        let count = json!({ "query": "SELECT count(*) AS n FROM events" });
        while !freezing.iter().all(|client| client.is_finished()) {
            assert!(server.post("sql", &count).json()["rows"][0][0].as_u64().unwrap() > 0);
        }
        for client in freezing {
            assert_eq!(client.join().unwrap(), json!({ "frozen": true }));
        }
    });
    if page.is_some() {
        browser::drive(&sigmund, &Server::of(&sigmund, &["--pid", &pid]), "live.mjs");
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
