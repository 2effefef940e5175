//! Checks that every contender does its work, and every table has its figures; not their values.

use std::process::Command;

/// The output of a short run of the program.
fn printed(arguments: &[&str]) -> String {
    let mut program = Command::new(env!("CARGO_BIN_EXE_runtime"));
    program.args(["--rounds", "1", "--hurry", "100", "--height", "4"]).args(arguments);
    let output = program.output().expect("the program starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// The rows of each table that begin with `name` followed by a figure.
fn rows<'a>(printed: &'a str, name: &str) -> Vec<Vec<&'a str>> {
    let cells = |line: &'a str| -> Vec<&'a str> {
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect()
    };
    let is_one = |row: &Vec<&str>| {
        row.first().is_some_and(|cell| cell.starts_with(name))
            && row.get(1).is_some_and(|cell| cell.parse::<f64>().is_ok_and(|figure| figure > 0.0))
    };
    printed.lines().map(cells).filter(is_one).collect()
}

#[test]
fn every_contender_has_a_row_in_every_table() {
    let printed = printed(&["--section", "cost"]);
    let on_two = usize::from(std::thread::available_parallelism().unwrap().get() > 1);
    let sumtimes = 1 + on_two;
    let expected = [
        ("fut", 4 * (4 + sumtimes)),
        ("may ", 4 + sumtimes),
        ("tokio ", 2 * (4 + sumtimes) - on_two),
        ("async-executor ", 4 + sumtimes),
        ("corosensei ", 4),
    ];
    for (contender, tables) in expected {
        assert_eq!(rows(&printed, contender).len(), tables, "{contender}\n{printed}");
    }
    assert!(!printed.contains("LOST"), "{printed}");
    // Go has figures, or its row contains the reason why not.
    let go = rows(&printed, "Go ").len();
    assert!(go == 4 + sumtimes || printed.contains("Go: not installed"), "{printed}");
}

#[test]
fn recorded_events_of_a_tree_are_counted_and_none_is_lost() {
    let printed = printed(&["--section", "sumtime"]);
    let all = rows(&printed, "all events");
    let scheduling = rows(&printed, "scheduling events");
    let number = |row: &[&str], column: usize| row[column].parse::<u64>().unwrap();
    let (events, lost) = (6, 7);
    // A hundredth of 2^11 trees of height 4, of 31 threads each.
    let threads = 31 * 20;
    for (all, scheduling) in all.iter().zip(&scheduling) {
        assert_eq!((number(all, lost), number(scheduling, lost)), (0, 0), "{printed}");
        // Each is created and dispatched, at the very least; begins and ends.
        assert!(number(scheduling, events) >= 2 * threads, "{printed}");
        assert!(number(all, events) >= 4 * threads, "{printed}");
    }
    assert_eq!(rows(&printed, "nothing").len(), 2 * all.len());
    assert!(!all.is_empty(), "{printed}");
}

#[test]
fn a_kernel_is_factorised_the_same_with_and_without_recording() {
    let printed = printed(&["--section", "kernel", "--blocks", "8", "--block-size", "8"]);
    assert!(!rows(&printed, "all events").is_empty(), "{printed}");
}

#[test]
fn every_means_to_wait_has_a_figure_of_each_runtime() {
    let printed = printed(&["--section", "messages"]);
    let on_two = usize::from(std::thread::available_parallelism().unwrap().get() > 1);
    let rows: Vec<Vec<&str>> = ["channel", "receive", "select", "oneshot", "watch", "broadcast"]
        .iter()
        .chain(&["notify", "permit", "join set", "cancelled", "park", "contended mutex"])
        .chain(&["barrier", "file", "signal", "child"])
        .flat_map(|means| rows(&printed, means))
        .collect();
    // A name, a figure of each, and a ratio; on two CPUs without tokio's scheduler of one thread.
    let wide = rows.iter().filter(|row| row.len() == 6).count();
    assert_eq!((wide, rows.len() - wide), (18, 18 * on_two), "{printed}");
    assert!(rows.iter().flat_map(|row| &row[1..]).all(|cell| cell.parse::<f64>().is_ok()), "{printed}");
}

#[test]
fn live_threads_are_counted() {
    let printed = printed(&["--section", "memory"]);
    for threads in ["1000 ", "10000 "] {
        let row = printed.lines().find(|line| line.starts_with(threads));
        assert!(row.is_some_and(|row| row.ends_with("met")), "{printed}");
    }
}

#[test]
fn every_step_has_a_cost_for_each_number_of_threads_and_sockets() {
    let printed = printed(&["--section", "scale"]);
    let on_two = usize::from(std::thread::available_parallelism().unwrap().get() > 1);
    // Of four contenders each, and three with sockets.
    for (step, contenders, columns) in
        [("barrier", 4, 5), ("lock", 4, 5), ("talk, with", 4, 5), ("sleep", 4, 5), ("message and echo", 3, 4)]
    {
        let rows = rows(&printed, step);
        assert_eq!(rows.len(), contenders, "{step}\n{printed}");
        // The last is the ratio of two of the others.
        assert!(rows.iter().all(|row| row.len() == columns + 2 && !row.contains(&"-")), "{rows:?}");
    }
    let many_lwps = printed.lines().filter(|line| line.contains("  talk  "));
    assert_eq!(many_lwps.count(), 3 * on_two, "{printed}");
    // A thread that is never dispatched is a row with a remark.
    assert_eq!(printed.lines().filter(|line| line.contains("≤ 2.5")).count(), 6 * on_two, "{printed}");
}
