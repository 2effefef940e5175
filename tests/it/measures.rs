//! Measures by the command and by SQL: of a trace drawn on paper, and of recordings.

use std::{
    collections::BTreeSet,
    process::{Command, Stdio},
};

use serde_json::{Map, Value};
use sigmund_measures::Subject;

use crate::{
    kernel,
    record::recorded,
    sigmund::{Sigmund, program},
    views::listing,
};

fn asked(sigmund: &Sigmund, words: &[&str]) -> String {
    sigmund.run([words, &["--format", "csv"]].concat()).found()
}

// The picture is in views.rs: thread 5 on LWP 70.
#[test]
fn the_states_of_a_thread_have_their_reasons_and_culprits() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let states = asked(&sigmund, &["--states", "--thread", "5"]);
    assert_eq!(
        states,
        "\
thread,name,state,reason,object,culprit,count,total_tick,percent
5,,active,,,,3,50,40
5,,blocked,mutex,4096,,1,20,16
5,,stalled,,,LWP 90,1,20,16
5,,in-kernel,read,,,1,15,12
5,,ready,,,,1,10,8
5,,interrupted,eth0,,,1,5,4
5,,stalled,,,idle,1,5,4
"
    );
    let of_lwp = asked(&sigmund, &["--states", "--lwp", "70", "--from", "110", "--to", "149"]);
    assert_eq!(
        of_lwp,
        "\
lwp,name,state,reason,object,culprit,count,total_tick,percent
70,,running,,,,1,20,50
70,,sleeping,read,,,1,15,37.5
70,,runnable,,,idle,1,5,12.5
"
    );
    let by_sql = asked(
        &sigmund,
        &[
            "sql",
            "t.supertrace",
            "SELECT state, sum(total_ns) AS ns FROM states(thread => 5) GROUP BY state ORDER BY state",
        ],
    );
    assert_eq!(
        by_sql,
        "state,ns\nactive,50\nblocked,20\nin-kernel,15\ninterrupted,5\nready,10\nstalled,25\n"
    );
    let for_people = sigmund.run(["--states", "--thread", "5"]).found();
    assert!(for_people.lines().next().is_some_and(|head| head.contains(" total ")), "{for_people}");
    assert!(for_people.contains("50 ns"), "{for_people}");
    let in_unit = asked(&sigmund, &["--states", "--thread", "5", "--unit", "us"]);
    assert!(in_unit.contains("total_tick,total_us,percent\n5,,active,,,,3,50,0.05,40\n"), "{in_unit}");
}

// Of 125 ticks of thread 5, 50 are of its own and 5 of an interrupt.
#[test]
fn active_time_is_a_measure_as_the_others() {
    let sigmund = Sigmund::with_listing("t", &listing());
    assert_eq!(
        asked(&sigmund, &["--active-time", "--thread", "5", "--by", "thread"]),
        "thread,name,active_tick,life_tick,percent\n5,,55,125,44\n"
    );
    let query = "SELECT thread, active_tick FROM active_time(thread => 5)";
    assert_eq!(asked(&sigmund, &["sql", "t.supertrace", query]), "thread,active_tick\n5,55\n");
    let lwps = asked(&sigmund, &["--active-time", "--level", "kern", "--lwp", "70"]);
    assert!(lwps.starts_with("lwp,name,active_tick,life_tick,percent\n70,,"), "{lwps}");
    let compared = asked(&sigmund, &["--active-time", "--compare", "t.supertrace", "t.supertrace"]);
    assert!(compared.contains(",active,ns/s,"), "{compared}");
}

// Of a trace with user threads, too.
#[test]
fn a_level_asks_about_lwps_or_user_threads() {
    let sigmund = Sigmund::with_listing("t", &listing());
    for measure in ["--states", "--latency", "--breakdown"] {
        let lwps = asked(&sigmund, &[measure, "--by", "lwp"]);
        assert_eq!(asked(&sigmund, &[measure, "--level", "kern"]), lwps);
        let threads = asked(&sigmund, &[measure]);
        assert_eq!(asked(&sigmund, &[measure, "--level", "user"]), threads);
        assert_ne!(lwps, threads);
    }
    // Nobody knows the process of LWP 90, which no user thread was on.
    let total = |by: &str| -> i64 {
        let rows = asked(&sigmund, &["--states", "--level", "kern", "--by", by]);
        let of = rows.lines().next().and_then(|head| head.split(',').position(|name| name == "total_tick"));
        rows.lines().skip(1).map(|row| row.split(',').nth(of.unwrap()).unwrap().parse::<i64>().unwrap()).sum()
    };
    assert_eq!([total("process"), total("name"), total("pattern")], [total("lwp"); 3]);
    sigmund.run(["--states", "--level", "kern", "--by", "thread"]).complained(&["--by thread", "level KERN"]);
    sigmund.run(["--states", "--level", "user", "--by", "lwp"]).complained(&["--by lwp", "level USER"]);
}

