//! ftrace's text: compared with the binary reader's events, with the lines themselves, and damaged.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fkt_ingest::{ErrorKind, FtraceText, TraceDat, TraceFile, from_bytes};
use sigmund_model::{
    ClockDomain, Context, Cpu, Effect, Event, EventType, FieldType, Loss, LossKind, Lwp, TaskState, Ticks,
};

use crate::fixture;
use crate::{live::tool_exists, skipped::skipped};

/// The events of each CPU, and all losses.
fn drain(trace: &dyn TraceFile) -> (Vec<(Cpu, Vec<Event>)>, Vec<Loss>) {
    let mut losses = trace.losses().to_vec();
    let mut all = Vec::new();
    for mut stream in trace.streams() {
        let mut events = Vec::new();
        let mut event = Event::default();
        while stream.events.next_into(&mut event).unwrap() {
            assert_eq!(event.cpu, stream.cpu);
            events.push(event.clone());
        }
        losses.extend(stream.events.take_losses());
        all.push((stream.cpu.unwrap(), events));
    }
    (all, losses)
}

fn open(text: &str) -> Box<dyn TraceFile> {
    from_bytes("made.txt", text.as_bytes().to_vec()).unwrap()
}

/// The events of the single CPU.
fn events_of(text: &str) -> (Vec<EventType>, Vec<Event>) {
    let trace = open(text);
    let (mut cpus, losses) = drain(trace.as_ref());
    assert_eq!((cpus.len(), losses), (1, vec![]));
    let events = cpus.remove(0).1;
    (events.iter().map(|e| trace.event_types()[e.kind as usize].clone()).collect(), events)
}

/// Numbers are equal; a text of the binary is equal to that of the text, if it has the field.
fn compare_params(text: (&EventType, &Event), binary: (&EventType, &Event)) -> usize {
    let mut compared = 0;
    for (field, param) in text.0.fields.iter().zip(text.1.params.iter()) {
        let Some(other) = binary.0.field(&field.name).and_then(|at| binary.1.params.get(at)) else {
            continue;
        };
        if field.name == "prev_state" {
            continue;
        }
        match (param.number, other.number) {
            (Some(ours), Some(theirs)) => assert_eq!(ours, theirs, "{} of {}", field.name, text.0.name),
            _ if other.text.is_some() => {
                assert_eq!(param.text, other.text, "{} of {}", field.name, text.0.name)
            }
            // A number that is printed as a name: `ret=handled`.
            _ => continue,
        }
        compared += 1;
    }
    compared
}

/// Same events in the same order, with the same LWP, name, effect and fields, and the same time as far as it is
/// printed.
fn compare(
    text: &[Event],
    text_types: &[EventType],
    binary: &[Event],
    binary_types: &[EventType],
    nanos: bool,
) -> usize {
    assert_eq!(text.len(), binary.len());
    let mut compared = 0;
    for (ours, theirs) in text.iter().zip(binary) {
        let types = (&text_types[ours.kind as usize], &binary_types[theirs.kind as usize]);
        let time = if nanos { (theirs.tick.0 + 500) / 1000 * 1000 } else { theirs.tick.0 };
        assert_eq!((ours.tick.0, ours.lwp, &types.0.name), (time, theirs.lwp, &types.1.name));
        match ours.effect {
            // The binary has flags instead.
            Effect::InterruptEnter(_) | Effect::InterruptExit(_) => assert_eq!(theirs.effect, Effect::None),
            effect => assert_eq!(without_letters(effect), without_letters(theirs.effect), "{types:?}"),
        }
        compared += compare_params((types.0, ours), (types.1, theirs));
    }
    compared
}

/// trace-cmd swaps the letters X and Z of a dead task; both mean the same state.
fn without_letters(effect: Effect) -> Effect {
    match effect {
        Effect::KernelSwitch { prev, prev_state, next } => {
            Effect::KernelSwitch { prev, prev_state: prev_state.map(|left| left.state.into()), next }
        }
        other => other,
    }
}

