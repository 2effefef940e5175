//! FxT traces: compared with the output of `fxt_print`, generated ones, and damaged ones.

use std::process::Command;

use fkt_ingest::{ErrorKind, EventNames, Fxt, OpenOptions, TraceFile, from_bytes, from_bytes_with};
use sigmund_model::{
    ClockDomain, Context, Effect, Event, EventType, Level, Loss, LossKind, Lwp, Reported, Thread, Ticks,
};

use crate::fixture;
use crate::fxt_made::{Made, PROCESS, Record, record};
use crate::{live::tool_exists, skipped::skipped};

const USER: Made = Made { big_endian: false, wide: true, kernel: false };
const KERNEL: Made = Made { big_endian: false, wide: false, kernel: true };

/// All events and losses.
fn drain(trace: &dyn TraceFile) -> (Vec<Event>, Vec<Loss>) {
    let mut streams = trace.streams();
    assert_eq!(streams.len(), 1);
    let mut events = Vec::new();
    let mut event = Event::default();
    while streams[0].events.next_into(&mut event).unwrap() {
        events.push(event.clone());
    }
    let losses = trace.losses().iter().cloned().chain(streams[0].events.take_losses()).collect();
    (events, losses)
}

/// A trace without losses.
fn whole(bytes: Vec<u8>) -> (Box<dyn TraceFile>, Vec<Event>) {
    let trace = from_bytes("made.fxt", bytes).unwrap();
    let (events, losses) = drain(trace.as_ref());
    assert_eq!(losses, []);
    (trace, events)
}

fn printed(event: &Event) -> Vec<String> {
    event.params.iter().map(|param| param.to_string()).collect()
}

/// `1578828408460u [ 0] 4294967295 fffc(0) fut_calibrate0  1  2`: tick, tid, CPU, code and number of arguments, name,
/// arguments. The CPU is -1 if unknown.
#[derive(Debug)]
struct Line {
    tick: u64,
    id: u64,
    cpu: u32,
    code: u64,
    args_len: usize,
    name: String,
    args: Vec<u64>,
}

