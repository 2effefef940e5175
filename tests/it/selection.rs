//! Whom a question is about: LWPs and processes by number, name or pattern.

use crate::sigmund::Sigmund;

// Process 70, server, has LWPs 70 and 71, and the user threads 1, 2 and 3, which never runs; process 80, cat, has one LWP, and
// events of its own; kworker/0:1 is a thread of the kernel.
const LISTING: &str = "
    type date_tick pid cpu thr name                params
    KERN 100 70 0 - perf_comm           tid=70,pid=70,comm=server
    KERN 101 70 0 - perf_comm           tid=71,pid=70,comm=worker
    KERN 102 70 0 - perf_comm           tid=80,pid=80,comm=cat
    KERN 103 70 0 - perf_comm           tid=90,pid=2,comm=kworker/0:1
    KERN 110 0  0 - sched_switch        prev_state=0,next_pid=70
    KERN 110 0  1 - sched_switch        prev_state=0,next_pid=71
    USER 120 70 0 - USER_CONTEXT_SWITCH 1
    USER 120 71 1 - USER_CONTEXT_SWITCH 2
    USER 125 70 0 1 USER_THREAD_NEW     3
    KERN 130 71 1 2 sys_enter           id=202(futex),args0=3
    KERN 140 71 1 2 sched_switch        prev_state=1,next_pid=80
    USER 145 80 1 - MESSAGE             7
    KERN 150 80 1 - sched_switch        prev_state=1,next_pid=90
    KERN 160 90 1 - sched_switch        prev_state=1,next_pid=0
    KERN 170 70 0 1 sched_switch        prev_state=1,next_pid=0
    KERN 180 0  0 - sched_switch        prev_state=0,next_pid=70
    USER 185 70 0 1 USER_THREAD_READY   2
    USER 190 70 0 1 MESSAGE             1";

fn machine() -> Sigmund {
    Sigmund::with_listing("machine", &tsv(LISTING))
}

fn tsv(listing: &str) -> String {
    let cells = |line: &str| line.split_whitespace().collect::<Vec<_>>().join("\t") + "\n";
    listing.trim().lines().map(cells).collect()
}

/// The first cells of the rows of an answer, each once.
fn who(sigmund: &Sigmund, args: &[&str]) -> Vec<String> {
    let answer = sigmund.run([args, &["--format", "tsv"]].concat()).found();
    let mut lines = answer.lines();
    let head = lines.next().unwrap().split('\t').next().unwrap();
    let mut who: Vec<String> =
        lines.map(|line| format!("{head} {}", line.split('\t').next().unwrap())).collect();
    who.dedup();
    who
}

#[test]
fn lwps_are_selected_by_number_name_or_pattern() {
    let sigmund = machine();
    for (lwps, expected) in [
        ("80", &["lwp 80"][..]),
        ("cat", &["lwp 80"]),
        ("70(server)", &["lwp 70"]),
        ("kworker/*,worker", &["lwp 71", "lwp 90"]),
    ] {
        let mut found = who(&sigmund, &["--states", "--lwp", lwps]);
        found.sort();
        assert_eq!(found, expected, "{lwps}");
    }
    let events = sigmund.run(["--list-events", "--lwp", "cat", "--format", "tsv"]).found();
    assert_eq!(events.lines().count(), 1 + 2, "{events}");
    let none = sigmund.run(["--states", "--lwp", "wroker"]);
    none.complained(&["--lwp: expected an LWP of this trace, found wroker; nearest: worker"]);
}

#[test]
fn a_process_is_its_user_threads_or_its_lwps_if_it_has_none() {
    let sigmund = machine();
    for (args, expected) in [
        (&["--process", "server"][..], &["thread 1", "thread 2", "thread 3"][..]),
        (&["--process", "70"], &["thread 1", "thread 2", "thread 3"]),
        (&["--process", "server", "--thread", "2"], &["thread 2"]),
        (&["--process", "server", "--by", "lwp"], &["lwp 70", "lwp 71"]),
        (&["--process", "server", "--level", "kern", "--lwp", "worker"], &["lwp 71"]),
        (&["--process", "cat"], &["lwp 80"]),
    ] {
        for measure in ["--states", "--active-time", "--noise"] {
            let mut found = who(&sigmund, &[&[measure], args].concat());
            found.sort();
            assert_eq!(found, expected, "{measure} {args:?}");
        }
    }
    // Not all of them have user threads.
    let both = sigmund.run(["--states", "--process", "server,cat,70"]);
    assert!(both.stderr.contains("These processes have no user threads, and no rows: 80(cat)."), "{both:?}");
    let by_name = sigmund.run(["--active-time", "--lwp", "server,kworker/*", "--by", "name"]);
    assert!(
        by_name.stderr.contains("These LWPs carry no user threads, and have no rows: 90(kworker/0:1)."),
        "{by_name:?}"
    );
    let locks = sigmund.run(["--locks", "--lwp", "server,kworker/*", "--by", "name"]);
    assert!(!locks.stderr.contains("carry no user threads"), "{locks:?}");
    let drawn = sigmund.run(["--gantt", "--process", "server,cat,70"]);
    assert!(drawn.stderr.contains("no user threads, and no rows: 80(cat)."), "{drawn:?}");
    let threads = sigmund.run(["--states", "--process", "cat", "--by", "thread"]);
    assert_eq!((threads.status, threads.stdout.contains("lwp")), (1, false), "{threads:?}");
    let events = sigmund.run(["--list-events", "--process", "server", "--format", "tsv"]).found();
    assert_eq!(events.lines().count(), 1 + 12, "{events}");
    let none = sigmund.run(["--states", "--process", "sever"]);
    none.complained(&["--process: expected a process of this trace, found sever; nearest: server"]);
    let path = "SELECT count(*) > 0 AS is_path FROM critical_path(process => 'server', thread => '1')";
    let path = sigmund.run(["sql", "machine.supertrace", path, "--format", "csv"]).found();
    assert_eq!(path, "is_path\ntrue\n");
    let sql = "SELECT DISTINCT lwp FROM states(process => 'cat')";
    assert_eq!(sigmund.run(["sql", "machine.supertrace", sql, "--format", "csv"]).found(), "lwp\n80\n");
}