fn compare_fixture(name: &str) {
    let dir = tempfile::tempdir().unwrap();
    let binary = TraceDat::open(&fixture::file(&dir, name, &fixture::bytes(&format!("{name}.dat")))).unwrap();
    let (theirs, their_losses) = fixture::drain_trace(&binary);
    let text = from_bytes("report.txt", fixture::bytes(&format!("{name}.report.txt"))).unwrap();
    let (ours, losses) = drain(text.as_ref());
    let nanos = binary.clock() != Some(ClockDomain::Tsc);
    assert_eq!(text.streams()[0].clock, if nanos { ClockDomain::Local } else { ClockDomain::Tsc });
    assert_eq!(text.format(), "ftrace's text, as of trace-cmd report");

    assert_eq!(ours.len(), theirs.len());
    let (mut compared, mut events) = (0, 0);
    for ((_, ours), theirs) in ours.iter().zip(&theirs) {
        compared += compare(ours, text.event_types(), theirs, binary.event_types(), nanos);
        events += ours.len();
    }
    assert!(compared > 2 * events, "only {compared} fields of {events} events compared");
    // cpu, count and instants of each loss.
    let places = |losses: &[Loss]| {
        let mut places: Vec<_> =
            losses.iter().map(|l| (l.cpu.map(|c| c.0), l.count, l.from, l.kind)).collect();
        places.sort_by_key(|place| (place.0, place.2));
        places
    };
    assert_eq!(places(&losses), places(&their_losses));
}

#[test]
fn reports_of_trace_cmd_read_as_the_traces_they_are_of() {
    for name in
        ["small-tsc-v7-zstd", "small-tsc-v7-none", "small-tsc-v6", "small-mono-v7", "small-tsc-lost-v7"]
    {
        compare_fixture(name);
    }
}

const TRACE: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 9/9   #P:2
#
#                                _-----=> irqs-off/BH-disabled
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
          my app-7       [001] d..2.    10.000001: sched_switch: prev_comm=my app prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
          <idle>-0       [001] d.h2.    10.000002: irq_handler_entry: irq=24 name=eth0
          <idle>-0       [001] d.h4.    10.000003: sched_waking: comm=my app pid=7 prio=120 target_cpu=001
          <idle>-0       [001] dNs4.    10.000004: sched_wakeup: comm=my app pid=7 prio=120 target_cpu=000
          <idle>-0       [001] d.Z2.    10.000005: sched_migrate_task: comm=my app pid=7 prio=120 orig_cpu=1 dest_cpu=0
           <...>-8       [001] .....    10.000006: sched_process_fork: comm=a pid=8 child_comm=a child_pid=9
           <...>-9       [001] .....    10.000007: sched_process_exit: comm=a pid=9 prio=120
           <...>-9       [001] .....    10.000008: tracing_mark_write: hello there
           <...>-9       [001] .....    10.000009: mutex_lock <-do_work
";

#[test]
fn the_kernels_text_has_the_lwp_and_the_context_of_each_event() {
    let (types, events) = events_of(TRACE);
    let effects: Vec<Effect> = events.iter().map(|event| event.effect).collect();
    let switch = Effect::KernelSwitch {
        prev: Some(Lwp(7)),
        prev_state: Some(TaskState::from_letters("S").into()),
        next: Lwp::IDLE,
    };
    let expected = [
        switch,
        Effect::None,
        Effect::LwpWaking(Lwp(7)),
        Effect::LwpWakeup { lwp: Lwp(7), cpu: Some(Cpu(0)) },
        Effect::LwpMigrate { lwp: Lwp(7), cpu: Cpu(0) },
        Effect::LwpNew(Lwp(9)),
        Effect::LwpExit,
        Effect::None,
        Effect::None,
    ];
    assert_eq!(effects, expected);
    let contexts: Vec<Context> = events.iter().map(|event| event.context).collect();
    let [task, irq, softirq, nmi] = [Context::Task, Context::Irq, Context::Softirq, Context::Nmi];
    assert_eq!(contexts, [task, irq, irq, softirq, nmi, task, task, task, task]);
    assert_eq!(events[0].tick, Ticks(10_000_001_000));
    assert_eq!((types[7].name.as_str(), types[8].name.as_str()), ("tracing_mark_write", "text"));
    assert_eq!(events[7].params.get(0).unwrap().text, Some("hello there"));
    assert_eq!(events[8].params.get(0).unwrap().text, Some("mutex_lock <-do_work"));
    assert_eq!(types[1].fields[0].ty, FieldType::I64);

    let trace = open(TRACE);
    assert_eq!(trace.format(), "ftrace's text");
    assert_eq!(trace.lwp_names(), [(Lwp(7), "my app".to_owned())]);
    assert!(trace.facts().contains(&("cpus".to_owned(), "2".to_owned())));
}