fn lines(printed: &str) -> Vec<Line> {
    printed.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<Line> {
    let (tick, rest) = line.split_once("u\t[")?;
    let (id, rest) = rest.split_once("]\t")?;
    let mut columns = rest.split('\t');
    let hex = |text: &str| u64::from_str_radix(text.trim(), 16).ok();
    let cpu = columns.next()?.trim().parse().ok()?;
    let (code, len) = columns.next()?.trim().strip_suffix(')')?.split_once('(')?;
    let name = columns.next()?.trim().to_owned();
    // The name of a thread follows its number.
    let args = if name == "fut_set_thread_name" { Vec::new() } else { columns.map_while(hex).collect() };
    Some(Line {
        tick: tick.trim().parse().ok()?,
        id: hex(id)?,
        cpu,
        code: hex(code)?,
        args_len: len.parse().ok()?,
        name,
        args,
    })
}

/// The same events in the same order with the same fields.
fn compare(trace: &dyn TraceFile, events: &[Event], lines: &[Line], made: Made) {
    assert_eq!(events.len(), lines.len());
    for (event, line) in events.iter().zip(lines) {
        let ty = &trace.event_types()[event.kind as usize];
        assert_eq!(event.tick.0 as u32, line.tick as u32, "{line:?}");
        assert!(made.kernel || event.tick.0 == line.tick, "{line:?}");
        match ty.name.as_str() {
            "SYSTEM_CALL" => assert_eq!(event.params.get(0).unwrap().number, Some(line.code as i64)),
            "IRQ" => assert_eq!(event.params.get(0).unwrap().number, Some(line.code as i64 - 0x220)),
            _ => assert_eq!(ty.code.map(u64::from), Some(line.code), "{line:?}"),
        }
        match made.kernel {
            true => assert_eq!(event.cpu.unwrap().0, line.cpu, "{line:?}"),
            // `fxt_print` reads the thread of 32-bit records as part of a larger number.
            false if !made.wide => {}
            false => {
                let id = if let Reported::Some(Thread(id)) = event.thread { id } else { 0 };
                assert_eq!(id, line.id, "{line:?}");
            }
        }
        if !made.kernel && !line.name.starts_with("unknown code") {
            assert_eq!(ty.name, line.name);
        }
        compare_args(event, line, made);
    }
}

/// `fxt_print` does not swap the bytes of arguments.
fn compare_args(event: &Event, line: &Line, made: Made) {
    let turned = |arg: u64| match (made.big_endian, made.wide) {
        (false, _) => arg,
        (true, true) => arg.swap_bytes(),
        (true, false) => u64::from((arg as u32).swap_bytes()),
    };
    for (index, arg) in line.args.iter().enumerate() {
        let ours = event.params.get(index).unwrap().number.unwrap() as u64;
        assert_eq!(ours, turned(*arg), "argument {index} of {line:?}");
    }
    let missing = event.params.iter().skip(line.args_len).filter(|param| param.number.is_some()).count();
    assert!(missing == 0 || line.args_len == 0, "more arguments than {line:?}");
}

#[test]
fn the_example_of_libfxt_reads_as_fxt_print_prints_it() {
    let file =
        |name: &str| std::fs::read(format!("{}/tests/fixtures/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let (trace, events) = whole(file("small-fut-test.fxt"));
    let lines = lines(&String::from_utf8(file("small-fut-test.fxt_print.txt")).unwrap());
    assert_eq!(lines.len(), 19);
    compare(trace.as_ref(), &events, &lines, USER);
    assert_eq!(trace.format(), "FxT of x86_64, user, 64 bits");
    assert_eq!(trace.streams()[0].clock, ClockDomain::Monotonic);
    let facts = trace.facts();
    let fact = |key: &str| facts.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str());
    assert!(fact("clock_evidence").unwrap().contains("HZ 250"), "{facts:?}");
    assert!(fact("uname").unwrap().starts_with("Linux vm 6.18"));
    assert_eq!((fact("space"), fact("cpus"), fact("page_size")), (Some("user"), Some("2"), Some("4096")));
    assert!(trace.lwp_names().contains(&(Lwp(1), "process_api".to_owned())));
    assert!(trace.event_types().iter().any(|ty| ty.name == "code_0x200" && ty.level == Level::User));
}

/// Records with any number of arguments, in the order of their ticks.
fn some_records(made: Made) -> Vec<Record> {
    (0..3000u64)
        .map(|i| {
            let code = match (made.kernel, i % 5) {
                (true, 0) => 1 + i % 0x1f0,
                (true, 1) => 0x220 + i % 16,
                (_, 2) => 0xfffb,
                _ => 0x700 + i % 40,
            };
            let args_len = if made.kernel && code < 0x300 { 0 } else { i % 9 };
            let args: Vec<u64> = (0..args_len).map(|a| (i * 977 + a * 131) & 0xff_ffff).collect();
            let id = if made.kernel { i % 300 } else { 0x7000_0000 + i % 3 };
            Record { cpu: (i % 2) as u16, ..record(1_000_000_000_000 + i * 3_000_017, id, code, &args) }
        })
        .collect()
}

#[test]
fn both_byte_orders_and_word_sizes_read_as_they_were_made_and_as_fxt_print_prints_them() {
    let has_tool = tool_exists("fxt_print");
    let dir = tempfile::tempdir().unwrap();
    for (big_endian, wide, kernel) in [
        (false, true, false),
        (false, false, false),
        (true, true, false),
        (true, false, false),
        (false, false, true),
        (true, false, true),
    ] {
        let made = Made { big_endian, wide, kernel };
        let records = some_records(made);
        let bytes = made.file(&records);
        let (trace, events) = whole(bytes.clone());
        assert_eq!(events.len(), records.len(), "{made:?}");
        for (event, record) in events.iter().zip(&records) {
            assert_eq!(event.tick.0 as u32, record.tick as u32);
            if kernel {
                assert_eq!(
                    (event.lwp, event.cpu.unwrap().0),
                    (Some(Lwp(record.id as u32)), u32::from(record.cpu))
                );
            }
            let args: Vec<i64> = event.params.iter().map_while(|param| param.number).collect();
            let expected: Vec<i64> = match trace.event_types()[event.kind as usize].name.as_str() {
                "SYSTEM_CALL" => vec![record.code as i64],
                "IRQ" => vec![record.code as i64 - 0x220],
                _ => record.args.iter().map(|arg| *arg as i64).collect(),
            };
            assert_eq!(args, expected, "{record:?}");
        }
        let span = events.last().unwrap().tick.0 - events[0].tick.0;
        assert_eq!(span, records.last().unwrap().tick - records[0].tick, "ticks of 32 bits are widened");
        let clock = if kernel { ClockDomain::Tsc } else { ClockDomain::Monotonic };
        assert_eq!(trace.streams()[0].clock, clock);
        assert_eq!(trace.tick_hz().map(|hz| hz.per_second()), kernel.then_some(2.6e9));
        if has_tool {
            let path = fixture::file(&dir, "t.fxt", &made.file_without_names(&records));
            let output = Command::new("timeout").args(["20", "fxt_print", "-f"]).arg(path).output().unwrap();
            assert!(output.status.success(), "{made:?}: {}", String::from_utf8_lossy(&output.stderr));
            compare(trace.as_ref(), &events, &lines(&String::from_utf8_lossy(&output.stdout)), made);
        }
    }
    if !has_tool {
        skipped("fxt_print is not installed (Debian package fxt-tools)");
    }
}

// Pages of KERNEL_RAW64 have no CPU and no pid.
#[test]
fn kernel_records_of_64_bits_are_read_in_pages() {
    let made = Made { wide: true, ..KERNEL };
    let mut page = vec![0; 4];
    page.extend([&made.u32(5)[..], &made.u64(7)].concat());
    page.extend([&made.u32(9)[..], &made.u64((0x31a << 8) | 8), &made.u64(3)].concat());
    let used = made.u32(page.len() as u32);
    page[..4].copy_from_slice(&used);
    page.resize(4096, 0);
    let (trace, events) = whole(made.file_of(0x101, &[made.u64(0).to_vec(), page].concat()));
    let names: Vec<&str> =
        events.iter().map(|e| trace.event_types()[e.kind as usize].name.as_str()).collect();
    assert_eq!(names, ["SYSTEM_CALL", "switch_to"]);
    assert_eq!(events[1].params.get(0).unwrap().number, Some(3));
    assert_eq!((events[0].cpu, events[0].lwp), (None, None));
}

#[test]
fn events_are_named_by_a_header_or_a_toml() {
    let text = u64::from_le_bytes(*b"a messag");
    let rest = u64::from_le_bytes(*b"e\0\0\0\0\0\0\0");
    let records = [
        record(1, 0, 0x101, &[12, 778, text, rest]),
        record(2, 0, 0x102, &[u64::MAX, 5]),
        record(3, 0, 0x103, &[]),
    ];
    let named = |names: &str| {
        let event_names = EventNames::parse("names".as_ref(), names).unwrap();
        let trace = from_bytes_with("made.fxt", USER.file(&records), &OpenOptions { event_names }).unwrap();
        let (events, _) = drain(trace.as_ref());
        let types: Vec<EventType> =
            events.iter().map(|e| trace.event_types()[e.kind as usize].clone()).collect();
        (types, events)
    };
    let (types, _) = named("#define FUT_RECEIVED 0x101\n#define FUT_KEYMASK2 0x103\n");
    let names: Vec<&str> = types.iter().map(|ty| ty.name.as_str()).collect();
    assert_eq!(names, ["FUT_RECEIVED", "code_0x102", "code_0x103"]);

    let (types, events) = named(
        "[[event]]\ncode = 0x101\nname = 'received'\nfields = ['len', 'who: lwp', 'what: text']\n\
         [[event]]\ncode = 0x102\nname = 'delta'\nlevel = 'user'\nfields = ['by: i64']\n",
    );
    assert_eq!(types[0].name, "received");
    assert_eq!(printed(&events[0]), ["12", "778", "a message"]);
    assert_eq!(events[0].lwp, Some(Lwp(778)));
    // Arguments without a declaration are kept.
    assert_eq!(printed(&events[1]), ["-1", "5"]);
    assert_eq!(types[1].fields[1].name, "arg1");
}

// PM2: LWP 0 carries thread 0xa000_0010, then 0xa000_0020; LWP 1 carries 0xa000_0030.
#[test]
fn lwps_and_threads_of_pm2_are_followed() {
    let (a, b, c) = (0xa000_0010, 0xa000_0020, 0xa000_0030);
    let records = [
        record(10, a, 0xfff6, &[0, a]),
        record(11, c, 0xfff6, &[1, c]),
        record(12, a, 0xfff9, &[b]),
        record(13, a, 0x31a, &[b, 7]),
        record(14, a, 0x500, &[]),
        record(15, b, 0x501, &[]),
        record(16, c, 0x501, &[]),
    ];
    let (trace, events) = whole(USER.file(&records));
    let first = Some(Lwp(PROCESS));
    let second = events[1].lwp;
    assert!(second.is_some_and(|lwp| lwp.0 > 1 << 22), "an id that no kernel gives: {second:?}");
    assert!(trace.lwp_names().contains(&(second.unwrap(), "LWP number 1".to_owned())));
    let lwps: Vec<Option<Lwp>> = events.iter().map(|event| event.lwp).collect();
    assert_eq!(lwps, [first, second, first, first, first, first, second]);
    assert_eq!(events[2].effect, Effect::ThreadNew(Thread(b)));
    let switches =
        |event: &Event| matches!(event.effect, Effect::UserSwitch { next: Some(Thread(t)), .. } if t == b);
    assert!(switches(&events[3]));
    // Records between that of the switch and the switch itself do not show which thread is mounted.
    assert_eq!((events[4].thread, events[5].thread), (Reported::Nothing, Reported::Some(Thread(b))));
}

#[test]
fn starpu_records_the_kernels_id_of_an_lwp() {
    let (_, events) = whole(USER.file(&[record(10, 0, 0xfff6, &[3, 4711])]));
    assert_eq!((events[0].lwp, events[0].effect), (Some(Lwp(4711)), Effect::None));
}

// CPU 0: 777 calls the system, an interrupt comes and ends, the call ends; 777 → 778; 778 → idle.
#[test]
fn the_kernels_records_have_the_running_lwp_and_its_interrupts() {
    let records = [
        record(10, 777, 4, &[]),
        record(11, 777, 0x220 + 24, &[]),
        record(12, 777, 0x300, &[]),
        record(13, 777, 0x300, &[]),
        record(14, 777, 0x31a, &[778]),
        record(15, 778, 0xfff9, &[900]),
        record(16, 778, 0x31a, &[0]),
        record(17, 0, 0x220 + 24, &[]),
        record(18, 778, 0xfff7, &[u64::from(u32::from_le_bytes(*b"cat\0"))]),
    ];
    let (trace, events) = whole(KERNEL.file(&records));
    let effects: Vec<Effect> = events.iter().map(|event| event.effect).collect();
    let switch =
        |prev, next| Effect::KernelSwitch { prev: Some(Lwp(prev)), prev_state: None, next: Lwp(next) };
    let expected = [
        Effect::None,
        Effect::InterruptEnter(24),
        Effect::InterruptExit(24),
        Effect::None,
        switch(777, 778),
        Effect::LwpNew(Lwp(900)),
        switch(778, 0),
        Effect::InterruptEnter(24),
        Effect::None,
    ];
    assert_eq!(effects, expected);
    assert_eq!(printed(&events[1]), ["24(eth0)"]);
    assert_eq!(printed(&events[8]), ["cat"]);
    assert_eq!((events[7].context, events[5].context), (Context::Idle, Context::Task));
    assert!(trace.facts().contains(&("irq_24".to_owned(), "eth0".to_owned())));
}

#[test]
fn a_function_that_was_traced_has_its_name() {
    let (_, events) =
        whole(USER.file(&[record(1, 0, 0x320, &[0x40_1000]), record(2, 0, 0x320, &[0x40_2000])]));
    assert_eq!(printed(&events[0]), [format!("{}(main)", 0x40_1000)]);
    assert_eq!(printed(&events[1]), [0x40_2000.to_string()]);
}

// A thread reserved its space before another one, and read the clock after it.
#[test]
fn records_come_in_the_order_of_their_ticks() {
    let (_, events) =
        whole(USER.file(&[record(5, 0, 0x500, &[]), record(9, 0, 0x501, &[]), record(7, 0, 0x502, &[])]));
    let ticks: Vec<Ticks> = events.iter().map(|event| event.tick).collect();
    assert_eq!(ticks, [Ticks(5), Ticks(7), Ticks(9)]);
}

// | record | 3 slots that were never written | record | zeros to the end
#[test]
fn slots_that_were_never_written_are_a_loss_and_the_records_after_them_are_kept() {
    let zeros = [0u8; 72];
    let one = USER.file(&[record(5, 1, 0x500, &[])]);
    let record_bytes = &one[one.len() - 24..];
    let block = [record_bytes, &zeros, record_bytes, &zeros].concat();
    let trace = from_bytes("made.fxt", USER.file_of(0x201, &block)).unwrap();
    let (events, losses) = drain(trace.as_ref());
    assert_eq!((events.len(), losses.len()), (2, 1));
    assert!(losses[0].detail.ends_with("found 72 bytes that were never written"), "{}", losses[0].detail);
}

/// Opens and drains: events and losses, or `None` if the header is refused.
fn try_all(bytes: &[u8]) -> Option<(usize, Vec<Loss>)> {
    let trace = match from_bytes("damaged.fxt", bytes.to_vec()) {
        Ok(trace) => trace,
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::NotThisFormat | ErrorKind::Damaged), "{error}");
            return None;
        }
    };
    let (mut events, mut losses) = (0, trace.losses().to_vec());
    for mut stream in trace.streams() {
        let mut event = Event::default();
        while stream.events.next_into(&mut event).unwrap() {
            events += 1;
        }
        losses.extend(stream.events.take_losses());
    }
    Some((events, losses))
}

