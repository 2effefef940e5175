//! Hostile names, from a recording to the reference reader of each format: quotes, percent signs, newlines, tabs, bytes
//! that are not UTF-8, and 10 kB.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use sigmund_export::{
    ViewerFormat,
    replay::{read_actors, replay},
};
use sigmund_files::Destination;
use sigmund_merge::{MergeOptions, merge};
use sigmund_query::Filter;
use sigmund_sql::SuperTrace;

use crate::{tools, viewer};

/// The short name. The merge replaces the byte 0xff with U+FFFD.
const NAME: &str = "say \"hi\" 100% \u{fffd} Ünï";
/// A name with a newline and a tab, which names of user threads, LWPs and spans may contain.
const LINES: &str = "say \"hi\" 100% \u{fffd} Ünï\n\tnext";

/// Two user threads with hostile names, one of 10 kB, that take turns on an LWP with a hostile name; a span and an
/// event with hostile names.
fn listing() -> Vec<u8> {
    let quoted = format!("{LINES:?}").replace('\u{fffd}', "\x01");
    let name = NAME.replace('\u{fffd}', "\x01");
    let long = "long".repeat(2500);
    let lines = [
        "type\tdate_tick\tpid\tcpu\tthr\tcode\tname\tparams".to_string(),
        format!(
            "KERN\t900\t0\t0\t-\t5\tsched_switch\tprev_pid=0 prev_state=0 next_comm={quoted} next_pid=70"
        ),
        format!("USER\t1000\t70\t0\t?\t1\tUSER_CONTEXT_SWITCH\t1({quoted})"),
        format!("USER\t1100\t70\t0\t1\t20\tSPAN_BEGIN\tplace=7({quoted})"),
        format!("USER\t1900\t70\t0\t1\t21\tSPAN_END\tplace=7({quoted})"),
        format!("USER\t1950\t70\t0\t1\t1\tUSER_CONTEXT_SWITCH\t2({long})"),
        format!("USER\t2000\t70\t0\t2\t9\tevent {name}\t1"),
        format!("USER\t3000\t70\t0\t2\t1\tUSER_CONTEXT_SWITCH\t1({quoted})"),
        format!("USER\t4000\t70\t0\t1\t9\tevent {name}\t2\n"),
    ];
    lines.join("\n").bytes().map(|byte| if byte == 1 { 0xff } else { byte }).collect()
}

async fn exported(folder: &Path, viewer: ViewerFormat) -> PathBuf {
    let (input, super_trace) = (folder.join("hostile.tsv"), folder.join("t.supertrace"));
    std::fs::write(&input, listing()).unwrap();
    merge(&[input], &super_trace, &MergeOptions { force: true, ..MergeOptions::default() }, |_| {}).unwrap();
    let trace = SuperTrace::open(super_trace).await.unwrap();
    let actors = Arc::new(read_actors(&trace, &Filter::default()).await.unwrap());
    let out = folder.join("out");
    let mut destination = Destination::new(&out, None, None).unwrap();
    let mut picture = viewer.create(&mut destination, &actors, None).unwrap();
    replay(&trace, &Filter::default(), &actors, &mut picture, |_, _| Ok(())).await.unwrap();
    drop(picture);
    destination.finish().unwrap();
    out
}

fn assert_has(text: &str, what: &str) {
    assert!(text.contains(what), "{what:?} is not in {}", text.chars().take(5000).collect::<String>());
}

/// A text with the escapes of C and JSON.
fn escaped(text: &str) -> String {
    text.replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t")
}

#[tokio::test]
async fn pj_dump_prints_recorded_hostile_names() {
    let folder = tempfile::tempdir().unwrap();
    let out = exported(folder.path(), ViewerFormat::Paje).await;
    let report = sigmund_export::sinks::paje::check(std::fs::read(&out).unwrap().as_slice()).unwrap();
    assert_eq!(report.faults, []);
    if tools::all_there(&["pj_dump"]) {
        let table = tools::quiet_output(Command::new("pj_dump").arg(&out));
        let lines = "say %22hi%22 100%25 \u{fffd} Ünï%0A%09next";
        assert_has(&table, &format!("LWP, 0, 3.1e-06, 3.1e-06, {lines} (70)"));
        assert_has(&table, &format!("1 {lines}"));
        assert_has(
            &table,
            &format!("span of a user thread, 0.000000, 0.000001, 0.000001, 0.000000, {lines}"),
        );
        assert_has(&table, "event say %22hi%22 100%25 \u{fffd} Ünï");
        assert_has(&table, &format!("2 {}", "long".repeat(700)));
        // The name of 10 kB is divided at 3000 bytes, and continues in another line.
        assert_has(&table, &format!("2 {}lo%+", "long".repeat(749)));
    }
}

#[tokio::test]
async fn otf2_print_prints_recorded_hostile_names() {
    let folder = tempfile::tempdir().unwrap();
    let out = exported(folder.path(), ViewerFormat::Otf2).await;
    if tools::all_there(&["otf2-print"]) {
        let anchor = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
        let anchor =
            anchor.into_iter().find(|path| path.extension().is_some_and(|ext| ext == "otf2")).unwrap();
        let definitions = tools::quiet_output(Command::new("otf2-print").arg("-G").arg(anchor));
        for name in [format!("{LINES} (70)"), format!("1 {LINES}"), LINES.into()] {
            assert_has(&definitions, &format!("  \"{name}\""));
        }
        assert_has(&definitions, &format!("event {NAME}"));
        assert_has(&definitions, &"long".repeat(2500));
    }
}

#[tokio::test]
async fn babeltrace_prints_recorded_hostile_names() {
    let folder = tempfile::tempdir().unwrap();
    let out = exported(folder.path(), ViewerFormat::Ctf).await;
    if tools::all_there(&["babeltrace2"]) {
        let events = tools::quiet_output(Command::new("babeltrace2").arg(out));
        assert_has(&events, &format!("event {NAME}"));
        for before in ["next_comm = \"", "thread = ( \"1 ", "place = ( \""] {
            assert_has(&events, &format!("{before}{}\"", escaped(LINES)));
        }
    }
}

#[tokio::test]
async fn python_reads_recorded_hostile_names_from_chromes_json() {
    let folder = tempfile::tempdir().unwrap();
    let out = exported(folder.path(), ViewerFormat::Chrome).await;
    if tools::all_there(&["python3"]) {
        let print = "import json, sys; print(json.dumps(json.load(open(sys.argv[1])), ensure_ascii=False))";
        let json = tools::quiet_output(Command::new(tools::PYTHON).args(["-c", print]).arg(out));
        for name in [format!("{LINES} (70)"), format!("1 {LINES}"), LINES.into(), format!("event {NAME}")] {
            assert_has(&json, &format!("\"name\": \"{}\"", escaped(&name)));
        }
        assert_has(&json, &"long".repeat(2500));
    }
}

#[tokio::test]
async fn perfettos_trace_processor_prints_recorded_hostile_names() {
    let folder = tempfile::tempdir().unwrap();
    let out = exported(folder.path(), ViewerFormat::Perfetto).await;
    let query = "select name from track union select name from slice";
    if let Some(answers) = viewer::trace_processor(&out, &[query]) {
        let names: Vec<&str> = answers[0].iter().filter_map(|row| row[0].as_str()).collect();
        for name in [format!("1 {LINES}"), LINES.into(), format!("event {NAME}")] {
            assert!(names.contains(&name.as_str()), "{name:?} is not among them");
        }
        let names = names.concat();
        assert_has(&names, &"long".repeat(2500));
    }
}
