//! The two listings of the paper (Danjean, Namyst, Wacrenier, Euro-Par 2005, figures 2 and 3), merged by hand.

use crate::support::Little;
use serde_json::{Value, json};
use sigmund_model::{Cpu, Thread, Ticks};
use sigmund_query::{Filter, Format, active_time, list, reactivity};
use sigmund_sql::SuperTrace;

const FIGURE_2: &str = "\
type\tdate_tick\tpid\tcpu\tthr\tcode\tname\tparams
USER\t97615576\t7137\t1\t7\t23014\tUSER_CONTEXT_SWITCH\t15
USER\t97757052\t7137\t1\t15\t23014\tUSER_CONTEXT_SWITCH\t8
USER\t98006248\t7136\t0\t6\t23014\tUSER_CONTEXT_SWITCH\t15
KERN\t98139183\t7136\t0\t15\t23014\tKERN_CONTEXT_SWITCH\t6152
KERN\t98638163\t2352\t2\t?\t23014\tKERN_CONTEXT_SWITCH\t7136
USER\t99060185\t7136\t2\t15\t23014\tUSER_CONTEXT_SWITCH\t7
";

/// The listing's rows with what the merge finds out: whom each switch makes run. Between them, others'.
fn figure_2() -> Little {
    let mut little = Little::new();
    little.info("first_tick", 97_000_000).info("last_tick", 100_000_000);
    for (level, name) in [("USER", "USER_CONTEXT_SWITCH"), ("KERN", "KERN_CONTEXT_SWITCH"), ("KERN", "IRQ")] {
        let ty =
            json!({"level": level, "code": 23014, "name": name, "field_names": [""], "field_types": ["i64"]});
        little.row("event_types", ty);
    }
    for (thread, active) in [(6, 0), (7, 0), (8, 1000), (9, 0), (15, 696_433)] {
        little.row("threads", json!({"thread": thread, "ts_tick": 97_000_000, "active_tick": active}));
    }
    let switch = "USER_CONTEXT_SWITCH";
    let kernel = "KERN_CONTEXT_SWITCH";
    let mut event = |tick: i64,
                     level: &str,
                     name: &str,
                     lwp: i64,
                     cpu: i64,
                     thread: Value,
                     target: Value,
                     arg: i64| {
        let row = json!({"ts_tick": tick, "level": level, "code": 23014, "name": name, "lwp": lwp, "cpu": cpu,
            "thread": thread, "target_thread": target, "args": [arg]});
        little.row("events", row);
    };
    event(97_100_000, "USER", switch, 7136, 0, json!(9), json!(6), 6);
    event(97_615_576, "USER", switch, 7137, 1, json!(7), json!(15), 15);
    event(97_700_000, "KERN", "IRQ", 7137, 1, json!(null), json!(null), 24);
    event(97_750_000, "KERN", "IRQ", 7137, 1, json!(15), json!(null), 25);
    event(97_757_052, "USER", switch, 7137, 1, json!(15), json!(8), 8);
    event(98_006_248, "USER", switch, 7136, 0, json!(6), json!(15), 15);
    event(98_139_183, "KERN", kernel, 7136, 0, json!(15), json!(null), 6152);
    event(98_200_000, "KERN", kernel, 6152, 0, json!(null), json!(null), 0);
    event(98_638_163, "KERN", kernel, 2352, 2, json!(null), json!(15), 7136);
    event(99_060_185, "USER", switch, 7136, 2, json!(15), json!(7), 7);
    for (tick, dur, lwp, cpu) in
        [(97_615_576, 141_476, 7137, 1), (98_006_248, 132_935, 7136, 0), (98_638_163, 422_022, 7136, 2)]
    {
        let row = json!({"ts_tick": tick, "dur_tick": dur, "thread": 15, "lwp": lwp, "cpu": cpu});
        little.row("active", row);
    }
    little
        .row("active", json!({"ts_tick": 97_757_052, "dur_tick": 1000, "thread": 8, "lwp": 7137, "cpu": 1}));
    little
}