fn small(made: Made) -> Vec<u8> {
    made.file(&some_records(made)[..60])
}

#[test]
fn a_trace_of_fxt_cut_at_any_byte_keeps_what_is_readable() {
    for made in [USER, Made { wide: false, big_endian: true, ..USER }, KERNEL] {
        let bytes = small(made);
        let (all, losses) = try_all(&bytes).unwrap();
        assert_eq!((all, losses), (60, vec![]));
        let mut before = 0;
        for cut in 0..bytes.len() {
            let Some((events, losses)) = try_all(&bytes[..cut]) else { continue };
            assert!(!losses.is_empty(), "{made:?} cut at {cut}: no loss");
            assert!(events >= before, "{made:?} cut at {cut}: {events} events, {before} when cut before");
            before = events;
        }
        assert!(before >= 59, "{made:?}: {before} of 60 events");
        let (_, losses) = try_all(&bytes[..bytes.len() - 5]).unwrap();
        assert_eq!(losses[0].kind, LossKind::Truncated);
    }
}

#[test]
fn flipped_bits_of_a_trace_of_fxt_do_no_more_than_cost_records() {
    let mut state = 0x5167_4d75_6e64_0002u64;
    for made in [USER, Made { wide: false, big_endian: true, ..USER }, KERNEL] {
        let bytes = small(made);
        for _ in 0..4000 {
            let mut bytes = bytes.clone();
            for _ in 0..3 {
                let bit = fixture::random(&mut state) as usize % (bytes.len() * 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            let events = try_all(&bytes).map_or(0, |(events, _)| events);
            // Arguments that are mistaken for records are small.
            assert!(events < 200, "{events} events of 60");
        }
    }
}

#[test]
fn sizes_that_cannot_be_are_no_reason_to_allocate() {
    let words = |offset: usize, value: u64| {
        let mut bytes = small(USER);
        bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
        bytes
    };
    // The size of INFOS; of TIME; its number of CPUs.
    for (offset, value) in
        [(4, u64::MAX), (4, 1 << 40), (20, 1 << 40), (36, u64::MAX), (40, u64::from(u32::MAX))]
    {
        let outcome = try_all(&words(offset, value));
        assert!(outcome.is_none_or(|(events, losses)| events <= 60 && (events == 60 || !losses.is_empty())));
    }
    // Ten million codes are not distinguished.
    let codes: Vec<u8> = (0..100_000u64)
        .flat_map(|i| [i.to_le_bytes(), 0u64.to_le_bytes(), ((i << 8) | 1).to_le_bytes()].concat())
        .collect();
    let trace = from_bytes("codes.fxt", USER.file_of(0x201, &codes)).unwrap();
    assert!(trace.event_types().len() <= 4096);
    let (events, losses) = drain(trace.as_ref());
    assert!(events.len() >= 99_999);
    assert!(losses.iter().any(|loss| loss.count.is_some_and(|count| count > 90_000)), "{losses:?}");
}

#[test]
fn other_files_are_not_taken_for_fxt() {
    assert!(Fxt::is_fxt(&small(KERNEL)));
    for bytes in [&b""[..], b"type\tdate_tick\tpid", b"# tick_hz=5\n", b"\0\0\0\x02", &[0; 100], &[0xff; 100]]
    {
        assert!(!Fxt::is_fxt(bytes));
    }
}
