//! `sigmund info` on every kind of input: what it is and holds, without a merge.

use serde_json::Value;

use crate::{
    kernel,
    sigmund::{Reported, Sigmund, figure, fixture, program, user_traces},
};

const KERNEL_TRACE: &str = "small-tsc-v7-zstd.dat";

fn info(sigmund: &Sigmund, args: &[&str]) -> Value {
    let text = sigmund.run([&["info", "--format", "json"], args].concat()).found();
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn sum(rows: &Value, column: &str) -> i64 {
    rows.as_array().unwrap().iter().map(|row| row[column].as_i64().unwrap_or(0)).sum()
}

fn kernel_trace() -> Sigmund {
    let sigmund = Sigmund::new();
    std::fs::copy(fixture(KERNEL_TRACE), sigmund.path("k.dat")).unwrap();
    sigmund
}

#[test]
fn of_a_kernel_trace_it_counts_what_the_merge_counts() {
    let sigmund = kernel_trace();
    let said = info(&sigmund, &["k.dat"]);
    let trace = &said["traces"][0];
    assert_eq!(
        (&said["kind"], trace["format"].as_str()),
        (&"trace".into(), Some("trace.dat version 7, zstd"))
    );

    sigmund.run(["merge", "k.dat", "-o", "k.supertrace", "--hz", "2596.148MHz"]).found();
    let events = sigmund.number("k.supertrace", "SELECT count(*) FROM events");
    assert!(events > 100, "{events}");
    assert_eq!(trace["events"], events);
    assert_eq!(sum(&trace["streams"], "events"), events);
    assert_eq!(sum(&trace["lwps"], "events"), events);
    for row in trace["event_types"].as_array().unwrap() {
        let name = row["name"].as_str().unwrap();
        let query = format!("SELECT count(*) FROM events WHERE name = '{name}'");
        assert_eq!(row["events"], sigmund.number("k.supertrace", &query), "{name}");
    }
    let clock = &trace["clocks"][0];
    assert_eq!(clock["clock"], "tsc");
    assert_eq!(clock["first_tick"].to_string(), sigmund.fact("k.supertrace", "first_tick"));
    assert_eq!(clock["last_tick"].to_string(), sigmund.fact("k.supertrace", "last_tick"));
}

#[test]
fn a_person_sees_format_streams_events_and_lwps_and_how_they_were_counted() {
    let sigmund = kernel_trace();
    let text = sigmund.run(["info", "k.dat", "--top", "3"]).found();
    for part in [
        "k.dat\n",
        "trace.dat version 7",
        " in 2 streams, counted by reading them once",
        "\nStreams\n",
        "\nEvents\n",
        "sys_enter",
        "\nLWPs\n",
        " more\n",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
}

#[test]
fn quick_reads_no_event_and_says_so() {
    let sigmund = kernel_trace();
    let said = info(&sigmund, &["--quick", "k.dat"]);
    let trace = &said["traces"][0];
    assert_eq!((&trace["counted"], &trace["events"]), (&Value::Bool(false), &Value::Null));
    let switch = |row: &&Value| row["name"] == "sched_switch";
    let switch = trace["event_types"].as_array().unwrap().iter().find(switch).unwrap();
    assert_eq!(switch["events"], Value::Null);
    assert!(switch["fields"].as_str().unwrap().contains("next_pid"), "{switch}");
    let text = sigmund.run(["info", "--quick", "k.dat"]).found();
    assert!(text.contains("not counted, in 2 streams (--quick)"), "{text}");
}

#[test]
fn of_a_listing_it_says_clock_events_and_lines_that_cannot_be_read() {
    let sigmund = Sigmund::new();
    sigmund.write("figure3.tsv", format!("# tick_hz=2800000000\n{}", figure(3)).as_bytes());
    let said = info(&sigmund, &["figure3.tsv"]);
    let trace = &said["traces"][0];
    assert_eq!((trace["format"].as_str(), trace["events"].as_i64()), (Some("listing"), Some(23)));
    let clock = &trace["clocks"][0];
    assert_eq!((clock["clock"].as_str(), clock["tick_hz"].as_f64()), (Some("ticks"), Some(2.8e9)));
    assert_eq!(trace["losses"], Value::Array(Vec::new()));

    sigmund.write("bad.tsv", format!("{}USER\tsoon\t1\t0\t1\tstep\t1\n", figure(3)).as_bytes());
    let said = info(&sigmund, &["bad.tsv"]);
    let losses = &said["traces"][0]["losses"];
    assert_eq!((losses[0]["kind"].as_str(), losses[0]["losses"].as_i64()), (Some("damaged"), Some(1)));
    assert!(losses[0]["example"].as_str().unwrap().contains("soon"), "{losses}");
}

/// Records Sumtime: `RUN`, and `RUN.supertrace` beside it.
fn run_of_sumtime() -> (Sigmund, Reported) {
    let sigmund = Sigmund::new();
    let said = sigmund.run(["record", "-o", "RUN", "--", program(), "sumtime", "6", "2", "1000"]);
    (sigmund, said)
}

#[test]
fn of_a_run_it_says_how_it_was_recorded_and_what_each_side_holds() {
    let _alone = kernel::alone();
    let (sigmund, _) = run_of_sumtime();
    let said = info(&sigmund, &["RUN"]);
    assert_eq!((&said["kind"], &said["facts"]["ended"]), (&"run".into(), &"exit 0".into()));
    let traces = said["traces"].as_array().unwrap();
    let all: i64 = traces.iter().map(|trace| trace["events"].as_i64().unwrap()).sum();
    assert_eq!(all, sigmund.number("RUN.supertrace", "SELECT count(*) FROM events"));

    let user = traces.last().unwrap();
    assert_eq!(user["format"], "user trace version 1");
    let events = sigmund.number("RUN.supertrace", "SELECT count(*) FROM events WHERE level = 'USER'");
    assert_eq!(user["events"], events);
    let lwps =
        sigmund.number("RUN.supertrace", "SELECT count(DISTINCT lwp) FROM events WHERE level = 'USER'");
    assert_eq!(user["streams"].as_array().unwrap().len() as i64, lwps);
    // The rate of its clock comes from the run's snapshots.
    assert!(user["clocks"][0]["tick_hz"].as_f64().unwrap() > 1e8, "{user}");

    // The same of the file alone; and of a run whose recorder was killed.
    let file = user_traces(&sigmund.path("RUN")).remove(0);
    assert_eq!(info(&sigmund, &[file.to_str().unwrap()])["traces"][0]["events"], events);
    std::fs::remove_file(sigmund.path("RUN/run.json")).unwrap();
    let text = sigmund.run(["info", "RUN"]).found();
    assert!(text.contains("its recorder did not end properly"), "{text}");
    assert_eq!(info(&sigmund, &["RUN"])["traces"].as_array().unwrap().len(), traces.len());
}

#[test]
fn of_a_super_trace_it_says_facts_tables_and_events() {
    let sigmund = Sigmund::with_listing("figure3", &figure(3));
    let said = info(&sigmund, &["figure3.supertrace"]);
    assert_eq!((&said["kind"], &said["facts"]["user_events"]), (&"super-trace".into(), &"20".into()));
    assert_eq!(sum(&said["event_types"], "events"), 23);
    let events = said["tables"].as_array().unwrap().iter().find(|row| row["table"] == "events").unwrap();
    assert_eq!(events["rows"], 23);
    assert_eq!(said["tracing"], Value::Null);
    let csv = sigmund.run(["info", "--format", "csv"]).found();
    assert!(csv.starts_with("level,name,events\nUSER,USER_CONTEXT_SWITCH,19\n"), "{csv}");
}

#[test]
fn a_cut_kernel_trace_is_described_with_what_is_missing() {
    let sigmund = Sigmund::new();
    let whole = std::fs::read(fixture(KERNEL_TRACE)).unwrap();
    sigmund.write("cut.dat", &whole[..30_000]);
    let said = info(&sigmund, &["cut.dat"]);
    let losses = &said["traces"][0]["losses"];
    assert!(sum(losses, "losses") > 0, "{losses}");
    assert!(losses[0]["example"].as_str().unwrap().contains("cut.dat: at byte "), "{losses}");
}

#[test]
fn what_is_of_no_known_format_is_named_with_what_it_begins_with() {
    let sigmund = Sigmund::new();
    sigmund.write("picture", b"\x89PNG\r\n\x1a\n and more");
    sigmund.run(["info", "picture"]).complained(&["picture", "PNG", "not a super-trace"]);
    sigmund.write("cut.dat", &std::fs::read(fixture(KERNEL_TRACE)).unwrap()[..100]);
    sigmund.run(["info", "cut.dat"]).complained(&["cut.dat", "at byte "]);
}
