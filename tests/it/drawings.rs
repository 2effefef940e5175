//! Drawings of a trace drawn on paper: what they say of gaps, and their formats, units and widths.

use crate::{
    sigmund::{Reported, Sigmund, program, said},
    views::listing,
};

/// The trace of views.rs, without the switch at 150: CPU 0 goes from 70 to 90 unseen.
fn with_a_gap() -> Sigmund {
    let unseen: String =
        listing().lines().filter(|line| !line.contains("\t150\t")).map(|line| format!("{line}\n")).collect();
    Sigmund::with_listing("t", &unseen)
}

const HISTOGRAM: [&str; 4] = ["--latency", "--by", "lwp", "--histogram"];

#[test]
fn drawings_report_gaps_and_strictly_end_with_status_3() {
    let (whole, gap) = (Sigmund::with_listing("t", &listing()), with_a_gap());
    let pairs = ["--reactivity", "sched_waking", "sys_exit", "--histogram"];
    for question in [&HISTOGRAM[..], &pairs, &["--gantt"], &["--gantt", "--svg", "gantt.svg"]] {
        let has_notice =
            |reported: &Reported| reported.stderr.contains("events are missing in this time (1 gap)");
        assert!(!has_notice(&whole.run(question)), "{question:?}");
        let reported = gap.run(question);
        assert!(reported.status == 0 && has_notice(&reported), "{reported:?}");
        assert_eq!(whole.run([question, &["--strict"]].concat()).status, 0, "{question:?}");
        let strict = gap.run([question, &["--strict"]].concat());
        assert!(strict.status == 3 && has_notice(&strict), "{strict:?}");
    }
    let stacks = ["--functions", "--format", "folded", "--strict"];
    assert_eq!(gap.run(stacks).status, 3);
    assert_eq!(whole.run(stacks).status, 1);
}

#[test]
fn of_nobody_there_is_no_timeline_and_no_file() {
    let sigmund = Sigmund::with_listing("t", &listing());
    for more in [&[][..], &["--svg", "none.svg"]] {
        let drawn =
            sigmund.run([&["--gantt", "--by", "thread", "--thread", "5", "--to", "101"], more].concat());
        assert!(drawn.status == 1 && drawn.stderr.contains("alive in this time"), "{drawn:?}");
    }
    assert!(!sigmund.folder().join("none.svg").exists());
}

#[test]
fn a_histogram_is_rows_in_formats_for_programs() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let rows = |more: &[&str]| sigmund.run([&HISTOGRAM[..], more].concat()).found();
    let csv = rows(&["--format", "csv"]);
    assert!(csv.starts_with("label,from_tick,to_tick,count,percent,cumulative_percent\n"), "{csv}");
    // 70 waits for 10 after its wakeup, and for 20 after it was preempted.
    assert!(csv.lines().any(|line| line.contains("wakeup") && line.contains(",10,20,1,")), "{csv}");
    let in_us = rows(&["--format", "csv", "--unit", "us"]);
    assert!(in_us.starts_with("label,from_tick,from_us,to_tick,to_us,count,"), "{in_us}");
    assert!(in_us.contains(",10,0.01,20,0.02,1,"), "{in_us}");
    let one = ["--reactivity", "sched_waking", "sys_exit", "--next", "--histogram", "--format", "json"];
    let one: serde_json::Value = serde_json::from_str(&sigmund.run(one).found()).unwrap();
    assert!(one[0]["label"].is_null() && one[0]["count"] == 1, "{one}");
    let bars = rows(&["--unit", "us"]);
    assert!(bars.contains("0.01 us..0.02 us") && bars.contains('#'), "{bars}");
    assert!(rows(&[]).contains("10 ns..20 ns"));
}

#[test]
fn what_a_drawing_cannot_be_is_an_error_that_names_what_can() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let refused = |words: &[&str], expected: &[&str]| _ = sigmund.run(words).complained(expected);
    refused(&["--gantt", "--format", "csv"], &["--gantt --format csv", "sigmund sql", "thread_states"]);
    refused(&["--gantt", "--svg", "x.svg", "--format", "json"], &["--svg", "--format"]);
    refused(&[&HISTOGRAM[..], &["--svg", "x.svg", "--format", "json"]].concat(), &["--svg", "--format"]);
    let compared = ["--compare", "t.supertrace", "t.supertrace", "--functions", "--format", "folded"];
    refused(&compared, &["--compare: expected a table, found --format folded"]);
    assert!(!sigmund.path("x.svg").exists());
}