async fn listing(trace: &SuperTrace, filter: &Filter, format: Format) -> String {
    let mut out = Vec::new();
    let count = list(trace, filter, format, &mut out).await.unwrap();
    let text = String::from_utf8(out).unwrap();
    if matches!(format, Format::Tsv | Format::Human) {
        assert_eq!(count as usize, text.lines().count() - 1);
    }
    text
}

#[tokio::test]
async fn figure_2_comes_back_byte_for_byte() {
    let little = figure_2();
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let filter = Filter {
        threads: vec!["15".parse().unwrap()],
        events: vec!["CONTEXT_SWITCH".parse().unwrap()],
        ..Filter::default()
    };
    assert_eq!(listing(&trace, &filter, Format::Tsv).await, FIGURE_2);

    let human = listing(&trace, &filter, Format::Human).await;
    assert!(human.starts_with(
        "type        date_tick     pid cpu thr              code name                 param(s)\n"
    ));
    assert!(
        human.contains("KERN         98638163    2352   2 ?               23014 KERN_CONTEXT_SWITCH  7136\n"),
        "{human}"
    );
}

#[tokio::test]
async fn a_super_trace_whose_writer_has_no_dictionaries_reads_the_same() {
    let mut little = figure_2();
    little.without_dictionaries = true;
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let filter = Filter {
        threads: vec!["15".parse().unwrap()],
        events: vec!["CONTEXT_SWITCH".parse().unwrap()],
        ..Filter::default()
    };
    assert_eq!(listing(&trace, &filter, Format::Tsv).await, FIGURE_2);
}

#[tokio::test]
async fn the_active_time_of_thread_15_is_696433_cycles() {
    let little = figure_2();
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let time = async |filter: Filter| {
        let times = active_time(&trace, &filter).await.unwrap();
        times.iter().map(|t| (t.thread.0, t.active.0)).collect::<Vec<_>>()
    };
    let fifteen = || Filter { threads: vec!["15".parse().unwrap()], ..Filter::default() };
    assert_eq!(time(fifteen()).await, [(15, 696_433)]);
    // The intervals of the thread, not its row of `threads`.
    let begin = Some("97000000".parse().unwrap());
    assert_eq!(time(Filter { from: begin, ..fifteen() }).await, [(15, 696_433)]);
    assert_eq!(time(Filter { cpus: vec![Cpu(2)], ..fifteen() }).await, [(15, 422_022)]);
    let from = Some("97615600".parse().unwrap());
    let to = Some("98006250".parse().unwrap());
    assert_eq!(time(Filter { from, to, ..fifteen() }).await, [(15, 141_476 - 24 + 2)]);
    assert_eq!(time(Filter::default()).await, [(6, 0), (7, 0), (8, 1000), (9, 0), (15, 696_433)]);
    let other = |who: &str| Filter { threads: vec![who.parse().unwrap()], ..Filter::default() };
    assert_eq!(time(other("7")).await, [(7, 0)]);
    assert_eq!(time(other("16")).await, []);
    assert_eq!(time(other("nobody")).await, []);
}

