//! Damage and mistakes: a complaint with file and place, status 2, and all that can be kept.

use std::{fs, fs::File, path::Path, sync::Arc};

use arrow::array::{AsArray, RecordBatch, StringArray};
use parquet::arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder};
use sigmund_model::tables::{Checksums, FileEnd};

use crate::{
    kernel,
    sigmund::{Reported, Sigmund, figure, fixture, program, user_traces},
};

/// Kernel events in `small-tsc-v7-zstd.dat`.
const EVENTS_IN_FIXTURE: i64 = 7620;

fn kernel_trace() -> Vec<u8> {
    fs::read(fixture("small-tsc-v7-zstd.dat")).unwrap()
}

fn merge(sigmund: &Sigmund, input: &str) -> Reported {
    sigmund.run(["merge", input, "-o", "out.supertrace"])
}

/// Losses of this kind in `out.supertrace`, their details.
fn losses(sigmund: &Sigmund, kind: &str) -> Vec<String> {
    let query = format!("SELECT detail FROM losses WHERE kind = '{kind}'");
    sigmund.sql("out.supertrace", &query).into_iter().map(|mut row| row.remove(0)).collect()
}

fn events(sigmund: &Sigmund) -> i64 {
    sigmund.number("out.supertrace", "SELECT count(*) FROM events")
}

/// A run of Sumtime with its user trace only, in `RUN`; the user trace's file name.
fn run_of_sumtime() -> (Sigmund, String) {
    let _alone = kernel::alone();
    let sigmund = Sigmund::new();
    let record =
        ["record", "--user-only", "--no-merge", "-o", "RUN", "--", program(), "sumtime", "10", "2", "10"];
    sigmund.run(record).found();
    let traces = user_traces(&sigmund.path("RUN"));
    let [trace] = traces.as_slice() else { panic!("{traces:?}") };
    let name = trace.file_name().unwrap().to_str().unwrap().to_string();
    (sigmund, name)
}

#[test]
fn a_kernel_trace_of_trace_cmd_merges_without_loss() {
    let sigmund = Sigmund::new();
    sigmund.write("whole.dat", &kernel_trace());
    merge(&sigmund, "whole.dat").found();
    assert_eq!(events(&sigmund), EVENTS_IN_FIXTURE);
    assert_eq!(sigmund.number("out.supertrace", "SELECT count(*) FROM losses WHERE severity <> 'note'"), 0);
}

#[test]
fn a_damaged_chunk_of_a_kernel_trace_costs_that_chunk() {
    let sigmund = Sigmund::new();
    let mut bytes = kernel_trace();
    // In the first compressed chunk of CPU 0.
    bytes[18_000..18_004].fill(0xff);
    sigmund.write("damaged.dat", &bytes);
    merge(&sigmund, "damaged.dat").complained(&["damaged.dat: cpu 0: at byte 16396"]);
    let kept = events(&sigmund);
    assert!((EVENTS_IN_FIXTURE / 2..EVENTS_IN_FIXTURE).contains(&kept), "{kept} events kept");
    let details = losses(&sigmund, "damaged");
    assert!(details.iter().any(|detail| detail.contains("cpu 0: at byte 16396")), "{details:?}");
}

#[test]
fn a_truncated_kernel_trace_is_refused_or_kept_with_its_losses_but_never_taken_for_whole() {
    let whole = kernel_trace();
    for length in [12, 100, 5_000, 10_000, 16_000, 20_000, 30_000, 33_900] {
        let sigmund = Sigmund::new();
        sigmund.write("cut.dat", &whole[..length]);
        merge(&sigmund, "cut.dat").complained(&["cut.dat", "at byte ", "expected "]);
        if sigmund.path("out.supertrace").exists() {
            let details = [losses(&sigmund, "truncated"), losses(&sigmund, "damaged")].concat();
            assert!(
                details.iter().any(|detail| detail.contains("cut.dat: at byte ")),
                "{length}: {details:?}"
            );
            let checked = sigmund.run(["check", "out.supertrace"]);
            assert_eq!(checked.status, 1, "cut to {length} bytes, it is not to be trusted: {checked:?}");
        } else {
            assert!(length < 20_000, "cut to {length} bytes, some of it is readable");
        }
    }
}

