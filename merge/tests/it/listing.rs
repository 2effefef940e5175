//! Listings drawn by hand: one small case for each promise of the specification.
//!
//! In the drawings a letter is an active user thread, `=` an LWP on a CPU.

use std::path::{Path, PathBuf};

use sigmund_merge::Error;
use sigmund_model::LossKind;

use crate::supertrace::{Inputs, Merged, tsv};

impl Merged {
    /// The cpu, lwp, thread and context of each event.
    fn places(&self) -> Vec<String> {
        self.table("events", &["cpu", "lwp", "thread", "context"])
    }

    fn active(&self) -> Vec<String> {
        self.table("active", &["ts_tick", "dur_tick", "thread", "lwp", "cpu"])
    }

    fn active_time(&self, thread: i64) -> i64 {
        let table = self.read("active");
        let rows = table.numbers("thread").into_iter().zip(table.numbers("dur_tick"));
        rows.filter(|(t, _)| *t == Some(thread)).filter_map(|(_, length)| length).sum()
    }
}

fn merged_file(path: &Path) -> Result<Merged, Error> {
    Merged::of_file(path)
}

fn merged_bytes(bytes: &[u8]) -> Result<Merged, Error> {
    Merged::of_bytes(bytes)
}

fn merged(drawn: &str) -> Merged {
    Merged::of(drawn)
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

// CPU 3   |=70=|=99=|=70=|idle
// LWP 70  |AAAA|    |AAAA|             A is mounted all the time, but off-CPU in the middle.
#[test]
fn a_user_thread_is_off_cpu_while_its_lwp_is() {
    let merged = merged(
        "type date_tick pid cpu thr name                 params
         KERN 100       0   3   -   KERN_CONTEXT_SWITCH  70
         USER 100       70  -   -   USER_CONTEXT_SWITCH  5
         KERN 140       70  3   -   KERN_CONTEXT_SWITCH  99
         KERN 200       99  3   -   KERN_CONTEXT_SWITCH  70
         KERN 230       70  3   -   KERN_CONTEXT_SWITCH  0",
    );
    assert_eq!(merged.active(), ["100 40 5 70 3", "200 30 5 70 3"]);
    assert_eq!(merged.active_time(5), 70);
    let states = merged.table("thread_states", &["ts_tick", "dur_tick", "state", "lwp", "cpu", "end_reason"]);
    let expected = [
        "100 40 active 70 3 kernel-switch",
        "140 60 off-cpu 70 ? dispatched",
        "200 30 active 70 3 kernel-switch",
        "230 0 off-cpu 70 ? trace-end",
    ];
    assert_eq!(states, expected);
    assert_eq!(merged.table("threads", &["thread", "active_tick", "dispatches", "stalls"]), ["5 70 1 ?"]);
    assert_eq!(merged.summary.losses, []);
}

// CPU 0   |=70=|=99=|=70=|    the switches contain the reasons: first preempted, then asleep until woken
// LWP 70  |AAAA|stal|AAAA|in-kernel|stalled
#[test]
fn the_kernels_switch_states_distinguish_stalled_from_in_kernel() {
    let merged = merged_bytes(
        b"type\tdate_tick\tpid\tcpu\tname\tparams\n\
          KERN\t100\t0\t0\tsched_switch\tprev_state=0 next_comm=\"my prog\" next_pid=70\n\
          USER\t100\t70\t-\tUSER_CONTEXT_SWITCH\t5\n\
          KERN\t140\t70\t0\tsched_switch\tprev_state=0 next_comm=other next_pid=99\n\
          KERN\t200\t99\t0\tsched_switch\tprev_state=1 next_comm=\"my prog\" next_pid=70\n\
          KERN\t230\t70\t0\tsched_switch\tprev_state=1 next_comm=swapper next_pid=0\n\
          KERN\t260\t0\t0\tsched_wakeup\tpid=70 target_cpu=0\n\
          KERN\t270\t0\t0\tsched_switch\tprev_state=0 next_pid=70\n",
    )
    .unwrap();
    let states = merged.table("thread_states", &["ts_tick", "dur_tick", "state", "end_reason"]);
    let expected = [
        "100 40 active runnable",
        "140 60 stalled dispatched",
        "200 30 active slept",
        "230 30 in-kernel woken",
        "260 10 stalled dispatched",
        "270 0 active trace-end",
    ];
    assert_eq!(states, expected);
    // No system calls are traced: the first switch away may have been a preemption or a sched_yield.
    assert_eq!(merged.table("threads", &["thread", "stalls"]), ["5 ?"]);
    assert_eq!(merged.table("lwps", &["lwp", "name"]), ["70 my prog", "99 other"]);
    assert_eq!(merged.summary.losses, []);
}

// LWP 70  |AAA|BBB|   |BBB|       B moves from LWP 70 to LWP 71; no user thread is mounted in the gaps.
// LWP 71          |BBB|
#[test]
fn a_user_thread_moves_between_lwps() {
    let merged = merged(
        "type date_tick pid cpu name                 params
         KERN 90        0   0   KERN_CONTEXT_SWITCH  70
         KERN 90        0   1   KERN_CONTEXT_SWITCH  71
         USER 100       70  0   USER_CONTEXT_SWITCH  5
         USER 130       70  0   USER_CONTEXT_SWITCH  6
         USER 160       70  0   USER_CONTEXT_SWITCH  0
         USER 160       71  1   USER_CONTEXT_SWITCH  6
         USER 190       71  1   USER_CONTEXT_SWITCH  0
         USER 190       70  0   USER_CONTEXT_SWITCH  6
         USER 220       70  0   USER_CONTEXT_SWITCH  0",
    );
    assert_eq!(merged.active(), ["100 30 5 70 0", "130 30 6 70 0", "160 30 6 71 1", "190 30 6 70 0"]);
    let threads = merged.table("threads", &["thread", "active_tick", "dispatches", "migrations"]);
    assert_eq!(threads, ["5 30 1 0", "6 90 3 2"]);
    let lwps = merged.table("lwps", &["lwp", "on_cpu_tick", "active_tick", "unmounted_tick"]);
    assert_eq!(lwps, ["70 130 90 40", "71 130 30 100"]);
    assert_eq!(merged.summary.losses, []);
}

// CPU 0   |====70====[24 [1 1] 24]====70====|    an interrupt in an interrupt, both while A is mounted
#[test]
fn an_event_in_an_interrupt_has_no_user_thread() {
    let merged = merged(
        "type date_tick pid cpu name                 params
         KERN 100       0   0   KERN_CONTEXT_SWITCH  70
         USER 100       70  0   USER_CONTEXT_SWITCH  5
         KERN 110       70  0   IRQ                  24(eth0)
         KERN 111       70  0   softirq_raise        _
         KERN 112       70  0   IRQ                  1
         KERN 113       70  0   softirq_raise        _
         KERN 114       70  0   IRQ_EXIT             1
         KERN 115       70  0   softirq_raise        _
         KERN 116       70  0   IRQ_EXIT             24(eth0)
         KERN 117       70  0   SYSTEM_CALL          142(select)
         KERN 120       70  0   KERN_CONTEXT_SWITCH  0
         KERN 130       0   0   IRQ                  24(eth0)
         KERN 131       0   0   IRQ_EXIT             24(eth0)
         KERN 132       0   0   cpu_idle             _",
    );
    let expected = [
        "0 0 ? idle", // KERN_CONTEXT_SWITCH
        "0 70 ? task",
        "0 70 ? irq", // IRQ 24
        "0 70 ? irq",
        "0 70 ? irq", // IRQ 1
        "0 70 ? irq",
        "0 70 ? irq", // IRQ_EXIT 1
        "0 70 ? irq",
        "0 70 ? irq", // IRQ_EXIT 24
        "0 70 5 task",
        "0 70 5 task", // KERN_CONTEXT_SWITCH
        "0 0 ? irq",
        "0 0 ? irq",
        "0 0 ? idle",
    ];
    assert_eq!(merged.places(), expected);
    assert_eq!(merged.active_time(5), 20, "interrupts do not take the thread off its LWP");
}

// CPU 0   |==70==[24 … ==70==|==99==      the exit of interrupt 24 was lost: nobody switches in an interrupt, so the
// CPU 1   |==71==[24 … A: event           switch, or an event of the program, shows that it is over
#[test]
fn a_lost_irq_exit_is_forgotten_at_the_next_switch() {
    let merged = merged(
        "type date_tick pid cpu name                 params
         KERN 100       0   0   KERN_CONTEXT_SWITCH  70
         USER 101       70  0   USER_CONTEXT_SWITCH  5
         KERN 102       0   1   KERN_CONTEXT_SWITCH  71
         USER 103       71  1   USER_CONTEXT_SWITCH  6
         KERN 110       70  0   IRQ                  24
         KERN 111       70  0   SYSTEM_CALL          142
         KERN 112       70  0   KERN_CONTEXT_SWITCH  99
         KERN 113       99  0   SYSTEM_CALL          142
         KERN 120       71  1   IRQ                  24
         USER 121       71  1   USER_EVENT           received_msg
         KERN 122       71  1   SYSTEM_CALL          142
         KERN 130       71  1   IRQ                  25
         KERN 131       71  1   IRQ_EXIT             25",
    );
    let expected = [
        "0 70 ? irq",
        "0 70 ? irq",
        "0 70 5 task",
        "0 99 ? task",
        "1 71 ? irq",
        "1 71 6 task",
        "1 71 6 task",
    ];
    assert_eq!(merged.places()[4..11], expected);
}

#[test]
fn a_name_after_a_thread_number_is_the_name_of_the_thread() {
    let merged = merged(
        "type date_tick pid cpu thr        name                 params
         USER 100       70  0   8(work/6)  USER_CONTEXT_SWITCH  1(daemon)
         USER 110       70  0   1          USER_CONTEXT_SWITCH  8",
    );
    assert_eq!(merged.table("threads", &["thread", "name"]), ["1 daemon", "8 work/6"]);
    let switches = merged.table("events", &["thread", "target_thread", "args", "texts"]);
    assert_eq!(switches, ["8 1 [1] [daemon]", "1 8 [8] []"]);
}

#[test]
fn a_question_mark_is_no_thread_and_a_dash_is_derived_from_the_switches() {
    let merged = merged(
        "type date_tick pid cpu thr  name                 params
         USER 100       70  0   8    first                _
         USER 110       70  -   -    second               _
         KERN 120       -   0   -    SYSTEM_CALL          142
         KERN 130       70  0   ?    KERN_CONTEXT_SWITCH  99
         KERN 140       -   0   -    KERN_CONTEXT_SWITCH  70
         USER 150       -   0   -    third                _
         USER 160       70  -   ?    fourth               _
         USER 170       70  -   -    fifth                _",
    );
    let places = ["0 70 8 task", "0 70 8 task", "0 70 8 task", "0 70 ? task", "0 99 ? task", "0 70 8 task"];
    assert_eq!(merged.places()[..6], places);
    // The program reports that no user thread is mounted: true from there on.
    assert_eq!(merged.places()[6..], ["0 70 ? task", "0 70 ? task"]);
}

#[test]
fn columns_have_two_names_and_may_be_in_any_order() {
    let rows = ["KERN 100 0 0 KERN_CONTEXT_SWITCH 70", "USER 110 70 0 USER_CONTEXT_SWITCH 5"];
    let usual = merged(&format!("type date_tick pid cpu name params\n{}\n{}", rows[0], rows[1]));
    let papers = merged(&format!("type date_tick pid cpu event param(s)\n{}\n{}", rows[0], rows[1]));
    let other = merged(
        "param(s) cpu event               why date_tick type pid
         70       0   KERN_CONTEXT_SWITCH ?   100       KERN 0
         5        0   USER_CONTEXT_SWITCH ?   110       USER 70",
    );
    let events = ["100 KERN_CONTEXT_SWITCH 0 0 [70] ?", "110 USER_CONTEXT_SWITCH 0 70 [5] 5"];
    for merged in [usual, papers, other] {
        let columns = ["ts_tick", "name", "cpu", "lwp", "args", "target_thread"];
        assert_eq!(merged.table("events", &columns), events);
    }
}

#[test]
fn columns_may_be_missing() {
    let merged = merged(
        "type date_tick name
         USER 100       first
         KERN 110       second",
    );
    let events = merged.table("events", &["ts_tick", "name", "cpu", "lwp", "thread", "code", "args"]);
    assert_eq!(events, ["100 first ? ? ? ? []", "110 second ? ? ? ? []"]);
    assert_eq!(merged.summary.losses, []);
}

#[test]
fn a_bad_line_is_left_out_and_reported_and_the_others_are_kept() {
    let header = "type\tdate_tick\tpid\tcpu\tthr\tcode\tname\tparams";
    let good = "USER\t100\t70\t0\t5\t1\tgood\t8";
    let bad = [
        ("NOBODY\t100\t70\t0\t5\t1\tbad\t8", "KERN or USER in column type"),
        ("USER\tnoon\t70\t0\t5\t1\tbad\t8", "a tick in column date_tick"),
        ("USER\t-1\t70\t0\t5\t1\tbad\t8", "a tick in column date_tick"),
        ("USER\t18446744073709551615\t70\t0\t5\t1\tbad\t8", "a tick in column date_tick"),
        ("USER\t100\tfoo\t0\t5\t1\tbad\t8", "a number, - or ? in column pid"),
        ("USER\t100\t70\t4294967296\t5\t1\tbad\t8", "a number, - or ? in column cpu"),
        ("USER\t100\t70\t0\t5(open\t1\tbad\t8", "a thread such as 15 or 8(work/6)"),
        ("USER\t100\t70\t0\t5\tone\tbad\t8", "a number, - or ? in column code"),
        ("USER\t100\t70\t0\t5\t1\t\t8", "a name in column name"),
        ("USER\t100\t70\t0\t5\t1\tbad\t8\t9", "8 columns, as in the header"),
        ("USER", "a name in column name"),
    ];
    for (line, expected) in bad {
        let merged = merged_bytes(format!("{header}\n{good}\n{line}\n{good}\n").as_bytes()).unwrap();
        assert_eq!(merged.table("events", &["name"]), ["good", "good"], "{line}");
        let [loss] = merged.summary.losses.as_slice() else { panic!("{line}: {:?}", merged.summary.losses) };
        assert_eq!((loss.kind, loss.count), (LossKind::Damaged, Some(1)));
        let place = "drawn.tsv: line 3: expected ";
        assert!(loss.detail.contains(place) && loss.detail.contains(expected), "{line}: {}", loss.detail);
        assert!(merged.summary.is_damaged());
        assert_eq!(merged.table("losses", &["kind", "count"]), ["damaged 1"]);
    }
}

#[test]
fn a_listing_without_a_header_is_rejected() {
    let no_header = "USER\t100\t70\t0\t5\t1\tgood\t8\n";
    let no_name = "type\tdate_tick\tpid\nUSER\t100\t70\n";
    let only_comments = "# tick_hz=1000\n\n";
    for (text, place) in
        [(no_header, "byte 0"), (no_name, "line 1"), (only_comments, "line 1"), ("", "byte 0")]
    {
        let error = merged_bytes(text.as_bytes()).err().map(|error| error.to_string()).unwrap_or_default();
        let says = error.contains("drawn.tsv") && error.contains(place) && error.contains("header");
        assert!(says, "{text:?}: {error}");
    }
}

#[test]
fn text_that_is_not_utf8_is_kept() {
    let text = b"type\tdate_tick\tname\tparams\nUSER\t100\tgr\xfc\xdfe\t\xff\xfe\nUSER\t110\tgood\t\"\xe2\x82\xac\"\n";
    let merged = merged_bytes(text).unwrap();
    let events = merged.table("events", &["name", "texts"]);
    assert_eq!(events, ["gr\u{fffd}\u{fffd}e [\u{fffd}\u{fffd}]", "good [€]"]);
    assert_eq!(merged.summary.losses, []);
}

#[test]
fn lines_may_be_in_any_order_and_lines_of_one_tick_keep_their_order() {
    let merged = merged(
        "type date_tick pid cpu name                params
         USER 130       70  0   third               _
         USER 130       70  0   fourth              _
         KERN 140       70  0   KERN_CONTEXT_SWITCH 0
         KERN 100       0   0   KERN_CONTEXT_SWITCH 70
         USER 110       70  0   USER_CONTEXT_SWITCH 5",
    );
    let names = ["KERN_CONTEXT_SWITCH", "USER_CONTEXT_SWITCH", "third", "fourth", "KERN_CONTEXT_SWITCH"];
    assert_eq!(merged.table("events", &["name"]), names);
    assert_eq!(merged.active(), ["110 30 5 70 0"]);
    assert_eq!(merged.summary.losses, []);
}

#[test]
fn windows_line_ends_are_accepted() {
    let unix = tsv("type date_tick pid cpu name                params
                    KERN 100       0   0   KERN_CONTEXT_SWITCH 70
                    USER 110       70  0   USER_CONTEXT_SWITCH 1(daemon)
                    USER 120       70  0   USER_EVENT          received_msg");
    let columns = ["ts_tick", "name", "cpu", "lwp", "thread", "args", "texts"];
    let windows = merged_bytes(unix.replace('\n', "\r\n").as_bytes()).unwrap();
    assert_eq!(
        windows.table("events", &columns),
        merged_bytes(unix.as_bytes()).unwrap().table("events", &columns)
    );
    assert_eq!(windows.table("threads", &["name"]), ["daemon"]);
}

#[test]
fn a_comment_defines_the_length_of_a_tick() {
    let merged = merged(
        "# drawn by hand
         # tick_hz = 2800000000
         type date_tick name
         USER 100       first",
    );
    assert_eq!(merged.summary.tick_hz.map(|hz| hz.per_second()), Some(2.8e9));
    let info = merged.table("info", &["key", "value"]);
    assert!(info.contains(&"tick_hz 2800000000".to_string()), "{info:?}");
    assert_eq!(merged.summary.losses, []);
}

#[test]
fn parameters_are_numbers_texts_and_numbers_with_names() {
    let listing = "type\tdate_tick\tname\tparams\n\
                   USER\t100\tplain\t15\n\
                   USER\t101\tnamed\tfd=3 path=\"/tmp/a b\" flags=0x10\n\
                   USER\t102\tunsigned\t18446744073709551615 ?\n\
                   USER\t103\tnone\n";
    let merged = merged_bytes(listing.as_bytes()).unwrap();
    let events = merged.table("events", &["name", "args", "texts"]);
    let expected = ["plain [15] []", "named [3, ?, 16] [?, /tmp/a b]", "unsigned [-1, ?] []", "none [] []"];
    assert_eq!(events, expected);
    let fields = merged.table("event_types", &["name", "field_names"]);
    assert!(fields.contains(&"named [fd, path, flags]".to_string()), "{fields:?}");
}

// CPU 1  LWP 7137  |7|15: 141476|8
// CPU 0  LWP 7136                 |6|15: 132935|other process
// CPU 2  LWP 7136                                              |15: 422022|7
#[test]
fn figure_2_of_the_paper() {
    let merged = merged_file(&fixture("figure2.tsv")).unwrap();
    let events = merged.table("events", &["ts_tick", "lwp", "cpu", "thread", "target_lwp", "target_thread"]);
    let expected = [
        "97615576 7137 1 7 ? 15",
        "97757052 7137 1 15 ? 8",
        "98006248 7136 0 6 ? 15",
        "98139183 7136 0 15 6152 ?",
        "98638163 2352 2 ? 7136 15",
        "99060185 7136 2 15 ? 7",
    ];
    assert_eq!(events, expected);
    let of_15: Vec<_> =
        merged.active().into_iter().filter(|line| line.split(' ').nth(2) == Some("15")).collect();
    let expected = ["97615576 141476 15 7137 1", "98006248 132935 15 7136 0", "98638163 422022 15 7136 2"];
    assert_eq!(of_15, expected);
    assert_eq!(merged.active_time(15), 696433);
    assert_eq!(merged.summary.losses, []);
}

#[test]
fn figure_3_of_the_paper() {
    let merged = merged_file(&fixture("figure3.tsv")).unwrap();
    let events =
        merged.table("events", &["name", "ts_tick", "cpu", "lwp", "thread", "context", "args", "texts"]);
    assert_eq!(events.len(), 23);
    assert_eq!(events[4], "IRQ 5170071750 0 1630 ? irq [24] [eth0]");
    assert_eq!(events[22], "USER_EVENT 5322907374 1 2731 1 task [?] [received_msg]");
    let names = merged.table("threads", &["thread", "name"]);
    assert!(
        names.contains(&"1 daemon".to_string()) && names.contains(&"21 work/19".to_string()),
        "{names:?}"
    );
    // Every thread that the paper prints is the thread derived from the switches.
    let text = std::fs::read_to_string(fixture("figure3.tsv")).unwrap();
    let printed = text.lines().skip(1).map(|line| line.split(['\t', '(']).nth(4).unwrap_or_default());
    let thread = |event: &String| event.split(' ').nth(4).unwrap_or_default().to_string();
    assert_eq!(events.iter().map(thread).collect::<Vec<_>>(), printed.collect::<Vec<_>>());
    assert_eq!(merged.active_time(1), (5150182646 - 5150163706) + (5322907374 - 5322881710));
    assert_eq!(merged.summary.losses, []);
}

// CPU 0   |=70= ! =70=|     a listing without any exits: the entry is in an interrupt, later events are not
#[test]
fn without_listed_exits_an_interrupt_is_an_instant() {
    let merged = merged(
        "type date_tick pid cpu thr name                 params
         KERN 100       0   0   -   KERN_CONTEXT_SWITCH  70
         USER 110       70  0   -   USER_CONTEXT_SWITCH  5
         KERN 120       70  0   -   IRQ                  24(eth0)
         KERN 130       70  0   -   SYSTEM_CALL          142(select)",
    );
    assert_eq!(merged.places(), ["0 0 ? idle", "0 70 ? task", "0 70 ? irq", "0 70 5 task"]);
}

#[test]
fn two_listings_of_one_machine_share_their_threads() {
    let merged = Inputs::new()
        .file(
            "user-70.tsv",
            tsv("type date_tick pid cpu thr code  name                 params
                 USER 110       70  0   -   23014 USER_CONTEXT_SWITCH  5"),
        )
        .file(
            "user-71.tsv",
            tsv("type date_tick pid cpu thr code  name                 params
                 USER 120       71  1   -   23014 USER_CONTEXT_SWITCH  6
                 USER 130       70  0   5   23014 USER_CONTEXT_SWITCH  0"),
        )
        .merge();
    assert_eq!(merged.summary.losses, []);
    assert_eq!(merged.table("threads", &["thread", "dispatches"]), ["5 1", "6 1"]);
}

#[test]
fn events_and_words_count_for_the_thread_that_recorded_them() {
    let merged = Merged::of(
        "type date_tick pid cpu thr name                params
         USER 100       70  0   -   USER_CONTEXT_SWITCH 5
         USER 110       70  0   5   note                n=1,text=\"nine_byte\"
         USER 120       70  0   5   USER_CONTEXT_SWITCH 6
         USER 130       70  0   6   plain",
    );
    // A number is a word; nine bytes are two, behind the one with their number.
    assert_eq!(merged.table("threads", &["thread", "recorded_events", "recorded_words"]), ["5 2 5", "6 1 0"]);
    assert_eq!(merged.table("lwps", &["lwp", "recorded_events", "recorded_words"]), ["70 1 1"]);
}
