//! `sigmund check` on super-traces that were broken on purpose: each breaks a known invariant, and the status is that of a broken trace.

use std::{
    fs::{self, File},
    path::Path,
    sync::Arc,
};

use arrow::{
    array::{ArrayRef, AsArray, Int32Array, Int64Array, RecordBatch},
    compute::concat_batches,
    datatypes::{DataType, Int32Type, Int64Type},
};
use parquet::arrow::{ArrowWriter, arrow_reader::ParquetRecordBatchReaderBuilder};
use serde_json::Value;

use crate::{
    kernel,
    sigmund::{Sigmund, fixture, program, user_traces},
};

const TRACE: &str = "small.supertrace";

/// ```text
/// CPU 0     | 70             | 99    | 70             | idle
/// LWP 70    |    | thread 5          |           |
/// tick      100  110         140     200         220  230
/// ```
const SMALL: &str = "type\tdate_tick\tpid\tcpu\tthr\tname\tparams\n\
    KERN\t100\t0\t0\t-\tKERN_CONTEXT_SWITCH\t70\n\
    USER\t110\t70\t0\t-\tUSER_CONTEXT_SWITCH\t5\n\
    USER\t120\t70\t0\t-\tstep\t1\n\
    KERN\t140\t70\t0\t-\tKERN_CONTEXT_SWITCH\t99\n\
    KERN\t200\t99\t0\t-\tKERN_CONTEXT_SWITCH\t70\n\
    USER\t210\t70\t0\t-\tstep\t2\n\
    USER\t220\t70\t0\t-\tUSER_CONTEXT_SWITCH\t0\n\
    KERN\t230\t70\t0\t-\tKERN_CONTEXT_SWITCH\t0\n\
    KERN\t260\t0\t0\t-\tIRQ\t1\n";

fn small() -> Sigmund {
    Sigmund::with_listing("small", SMALL)
}

/// Rewrites a table: the row in which each of `which` is so gets `value` in `column`.
fn edit(sigmund: &Sigmund, table: &str, which: &[(&str, i64)], column: &str, value: i64) {
    let path = sigmund.path(&format!("{TRACE}/{table}/part-00000.parquet"));
    let batch = read(&path);
    let number = |name: &str, row: usize| {
        let cells = batch.column_by_name(name).unwrap();
        match cells.data_type() {
            DataType::Int32 => i64::from(cells.as_primitive::<Int32Type>().value(row)),
            _ => cells.as_primitive::<Int64Type>().value(row),
        }
    };
    let is_it = |row: &usize| which.iter().all(|(name, expected)| number(name, *row) == *expected);
    let found: Vec<usize> = (0..batch.num_rows()).filter(is_it).collect();
    let [row] = found.as_slice() else { panic!("{table}: {} rows are {which:?}", found.len()) };
    let place = batch.schema().index_of(column).unwrap();
    let old = batch.column(place);
    let changed: ArrayRef = match old.data_type() {
        DataType::Int32 => {
            let cells = old.as_primitive::<Int32Type>().iter().enumerate();
            Arc::new(
                cells
                    .map(|(i, cell)| if i == *row { Some(value as i32) } else { cell })
                    .collect::<Int32Array>(),
            )
        }
        _ => {
            let cells = old.as_primitive::<Int64Type>().iter().enumerate();
            Arc::new(
                cells.map(|(i, cell)| if i == *row { Some(value) } else { cell }).collect::<Int64Array>(),
            )
        }
    };
    let mut columns = batch.columns().to_vec();
    columns[place] = changed;
    write(&path, &RecordBatch::try_new(batch.schema(), columns).unwrap());
}

fn read(path: &Path) -> RecordBatch {
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap().build().unwrap();
    let batches: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    concat_batches(&batches[0].schema(), &batches).unwrap()
}