/// The rows around the daemon: a message arrives at the interrupt and is treated half a turn later.
fn figure_3() -> Little {
    let mut little = Little::new();
    little.info("tick_hz", 2.8e9).info("first_tick", 5_150_163_706i64).info("last_tick", 5_322_907_374i64);
    for (thread, name) in [(1, "daemon"), (6, "work/4"), (8, "work/6"), (11, "work/9")] {
        little.row("threads", json!({"thread": thread, "name": name}));
    }
    for (level, name) in
        [("USER", "USER_CONTEXT_SWITCH"), ("KERN", "SYSTEM_CALL"), ("KERN", "IRQ"), ("USER", "USER_EVENT")]
    {
        let ty = json!({"level": level, "name": name, "field_names": [""], "field_types": ["i64"]});
        little.row("event_types", ty);
    }
    let mut event =
        |tick: i64, level: &str, lwp: i64, cpu: i64, thread: Value, name: &str, arg: Value, text: Value| {
            let row = json!({"ts_tick": tick, "level": level, "name": name, "lwp": lwp, "cpu": cpu,
            "thread": thread, "args": [arg], "texts": [text]});
            little.row("events", row);
        };
    let switch = "USER_CONTEXT_SWITCH";
    event(5_150_163_706, "USER", 2732, 2, json!(8), switch, json!(1), json!("daemon"));
    event(5_150_169_922, "KERN", 2732, 2, json!(1), "SYSTEM_CALL", json!(142), json!("select"));
    event(5_150_182_646, "USER", 2732, 2, json!(1), switch, json!(11), json!(null));
    event(5_170_071_750, "KERN", 1630, 0, json!(null), "IRQ", json!(24), json!("eth0"));
    event(5_200_000_000, "USER", 2733, 3, json!(8), "USER_EVENT", json!(null), json!("received_msg"));
    event(5_322_881_710, "USER", 2731, 1, json!(6), switch, json!(1), json!(null));
    event(5_322_893_274, "KERN", 2731, 1, json!(1), "SYSTEM_CALL", json!(142), json!("select"));
    event(5_322_907_374, "USER", 2731, 1, json!(1), "USER_EVENT", json!(null), json!("received_msg"));
    little
}

#[tokio::test]
async fn figure_3_has_a_reactivity_of_152835624_cycles() {
    let little = figure_3();
    let trace = SuperTrace::open(little.write()).await.unwrap();
    for from in ["IRQ(24)", "IRQ(eth0)", "irq_handler_entry(24)", "IRQ"] {
        for to in [
            "USER_EVENT(received_msg)@daemon",
            "received_msg@daemon",
            "received_msg@1",
            "USER_EVENT@1(daemon)",
        ] {
            let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
            let answer = reactivity(&trace, &from, &to, &Filter::default()).await.unwrap();
            assert_eq!(answer.count(), 1, "{from} {to}");
            assert_eq!(answer.median(), Some(Ticks(152_835_624)), "{from} {to}");
            assert_eq!(answer.pairs[0].to.thread, Some(Thread(1)));
            assert_eq!(answer.unanswered, 0);
        }
    }
    let (from, to) = ("IRQ(25)".parse().unwrap(), "received_msg@daemon".parse().unwrap());
    assert_eq!(reactivity(&trace, &from, &to, &Filter::default()).await.unwrap().count(), 0);
    let other =
        reactivity(&trace, &to, &"received_msg@work/4".parse().unwrap(), &Filter::default()).await.unwrap();
    assert_eq!((other.count(), other.unanswered), (0, 1));
    let nobody = reactivity(&trace, &to, &"received_msg@nobody".parse().unwrap(), &Filter::default()).await;
    assert!(
        nobody.unwrap_err().to_string().contains("selector `received_msg@nobody`: expected a user thread")
    );
}

#[tokio::test]
async fn a_listing_names_threads_and_numbers_as_the_paper_does() {
    let little = figure_3();
    let trace = SuperTrace::open(little.write()).await.unwrap();
    let tsv =
        listing(&trace, &Filter { to: Some("10ms".parse().unwrap()), ..Filter::default() }, Format::Tsv)
            .await;
    assert_eq!(
        tsv,
        "type\tdate_tick\tpid\tcpu\tthr\tcode\tname\tparams\n\
         USER\t5150163706\t2732\t2\t8(work/6)\t-\tUSER_CONTEXT_SWITCH\t1(daemon)\n\
         KERN\t5150169922\t2732\t2\t1(daemon)\t-\tSYSTEM_CALL\t142(select)\n\
         USER\t5150182646\t2732\t2\t1(daemon)\t-\tUSER_CONTEXT_SWITCH\t11(work/9)\n\
         KERN\t5170071750\t1630\t0\t?\t-\tIRQ\t24(eth0)\n"
    );
}
