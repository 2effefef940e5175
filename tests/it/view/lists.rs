//! Lists: events, user threads that lived, events whose witnesses disagree.

use serde_json::{Value, json};

use super::{Server, TRACE};
use crate::{sigmund::Sigmund, views::listing};

#[test]
fn events_are_listed_in_both_directions_a_page_at_a_time() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let server = Server::start(&sigmund, TRACE, &[]);
    let rows = |answer: &Value| answer["rows"].as_array().unwrap().clone();
    for filter in ["", "&key=lwp:70", "&from=20&to=130"] {
        let whole = rows(&server.json(&format!("events?limit=1000{filter}")));
        assert!(whole.len() > 3, "{whole:?}");
        for limit in [1, 2, 7] {
            // From the first to the last, and back from there; ticks are the same for several events.
            let (mut forward, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = server.json(&format!("events?limit={limit}{filter}{cursor}"));
                forward.extend(rows(&page));
                if page["more"] == json!(false) {
                    break;
                }
                cursor = format!("&after={}", page["last"].as_str().unwrap());
            }
            assert_eq!(forward, whole, "{filter} {limit}");
            let (mut backward, mut cursor) = (Vec::new(), "&before=999999999:0".to_string());
            loop {
                let page = server.json(&format!("events?limit={limit}{filter}{cursor}"));
                backward.splice(0..0, rows(&page));
                if page["more"] == json!(false) {
                    break;
                }
                cursor = format!("&before={}", page["first"].as_str().unwrap());
            }
            assert_eq!(backward, whole, "{filter} {limit}");
        }
    }
    for wrong in ["after=1", "before=x:1", "after=1:0&before=2:0"] {
        assert_eq!(server.get(&format!("events?{wrong}")).status, 400, "{wrong}");
    }
}

#[test]
fn the_window_of_everything_has_the_last_event() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let server = Server::start(&sigmund, TRACE, &[]);
    // The first event is at 100, and the last one at 230.
    let ticks = server.json("trace")["ticks"].as_u64().unwrap();
    let all = server.json("events?limit=1000");
    assert_eq!(all["rows"].as_array().unwrap().last().unwrap()["at"], json!(130));
    assert_eq!(server.json(&format!("events?limit=1000&from=0&to={ticks}")), all);
    let whole = server.json(&format!("selection?from=0&to={ticks}"));
    assert_eq!(whole, server.json("selection"));
    assert!(!whole["command"].as_str().unwrap().contains("--to"), "{whole}");
    // The command's --to is the last instant of the window.
    let end = server.json(&format!("selection?from=50&to={ticks}"));
    assert!(end["command"].as_str().unwrap().contains("--from 150 --to 230"), "{end}");
}

#[test]
fn a_row_is_found_by_its_key_whatever_others_are_named() {
    // 300 user threads whose names have the number of another one, which comes after them.
    let mut listing =
        "# tick_hz=1000000000\ntype\tdate_tick\tpid\tcpu\tthr\tcode\tname\tparams\n".to_string();
    listing.push_str("KERN\t100\t0\t0\t?\t-\tsched_switch\tprev_state=0 next_pid=70\n");
    for thread in (1..=300).chain([8080]) {
        let tick = 200 + thread;
        let switch =
            format!("USER\t{tick}\t70\t0\t?\t-\tUSER_CONTEXT_SWITCH\t{thread}(conn/8080/{thread})\n");
        listing.push_str(&switch);
    }
    let sigmund = Sigmund::with_listing("t", &listing);
    let server = Server::start(&sigmund, TRACE, &[]);
    assert_eq!(server.json("rows?kind=thread&name=8080")["total"], json!(301));
    for key in ["thread:8080", "thread:7", "lwp:70", "cpu:0"] {
        let found = server.json(&format!("rows?key={key}"));
        assert_eq!((&found["total"], &found["rows"][0]["key"]), (&json!(1), &json!(key)), "{found}");
    }
    for key in ["thread:301", "lwp:0", "lwp:71", "cpu:9", "xx", "thread:", "thread:-1"] {
        let found = server.json(&format!("rows?key={key}"));
        assert_eq!(found, json!({ "total": 0, "rows": [] }), "{key}");
    }
}

#[test]
fn the_living_of_a_subtree_are_those_of_the_table_of_threads() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let server = Server::start(&sigmund, TRACE, &[]);
    let ticks = server.json("trace")["ticks"].as_u64().unwrap();
    let threads = sigmund.number(TRACE, "SELECT count(*) FROM threads");
    let lived = sigmund.number(
        TRACE,
        "SELECT sum(least(ts_tick + coalesce(dur_tick, 1000000), (SELECT max(ts_tick) + 1 FROM events)) - ts_tick) FROM threads",
    );
    for pixels in [1, 7, 500] {
        let all = server.json(&format!("living?pixels={pixels}"));
        assert_eq!(all["threads"], json!(threads));
        let edge = |pixel: u64| ticks * pixel / pixels;
        let sum: f64 = (0..pixels)
            .zip(all["mean"].as_array().unwrap())
            .map(|(pixel, mean)| mean.as_f64().unwrap() * (edge(pixel + 1) - edge(pixel)) as f64)
            .sum();
        assert!((sum - lived as f64).abs() < 1e-3, "{pixels}: {sum} {lived}");
    }
    assert_eq!(server.json("living?parent=thread:5")["threads"], json!(1));
    assert_eq!(server.get("living?parent=thread:99999").status, 404);
}

#[test]
fn events_whose_witnesses_disagree_are_those_of_the_table() {
    // The probe of user thread 5 read CPU 1; by the switches, LWP 70 was on CPU 0.
    let disagreeing = listing().replacen("USER\t200\t70\t0", "USER\t200\t70\t1", 1);
    for text in [listing(), disagreeing] {
        let sigmund = Sigmund::with_listing("t", &text);
        let server = Server::start(&sigmund, TRACE, &[]);
        let counted = sigmund.number(TRACE, "SELECT count(*) FROM events WHERE cpu <> cpu_seen");
        let found = server.json("disagreements");
        assert_eq!(found["disagreements"].as_array().unwrap().len() as u64, counted as u64, "{found}");
    }
}
