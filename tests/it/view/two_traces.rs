//! Two super-traces beside each other.

use serde_json::json;

use super::{Server, TRACE};
use crate::{sigmund::Sigmund, views::listing};

#[test]
fn of_two_super_traces_each_is_asked_by_its_own_name_and_with_the_token() {
    let sigmund = Sigmund::with_listing("t", &listing());
    // The same without its last event.
    let all = listing();
    let shorter: Vec<&str> = all.lines().collect();
    sigmund.write("other.tsv", shorter[..shorter.len() - 1].join("\n").as_bytes());
    sigmund.run(["merge", "other.tsv", "-o", "other.supertrace"]).found();
    let server = Server::of(&sigmund, &[TRACE, "other.supertrace", "--cache", "cache"]);
    let (a, b) = (server.json("trace"), server.json("b/trace"));
    assert_eq!((&a["is_compared"], &b["is_compared"]), (&json!(true), &json!(false)));
    assert_eq!((&a["name"], &b["name"]), (&json!("t.supertrace"), &json!("other.supertrace")));
    assert_eq!((&a["ticks"], &b["ticks"]), (&json!(131), &json!(121)));
    for question in ["selection?keys=thread:5", "events?limit=3", "rows?kind=lwp"] {
        let alone = Server::start(&sigmund, "other.supertrace", &[]).json(question);
        let mut both = server.json(&format!("b/{question}"));
        assert_eq!(both.as_object_mut().unwrap(), alone.as_object().unwrap(), "{question}");
    }
    // Who may ask is the same for both.
    for path in ["/api/b/trace", "/api/b/sql", "/api/compare?name=states"] {
        let own = server.address.as_str();
        assert_eq!(server.request("GET", path, &[("Host", own)], "").status, 403, "{path}");
        let bearer = format!("Bearer {}", server.token);
        let rebound = [("Host", "evil.example"), ("Authorization", bearer.as_str())];
        assert_eq!(server.request("GET", path, &rebound, "").status, 403, "{path}");
        let foreign = [("Host", own), ("Authorization", &bearer), ("Origin", "http://evil.example")];
        assert_eq!(server.request("GET", path, &foreign, "").status, 403, "{path}");
    }
    let refused = server.post("b/sql", &json!({ "query": "DROP TABLE events" }));
    assert_eq!(refused.status, 403, "{refused:?}");
    for (question, status) in [
        ("b/nothing", 404),
        ("b/b/trace", 404),
        ("b/compare", 404),
        ("b/live", 404),
        ("compare?name=nothing", 404),
        ("compare?name=explain", 400),
        ("compare?name=states&from=5&to=5", 400),
        ("compare?name=states&by=color", 400),
        ("braids", 400),
        ("braids?subject=nothing", 400),
    ] {
        let reply = server.get(question);
        assert_eq!(reply.status, status, "{question}: {}", String::from_utf8_lossy(&reply.body));
    }
    let alone = Server::start(&sigmund, TRACE, &[]);
    assert_eq!((alone.get("b/trace").status, alone.get("compare").status), (404, 404));
    // A window before the begin of a trace is one without anything in it.
    let before = alone.json("selection?from=-50&to=-10&keys=thread:5");
    assert_eq!(before["states"], json!([]), "{before}");
    let refused = alone.get("measure?name=states&from=-300&to=-200");
    assert_eq!(refused.status, 400);
    assert!(
        String::from_utf8_lossy(&refused.body).contains("expected an instant of the trace"),
        "{refused:?}"
    );
    let partly = alone.json("measure?name=states&from=-300&to=40&keys=thread:5");
    assert_eq!(partly["rows"], alone.json("measure?name=states&from=0&to=40&keys=thread:5")["rows"]);
    sigmund.run(["view", TRACE, "missing.supertrace", "--no-open"]).complained(&["missing.supertrace"]);
}
