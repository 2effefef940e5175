//! The two listings of the paper, typed as the paper types them.

use serde_json::Value;

use crate::sigmund::{Sigmund, figure};

/// What the paper says of figure 2: where thread 15 really executed.
const ACTIVE_OF_15: &str = "\
ts_tick\tdur_tick\tlwp\tcpu
97615576\t141476\t7137\t1
98006248\t132935\t7136\t0
98638163\t422022\t7136\t2
";

fn asks_figure_2(sigmund: &Sigmund) {
    let trace = ["-f", "figure2.supertrace", "--thread", "15"];
    let listing = [&trace[..], &["--event", "CONTEXT_SWITCH", "--list-events", "--format", "tsv"]].concat();
    assert_eq!(sigmund.run(listing).found(), figure(2));

    let active_time = [&trace[..], &["--active-time"]].concat();
    assert_eq!(sigmund.run(active_time).found(), "696433 cycles\n");

    let query = "SELECT ts_tick, dur_tick, lwp, cpu FROM active WHERE thread = 15 ORDER BY ts_tick";
    let intervals = sigmund.run(["sql", "figure2.supertrace", query, "--format", "tsv"]).found();
    assert_eq!(intervals, ACTIVE_OF_15);
}

#[test]
fn figure_2_comes_back_in_the_papers_columns() {
    let sigmund = Sigmund::with_listing("figure2", &figure(2));
    let question = ["--trace-file", "figure2.supertrace", "--thread", "15", "--event", "CONTEXT_SWITCH"];
    let listing = sigmund.run([&question[..], &["--list-events"]].concat()).found();
    let cells: Vec<String> =
        listing.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join("\t")).collect();
    let mut expected: Vec<String> = figure(2).lines().map(String::from).collect();
    expected[0] = "type\tdate_tick\tpid\tcpu\tthr\tcode\tname\tparam(s)".into();
    assert_eq!(cells, expected);
    // Columns: everything of one name begins, or ends, at the same place.
    let ends: Vec<_> = listing.lines().map(|line| line.find("_SWITCH").or(line.find("name"))).collect();
    assert!(ends[1..].iter().all(|end| *end == ends[1]), "{listing}");
    assert_eq!(sigmund.run(question).found(), listing, "listing is what one asks for if not for a measure");
}

#[test]
fn figure_2_gives_thread_15_an_active_time_of_696433_cycles() {
    asks_figure_2(&Sigmund::with_listing("figure2", &figure(2)));
}

#[test]
fn a_listing_may_have_its_columns_in_any_order_and_its_lines_too() {
    let listing = figure(2);
    let mut lines: Vec<String> =
        listing.lines().map(|line| permuted(line, &[7, 3, 1, 6, 0, 5, 2, 4])).collect();
    assert_eq!(lines[0], "params\tcpu\tdate_tick\tname\ttype\tcode\tpid\tthr");
    lines[1..].reverse();
    asks_figure_2(&Sigmund::with_listing("figure2", &lines.join("\n")));
}

fn permuted(line: &str, order: &[usize]) -> String {
    let cells: Vec<&str> = line.split('\t').collect();
    order.iter().map(|column| cells[*column]).collect::<Vec<_>>().join("\t")
}

#[test]
fn cpus_and_threads_that_follow_from_the_lines_before_need_not_be_written() {
    // tick      pid   cpu thr
    // 97615576  7137  1   7     nobody said before where LWP 7137 is, and what it carries
    // 97757052  7137  -   -     it is still there, and carries 15 now
    // 98006248  7136  0   6     the same for 7136
    // 98139183  7136  -   -     still there, and carries 15 now
    // 98638163  2352  2   -     2352 carries nothing
    // 99060185  7136  -   -     7136 is where 2352 was, and carries 15 still
    let listing = figure(2);
    let mut lines: Vec<Vec<&str>> = listing.lines().map(|line| line.split('\t').collect()).collect();
    for line in [2, 4, 6] {
        lines[line][3] = "-";
    }
    for line in [2, 4, 5, 6] {
        lines[line][4] = "-";
    }
    let lines: Vec<String> = lines.iter().map(|cells| cells.join("\t")).collect();
    asks_figure_2(&Sigmund::with_listing("figure2", &lines.join("\n")));
}

#[test]
fn figure_3_gives_the_daemon_a_reactivity_of_152835624_cycles_however_it_is_asked() {
    let sigmund = Sigmund::with_listing("figure3", &figure(3));
    let expected = "count\tmin_cycles\tmedian_cycles\tp99_cycles\tmax_cycles\tunanswered\n\
        1\t152835624\t152835624\t152835624\t152835624\t0\n";
    for (from, to) in [
        ("IRQ(24)", "USER_EVENT(received_msg)@daemon"),
        ("irq_handler_entry(irq=24)", "received_msg@daemon"),
        ("IRQ(eth0)", "received_msg@1"),
        ("IRQ", "USER_EVENT(received_msg)"),
        ("IRQ(24)", "USER_EVENT@1(daemon)"),
    ] {
        let said = sigmund.run(["--reactivity", from, to, "--next", "--format", "tsv"]);
        assert_eq!(said.found(), expected, "{from} {to}");
    }
    for (from, to) in [("IRQ(25)", "received_msg"), ("IRQ(24)", "received_msg@work/6")] {
        sigmund.run(["--reactivity", from, to, "--next"]).found_nothing();
    }
}

#[test]
fn reactivity_comes_in_every_format_and_pair_by_pair() {
    let sigmund = Sigmund::with_listing("figure3", &figure(3));
    let question = ["--reactivity", "IRQ(24)", "USER_EVENT(received_msg)@daemon"];
    let next = [&question[..], &["--next"]].concat();
    let asked = |more: &[&str]| sigmund.run([&next[..], more].concat()).found();
    let cycles = Value::from(152_835_624);

    assert!(asked(&["--format", "csv"]).ends_with("\n1,152835624,152835624,152835624,152835624,0\n"));
    let json: Value = serde_json::from_str(&asked(&["--format", "json"])).unwrap();
    assert_eq!((&json[0]["median_cycles"], &json[0]["count"]), (&cycles, &1.into()));
    let line: Value = serde_json::from_str(asked(&["--format", "ndjson"]).trim_end()).unwrap();
    assert_eq!(line, json[0]);

    let pair = asked(&["--list-events", "--format", "csv"]);
    assert_eq!(
        pair,
        "from_tick,from_pid,from_cpu,from_thr,to_tick,to_pid,to_cpu,to_thr,cycles\n\
         5170071750,1630,0,?,5322907374,2731,1,1(daemon),152835624\n"
    );
    let human = asked(&["--list-events"]);
    assert!(human.contains("1(daemon)") && human.contains("median_cycles"), "{human}");
}