#[test]
fn a_flipped_bit_in_a_user_trace_costs_one_packet_and_is_told() {
    let (sigmund, name) = run_of_sumtime();
    merge(&sigmund, "RUN").found();
    let whole = events(&sigmund);

    let path = sigmund.path("RUN").join(&name);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(&path, bytes).unwrap();
    let said = sigmund.run(["merge", "RUN", "-o", "out.supertrace", "--force"]);
    said.complained(&[&name, "at byte ", "expected a packet"]);
    let kept = events(&sigmund);
    // A packet holds 64 KiB, a record 16 bytes at least.
    assert!(kept < whole && kept > whole - 4096, "{kept} of {whole} events kept");
    let details = losses(&sigmund, "damaged");
    assert!(details.iter().any(|d| d.contains(&name) && d.contains("at byte ")), "{details:?}");
}

#[test]
fn a_truncated_user_trace_keeps_what_is_before_the_cut() {
    let (sigmund, name) = run_of_sumtime();
    merge(&sigmund, "RUN").found();
    let whole = events(&sigmund);

    let path = sigmund.path("RUN").join(&name);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() * 3 / 4]).unwrap();
    let said = sigmund.run(["merge", "RUN", "-o", "out.supertrace", "--force"]);
    said.complained(&[&name, "at byte ", "the end of the file"]);
    let kept = events(&sigmund);
    assert!((whole / 4..whole).contains(&kept), "{kept} of {whole} events kept");
    let details = losses(&sigmund, "truncated");
    assert!(details.iter().all(|detail| detail.contains(&name)), "{details:?}");
    assert!(details.iter().any(|detail| detail.contains("at byte ")), "{details:?}");
}

#[test]
fn a_bad_line_of_a_listing_is_named_and_the_others_are_kept() {
    for (bad, place) in [
        ("USER\tsoon\t1\t1\t1\t-\tX\t", "line 8: expected a tick in column date_tick, found \"soon\""),
        ("USES\t99060186\t1\t1\t1\t-\tX\t", "line 8: expected KERN or USER in column type, found \"USES\""),
        ("USER\t99060186\t-7\t1\t1\t-\tX\t", "line 8: expected a number, - or ? in column pid, found \"-7\""),
        ("USER\t99060186\t1\t1\t8(work\t-\tX\t", "line 8: expected a thread such as 15 or 8(work/6)"),
        ("USER\t99060186\t1\t1\t1\t-\tX\t\t", "line 8: expected 8 columns, as in the header, found \"9\""),
    ] {
        let sigmund = Sigmund::new();
        sigmund.write("bad.tsv", format!("{}{bad}\n", figure(2)).as_bytes());
        merge(&sigmund, "bad.tsv").complained(&["bad.tsv", place]);
        assert_eq!(losses(&sigmund, "damaged").len(), 1, "{bad}");
        assert_eq!(events(&sigmund), 6, "{bad}");
        assert_eq!(sigmund.run(["--active-time", "--thread", "15"]).found(), "696433 cycles\n");
    }
}

#[test]
fn what_is_no_trace_is_refused_with_its_name() {
    let sigmund = Sigmund::new();
    sigmund.write("empty", b"");
    sigmund.write("picture", b"\x89PNG\r\n\x1a\n");
    sigmund.write("header.tsv", b"type\tname\nUSER\tX\n");
    fs::create_dir(sigmund.path("folder")).unwrap();
    for (input, words) in [
        ("empty", &["empty: byte 0: expected a trace.dat"][..]),
        ("picture", &["picture: byte 0", "PNG"]),
        ("header.tsv", &["header.tsv: line 1", "date_tick"]),
        ("folder", &["folder", "run.json"]),
        ("nowhere", &["nowhere", "No such file"]),
    ] {
        merge(&sigmund, input).complained(words);
        assert!(!sigmund.path("out.supertrace").exists(), "{input}");
    }
    for (trace, words) in [
        ("folder", &["folder/info", "missing"][..]),
        ("picture", &["picture", "not a super-trace", "a file"]),
        ("nowhere", &["nowhere", "not a super-trace"]),
    ] {
        sigmund.run(["info", trace]).complained(words);
        sigmund.run(["check", trace]).complained(words);
        sigmund.run(["sql", trace, "SELECT 1"]).complained(words);
        sigmund.run(["-f", trace, "--list-events"]).complained(words);
    }
}

