//! What a row did at an instant, and who had what it waited for.

use std::collections::BTreeMap;

use serde_json::json;

use super::{Server, TRACE};
use crate::{sigmund::Sigmund, views::listing};

/// Who had the CPU of a stalled thread: the culprits of `--states` in that interval, to the tick.
pub(super) fn compare_culprits(sigmund: &Sigmund, trace: &str) {
    let server = Server::start(sigmund, trace, &[]);
    let first = sigmund.fact(trace, "first_tick").parse::<i64>().unwrap();
    let query = "SELECT thread, ts_tick, dur_tick FROM thread_states WHERE state = 'stalled' AND dur_tick > 10 ORDER BY dur_tick DESC LIMIT 5";
    let stalls = sigmund.sql(trace, query);
    assert!(!stalls.is_empty(), "four LWPs on fewer CPUs");
    for stall in stalls {
        let (from, length) = (stall[1].parse::<i64>().unwrap(), stall[2].parse::<i64>().unwrap());
        let at = server.json(&format!("at?key=thread:{}&tick={}", stall[0], from - first + length / 2));
        let mut shown: BTreeMap<String, i64> = BTreeMap::new();
        for who in at["intervals"][0]["had_cpu"].as_array().unwrap() {
            let (key, label) = (who["key"].as_str().unwrap(), who["label"].as_str().unwrap());
            let (number, name) = label.split_once(' ').unwrap_or((label, ""));
            let name = if name.is_empty() { number.to_string() } else { format!("{number}({name})") };
            let name = if key.starts_with("lwp") { format!("LWP {name}") } else { name };
            shown.insert(name, who["ticks"].as_i64().unwrap());
        }
        let (from, to) = (from.to_string(), (from + length - 1).to_string());
        let words = ["--states", "--thread", &stall[0], "--from", &from, "--to", &to, "--format", "tsv"];
        let answer = sigmund.run([&["-f", trace], &words[..]].concat());
        let mut counted: BTreeMap<String, i64> = BTreeMap::new();
        for line in answer.stdout.lines().skip(1) {
            let cells: Vec<&str> = line.split('\t').collect();
            if cells[2] == "stalled" && !["idle", "unknown"].contains(&cells[5]) {
                counted.insert(cells[5].to_string(), cells[7].parse().unwrap());
            }
        }
        if counted.len() <= 50 {
            assert_eq!(shown, counted, "{stall:?}: {answer:?}");
        }
    }
}

// The picture is in views.rs: thread 5 on LWP 70, which 90 preempts at 150; blocked at 200, unparked at 220 by 6.
#[test]
fn what_is_pointed_at_says_who_had_its_cpu_and_what_it_waited_for() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let server = Server::start(&sigmund, TRACE, &[]);
    // Ticks are from the first event, at 100.
    let at = |key: &str, tick: u64| {
        server.json(&format!("at?key={key}&tick={}", tick - 100))["intervals"][0].clone()
    };
    let stalled = at("thread:5", 155);
    assert_eq!(
        (&stalled["value"], &stalled["from"], &stalled["to"]),
        (&json!("stalled"), &json!(50), &json!(70))
    );
    assert_eq!(
        (&stalled["had_cpu"][0]["key"], &stalled["had_cpu"][0]["ticks"]),
        (&json!("lwp:90"), &json!(20))
    );
    let blocked = at("thread:5", 210);
    assert_eq!((&blocked["blocked_for"], &blocked["blocked_on"]), (&json!("mutex"), &json!("0x1000")));
    let on_cpu = at("cpu:0", 160);
    assert_eq!(on_cpu["value"], json!("lwp:90"));
    assert_eq!(at("lwp:70", 115)["value"], json!("sleeping"));

    let life = server.json("life?key=thread:5");
    let states: Vec<&str> =
        life["intervals"].as_array().unwrap().iter().map(|stay| stay["state"].as_str().unwrap()).collect();
    assert_eq!(
        states,
        ["active", "in-kernel", "stalled", "active", "stalled", "active", "blocked", "ready", "active"]
            [..states.len().min(9)]
    );
    let unpark = life["wakeups"].as_array().unwrap().iter().find(|wakeup| wakeup["level"] == "USER").unwrap();
    assert_eq!(
        (&unpark["at"], &unpark["by"], &unpark["latency"]),
        (&json!(120), &json!("thread:6"), &json!(10))
    );

    let interrupts = server.json("interrupts?cpu=0");
    assert_eq!(interrupts["interrupts"][0]["name"], json!("eth0"));
    let events = server.json("events?from=75&to=76");
    assert_eq!(events["rows"][0]["name"], json!("irq_handler_entry"));
    assert_eq!(events["rows"][0]["cpu"], json!("cpu:0"));
    let locks = server.json("locks?key=thread:5");
    assert_eq!((&locks["locks"][0]["wait"], &locks["locks"][0]["object"]), (&json!(20), &json!("0x1000")));
    let related = server.json("rows?kind=thread&with=thread:5");
    let related: Vec<&str> =
        related["rows"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect();
    assert_eq!(related, ["thread:5", "thread:6"]);
    let measure = server.json("measure?name=states&keys=thread:5");
    assert_eq!(measure["columns"][0]["name"], json!("thread"));
    assert_eq!(measure["rows"].as_array().unwrap().len(), 7);
    assert!(measure["command"].as_str().unwrap().ends_with("--thread 5 --states"));
}