#[test]
fn an_export_has_what_a_process_did() {
    let sigmund = machine();
    let table = |name: &str, process: &str| {
        let args = ["export", "machine.supertrace", "--format", "csv", "--table", name, "--process", process];
        sigmund.run([&args[..], &["-o", "-"]].concat()).found()
    };
    assert_eq!(table("threads", "server").lines().count(), 1 + 3);
    assert_eq!(table("lwps", "cat").lines().count(), 1 + 1);
    // Also when they were on no LWP.
    let all = sigmund
        .run(["sql", "machine.supertrace", "SELECT count(*) AS n FROM thread_states", "--format", "csv"])
        .found();
    let states = table("thread_states", "server").lines().count() - 1;
    assert_eq!(all, format!("n\n{states}\n"));
    // Who was unparked has no LWP then.
    assert_eq!(table("wakeups", "server").lines().count(), 1 + 1);
    let json = ["export", "machine.supertrace", "--format", "chrome", "--process", "cat", "-o", "cat.json"];
    sigmund.run(json).found();
    let json = std::fs::read_to_string(sigmund.path("cat.json")).unwrap();
    assert!(json.contains("cat") && !json.contains("worker"), "{json}");
}

#[test]
fn a_report_is_about_the_processes_that_are_asked_for() {
    let sigmund = machine();
    let report = ["report", "--schema", "scheduler", "--process", "cat"];
    let page = sigmund.run(report).found();
    let of_measure = page.split("What did the LWPs").next().unwrap();
    assert!(of_measure.contains("cat") && !of_measure.contains("server"), "{page}");
    let json = sigmund.run([&report[..], &["--format", "json"]].concat()).found();
    assert!(json.contains("--states --by pattern --process cat"), "{json}");
    let none = sigmund.run(["report", "--process", "cta"]);
    none.complained(&["--process: expected a process of this trace, found cta; nearest: cat"]);
}

#[test]
fn a_span_that_there_is_can_be_written_with_its_place_and_may_not_have_ended() {
    let listing = "
        type date_tick pid cpu thr name       params
        USER 100 70 0 - SPAN_BEGIN 1(request)
        USER 110 70 0 - SPAN_BEGIN 2(parse,at,server.rs:32)
        USER 120 70 0 - SPAN_END   2(parse,at,server.rs:32)
        USER 130 70 0 - PROF_IN    3(work,at,a.rs:3)
        USER 140 70 0 - MESSAGE    1";
    let sigmund = Sigmund::with_listing("spans", &tsv(listing).replace(",at,", " at "));
    for (from, to) in [
        ("SPAN_BEGIN(parse at server.rs:32)", "MESSAGE"),
        ("SPAN_BEGIN(parse)", "MESSAGE"),
        ("PROF_IN(work)", "MESSAGE"),
    ] {
        sigmund.run(["--reactivity", from, to]).found();
    }
    // It did not end: no pair, and no mistake.
    let open = sigmund.run(["--reactivity", "SPAN_BEGIN(request)", "SPAN_END(request)", "--next"]);
    assert_eq!(open.status, 1, "{open:?}");
    for from in ["SPAN_BEGIN(prase)", "SPAN_END(prase)"] {
        let none = sigmund.run(["--reactivity", from, "MESSAGE"]);
        none.complained(&["no event has this value; nearest: parse"]);
    }
    sigmund.run(["--reactivity", "PROF_IN(wrok)", "MESSAGE"]).complained(&["nearest: work"]);
}