#[test]
fn a_damaged_run_json_is_named() {
    let (sigmund, _) = run_of_sumtime();
    let path = sigmund.path("RUN/run.json");
    let manifest = fs::read(&path).unwrap();
    fs::write(&path, &manifest[..manifest.len() / 2]).unwrap();
    merge(&sigmund, "RUN").complained(&["RUN/run.json", "line "]);
    assert!(!sigmund.path("out.supertrace").exists());
}

#[test]
fn a_super_trace_of_another_schema_version_is_refused_with_both_versions() {
    let sigmund = Sigmund::with_listing("out", &figure(2));
    rewrite_fact(&sigmund.path("out.supertrace/info/part-00000.parquet"), "schema_version", "999");
    let words = ["out.supertrace/info", "schema version 999", "reads 4"];
    for args in [
        &["info"][..],
        &["check"],
        &["--list-events"],
        &["--active-time"],
        &["sql", "out.supertrace", "SELECT 1"],
    ] {
        assert_eq!(sigmund.run(args).complained(&words), "", "{args:?}");
    }
}

fn rewrite_fact(path: &Path, key: &str, value: &str) {
    // Of the file as the merge wrote it. It is gone after the first one.
    let _ = fs::remove_file(path.ancestors().nth(2).unwrap().join("checksums"));
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    let schema = batches[0].schema();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), Arc::clone(&schema), None).unwrap();
    for batch in batches {
        let (keys, values) = (batch.column(0).as_string::<i32>(), batch.column(1).as_string::<i32>());
        let changed = |(k, v)| if k == Some(key) { Some(value) } else { v };
        let values: StringArray = keys.iter().zip(values).map(changed).collect();
        let columns = vec![Arc::clone(batch.column(0)), Arc::new(values) as _];
        writer.write(&RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()).unwrap();
    }
    writer.close().unwrap();
}

#[test]
fn a_damaged_table_is_named() {
    let sigmund = Sigmund::with_listing("out", &figure(2));
    let path = sigmund.path("out.supertrace/active/part-00000.parquet");
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    sigmund.run(["--active-time"]).complained(&["active/part-00000.parquet", "Parquet"]);
    fs::remove_dir_all(sigmund.path("out.supertrace/active")).unwrap();
    sigmund.run(["--active-time"]).complained(&["out.supertrace/active", "missing"]);
}