// Without flags, entries and exits determine the context of a CPU.
#[test]
fn a_text_without_flags_shows_interrupts_by_their_entries_and_exits() {
    let (_, events) = events_of(
        "cpus=1\n\
         \x20  a-7 [000] 1.1: softirq_raise: vec=1 [action=TIMER]\n\
         \x20  a-7 [000] 1.2: irq_handler_entry: irq=24 name=eth0\n\
         \x20  a-7 [000] 1.3: sched_waking: comm=b pid=8 prio=120 target_cpu=000\n\
         \x20  a-7 [000] 1.4: irq_handler_exit: irq=24 ret=handled\n\
         \x20  a-7 [000] 1.5: softirq_entry: vec=1 [action=TIMER]\n\
         \x20  a-7 [000] 1.6: softirq_exit: vec=1 [action=TIMER]\n\
         \x20  a-7 [000] 1.7: sys_enter: NR 1 (0, 7f00, 5, 0, 0, 0)\n",
    );
    let contexts: Vec<Context> = events.iter().map(|event| event.context).collect();
    let [task, irq, softirq] = [Context::Task, Context::Irq, Context::Softirq];
    assert_eq!(contexts, [task, irq, irq, irq, softirq, softirq, task]);
    assert_eq!(events[1].effect, Effect::InterruptEnter(24));
    assert_eq!(events[3].effect, Effect::InterruptExit(24));
    let call: Vec<Option<i64>> = events[6].params.iter().map(|param| param.number).collect();
    assert_eq!(call, [Some(1), Some(0), Some(0x7f00), Some(5), Some(0), Some(0), Some(0)]);
}

#[test]
fn with_a_tgid_or_a_counter_for_a_clock_a_text_reads_the_same() {
    let (_, events) = events_of(
        "# tracer: nop\n\
         \x20           bash-1994    (   1994) [000] d..2.  7: sched_wakeup: comm=x pid=5 prio=120 target_cpu=000\n\
         \x20           bash-1994    (-------) [000] d..2.  8: sched_wakeup: comm=x pid=6 prio=120 target_cpu=000\n",
    );
    assert_eq!((events[0].lwp, events[0].tick, events[1].tick), (Some(Lwp(1994)), Ticks(7), Ticks(8)));
    let clock = |from: u64, to: u64| {
        open(&format!(" a-1 [000] {from}: x: y=1\n a-1 [000] {to}: x: y=1\n")).streams()[0].clock
    };
    assert_eq!(clock(1000, 1001), ClockDomain::Ticks);
    assert_eq!(clock(69_492_417_975_762, 69_492_418_049_277), ClockDomain::Tsc);
}

// CPU 0: event, 12 lost, event; and 100 were overwritten before.
#[test]
fn lost_events_are_rows_between_the_lines_around_them() {
    let trace = open(
        "# tracer: nop\n# entries-in-buffer/entries-written: 3/103   #P:2\n\
         \x20 a-1 [000] 1.5: x: y=1\n  a-1 [001] 1.6: x: y=1\nCPU:0 [LOST 12 EVENTS]\n  a-1 [000] 1.7: x: y=1\n",
    );
    let (_, losses) = drain(trace.as_ref());
    let rows: Vec<_> = losses.iter().map(|l| (l.kind, l.count, l.from, l.to)).collect();
    let lost = (LossKind::Dropped, Some(12), Some(Ticks(1_500_000_000)), Some(Ticks(1_700_000_000)));
    assert_eq!(rows, [(LossKind::Overwritten, Some(100), None, None), lost]);
}

// A gap after each of 3000 events: the first thousand have a row each, the last of which includes all that follow.
#[test]
fn gaps_without_end_are_counted_and_do_not_fill_the_memory() {
    let text: String =
        (0..3000).map(|i| format!("  a-1 [000] 1.{i:06}: x: y=1\nCPU:0 [LOST 2 EVENTS]\n")).collect();
    let (cpus, losses) = drain(open(&text).as_ref());
    assert_eq!((cpus[0].1.len(), losses.len()), (3000, 1000));
    assert_eq!(losses.iter().filter_map(|loss| loss.count).sum::<u64>(), 6000);
    assert_eq!(losses[999].from, Some(Ticks(1_000_999_000)));
    assert_eq!(losses[998].to, Some(Ticks(1_000_999_000)));
}