#[test]
fn what_cannot_be_asked_is_said() {
    let sigmund = Sigmund::with_listing("t", &listing());
    sigmund.run(["--states", "--event", "sched_switch"]).complained(&["states", "no event"]);
    let nothing = sigmund.run(["--functions"]);
    assert!(nothing.stderr.contains("was recorded"), "{nothing:?}");
    sigmund.run(["--states", "--active-time"]).complained(&["--active-time"]);
    sigmund.run(["--by", "name"]).complained(&["required"]);
    sigmund.run(["--states", "--by", "colour"]).complained(&["pattern"]);
    let sql = |query: &str, words: &[&str]| sigmund.run(["sql", "t.supertrace", query]).complained(words);
    sql("SELECT * FROM states(thred => 5)", &["expected thread", "found thred"]);
    sql("SELECT * FROM states(5)", &["thread => 15"]);
    sql("SELECT * FROM states(thread => 55)", &["a user thread of this trace"]);
    sql("SELECT * FROM states(\"by\" => 'colour')", &["expected thread, lwp, process, name or pattern"]);
}

// Of a thread that is asked about alone, only what happened in its life is read.
#[test]
fn a_thread_alone_has_the_rows_that_it_has_among_all() {
    let Some(alone) = kernel::as_root() else { return };
    let (sigmund, _) = recorded();
    drop(alone);
    let mut compared = 0;
    for measure in ["--states", "--quanta", "--breakdown"] {
        let all = asked(&sigmund, &[measure, "--by", "thread"]);
        let thread = |line: &str| line.split(',').next().unwrap_or_default().to_string();
        let threads: BTreeSet<String> = all.lines().skip(1).map(thread).collect();
        for number in threads.iter().filter(|number| number.parse::<u64>().is_ok()).take(6) {
            let expected: Vec<&str> = all.lines().filter(|line| thread(line) == *number).collect();
            let alone = asked(&sigmund, &[measure, "--by", "thread", "--thread", number]);
            let found: Vec<&str> = alone.lines().filter(|line| thread(line) == *number).collect();
            assert_eq!(found, expected, "{measure} of thread {number}");
            compared += found.len();
        }
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn every_measure_answers_about_a_recording_on_both_levels_and_the_same_in_sql() {
    let Some(alone) = kernel::as_root() else { return };
    let (sigmund, _) = recorded();
    drop(alone);
    for measure in sigmund_measures::ALL {
        let flag = format!("--{}", measure.name);
        let function = measure.name.replace('-', "_");
        let (asked, in_sql) = match measure.subject {
            Subject::None | Subject::Optional(_) => (&[][..], ""),
            Subject::Pair | Subject::RequiredOrPair(_) | Subject::OptionalOrPair(_) => (
                &["USER_THREAD_NEW", "USER_THREAD_READY"][..],
                ", from_event => 'USER_THREAD_NEW', to_event => 'USER_THREAD_READY'",
            ),
            Subject::Required(_) => panic!("{}: expected a name to ask it about", measure.name),
        };
        for by in sigmund_measures::By::ALL {
            let said = sigmund.run([&[&*flag], asked, &["--by", by.name(), "--format", "json"]].concat());
            assert!(matches!(said.status, 0 | 1), "{said:?}");
            let answer: Vec<Map<String, Value>> = serde_json::from_str(&said.stdout).unwrap();
            let query = format!("SELECT * FROM {function}(\"by\" => '{}'{in_sql})", by.name());
            let rows = sigmund.run(["sql", "RUN.supertrace", &query, "--format", "json"]);
            let mut rows: Vec<Map<String, Value>> = serde_json::from_str(&rows.stdout).unwrap();
            if let Some(row) = answer.first() {
                // Nanoseconds are beside ticks in SQL only.
                rows.iter_mut().for_each(|of_sql| of_sql.retain(|column, _| row.contains_key(column)));
            }
            assert_eq!(answer.len(), rows.len(), "{query}");
            for (row, of_sql) in answer.iter().zip(&rows) {
                assert!(
                    row.iter().all(|(column, value)| is_same(value, &of_sql[column])),
                    "{query}: {row:?} {of_sql:?}"
                );
            }
        }
    }
    // Sums to the life of each thread, exactly.
    let wrong = "SELECT count(*) FROM (SELECT thread, sum(total_tick) AS sum FROM states() GROUP BY thread) s \
        JOIN threads t ON t.thread = s.thread WHERE s.sum <> coalesce(t.dur_tick, s.sum)";
    assert_eq!(sigmund.number("RUN.supertrace", wrong), 0);
    let compared = "SELECT count(DISTINCT s.thread) FROM states() s JOIN threads t ON t.thread = s.thread WHERE t.dur_tick > 0";
    assert!(sigmund.number("RUN.supertrace", compared) > 1000);
    let active = "SELECT abs((SELECT sum(total_tick) FROM states() WHERE state IN ('active', 'interrupted')) \
        - (SELECT sum(dur_tick) FROM active))";
    assert_eq!(sigmund.number("RUN.supertrace", active), 0);
}

/// Whether two values are equal, as numbers if they are numbers: 5.0 is 5.
fn is_same(one: &Value, other: &Value) -> bool {
    one == other || one.as_f64().is_some_and(|number| other.as_f64() == Some(number))
}

#[test]
fn drawings_are_text_or_pictures() {
    let sigmund = Sigmund::with_listing("t", &listing());
    // 50 ns of the 125 are active, and a column is 1.5 ns.
    let gantt = sigmund.run(["--gantt", "--thread", "5"]).found();
    let line = gantt.lines().find(|line| line.starts_with('5')).unwrap_or_else(|| panic!("{gantt}"));
    assert!(["A", "s", "k", "b"].iter().all(|state| line.contains(state)), "{gantt}");
    assert!(!gantt.contains('\x1b'), "{gantt}");
    let on_terminal = |colours: &str| {
        let mut command = std::process::Command::new("script");
        let line = format!("{} --gantt --thread 5", crate::sigmund::program());
        command.args(["-qec", &line, "/dev/null"]).current_dir(sigmund.folder());
        command.env("TERM", "xterm").env("NO_COLOR", colours).stdin(std::process::Stdio::null());
        crate::sigmund::said(command).found().replace('\r', "")
    };
    assert_eq!(on_terminal("1"), gantt);
    let coloured = on_terminal("");
    assert!(coloured.contains("\x1b[32mA") && coloured.contains("\x1b[31ms"), "{coloured:?}");
    let plain: String = coloured
        .split('\x1b')
        .enumerate()
        .map(|(n, part)| if n == 0 { part } else { &part[part.find('m').unwrap() + 1..] })
        .collect();
    assert_eq!(plain, gantt);
    sigmund.run(["--gantt", "--svg", "gantt.svg"]).found();
    let bars = sigmund.run(["--latency", "--by", "lwp", "--histogram"]).found();
    assert!(bars.contains('#') && bars.contains("100.0%"), "{bars}");
    sigmund.run(["--latency", "--by", "lwp", "--histogram", "--svg", "cdf.svg"]).found();
    let pairs = ["--reactivity", "sched_waking", "USER_CONTEXT_SWITCH", "--histogram"];
    assert!(sigmund.run(pairs).found().contains("100.0%"));
    for picture in ["gantt.svg", "cdf.svg"] {
        let svg = std::fs::read_to_string(sigmund.path(picture)).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
    }
    // A histogram for each row: what an LWP waited after is one.
    assert!(bars.contains("lwp 70, ") && bars.contains("wakeup\n"), "{bars}");
    let quanta = sigmund.run(["--quanta", "--by", "lwp", "--histogram"]).found();
    assert!(quanta.contains("all\n"), "{quanta}");
    for asked in [&["--states"][..], &["--latency", "--worst", "2"]] {
        let found = format!("found {}", asked[0]);
        sigmund.run([asked, &["--histogram"]].concat()).complained(&["--histogram", "--quanta", &found]);
    }
    sigmund
        .run(["--list-events", "--svg", "x.svg"])
        .complained(&["--svg", "expected --gantt or --histogram"]);
    let nothing = sigmund.run(["--functions", "--format", "folded"]);
    assert!(nothing.stderr.contains("nothing of the kind happened"), "{nothing:?}");
    nothing.found_nothing();
    sigmund
        .run(["--functions", "work", "--format", "folded"])
        .complained(&["expected the name of a span or function, found `work`"]);
    sigmund.run(["--locks", "4096"]).found();
    sigmund.run(["--locks", "0x1000"]).found();
    sigmund.run(["--locks", "0x1234"]).complained(&["locks: expected the address", "found 0x1234"]);
    sigmund.run(["--critical-sections", "0x1000"]).complained(&["0x1000", "tip: an option before"]);
    // Thread 5 left LWP 70 from 200 to 230, and the trace is from 105 to 230.
    let on_lwps = ["--gantt", "--level", "kern", "--lwp", "70"];
    let all = sigmund.run(on_lwps).found();
    let of_5 = sigmund.run([&on_lwps[..], &["--thread", "5"]].concat()).found();
    let not_selected = |drawn: &str| drawn.lines().find(|line| line.starts_with("70")).unwrap().contains('-');
    assert!(!not_selected(&all) && not_selected(&of_5), "{all}{of_5}");
    sigmund.run(["--states", "--format", "folded"]).complained(&["folded", "expected --functions"]);
    sigmund.run(["--list-events", "--format", "folded"]).complained(&["folded", "expected --functions"]);
}

#[test]
fn why_is_told_of_pairs_matched_by_cause() {
    let sigmund = Sigmund::with_listing("t", &listing());
    // 80 wakes 70 at 120, which runs at 130 and returns from its system call at 140.
    let why = ["--reactivity", "sched_waking", "sys_exit"];
    let found = asked(&sigmund, &why);
    assert!(found.contains("pairs,caused,,1,20,"), "{found}");
    let each = asked(&sigmund, &[&why[..], &["--worst", "1"]].concat());
    assert!(each.lines().nth(1).is_some_and(|line| line.starts_with("120,140,20,")), "{each}");

    // The same pair, explained, as a chain, and by SQL.
    let explained = asked(&sigmund, &["--explain", "sched_waking", "sys_exit"]);
    assert!(explained.contains("\n0-50,duration,,,,1,20,20,100\n"), "{explained}");
    assert!(explained.contains("\n0-50,stalled,itself,,idle,1,10,10,50\n"), "{explained}");
    let chain = asked(&sigmund, &["--critical-path", "sched_waking", "sys_exit", "--worst", "1"]);
    assert!(chain.starts_with("instance,ts_tick,dur_tick,thread,lwp,name,cpu,what,"), "{chain}");
    assert!(chain.lines().last().is_some_and(|line| line.starts_with("1,130,10,,70,,0,running,")), "{chain}");
    let by_sql = |function: &str| {
        let pair = "from_event => 'sched_waking', to_event => 'sys_exit'";
        asked(&sigmund, &["sql", "t.supertrace", &format!("SELECT * FROM {function}({pair})")])
    };
    assert!(by_sql("reactivity").contains("\npairs,caused,,1,20,"), "{}", by_sql("reactivity"));
    assert!(by_sql("explain").contains("\n0-50,duration,,,,1,20,"), "{}", by_sql("explain"));
    let refused = |query: &str, words: &[&str]| sigmund.run(["sql", "t.supertrace", query]).complained(words);
    refused("SELECT * FROM reactivity()", &["expected from_event and to_event"]);
    refused("SELECT * FROM explain(from_event => 'sched_waking')", &["expected to_event"]);
    sigmund.run(["--explain", "a", "b", "c"]).complained(&["c"]);
    sigmund.run(["--explain", "sched_wakin", "sys_exit"]).complained(&["no event", "sched_wakin"]);
    sigmund.run(["--noise", "a", "b"]).complained(&["b"]);
}

#[test]
fn a_program_without_user_threads_is_asked_about_by_lwp() {
    let Some(_alone) = kernel::as_root() else { return };
    let sigmund = Sigmund::new();
    // Several: a guest's kernel may leave out the switches that have an LWP's name.
    let program = ["sh", "-c", "for i in 1 2 3 4 5 6; do sleep 0.01; done"];
    sigmund.run([&["record", "-o", "RUN", "--"], &program[..]].concat()).found();
    let states = asked(&sigmund, &["--states"]);
    let names: BTreeSet<&str> = states.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
    assert!(states.starts_with("lwp,name,state,") && names.contains("sleep"), "{states}");
}

#[test]
fn strictly_missing_events_are_status_3() {
    let sigmund = Sigmund::with_listing("t", &listing());
    assert_eq!(sigmund.run(["--states", "--strict"]).status, 0);
    // CPU 0 goes from 70 to 90 unseen: 90 is what leaves it at 170.
    let unseen: String =
        listing().lines().filter(|line| !line.contains("\t150\t")).map(|l| format!("{l}\n")).collect();
    let sigmund = Sigmund::with_listing("t", &unseen);
    let reported = sigmund.run(["--states", "--strict"]);
    assert_eq!(reported.status, 3, "{reported:?}");
    assert!(
        reported.stderr.contains("events are missing") && reported.stdout.contains("mounted"),
        "{reported:?}"
    );
    assert_eq!(sigmund.run(["--states"]).status, 0);
    // What 70 did is unknown from 140 to where 90 is seen, and so is whether 5 ran. 80 is not affected.
    let between = |whom: &[&str], from: &str, to: &str| {
        sigmund.run([&["--states", "--from", from, "--to", to, "--strict"], whom].concat()).status
    };
    for whom in [&["--by", "lwp"][..], &["--lwp", "70"], &["--thread", "5"], &[]] {
        assert_eq!(between(whom, "145", "165"), 3, "{whom:?}");
        assert_eq!(between(whom, "110", "135"), 0, "{whom:?}");
    }
    assert_eq!(between(&["--lwp", "80"], "145", "165"), 0);
    // The first event of 90 is its switch out: its switch in is not in the trace, and not counted.
    let summary = asked(&sigmund, &["--summary"]);
    assert!(summary.contains("\nlwp,80,") && !summary.contains("\nlwp,90,"), "{summary}");
    let drawn = sigmund.run(["--gantt", "--from", "145", "--to", "165", "--strict"]);
    assert_eq!(drawn.status, 3, "{drawn:?}");
    // Plain active time and measures in SQL say so too, each query for itself.
    let pairs = ["--reactivity", "sched_waking", "sched_switch", "--next"];
    for question in [&["--thread", "5", "--active-time"][..], &["--active-time"], &pairs] {
        let told = sigmund.run(question);
        assert!(
            told.status == 0 && told.stderr.contains("events are missing in this time (1 gap)"),
            "{told:?}"
        );
    }
    let sql = |query: &str| sigmund.run(["sql", "t.supertrace", query]);
    let told = sql("SELECT count(*) FROM states(); SELECT 1; SELECT count(*) FROM states(\"by\" => 'lwp')");
    assert_eq!(told.stderr.matches("states: events are missing in this time (1 gap)").count(), 2, "{told:?}");
    for query in ["SELECT count(*) FROM states(\"to\" => 100)", "EXPLAIN SELECT count(*) FROM states()"] {
        let told = sql(query);
        assert!(told.status == 0 && !told.stderr.contains("missing"), "{told:?}");
    }
    // Of several queries, one that is affected decides the status; with no row, too.
    let of_all = "SELECT count(*) FROM states()";
    for (query, status) in [
        (of_all, 3),
        (&format!("{of_all}; SELECT 1"), 3),
        (&format!("SELECT 1; {of_all}"), 3),
        ("SELECT * FROM states() WHERE total_ns < 0", 3),
        ("SELECT count(*) FROM states(\"to\" => 100)", 0),
        ("SELECT * FROM states(\"to\" => 100) WHERE total_ns < 0", 1),
    ] {
        let strict = sigmund.run(["sql", "--strict", "t.supertrace", query]);
        assert_eq!(strict.status, status, "{query}: {strict:?}");
    }
}

#[test]
fn what_the_kernel_side_lacks_is_noted() {
    let without = |words: &[&str]| -> String {
        let lines = listing();
        let kept = lines.lines().filter(|line| !words.iter().any(|word| line.contains(word)));
        kept.map(|line| format!("{line}\n")).collect()
    };
    let calls = "No system calls are recorded";
    let wakeups = "No wakeups are recorded";
    for (left_out, noted) in [
        (&[][..], [false, false]),
        (&["\tsys_"], [true, false]),
        (&["sched_wak", "THREAD_READY"], [false, true]),
        // Without the kernel's side nobody expects either.
        (&["KERN", "THREAD_READY"], [false, false]),
    ] {
        let sigmund = Sigmund::with_listing("t", &without(left_out));
        let said = [("--states", calls), ("--latency", wakeups)];
        let said = said.map(|(question, note)| sigmund.run([question]).stderr.contains(note));
        assert_eq!(said, noted, "{left_out:?}");
        // Of the others, those that use them.
        assert!(!sigmund.run(["--quanta"]).stderr.contains("are recorded"), "{left_out:?}");
    }
}

#[test]
fn people_see_addresses_as_addresses_and_programs_as_numbers() {
    let address = 0x7fab_c000_1230_i64;
    let sigmund = Sigmund::with_listing("t", &listing().replace("4096", &address.to_string()));
    for question in [&["--locks"][..], &["--states", "--thread", "5"]] {
        let (for_people, for_programs) = (sigmund.run(question).found(), asked(&sigmund, question));
        assert!(for_people.contains(" 0x7fabc0001230 "), "{for_people}");
        assert!(for_programs.contains(&format!(",{address},")), "{for_programs}");
    }
}

#[test]
fn rows_that_do_not_fit_the_terminal_are_blocks_of_lines() {
    let sigmund = Sigmund::with_listing("t", &listing());
    let asked = |question: &str, columns: u32| {
        let line = format!("stty rows 40 cols {columns}; exec {} {question}", program());
        let mut command = Command::new("script");
        command.args(["-qec", &line, "/dev/null"]).current_dir(sigmund.folder()).stdin(Stdio::null());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    let shown = |trace: &str, columns: u32| asked(&format!("-f {trace} --locks"), columns);
    let query = "sql t.supertrace 'SELECT * FROM events ORDER BY ts_tick'";
    let (narrow, wide) = (asked(query, 80), asked(query, 1000));
    assert!(narrow.starts_with("row 1\r\n") && narrow.contains("\nrow 17\r\n"), "{narrow}");
    assert!(wide.starts_with("+---") && wide.contains("| ts_tick "), "{wide}");
    let (narrow, wide) = (shown("t.supertrace", 80), shown("t.supertrace", 1000));
    assert!(narrow.starts_with("row 1 of 1\r\n") && narrow.contains("\n  requests  "), "{narrow}");
    assert!(wide.lines().count() == 2 && wide.contains(" requests "), "{wide}");
    // However many they are.
    let wait = |lock: u32| {
        let at = 300 + 10 * lock;
        [
            format!(
                "USER {at} 70 0 5 - USER_CONTEXT_SWITCH next=0 reason=3 on={} blocked_for=1\n",
                8192 + lock
            ),
            format!("USER {} 80 1 6 - USER_THREAD_READY ready=5\n", at + 2),
            format!("USER {} 70 0 ? - USER_CONTEXT_SWITCH next=5 reason=0 on=0 blocked_for=0\n", at + 4),
        ]
        .map(|line| line.replacen(' ', "\t", 7))
        .concat()
    };
    sigmund.merge_listing("many", &(listing() + &(0..60).map(wait).collect::<String>()));
    let many = shown("many.supertrace", 80);
    assert!(
        many.contains("row 61 of 61\r\n") && many.lines().all(|line| line.trim_end().len() <= 80),
        "{many}"
    );
}

// A program that starts for 1 ms, and then has a span: most slices have none.
#[test]
fn a_span_that_some_times_lack_is_compared_and_looked_for_elsewhere() {
    let lines =
        "USER 1000100 70 0 5 - SPAN_BEGIN span=1(request)\nUSER 1000160 70 0 5 - SPAN_END span=1(request)\n";
    let lines: String =
        lines.lines().map(|line| line.splitn(8, ' ').collect::<Vec<_>>().join("\t") + "\n").collect();
    let sigmund = Sigmund::with_listing("a", &(listing() + &lines));
    sigmund.merge_listing("b", &(listing() + &lines));
    for question in ["--explain", "--critical-path", "--noise"] {
        let same = [question, "request", "--by", "name", "--compare", "a.supertrace", "b.supertrace"];
        let compared = asked(&sigmund, &same);
        assert!(compared.lines().count() > 1 && !compared.contains("differs"), "{compared}");
        let within =
            |subject: &str, to: &str| sigmund.run(["-f", "a.supertrace", question, subject, "--to", to]);
        within("request", "500us").found_nothing();
        within("reqest", "500us").complained(&["found `reqest`"]);
        within("request", "2ms").found();
    }
}

#[test]
fn two_super_traces_are_compared_by_name() {
    let sigmund = Sigmund::with_listing("a", &listing());
    // The same program; `eth0` has the CPU for 15 ns instead of 5, and the mutex is free 5 ns later.
    let slower = listing().replace("\t180\t", "\t190\t").replace("\t220\t", "\t225\t");
    sigmund.merge_listing("b", &slower);
    let compare = |words: &[&str], a: &str, b: &str| asked(&sigmund, &[words, &["--compare", a, b]].concat());
    let states = compare(&["--states", "--thread", "5"], "a.supertrace", "b.supertrace");
    let head = "name,state,reason,culprit,figure,unit,a,b,difference,difference_percent,spread,verdict\n";
    assert!(states.starts_with(head), "{states}");
    // Of 130 ns, 5 and 15.
    let line = states.lines().find(|line| line.contains(",interrupted,eth0,,total,ns/s,"));
    let line = line.unwrap_or_else(|| panic!("{states}"));
    let cells: Vec<&str> = line.split(',').collect();
    let number = |place: usize| cells[place].parse::<f64>().unwrap_or_else(|e| panic!("{line}: {e}"));
    let expected = [5e9_f64, 15e9].map(|ticks| (ticks / 130.0).round());
    assert_eq!([number(6).round(), number(7).round()], expected, "{line}");
    // A trace is like itself, in all that can be asked.
    for flags in
        [vec![], vec!["--states"], vec!["--locks"], vec!["--latency"], vec!["--latency", "--by", "lwp"]]
    {
        let same = compare(&flags, "a.supertrace", "a.supertrace");
        let verdicts = same.lines().skip(1).map(|line| line.rsplit(',').next().unwrap_or_default());
        assert!(verdicts.clone().count() > 0, "{flags:?}");
        assert!(verdicts.clone().all(|word| ["within the spread", "too few"].contains(&word)), "{same}");
    }
    let summary = compare(&[], "a.supertrace", "b.supertrace");
    assert!(summary.starts_with("what,number,name,figure,"), "{summary}");
    let pairs = compare(&["--reactivity", "sched_waking", "sys_exit"], "a.supertrace", "b.supertrace");
    assert!(pairs.starts_with("row,what,culprit,figure,"), "{pairs}");
    let in_sql = |query: &str, more: &[&str]| {
        let named = ["sql", "a=a.supertrace", "b=b.supertrace", query, "--format", "csv"];
        sigmund.run([&named[..], more].concat())
    };
    // The same as a table of SQL.
    let of_sql = in_sql("SELECT * FROM compare(measure => 'states', a => 'a', b => 'b', thread => 5)", &[]);
    assert_eq!(of_sql.found().replace(".0,", ","), states);
    // A measure of the other one.
    let of_b = in_sql("SELECT count(*), sum(total_ns) FROM states(thread => 5, trace => 'b')", &[]).found();
    let alone = ["sql", "b.supertrace", "SELECT count(*), sum(total_ns) FROM states(thread => 5)"];
    let alone = sigmund.run([&alone[..], &["--format", "csv"]].concat()).found();
    assert_eq!(of_b.lines().nth(1), alone.lines().nth(1));
    for (query, expected) in [
        ("SELECT * FROM states(trase => 'b')", ["expected thread, ", "found trase; nearest: trace"]),
        ("SELECT * FROM states(trace => 'c')", ["states: trace: expected a, b, found c"; 2]),
        (
            "SELECT * FROM compare(measure => 'states', a => 'a', b => 'c')",
            ["states: b: expected a, b, found c"; 2],
        ),
        ("SELECT * FROM compare(measure => 'stats', a => 'a', b => 'b')", ["states", "found stats"]),
        ("EXPLAIN SELECT * FROM compare(a => 'a', b => 'c')", ["summary: b: expected a, b, found c"; 2]),
        ("SELECT * FROM compare(a => 'a', b => 'b', worst => 3)", ["compare: expected", "but worst"]),
        ("SELECT trace_dur()", ["trace_dur"; 2]),
        ("SELECT * FROM compare(a => 'a')", ["compare: expected a and b", "two super-traces"]),
        (
            "SELECT * FROM compare(measure => 'states', a => 'a', b => 'b', off => 1)",
            ["measure, a, b, found off", "expected thread"],
        ),
    ] {
        in_sql(query, &[]).complained(&expected);
    }
    let alone = ["sql", "a.supertrace", "SELECT * FROM states(trace => 'b')"];
    sigmund.run(alone).complained(&["states: trace: this session has one super-trace", "found b"]);
    let for_people = sigmund.run(["--states", "--compare", "a.supertrace", "b.supertrace"]).found();
    assert!(for_people.contains("38.462 ms/s"), "{for_people}");
    // A figure that says no more than one before it is not a row of its own: the part, the total, and both on a CPU.
    let breakdown = compare(&["--breakdown", "--thread", "5"], "a.supertrace", "b.supertrace");
    let users: Vec<&str> = breakdown.lines().filter(|line| line.contains(",user,,")).collect();
    assert!(users.iter().any(|line| line.contains(",part,")), "{breakdown}");
    assert!(!users.iter().any(|line| line.contains(",total,") || line.contains(",on_cpu,")), "{breakdown}");

    let refused = |flags: &[&str], words: &[&str]| {
        sigmund.run(flags).complained(words);
    };
    refused(&["--states", "--compare", "a.supertrace"], &["--compare", "2 values"]);
    refused(&["--compare", "a.supertrace", "a.tsv"], &["a.tsv"]);
    refused(&["--compare", "a.supertrace", "c.supertrace"], &["c.supertrace"]);
    refused(&["--compare", "a.supertrace", "b.supertrace", "--gantt"], &["--gantt"]);
    refused(&["--compare", "a.supertrace", "b.supertrace", "-f", "a.supertrace"], &["--trace-file"]);
    refused(&["--compare", "a.supertrace", "b.supertrace", "--thread", "55"], &["a.supertrace", "55"]);
    refused(
        &["--explain", "nothing", "--compare", "a.supertrace", "b.supertrace"],
        &["a.supertrace", "nothing"],
    );
}

#[test]
fn strictly_missing_events_in_one_of_two_are_status_3() {
    let sigmund = Sigmund::with_listing("a", &listing());
    let unseen: String =
        listing().lines().filter(|line| !line.contains("\t150\t")).map(|l| format!("{l}\n")).collect();
    sigmund.merge_listing("b", &unseen);
    let status = |a: &str, b: &str| sigmund.run(["--states", "--compare", a, b, "--strict"]).status;
    assert_eq!(status("a.supertrace", "a.supertrace"), 0);
    assert_eq!(status("a.supertrace", "b.supertrace"), 3);
    assert_eq!(status("b.supertrace", "a.supertrace"), 3);
}

// The picture is in views.rs: thread 6 begins on LWP 80 at 106.
#[test]
fn a_thread_that_was_not_alive_in_the_window_has_no_rows_and_is_not_taken_for_all_lwps() {
    let sigmund = Sigmund::with_listing("t", &listing());
    sigmund.run(["--states", "--thread", "6", "--from", "100", "--to", "104"]).found_nothing();
}

#[test]
fn people_are_shown_the_first_thousand_rows_and_programs_all() {
    let mut listing =
        "# tick_hz=1000000000\ntype\tdate_tick\tpid\tcpu\tthr\tcode\tname\tparams\n".to_string();
    for lwp in 1..=1500 {
        let (tick, before) = (lwp * 10, lwp - 1);
        listing.push_str(&format!(
            "KERN\t{tick}\t{before}\t0\t?\t-\tsched_switch\tprev_state=0 next_pid={lwp}\n"
        ));
    }
    let sigmund = Sigmund::with_listing("many", &listing);
    let all = sigmund.run(["-f", "many.supertrace", "--states", "--format", "tsv"]).found();
    let rows = all.lines().count() - 1;
    assert!(rows >= 1500, "{rows}");
    let shown = sigmund.run(["-f", "many.supertrace", "--states"]);
    // Below the names of the columns.
    assert_eq!(shown.stdout.lines().filter(|line| !line.trim().is_empty()).count(), 1 + 1000);
    let note = format!("{} more rows; `--format tsv` prints all", rows - 1000);
    assert!(shown.stderr.contains(&note), "{}", shown.stderr);
}
