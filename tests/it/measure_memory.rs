//! Measures keep within `--memory`: rows of an answer go to a temporary file, and what needs more fails.

use crate::sigmund::{Reported, Sigmund, said};

/// A trace of 50 000 user threads.
fn many() -> Sigmund {
    let created =
        |thread: u64| format!("USER\t{}\t70\t0\t?\t-\tUSER_THREAD_NEW\tnew={thread}\n", 1000 + thread);
    let threads: String = (1..=50_000).map(created).collect();
    Sigmund::with_listing("t", &format!("type\tdate_tick\tpid\tcpu\tthr\tcode\tname\tparams\n{threads}"))
}

fn states(sigmund: &Sigmund, memory: &str, temporary: Option<&str>) -> Reported {
    let mut asked = sigmund.command();
    asked.args(["-f", "t.supertrace", "--states", "--format", "csv", "--memory", memory]);
    temporary.into_iter().for_each(|folder| _ = asked.env("TMPDIR", folder));
    said(asked)
}

#[test]
fn a_measure_that_needs_more_memory_than_it_may_take_fails() {
    let sigmund = many();
    let all = sigmund.run(["-f", "t.supertrace", "--states", "--format", "csv"]).found();
    assert!(all.lines().count() >= 50_000, "{}", all.lines().count());
    assert!(states(&sigmund, "1GiB", None).found() == all, "the same as without a limit");
    let expected = [
        "states: expected a question that keeps within the memory limit of 64KiB (--memory), found ",
        "iB in use before its end; a shorter window",
        "--by name",
    ];
    states(&sigmund, "64K", None).complained(&expected);
    let query = "SELECT count(*) FROM states()";
    sigmund.run(["sql", "t.supertrace", "--memory", "64K", query]).complained(&expected);
    sigmund
        .run(["-f", "t.supertrace", "--gantt", "--memory", "64K"])
        .complained(&["gantt: expected a question"]);
}

// With limits of half as much again, one is just enough, and half of it is not: there, rows go to a file.
#[test]
fn rows_go_to_a_temporary_file_if_memory_is_short() {
    let sigmund = many();
    let all = states(&sigmund, "1GiB", None).found();
    let (mut asked, mut spilled) = (0, 0);
    for memory in ["4M", "6M", "9M", "13M", "19M", "28M", "42M", "63M"] {
        let found = states(&sigmund, memory, None);
        if found.status != 0 {
            found.complained(&["memory limit", "(--memory)"]);
            continue;
        }
        asked += 1;
        assert!(found.stdout == all, "{memory}: the same from a temporary file");
        let without_a_place = states(&sigmund, memory, Some("/nonexistent"));
        if without_a_place.status == 0 {
            assert!(without_a_place.stdout == all, "{memory}: all of it is in memory");
        } else {
            without_a_place.complained(&["states: expected room in /nonexistent (TMPDIR) for rows"]);
            spilled += 1;
        }
    }
    assert!(spilled > 0, "{asked} limits were enough");
}
