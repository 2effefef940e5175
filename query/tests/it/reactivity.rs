//! What selectors select in a trace of real tracepoints.

use crate::support::Little;
use serde_json::json;
use sigmund_query::{ErrorKind, Filter, reactivity};
use sigmund_sql::SuperTrace;

/// An interrupt of the network card and one of the disk, each treated by a user event of a thread.
fn interrupts() -> Little {
    let mut little = Little::new();
    let fields = json!(["irq", "name"]);
    little.row("event_types", json!({"level": "KERN", "code": 50, "name": "irq_handler_entry", "field_names": fields, "field_types": ["i64", "text"]}));
    little.row("event_types", json!({"level": "USER", "code": 1, "name": "received_msg", "field_names": ["len", "from", "who"], "field_types": ["u64", "text", "thread"]}));
    little.row("threads", json!({"thread": 1, "name": "daemon"}));
    for (tick, irq, name) in [(100, 24, "eth0"), (200, 25, "disk"), (300, 24, "eth0")] {
        little.row("events", json!({"ts_tick": tick, "level": "KERN", "code": 50, "name": "irq_handler_entry", "cpu": 0, "args": [irq], "texts": [null, name]}));
        little.row("events", json!({"ts_tick": tick + irq, "level": "USER", "code": 1, "name": "received_msg", "thread": 1, "args": [-1, null, 1], "texts": [null, "me you"]}));
    }
    little
}

#[tokio::test]
async fn a_selector_finds_tracepoints_by_both_names_and_by_their_fields() {
    let little = interrupts();
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let counts = async |from: &str, to: &str| {
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        let r = reactivity(&trace, &from, &to, &Filter::default()).await.unwrap();
        (r.count(), r.max().map_or(0, |t| t.0))
    };
    for from in
        ["IRQ(24)", "irq_handler_entry(irq=24)", "IRQ(irq=24)", "IRQ(eth0)", "IRQ(name=eth0)", "IRQ(0x18)"]
    {
        assert_eq!(counts(from, "received_msg@daemon").await, (2, 24), "{from}");
    }
    assert_eq!(counts("IRQ", "received_msg").await, (3, 25));
    assert_eq!(counts("IRQ(\"24\")", "received_msg").await, (0, 0));
    for to in [
        "USER_EVENT(received_msg)@daemon",
        "received_msg(18446744073709551615)",
        "received_msg(from=me you)",
        "received_msg(from=\"me you\")@1",
        "received_msg(who=daemon)",
        "received_msg(who=1)",
    ] {
        assert_eq!(counts("IRQ(25)", to).await, (1, 25), "{to}");
    }
    for to in ["received_msg(len=5)", "received_msg(who=nobody)"] {
        assert_eq!(counts("IRQ(25)", to).await.0, 0, "{to}");
    }
}

#[tokio::test]
async fn both_events_of_a_pair_lie_in_the_window() {
    let little = interrupts();
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let (from, to) = ("IRQ".parse().unwrap(), "received_msg".parse().unwrap());
    let filter =
        Filter { from: Some("150".parse().unwrap()), to: Some("323".parse().unwrap()), ..Filter::default() };
    let r = reactivity(&trace, &from, &to, &filter).await.unwrap();
    assert_eq!((r.count(), r.unanswered), (1, 1));
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused() {
    let little = interrupts();
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let to = "received_msg".parse().unwrap();
    let from = "IRQ(nothing=1)".parse().unwrap();
    let error = reactivity(&trace, &from, &to, &Filter::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument);
    assert!(error.to_string().ends_with("IRQ has no field `nothing`, it has: irq, name"), "{error}");
    for (from, to, found) in [
        ("irq_handler", "received_msg", "no event `irq_handler`; the nearest names are irq_handler_entry"),
        ("IRQ", "received_msg@2", "expected a user thread of this trace, found 2; nearest: 1"),
        ("IRQ", "recieved_msg(len=5)@daemon", "no event `recieved_msg`; the nearest names are received_msg"),
        ("IRQ", "USER_EVENT(Received-msg)", "no event `Received-msg`; the nearest names are received_msg"),
        ("nothing_like_it", "received_msg", "no event `nothing_like_it`; `sigmund info` lists those it has"),
    ] {
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        let error = reactivity(&trace, &from, &to, &Filter::default()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument);
        assert!(error.to_string().ends_with(found), "{error}");
    }
    for filter in [
        Filter { threads: vec!["1".parse().unwrap()], ..Filter::default() },
        Filter { processes: vec!["1".parse().unwrap()], ..Filter::default() },
    ] {
        let error = reactivity(&trace, &"IRQ".parse().unwrap(), &to, &filter).await.unwrap_err();
        assert!(error.to_string().contains("NAME@THREAD"), "{error}");
    }
}

/// Two LWPs without user threads in a system call each. An interrupt of one is not its own event.
#[tokio::test]
async fn where_no_user_thread_is_meant_an_lwp_is() {
    let mut little = Little::new();
    for (code, name) in [(60, "sys_enter"), (61, "sys_exit"), (50, "irq_handler_entry")] {
        little.row("event_types", json!({"level": "KERN", "code": code, "name": name}));
    }
    for (lwp, name) in [(70, "server"), (71, "client"), (72, "9")] {
        little.row("lwps", json!({"lwp": lwp, "name": name, "ts_tick": 1}));
    }
    for (tick, code, name, lwp, context) in [
        (10, 60, "sys_enter", 70, "task"),
        (11, 60, "sys_enter", 71, "task"),
        (15, 50, "irq_handler_entry", 70, "irq"),
        (20, 61, "sys_exit", 71, "task"),
        (30, 61, "sys_exit", 70, "task"),
    ] {
        little.row("events", json!({"ts_tick": tick, "level": "KERN", "code": code, "name": name, "cpu": 0, "lwp": lwp, "context": context}));
    }
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let pairs = async |from: &str, to: &str| {
        let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
        let found = reactivity(&trace, &from, &to, &Filter::default()).await;
        found.map(|found| (found.count(), found.max().map_or(0, |length| length.0)))
    };
    assert_eq!(pairs("sys_enter", "sys_exit").await.unwrap(), (2, 10));
    assert_eq!(pairs("sys_enter@server", "sys_exit@70").await.unwrap(), (1, 20));
    assert_eq!(pairs("sys_enter@cl*", "sys_exit@71(client)").await.unwrap(), (1, 9));
    assert_eq!(pairs("irq_handler_entry@server", "sys_exit").await.unwrap(), (0, 0));
    for (who, found) in [
        ("@clent", "found clent; nearest: client"),
        ("@7", "found 7; nearest: 70, 71"),
        ("@9", "found 9; name:9 is the LWP of that name"),
    ] {
        let error = pairs(&format!("sys_enter{who}"), "sys_exit").await.unwrap_err().to_string();
        assert!(error.contains("expected an LWP of this trace") && error.contains(found), "{error}");
    }
}