#[test]
fn what_is_at_the_output_stays_without_force() {
    let sigmund = Sigmund::with_listing("out", &figure(2));
    let before = sigmund.run(["--list-events"]).found();
    sigmund.write("figure3.tsv", figure(3).as_bytes());
    merge(&sigmund, "figure3.tsv").complained(&["out.supertrace", "--force"]);
    assert_eq!(sigmund.run(["--list-events"]).found(), before);
    sigmund.run(["merge", "figure3.tsv", "-o", "out.supertrace", "--force"]).found();
    assert_eq!(events(&sigmund), 23);

    // What is no super-trace stays even with it.
    fs::create_dir(sigmund.path("work")).unwrap();
    sigmund.write("work/thesis", b"years");
    sigmund.run(["merge", "figure3.tsv", "-o", "work", "--force"]).complained(&["work", "a super-trace"]);
    assert_eq!(fs::read(sigmund.path("work/thesis")).unwrap(), b"years");
    let here: Vec<_> = fs::read_dir(sigmund.folder()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(!here.iter().any(|name| name.to_string_lossy().contains("partial")), "{here:?}");
}

#[test]
fn a_recording_does_not_overwrite_another_without_force() {
    let (sigmund, name) = run_of_sumtime();
    let before = fs::read(sigmund.path("RUN").join(&name)).unwrap();
    let _alone = kernel::alone();
    sigmund.run(["record", "--user-only", "-o", "RUN", "--", "true"]).complained(&["RUN", "--force"]);
    assert_eq!(fs::read(sigmund.path("RUN").join(&name)).unwrap(), before);
    fs::create_dir(sigmund.path("work")).unwrap();
    sigmund.write("work/thesis", b"years");
    sigmund.run(["record", "--user-only", "--force", "-o", "work", "--", "true"]).complained(&["work"]);
    assert_eq!(fs::read(sigmund.path("work/thesis")).unwrap(), b"years");

    sigmund.run(["record", "--user-only", "--force", "-o", "RUN", "--", "true"]).found();
    assert!(!sigmund.path("RUN").join(&name).exists());
}

#[test]
fn a_program_that_cannot_start_is_named_and_nothing_stays_behind() {
    let _alone = kernel::alone();
    let sigmund = Sigmund::new();
    sigmund.write("text", b"no program");
    for (program, why) in [("./nowhere", "No such file"), ("./text", "denied")] {
        let said = sigmund.run(["record", "-o", "RUN", "--", program]);
        assert_eq!(kernel::held_by(said.pid), Vec::<String>::new());
        said.complained(&["cannot start", program, why]);
        // The next try finds the place free.
        assert!(!sigmund.path("RUN").exists() && !sigmund.path("RUN.supertrace").exists());
    }
}

#[test]
fn a_broken_file_is_named_and_left_out_if_that_is_asked_for() {
    let sigmund = Sigmund::new();
    sigmund.write("whole.dat", &kernel_trace());
    merge(&sigmund, "whole.dat").found();
    let broken = sigmund.path("out.supertrace/wakeups/part-00000.parquet");
    let bytes = fs::read(&broken).unwrap();
    fs::write(&broken, &bytes[..bytes.len() / 2]).unwrap();
    let part = "out.supertrace/wakeups/part-00000.parquet: expected a whole Parquet file";
    let questions: [&[&str]; 6] = [
        &["--summary"],
        &["sql", "out.supertrace", "SELECT count(*) FROM events"],
        &["info", "out.supertrace"],
        &["report", "out.supertrace"],
        &["check", "out.supertrace"],
        &["export", "out.supertrace", "--format", "chrome", "-o", "-"],
    ];
    for question in questions {
        sigmund.run(question).complained(&[part]);
        let said = sigmund.run(question.iter().chain(&["--keep-going"]));
        assert_eq!(said.status, 2, "{said:?}");
        assert!(!said.stdout.is_empty(), "{said:?}");
        let counted = "left out 1 file of out.supertrace: answers lack their rows";
        assert!(
            said.stderr.contains(&format!("error: left out: {part}")) && said.stderr.contains(counted),
            "{said:?}"
        );
    }
    let counted = sigmund.run([
        "sql",
        "out.supertrace",
        "SELECT count(*) AS n FROM events",
        "--format",
        "csv",
        "--keep-going",
    ]);
    assert_eq!(counted.stdout, format!("n\n{EVENTS_IN_FIXTURE}\n"));
}

/// A damaged page in a file whose footer is whole.
#[test]
fn a_damaged_page_is_named_with_its_file_and_left_out_if_that_is_asked_for() {
    let sigmund = Sigmund::new();
    sigmund.write("whole.dat", &kernel_trace());
    merge(&sigmund, "whole.dat").found();
    let broken = sigmund.path("out.supertrace/lwp_states/part-00000.parquet");
    let mut bytes = fs::read(&broken).unwrap();
    // Of the first column; what follows the pages is read when the file is opened.
    let pages = 4..bytes.len() / 8;
    bytes[pages].fill(0xff);
    fs::write(&broken, bytes).unwrap();
    let part = "out.supertrace/lwp_states/part-00000.parquet: expected a whole Parquet file";
    let sum = "SELECT sum(dur_tick) AS n FROM lwp_states";
    let questions: [&[&str]; 4] = [
        &["sql", "out.supertrace", sum],
        &["--summary"],
        &["check", "out.supertrace"],
        &["--states", "--by", "lwp"],
    ];
    for question in questions {
        let said = sigmund.run(question);
        assert!(said.stderr.contains(part) && said.status == 2, "{said:?}");
        let said = sigmund.run(question.iter().chain(&["--keep-going"]));
        assert_eq!(said.status, 2, "{said:?}");
        let counted = "left out 1 file of out.supertrace: answers lack their rows";
        assert!(
            said.stderr.contains(&format!("error: left out: {part}")) && said.stderr.contains(counted),
            "{said:?}"
        );
    }
    // Others are whole.
    assert_eq!(events(&sigmund), EVENTS_IN_FIXTURE);
    let broken = sigmund.path("out.supertrace/events/part-00000.parquet");
    let mut bytes = fs::read(&broken).unwrap();
    let pages = 4..bytes.len() / 8;
    bytes[pages].fill(0xff);
    fs::write(&broken, bytes).unwrap();
    sigmund.run(["--list-events"]).complained(&["events/part-00000.parquet: expected a whole Parquet file"]);
}

#[test]
fn a_query_that_fails_at_once_prints_no_header() {
    let sigmund = Sigmund::new();
    sigmund.write("whole.dat", &kernel_trace());
    merge(&sigmund, "whole.dat").found();
    let said =
        sigmund.run(["sql", "out.supertrace", "SELECT 1 / (lwp - lwp) AS n FROM lwps", "--format", "csv"]);
    assert_eq!(said.stdout, "");
    said.complained(&["ivide by zero"]);
}

// Pages have a checksum each, and the ends of files another; what is left are the heads of pages.
#[test]
fn a_changed_bit_of_a_super_trace_is_an_error_or_changes_nothing() {
    let (sigmund, _) = run_of_sumtime();
    sigmund.run(["merge", "RUN"]).found();
    let query = "SELECT count(*), sum(ts_tick % 1000), sum(thread), sum(lwp), sum(code), min(name), max(cpu_seen), min(context), \
                 sum(args[1]), sum(args[2]), count(texts[1]) FROM events";
    let asked = || sigmund.run(["sql", "RUN.supertrace", query, "--format", "csv"]);
    let whole = asked().found();
    let events = sigmund.path("RUN.supertrace/events/part-00000.parquet");
    let bytes = fs::read(&events).unwrap();
    let (mut errors, places) = (0, 48);
    for place in 0..places {
        let at = bytes.len() * place / places + place % 7;
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (place % 8);
        fs::write(&events, &changed).unwrap();
        let said = asked();
        match said.status {
            0 => assert_eq!(said.stdout, whole, "byte {at} of {}", bytes.len()),
            2 => assert!(said.stderr.contains("events/part-00000.parquet"), "{said:?}"),
            _ => panic!("byte {at}: {said:?}"),
        }
        errors += usize::from(said.status == 2);
        // Which reads all columns, whatever its invariants need.
        if said.status == 2 && place % 6 == 0 {
            sigmund.run(["check", "RUN.supertrace"]).complained(&["events/part-00000.parquet"]);
        }
    }
    assert!(errors > places / 2, "{errors} of {places}");
    fs::write(&events, &bytes).unwrap();
    let checksums = sigmund.path("RUN.supertrace/checksums");
    let mut text = fs::read(&checksums).unwrap();
    let written = text.clone();
    let listed = Checksums::parse(&text).unwrap();
    text[30] ^= 1;
    fs::write(&checksums, text).unwrap();
    assert!(asked().complained(&["RUN.supertrace/checksums: expected the checksum"]).is_empty());
    let left_out = sigmund.run(["sql", "RUN.supertrace", query, "--format", "csv", "--keep-going"]);
    assert_eq!((left_out.status, &left_out.stdout), (2, &whole), "{left_out:?}");
    assert!(left_out.stderr.contains("left out: RUN.supertrace/checksums"), "{left_out:?}");
    // A file that it names and that is gone would be rows less.
    let mut with_another = listed;
    with_another.insert("events/part-00001.parquet".into(), FileEnd::new(4, b"PAR1"));
    fs::write(&checksums, with_another.text()).unwrap();
    assert!(asked().complained(&["events/part-00001.parquet: expected this file, found none"]).is_empty());
    // A file that it does not name would be rows more.
    fs::write(&checksums, &written).unwrap();
    let foreign = sigmund.path("RUN.supertrace/events/part-00001.parquet");
    fs::copy(sigmund.path("RUN.supertrace/events/part-00000.parquet"), &foreign).unwrap();
    assert!(
        asked().complained(&["events/part-00001.parquet: expected files that the merge wrote"]).is_empty()
    );
    fs::remove_file(&foreign).unwrap();
    // Copies of files are a super-trace without it.
    fs::remove_file(&checksums).unwrap();
    assert_eq!(asked().found(), whole);
}