#[test]
fn a_damaged_line_costs_itself_and_is_counted() {
    let good = "  a-1 [000] 1.5: x: y=1\n";
    let text = format!("{good}what is this\n{good}  a-1 [000] 17: x: y=1\n\n{good}  a-1 [000] 1.");
    let trace = open(&text);
    let (cpus, losses) = drain(trace.as_ref());
    assert_eq!(cpus[0].1.len(), 3);
    let rows: Vec<_> = losses.iter().map(|l| (l.kind, l.count)).collect();
    let (damaged, cut) = ((LossKind::Damaged, Some(1)), (LossKind::Truncated, Some(1)));
    assert_eq!(rows, [damaged, damaged, cut]);
    assert!(
        losses[0].detail.starts_with("made.txt: at byte 24 (line): expected comm-pid [cpu]"),
        "{losses:?}"
    );
}

#[test]
fn only_texts_of_ftrace_are_taken_for_them() {
    let is = |text: &str| FtraceText::is_ftrace_text(text.as_bytes());
    for text in [
        "# tracer: nop\n",
        "# entries-in-buffer/",
        "cpus=2\n",
        "version = 7\ncpus=2\n",
        "  a-1 [000] 1.5: x: y=1\n",
    ] {
        assert!(is(text), "{text}");
    }
    let row = "  a-1 [000] 1.5: x: y=1\n";
    for text in [
        "",
        "type\tdate_tick\tpid\n",
        "# tick_hz=2800000000\ntype\tdate_tick\n",
        "date_tick type name\n",
        "hackbench 17683 [001] 982.313702: sched:sched_switch: prev\n",
        "hello\nworld\n",
        &format!("type\tdate_tick\n{row}"),
    ] {
        assert!(!is(text), "{text}");
    }
    let error = from_bytes("x", b"type\tdate_tick\n".to_vec()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotThisFormat);
}

#[test]
fn a_text_cut_at_any_byte_keeps_its_whole_lines() {
    let report = fixture::bytes("small-tsc-lost-v7.report.txt");
    let bytes = &report[..3000];
    let mut before = 0;
    for cut in 0..bytes.len() {
        let Ok(trace) = from_bytes("cut.txt", bytes[..cut].to_vec()) else { continue };
        let (cpus, losses) = drain(trace.as_ref());
        let events: usize = cpus.iter().map(|(_, events)| events.len()).sum();
        let whole = bytes[..cut].ends_with(b"\n");
        assert_eq!(
            losses.iter().filter(|l| l.kind == LossKind::Truncated).count(),
            usize::from(!whole),
            "cut at {cut}"
        );
        assert!(events >= before);
        before = events;
    }
    assert!(before > 20);
}