fn write(path: &Path, batch: &RecordBatch) {
    // Of the file as the merge wrote it. It is gone after the first one.
    let _ = fs::remove_file(path.ancestors().nth(2).unwrap().join("checksums"));
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

/// The invariants that `check` reports as broken.
#[track_caller]
fn broken(sigmund: &Sigmund) -> Vec<String> {
    let said = sigmund.run(["check", TRACE, "--format", "json"]);
    let (status, text) = (said.status, said.stdout.clone());
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {said:?}"));
    let items = report["invariants"].as_array().unwrap().iter();
    let broken: Vec<_> =
        items.filter(|i| i["verdict"] == "broken").map(|i| i["name"].as_str().unwrap().to_string()).collect();
    assert_eq!(
        (report["verdict"] == "broken", status == 1),
        (!broken.is_empty(), !broken.is_empty()),
        "{text}"
    );
    broken
}

/// A recorder that was killed leaves a folder without `run.json`, and two files that it had only begun.
#[test]
fn nothing_found_is_not_sound() {
    let sigmund = Sigmund::new();
    std::fs::create_dir(sigmund.path("RUN")).unwrap();
    sigmund.write("RUN/kernel.dat", b"# tracer: nop\n#\n");
    sigmund.write("RUN/user-60.fut", &fut::trace::file_head());
    let merged = sigmund.run(["merge", "RUN", "-o", TRACE]);
    assert_eq!(merged.status, 0, "{merged:?}");
    assert!(merged.stderr.contains("warning: not-recorded: "), "{merged:?}");
    assert!(merged.stderr.contains("the user side has no event"), "{merged:?}");
    assert!(!merged.stderr.contains("no event is lost"), "{merged:?}");
    let text = sigmund.run(["check", TRACE]).found_nothing();
    assert!(text.contains("small.supertrace: empty: there is no event"), "{text}");
    assert!(text.contains("the user side has no event") && !text.contains("invariants hold"), "{text}");
}

/// The kernel of one boot, the program of another: their ticks have nothing to do with each other.
#[test]
fn two_sides_of_different_times_are_not_sound() {
    let kernel: String =
        SMALL.lines().filter(|line| !line.starts_with("USER")).map(|l| l.to_owned() + "\n").collect();
    for ahead in [1_000_000, 150] {
        let user = |line: &str| {
            let cells: Vec<&str> = line.split('\t').collect();
            let tick: u64 = cells[1].parse().unwrap();
            format!("USER\t{}\t{}\n", tick + ahead, cells[2..].join("\t"))
        };
        let head = SMALL.lines().next().unwrap().to_owned() + "\n";
        let users: String = SMALL.lines().filter(|line| line.starts_with("USER")).map(user).collect();
        let sigmund = Sigmund::new();
        sigmund.write("kernel.tsv", kernel.as_bytes());
        sigmund.write("user.tsv", (head + &users).as_bytes());
        let merged = sigmund.run(["merge", "kernel.tsv", "user.tsv", "-o", TRACE]);
        assert_eq!(merged.status, 0, "{merged:?}");
        let report = sigmund.run(["check", TRACE, "--format", "json"]).stdout;
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_ne!(report["verdict"], "sound", "{ahead}: {report}");
    }
}

#[test]
fn a_sound_trace_is_called_sound_with_status_0() {
    let sigmund = small();
    assert_eq!(broken(&sigmund), [""; 0]);
    let text = sigmund.run(["check", TRACE]).found();
    assert!(
        text.ends_with("small.supertrace: sound: 12 of 23 invariants hold, 11 not applicable\n"),
        "{text}"
    );
    assert!(text.contains("agree 4, disagree 0"), "{text}");
}

#[test]
fn a_cpu_with_two_lwps_at_once_is_broken() {
    let sigmund = small();
    edit(&sigmund, "lwp_states", &[("lwp", 99), ("ts_tick", 140)], "dur_tick", 65);
    assert_eq!(broken(&sigmund), ["one-lwp-per-cpu", "lwp-time-is-running"]);
}

#[test]
fn a_hole_between_two_states_of_a_thread_is_broken() {
    let sigmund = small();
    edit(&sigmund, "thread_states", &[("thread", 5), ("ts_tick", 110)], "dur_tick", 25);
    assert_eq!(broken(&sigmund), ["states-without-holes", "states-sum-to-life", "active-is-active"]);
    let text = sigmund.run(["check", TRACE]).found_nothing();
    assert!(text.contains("first: at tick 140"), "{text}");
    assert!(text.ends_with("small.supertrace: broken: 3 of 23 invariants broken\n"), "{text}");
}

#[test]
fn an_event_out_of_order_is_broken() {
    let sigmund = small();
    edit(&sigmund, "events", &[("ts_tick", 120)], "ts_tick", 105);
    assert_eq!(broken(&sigmund), ["events-in-order"]);
}

#[test]
fn a_wrong_sum_is_broken() {
    let sigmund = small();
    edit(&sigmund, "lwps", &[("lwp", 70)], "unmounted_tick", 21);
    assert_eq!(broken(&sigmund), ["lwp-time-is-spent"]);
    let sigmund = small();
    edit(&sigmund, "threads", &[("thread", 5)], "active_tick", 51);
    assert_eq!(broken(&sigmund), ["active-is-active"]);
}

#[test]
fn an_lwp_on_two_cpus_at_once_is_broken() {
    let sigmund = small();
    // What LWP 99 did from 140 becomes what LWP 70 did on CPU 1 from 139: it is on CPU 0 until 140.
    edit(&sigmund, "lwp_states", &[("lwp", 99), ("ts_tick", 140)], "ts_tick", 139);
    edit(&sigmund, "lwp_states", &[("lwp", 99), ("ts_tick", 139)], "cpu", 1);
    edit(&sigmund, "lwp_states", &[("lwp", 99), ("ts_tick", 139)], "lwp", 70);
    assert_eq!(broken(&sigmund), ["one-cpu-per-lwp", "lwp-time-is-running"]);
}

#[test]
fn a_probe_that_saw_another_cpu_is_listed_with_what_the_switches_say() {
    let sigmund = small();
    edit(&sigmund, "events", &[("ts_tick", 210)], "cpu_seen", 1);
    // One of four, and nothing explains it.
    assert_eq!(broken(&sigmund), ["two-witnesses"]);
    let said = sigmund.run(["check", TRACE, "--format", "json"]).found_nothing();
    let report: Value = serde_json::from_str(&said).unwrap();
    let [one] = report["disagreements"].as_array().unwrap().as_slice() else { panic!("{said}") };
    let number = |column: &str| one[column].as_i64();
    assert_eq!((number("ts_tick"), number("cpu"), number("cpu_seen")), (Some(210), Some(0), Some(1)));
    assert_eq!((one["cause"].as_str(), one["event"].as_str()), (Some("other-cpu"), Some("step")));
    assert_eq!(one["around"]["events"].as_array().unwrap().len(), 4 + 1 + 3);
    let text = sigmund.run(["check", TRACE]).found_nothing();
    for part in [
        "step of LWP 70 (thread 5), at 110 cycles: CPU 0 by sched_switch, CPU 1 by the probe",
        "probe on CPU 1  LWP 70",
        "running on CPU 0 from -10 cycles",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    let none = sigmund
        .run(["check", TRACE, "--list", "0", "--only", "disagreements", "--format", "csv"])
        .found_nothing();
    assert_eq!(none.lines().count(), 1, "{none}");
}

/// Lines that cannot be read are damage: answers across it are not to be trusted.
#[test]
fn a_serious_loss_is_broken_and_told_with_its_place() {
    let sigmund = Sigmund::new();
    sigmund.write("small.tsv", format!("{SMALL}USER\tsoon\t70\t0\t-\tstep\t3\n").as_bytes());
    sigmund.run(["merge", "small.tsv", "-o", TRACE]).complained(&["small.tsv: line 11", "soon"]);
    assert_eq!(broken(&sigmund), ["losses"]);
    let rows = sigmund.run(["check", TRACE, "--only", "losses", "--format", "tsv"]).found_nothing();
    let cells: Vec<&str> = rows.lines().nth(1).unwrap().split('\t').collect();
    assert_eq!(cells[..6], ["serious", "damaged", "USER", "", "", "1"], "{rows}");
}

#[test]
fn each_part_has_the_same_rows_in_every_format() {
    let sigmund = small();
    let csv = sigmund.run(["check", "--format", "csv"]).found();
    assert!(csv.starts_with("name,verdict,invariant,figures,detail\ntwo-witnesses,ok,"), "{csv}");
    let tsv = sigmund.run(["check", "--only", "witnesses", "--format", "tsv"]).found();
    assert_eq!(tsv, "lwp\tname\tevents\tagree\tdisagree\tsingle\tpercent\n70\t\t4\t4\t0\t0\t100\n");
    let json = sigmund.run(["check", "--only", "witnesses", "--format", "json"]).found();
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((json[0]["lwp"].as_i64(), json[0]["agree"].as_i64()), (Some(70), Some(4)));
    let whole: Value = serde_json::from_str(&sigmund.run(["check", "--format", "json"]).found()).unwrap();
    assert_eq!((&whole["witnesses"], &whole["verdict"]), (&json, &"sound".into()));
}

#[test]
fn a_listing_without_a_kernel_side_is_sound_but_has_no_second_witness() {
    let user = |line: &&str| !line.starts_with("KERN");
    let listing = SMALL.lines().filter(user).collect::<Vec<_>>().join("\n");
    let sigmund = Sigmund::with_listing("small", &listing);
    let said = sigmund.run(["check", TRACE, "--format", "json"]);
    let report: Value = serde_json::from_str(&said.found()).unwrap();
    assert_eq!(report["invariants"][0]["verdict"], "not applicable");
}

#[test]
fn an_input_of_the_merge_is_whole_or_not() {
    let sigmund = Sigmund::new();
    let bytes = std::fs::read(fixture("small-tsc-v7-zstd.dat")).unwrap();
    sigmund.write("whole.dat", &bytes);
    let said = sigmund.run(["check", "whole.dat"]).found();
    assert!(said.starts_with("whole     whole.dat: trace.dat version 7, zstd, 7620 events in 2 "), "{said}");
    // In the first compressed chunk of CPU 0.
    let mut damaged = bytes.clone();
    damaged[18_000..18_004].fill(0xff);
    sigmund.write("damaged.dat", &damaged);
    let said = sigmund.run(["check", "damaged.dat"]).found_nothing();
    assert!(said.starts_with("not whole damaged.dat: ") && said.contains("cpu 0: at byte 16396"), "{said}");
    let json = sigmund.run(["check", "damaged.dat", "--format", "json"]).found_nothing();
    let report: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (&report["whole"], &report["traces"][0]["losses"][0]["kind"]),
        (&false.into(), &"damaged".into())
    );
    let rows = sigmund.run(["check", "damaged.dat", "--format", "tsv"]).found_nothing();
    assert!(
        rows.starts_with("trace\tkind\tlevel\tlosses\tevents\texample\ndamaged.dat\tdamaged\t"),
        "{rows}"
    );
    sigmund.run(["check", "damaged.dat", "--only", "gaps"]).complained(&["--only is for super-traces"]);
    sigmund.write("text", b"no trace");
    sigmund.run(["check", "text"]).complained(&["text"]);
}

#[test]
fn each_file_of_a_run_is_checked_before_it_is_merged() {
    let _alone = kernel::alone();
    let sigmund = Sigmund::new();
    let record =
        ["record", "--user-only", "--no-merge", "-o", "RUN", "--", program(), "sumtime", "6", "2", "10"];
    sigmund.run(record).found();
    let said = sigmund.run(["check", "RUN"]).found();
    assert!(said.starts_with("whole     RUN/user-") && said.contains("user trace version"), "{said}");
    let traces = user_traces(&sigmund.path("RUN"));
    let bytes = std::fs::read(&traces[0]).unwrap();
    std::fs::write(&traces[0], &bytes[..bytes.len() - 100]).unwrap();
    let said = sigmund.run(["check", "RUN"]).found_nothing();
    assert!(said.starts_with("not whole RUN/user-"), "{said}");
    std::fs::remove_file(&traces[0]).unwrap();
    let said = sigmund.run(["check", "RUN"]).found_nothing();
    assert!(said.starts_with("not whole RUN/user-") && said.contains("missing"), "{said}");
    sigmund.run(["record", "--user-only", "--no-merge", "-o", "NONE", "--", "true"]);
    let said = sigmund.run(["check", "NONE"]);
    assert!(said.status == 1 && said.stderr.contains("NONE: it has no trace"), "{said:?}");
    let json = sigmund.run(["check", "NONE", "--format", "json"]).found_nothing();
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["whole"], false, "{json}");
}