#[test]
fn a_picture_can_go_to_stdout() {
    let sigmund = Sigmund::with_listing("t", &listing());
    for question in [&["--gantt"][..], &HISTOGRAM] {
        let svg = sigmund.run([question, &["--svg", "-"]].concat()).found();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
    }
    assert!(!sigmund.path("-").exists());
}

#[test]
fn a_timeline_fits_the_terminal() {
    let sigmund = Sigmund::with_listing("t", &listing());
    for columns in [60, 110] {
        let mut command = std::process::Command::new("script");
        let line = format!("stty cols {columns} rows 40; {} --gantt", program());
        command.args(["-qec", &line, "/dev/null"]).current_dir(sigmund.folder());
        command.env("TERM", "xterm").env("NO_COLOR", "1").stdin(std::process::Stdio::null());
        let drawn = said(command).found().replace('\r', "");
        let bars: Vec<usize> =
            drawn.lines().filter(|line| line.contains('|')).map(|line| line.chars().count()).collect();
        assert!(!bars.is_empty() && bars.iter().all(|width| *width <= columns), "{columns}: {drawn}");
        let axis = drawn.lines().next().map_or(0, |line| line.chars().count());
        let longest = bars.into_iter().max().unwrap().max(axis);
        assert!((columns - 12..=columns).contains(&longest), "{columns}: {drawn}");
    }
}

#[test]
fn a_timeline_of_many_threads_has_200_lines_and_counts_the_others() {
    let mut listing =
        "# tick_hz=1000000000\ntype\tdate_tick\tpid\tcpu\tthr\tcode\tname\tparams\n".to_string();
    for lwp in 1..=500 {
        let (tick, before) = (lwp * 10, lwp - 1);
        listing.push_str(&format!(
            "KERN\t{tick}\t{before}\t0\t?\t-\tsched_switch\tprev_state=0 next_pid={lwp}\n"
        ));
    }
    let sigmund = Sigmund::with_listing("many", &listing);
    let drawn = sigmund.run(["--gantt"]).found();
    // The last one's life has no length.
    assert_eq!(drawn.lines().count(), 1 + 200 + 2, "{drawn}");
    let last = drawn.lines().last().unwrap();
    assert!(last.starts_with("not drawn: 299 more lines; --thread, --lwp,"), "{last}");
    assert_eq!(sigmund.run(["--gantt", "--lwp", "7,8"]).found().lines().count(), 4);
}

#[test]
fn rows_that_are_not_drawn_are_counted_with_what_makes_fewer() {
    let mut listing =
        "# tick_hz=1000000000\ntype\tdate_tick\tpid\tcpu\tthr\tcode\tname\tparams\n".to_string();
    // Ten LWPs wait, each once.
    for lwp in 1..=10 {
        let (tick, before) = (lwp * 10, lwp - 1);
        listing.push_str(&format!(
            "KERN\t{tick}\t{before}\t0\t?\t-\tsched_switch\tprev_state=0 next_pid={lwp}\n"
        ));
    }
    for lwp in 1..=10 {
        let (tick, before) = (100 + lwp * 10, if lwp == 1 { 10 } else { lwp - 1 });
        listing.push_str(&format!(
            "KERN\t{tick}\t{before}\t0\t?\t-\tsched_switch\tprev_state=0 next_pid={lwp}\n"
        ));
    }
    let sigmund = Sigmund::with_listing("t", &listing);
    let by_lwp = sigmund.run(HISTOGRAM);
    assert!(by_lwp.stderr.contains("not drawn: "), "{by_lwp:?}");
    assert!(
        by_lwp.stderr.contains("more row") && by_lwp.stderr.contains("--by name or --by pattern makes fewer"),
        "{by_lwp:?}"
    );
    let pattern = sigmund.run(["--latency", "--by", "pattern", "--histogram"]);
    assert!(!pattern.stderr.contains("makes fewer"), "{pattern:?}");
}