#[test]
fn a_system_call_or_a_span_that_there_is_not_is_a_mistake_and_gets_the_nearest() {
    let sigmund = machine();
    for call in ["sys_enter(futx)", "sys_enter(id=futx)"] {
        for more in [&["--next"][..], &[]] {
            let said = sigmund.run([&["--reactivity", call, "MESSAGE"], more].concat());
            said.complained(&["no event has this value; nearest: futex"]);
        }
    }
    // A number is no name.
    for call in ["sys_enter(0xca)", "sys_enter(202)"] {
        let said = sigmund.run(["--reactivity", call, call, "--next"]);
        assert_eq!(said.status, 1, "{said:?}");
        assert!(!said.stderr.contains("no event has this value"), "{said:?}");
    }
    for (from, nearest) in [
        ("sys_enter(201)", "nearest: 202"),
        ("sys_enter(id=999)", "nearest: 202"),
        ("MESSAGE(3)", "nearest: 1, 7"),
        ("MESSAGE(-1)", "nearest: 1"),
    ] {
        let said = sigmund.run(["--reactivity", from, "USER_THREAD_READY", "--next"]);
        assert_eq!(said.status, 1, "{said:?}");
        assert!(said.stderr.contains(&format!("`{from}`: no event has this value; {nearest}")), "{said:?}");
    }
    // There is such a call; nobody made it.
    let said = sigmund.run(["--reactivity", "sys_enter(id=read)", "MESSAGE", "--next"]);
    assert_eq!(said.status, 1, "{said:?}");
}

// LWP 71 is of process 70, worker, and then another one of process 71, cat.
#[test]
fn a_number_that_was_used_again_is_two_lwps() {
    let listing = "
        type date_tick pid cpu thr name               params
        KERN 100 1  0 - perf_comm          tid=71,pid=70,comm=worker
        KERN 110 0  0 - sched_switch       prev_state=0,next_pid=71
        KERN 115 71 0 - sys_enter          id=1(write),args0=1
        KERN 120 71 0 - sched_switch       prev_state=16,next_pid=0
        KERN 125 1  1 - task_newtask       pid=71,comm=p,clone_flags=17
        KERN 130 1  1 - sched_process_fork parent_pid=1,child_comm=cat,child_pid=71
        KERN 135 0  0 - sched_switch       prev_state=0,next_pid=71
        KERN 140 71 0 - sys_enter          id=0(read),args0=1
        KERN 155 71 0 - sched_switch       prev_state=1,next_pid=0";
    let sigmund = Sigmund::with_listing("again", &tsv(listing));
    for (lwp, calls) in [("cat", &["read"][..]), ("worker", &["write"]), ("71", &["read", "write"])] {
        let events = ["--list-events", "--event", "sys_enter", "--format", "tsv", "--lwp", lwp];
        let events = sigmund.run(events).found();
        for call in ["read", "write"] {
            assert_eq!(events.contains(call), calls.contains(&call), "{lwp}: {events}");
        }
        let states = sigmund.run(["--states", "--lwp", lwp]);
        let note = "Other LWPs had the same tids earlier or later, and are counted with them: 71.";
        assert_eq!(states.stderr.contains(note), lwp != "71", "{states:?}");
    }
}

// The end of the first is missing: it ends where the second begins.
#[test]
fn the_tick_at_which_a_number_is_used_again_is_of_the_second() {
    let listing = "
        type date_tick pid cpu thr name               params
        KERN 100 0  0 - sched_switch       prev_state=0,next_comm=old,next_pid=70
        KERN 110 70 0 - sched_switch       prev_state=1,next_comm=sh,next_pid=60
        KERN 120 60 0 - sched_process_fork child_comm=new,child_pid=70
        KERN 130 60 0 - sched_switch       prev_state=1,next_pid=0";
    let sigmund = Sigmund::with_listing("again", &tsv(listing));
    for table in ["lwps", "losses"] {
        let args = ["export", "again.supertrace", "--format", "csv", "-o", "-", "--table", table];
        let rows = sigmund.run([&args[..], &["--lwp", "old"]].concat()).stdout;
        assert!(!rows.contains("new"), "{rows}");
        assert_eq!(rows.contains("old"), table == "lwps", "{rows}");
    }
}

#[test]
fn hosts_of_a_fleet_answer_about_a_process_at_one_level() {
    let sigmund = machine();
    // The other host has a process of this name without user threads.
    sigmund.merge_listing(
        "other",
        &tsv(&LISTING.replace("comm=server", "comm=first").replace("comm=cat", "comm=server")),
    );
    let query = "SELECT host, thread FROM states(process => 'server') ORDER BY host, thread";
    let rows = sigmund.run(["sql", "--fleet", ".", query, "--format", "csv"]).found();
    assert!(rows.starts_with("host,thread\nmachine,1\n"), "{rows}");
    let states = sigmund.run(["--fleet", ".", "--states", "--process", "server", "--format", "csv"]).found();
    assert!(states.starts_with("host,thread,"), "{states}");
}