#[test]
fn flipped_bits_and_endless_lines_cost_no_more_than_their_lines() {
    let report = fixture::bytes("small-tsc-v6.report.txt");
    let bytes = &report[..4000];
    let lines = bytes.split(|b| *b == b'\n').count();
    let mut state = 0x5167_4d75_6e64_0003;
    for _ in 0..2000 {
        let mut bytes = bytes.to_vec();
        for _ in 0..3 {
            let bit = fixture::random(&mut state) as usize % (bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        let trace = from_bytes("flipped.txt", bytes).unwrap();
        let (cpus, losses) = drain(trace.as_ref());
        let events: usize = cpus.iter().map(|(_, events)| events.len()).sum();
        assert!(
            events + 8 + losses.len() >= lines && events <= lines + 3,
            "{events} events of {lines} lines"
        );
    }
    // Unlimited names, fields, CPUs and lines.
    let long =
        |unit: &str| format!("  a-1 [000] 1.5: x: y=1\n  a-1 [000] 1.6: x: {}\n", unit.repeat(200_000));
    for text in [long("a=b "), long("z"), long("["), long("k="), long("a-1 [000] "), "[0] ".repeat(100_000)] {
        if let Ok(trace) = from_bytes("long.txt", text.into_bytes()) {
            assert!(trace.event_types().iter().all(|ty| ty.fields.len() <= 65));
            drain(trace.as_ref());
        }
    }
    let many: String =
        (0..20_000).map(|i| format!("  a-{i} [{}] 1.5: event{i}: f{i}=1\n", i * 40_000)).collect();
    let trace = open(&many);
    assert!(trace.event_types().len() <= 4097 && trace.streams().len() <= 8192);
}

/// An instance of tracefs with events of the scheduler, interrupts and system calls; removed when dropped.
struct Instance(PathBuf);

impl Instance {
    /// Records for 50 ms. `None`, with a message, if tracefs does not permit it.
    fn record(name: &str, clock: &str) -> Option<Instance> {
        let tracefs = Path::new("/sys/kernel/tracing");
        if !tracefs.join("instances").exists() {
            let mount = ["-t", "tracefs", "nodev", "/sys/kernel/tracing"];
            let _ = Command::new("mount").args(mount).stderr(Stdio::null()).status();
        }
        let path = tracefs.join("instances").join(format!("text-of-{}-{name}", std::process::id()));
        if let Err(why) = fs::create_dir(&path) {
            skipped(&format!("{}: {why}", path.display()));
            return None;
        }
        let instance = Instance(path);
        instance.set("trace_clock", clock);
        for system in ["sched", "irq", "raw_syscalls"] {
            instance.set(&format!("events/{system}/enable"), "1");
        }
        Command::new("sh").args(["-c", "for i in 1 2 3; do /bin/true; done"]).status().unwrap();
        instance.set("tracing_on", "0");
        Some(instance)
    }

    fn set(&self, file: &str, value: &str) {
        fs::write(self.0.join(file), value).unwrap_or_else(|e| panic!("{file}: {e}"));
    }

    /// The text of the buffer, which keeps its content.
    fn text(&self) -> Vec<u8> {
        fs::read(self.0.join("trace")).unwrap()
    }

    /// The same from `trace_pipe`, which empties the buffer.
    fn piped(&self) -> Vec<u8> {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = libc_nonblock();
        let mut pipe =
            fs::OpenOptions::new().read(true).custom_flags(flags).open(self.0.join("trace_pipe")).unwrap();
        let mut text = Vec::new();
        // It would wait for more, which is an error here.
        let _ = pipe.read_to_end(&mut text);
        text
    }
}

/// `O_NONBLOCK` of Linux on x86-64.
fn libc_nonblock() -> i32 {
    0o4000
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn the_text_of_a_buffer_reads_as_the_buffer_itself() {
    if !tool_exists("trace-cmd") {
        return skipped("trace-cmd is not installed");
    }
    for (clock, nanos) in [("x86-tsc", false), ("mono", true)] {
        let Some(instance) = Instance::record(clock, clock) else { return };
        let text = from_bytes("trace", instance.text()).unwrap();
        let (ours, losses) = drain(text.as_ref());
        assert_eq!(losses, []);

        let dir = tempfile::tempdir().unwrap();
        let name = instance.0.file_name().unwrap();
        let mut extract = Command::new("trace-cmd");
        extract.arg("extract").arg("-B").arg(name).args(["-o", "extracted.dat"]).current_dir(dir.path());
        let output = extract.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let binary = TraceDat::open(&dir.path().join("extracted.dat")).unwrap();
        let mut compared = 0;
        for mut stream in
            binary.streams().into_iter().filter(|stream| stream.buffer() == name.to_string_lossy())
        {
            let theirs = fixture::drain(&mut stream);
            let ours =
                ours.iter().find(|(cpu, _)| *cpu == stream.cpu()).map_or(&[][..], |(_, events)| events);
            compared += compare(ours, text.event_types(), &theirs, binary.event_types(), nanos);
            let contexts = |events: &[Event]| events.iter().map(|e| e.context).collect::<Vec<Context>>();
            assert_eq!(contexts(ours), contexts(&theirs));
        }
        assert!(compared > 500, "only {compared} fields compared");
    }
}

#[test]
fn trace_pipe_reads_as_trace_does_with_and_without_its_columns() {
    let Some(instance) = Instance::record("pipe", "x86-tsc") else { return };
    let read = |text: Vec<u8>| {
        let trace = from_bytes("trace", text).unwrap();
        let (cpus, losses) = drain(trace.as_ref());
        assert_eq!(losses, []);
        let content = |event: &Event| {
            let ty = &trace.event_types()[event.kind as usize];
            let params: Vec<String> = event.params.iter().map(|param| param.to_string()).collect();
            (event.tick, event.lwp, ty.name.clone(), params)
        };
        cpus.iter()
            .map(|(cpu, events)| (*cpu, events.iter().map(content).collect()))
            .collect::<Vec<(Cpu, Vec<_>)>>()
    };
    let with_flags = read(instance.text());
    assert!(with_flags.iter().map(|(_, events)| events.len()).sum::<usize>() > 100);
    instance.set("options/irq-info", "0");
    assert_eq!(read(instance.text()), with_flags, "without the column of flags");
    instance.set("options/record-tgid", "1");
    assert_eq!(read(instance.text()), with_flags, "with the column of the TGID");
    instance.set("options/irq-info", "1");
    assert_eq!(read(instance.piped()), with_flags, "trace_pipe");
}
