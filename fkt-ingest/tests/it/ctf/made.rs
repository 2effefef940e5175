//! Traces of known truth, in both byte orders: the events read are those written, and those that babeltrace2 prints.

use std::process::Command;

use fkt_ingest::{CtfTrace, TraceFile};
use sigmund_model::{Context, Cpu, Effect, Event, Level, Loss, LossKind, Lwp, Severity, TaskState, Ticks};

use super::writer::{self, Bits, Head, Order};
use super::{babeltrace, drain, lay_out};
use crate::{live::tool_exists, skipped::skipped};

/// Like LTTng's kernel tracer; `odd` has features that it rarely uses.
const KERNEL: &str = r#"
stream {
    id = 0; event.header := struct event_header_compact; packet.context := struct packet_context;
    event.context := struct { int32_t _tid; };
};
typealias integer { size = 8; align = 8; signed = true; encoding = UTF8; } := char;
event { name = "sched_switch"; id = 0; stream_id = 0; fields := struct {
    char _prev_comm[16]; int32_t _prev_tid; int32_t _prev_prio; int64_t _prev_state;
    char _next_comm[16]; int32_t _next_tid; int32_t _next_prio; }; };
event { name = "sched_wakeup"; id = 1; stream_id = 0; fields := struct {
    char _comm[16]; int32_t _tid; int32_t _prio; int32_t _target_cpu; }; };
event { name = "sched_migrate_task"; id = 2; stream_id = 0; fields := struct {
    char _comm[16]; int32_t _tid; int32_t _prio; int32_t _orig_cpu; int32_t _dest_cpu; }; };
event { name = "irq_handler_entry"; id = 3; stream_id = 0; fields := struct { int32_t _irq; string _name; }; };
event { name = "irq_handler_exit"; id = 4; stream_id = 0; fields := struct { int32_t _irq; int32_t _ret; }; };
event { name = "odd"; id = 700; stream_id = 0; fields := struct {
    integer { size = 3; align = 1; } three;
    integer { size = 7; align = 1; signed = true; } seven;
    integer { size = 61; align = 1; } most;
    integer { size = 16; align = 8; byte_order = be; base = 16; } network;
    enum : uint8_t { number, "words" = 3 ... 5, PAIR = 9, "of no option" = 10 } _kind;
    variant <_kind> {
        integer { size = 11; align = 1; signed = true; } number;
        string words;
        struct { uint8_t x; int64_t y; } PAIR;
    } chosen;
    struct { uint8_t len; struct { uint8_t a; string b; } pairs[len]; } inner;
    integer { size = 4; align = 1; } nibbles[inner.len];
    uint8_t grid[2][3];
    floating_point { exp_dig = 8; mant_dig = 24; align = 32; } f32;
    floating_point { exp_dig = 11; mant_dig = 53; align = 8; } f64;
}; };
"#;

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// An event as it was written; fields as `name=value`, without absent ones.
#[derive(Debug, PartialEq)]
struct Truth {
    time: u64,
    cpu: u32,
    name: &'static str,
    fields: Vec<String>,
    effect: Effect,
}

/// Writes one random event of any kind.
fn event(bits: &mut Bits, time: u64, last: u64, cpu: u32, seed: &mut u64) -> Truth {
    let mut number = |below: u64| (random(seed) % below) as i64;
    let id = [0, 1, 2, 3, 4, 700][number(6) as usize];
    let own_tid = number(1000);
    writer::compact_header(bits, id, time, last);
    bits.put(32, 8, own_tid);
    let mut fields = vec![format!("tid={own_tid}")];
    let (name, effect) = match id {
        0 => {
            let (prev, next, state) = (number(1000), number(1000), [0, 1, 2, 0x100][number(4) as usize]);
            bits.chars("from", 16);
            bits.put(32, 8, prev);
            bits.put(32, 8, -5);
            bits.put(64, 8, state);
            bits.chars("sixteen letters!", 16);
            bits.put(32, 8, next);
            bits.put(32, 8, 120);
            fields.extend([
                "prev_comm=from".to_owned(),
                format!("prev_tid={prev}"),
                "prev_prio=-5".to_owned(),
            ]);
            fields.extend([format!("prev_state={state}"), "next_comm=sixteen letters!".to_owned()]);
            fields.extend([format!("next_tid={next}"), "next_prio=120".to_owned()]);
            let prev_state = match state {
                1 => TaskState::from_letters("S"),
                2 => TaskState::from_letters("D"),
                _ => TaskState::from_number(state),
            };
            let (prev, next) = (Some(Lwp(prev as u32)), Lwp(next as u32));
            ("sched_switch", Effect::KernelSwitch { prev, prev_state: Some(prev_state.into()), next })
        }
        1 | 2 => {
            let (tid, to) = (number(1000), number(64));
            bits.chars("woken", 16);
            bits.put(32, 8, tid);
            bits.put(32, 8, 0);
            fields[0] = format!("context.tid={own_tid}");
            fields.extend(["comm=woken".to_owned(), format!("tid={tid}"), "prio=0".to_owned()]);
            let (lwp, to_cpu) = (Lwp(tid as u32), Cpu(to as u32));
            if id == 1 {
                bits.put(32, 8, to);
                fields.push(format!("target_cpu={to}"));
                ("sched_wakeup", Effect::LwpWakeup { lwp, cpu: Some(to_cpu) })
            } else {
                bits.put(32, 8, 1);
                bits.put(32, 8, to);
                fields.extend(["orig_cpu=1".to_owned(), format!("dest_cpu={to}")]);
                ("sched_migrate_task", Effect::LwpMigrate { lwp, cpu: to_cpu })
            }
        }
        3 => {
            let irq = number(300);
            bits.put(32, 8, irq);
            bits.text("eth0");
            fields.extend([format!("irq={irq}"), "name=eth0".to_owned()]);
            ("irq_handler_entry", Effect::InterruptEnter(irq))
        }
        4 => {
            let irq = number(300);
            bits.put(32, 8, irq);
            bits.put(32, 8, 1);
            fields.extend([format!("irq={irq}"), "ret=1".to_owned()]);
            ("irq_handler_exit", Effect::InterruptExit(irq))
        }
        _ => {
            odd(bits, &mut number, &mut fields);
            ("odd", Effect::None)
        }
    };
    Truth { time, cpu, name, fields, effect }
}

fn odd(bits: &mut Bits, number: &mut impl FnMut(u64) -> i64, fields: &mut Vec<String>) {
    let (three, seven, most, network) = (number(8), number(128) - 64, number(1 << 61), number(1 << 16));
    // A structure begins at the alignment of its strictest field.
    bits.align(32);
    bits.put(3, 1, three);
    bits.put(7, 1, seven);
    bits.put(61, 1, most);
    bits.align(8);
    bits.raw(&(network as u16).to_be_bytes());
    fields.extend([format!("three={three}"), format!("seven={seven}"), format!("most={most}")]);
    fields.push(format!("network={network}"));
    let kind = [0, 4, 9][number(3) as usize];
    bits.put(8, 8, kind);
    match kind {
        0 => {
            let value = number(2048) - 1024;
            bits.put(11, 1, value);
            fields.extend(["kind=0(number)".to_owned(), format!("chosen.number={value}")]);
        }
        4 => {
            bits.text("käse");
            fields.extend(["kind=4(words)".to_owned(), "chosen.words=käse".to_owned()]);
        }
        _ => {
            let y = number(1 << 40) - (1 << 39);
            bits.put(8, 8, 7);
            bits.put(64, 8, y);
            fields.extend(["kind=9(PAIR)".to_owned(), "chosen.PAIR.x=7".to_owned()]);
            fields.push(format!("chosen.PAIR.y={y}"));
        }
    }
    let len = number(4);
    bits.put(8, 8, len);
    for pair in 0..len {
        bits.put(8, 8, pair);
        bits.text("b");
    }
    let list = |part: &dyn Fn(i64) -> String| (0..len).map(part).collect::<Vec<_>>().join(", ");
    fields.push(format!("inner.len={len}"));
    fields.push(format!("inner.pairs=[{}]", list(&|pair| format!("{{{pair}, b}}"))));
    for nibble in 0..len {
        bits.put(4, 1, 15 - nibble);
    }
    fields.push(format!("nibbles=[{}]", list(&|nibble| (15 - nibble).to_string())));
    for cell in 0..6 {
        bits.put(8, 8, cell);
    }
    fields.push("grid=[[0, 1, 2], [3, 4, 5]]".to_owned());
    let (single, double) = (number(1000) as f32 / 8.0, -(number(1000) as f64) / 16.0);
    bits.put(32, 32, i64::from(single.to_bits()));
    bits.put(64, 8, double.to_bits() as i64);
    fields.push(format!("f32={}", f64::from(single).to_bits() as i64));
    fields.push(format!("f64={}", double.to_bits() as i64));
}

struct Made {
    metadata: String,
    streams: Vec<(String, Vec<u8>)>,
    truth: Vec<Truth>,
}

/// Two CPUs, 12 packets each. Times differ by anything from 0 to more than 2^27, which needs a full timestamp.
fn made(order: Order) -> Made {
    let metadata = writer::head(order, "kernel") + KERNEL;
    let (mut streams, mut truth) = (Vec::new(), Vec::new());
    let mut seed = 0x5167_4d75_6e64_0007;
    for cpu in 0..2u32 {
        let mut bytes = Vec::new();
        // Two streams never have the same time, so that their order is defined.
        let mut time = 0x7fff_0000 + u64::from(cpu);
        for sequence in 0..12 {
            let mut head = Head { begin: time, cpu: i64::from(cpu), sequence, ..Head::default() };
            let mut last = time;
            let mut write = |bits: &mut Bits| {
                for _ in 0..20 {
                    let bound = [2, 1000, 1 << 26, 1 << 29][random(&mut seed) as usize % 4];
                    time += random(&mut seed) % bound * 2;
                    truth.push(event(bits, time, last, cpu, &mut seed));
                    last = time;
                }
            };
            // The end is only known after the events.
            let whole = writer::packet(order, head, &mut write);
            head.end = last;
            bytes.extend(patched(whole, order, head.end));
        }
        streams.push((format!("kernel_{cpu}"), bytes));
    }
    truth.sort_by_key(|event| event.time);
    Made { metadata, streams, truth }
}

/// The bytes alone: metadata and streams.
pub(super) fn kernel(order: Order) -> (String, Vec<(String, Vec<u8>)>) {
    let Made { metadata, streams, .. } = made(order);
    (metadata, streams)
}

/// The packet with its end.
fn patched(packet: Vec<u8>, order: Order, end: u64) -> Vec<u8> {
    let mut bits = Bits { order, pos: packet.len() * 8, bytes: packet };
    bits.patch(32, end);
    bits.bytes
}

fn seen(trace: &dyn TraceFile, event: &Event) -> Truth {
    let ty = &trace.event_types()[event.kind as usize];
    let there = event.params.iter().zip(&ty.fields).filter(|(p, _)| p.number.is_some() || p.text.is_some());
    let name = [
        "sched_switch",
        "sched_wakeup",
        "sched_migrate_task",
        "irq_handler_entry",
        "irq_handler_exit",
        "odd",
    ]
    .into_iter()
    .find(|name| *name == ty.name)
    .unwrap();
    Truth {
        time: event.tick.0,
        cpu: event.cpu.unwrap().0,
        name,
        fields: there.map(|(param, field)| format!("{}={param}", field.name)).collect(),
        effect: event.effect,
    }
}

fn reads_as_written(order: Order) {
    let Made { metadata, streams, truth } = made(order);
    let trace = CtfTrace::from_bytes("made", metadata.as_bytes(), streams.clone()).unwrap();
    assert_eq!(trace.streams().len(), 2);
    let (events, losses) = drain(&trace);
    assert_eq!(losses.first(), None);
    assert_eq!(events.len(), truth.len());
    for (event, truth) in events.iter().zip(&truth) {
        assert_eq!(&seen(&trace, event), truth);
        assert_eq!(trace.event_types()[event.kind as usize].level, Level::Kern);
        match event.effect {
            Effect::KernelSwitch { prev, .. } => assert_eq!(event.lwp, prev),
            Effect::InterruptEnter(_) | Effect::InterruptExit(_) => assert_eq!(event.context, Context::Irq),
            _ => assert!(event.lwp.is_some()),
        }
    }
    assert!(truth.iter().filter(|event| event.name == "odd").count() > 30);
    prints_the_same(&metadata, &streams, &trace, &events);
}

/// Compares with babeltrace2's output for the same bytes.
fn prints_the_same(metadata: &str, streams: &[(String, Vec<u8>)], trace: &CtfTrace, events: &[Event]) {
    if !tool_exists("babeltrace2") {
        return skipped("babeltrace2 is not installed");
    }
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path(), metadata.as_bytes(), streams);
    let output = Command::new("babeltrace2").arg("--clock-cycles").arg(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = babeltrace::parse(&String::from_utf8(output.stdout).unwrap());
    super::compare(trace, events, &lines, |tick| tick);
}

#[test]
fn a_little_endian_kernel_trace_reads_as_it_was_written() {
    reads_as_written(Order::Little);
}

#[test]
fn a_big_endian_kernel_trace_reads_as_it_was_written() {
    reads_as_written(Order::Big);
}

const SMALL: &str = r#"
stream {
    id = 3; packet.context := struct packet_context;
    event.header := struct { integer { size = 8; align = 8; } id; uint32_clock_t timestamp; };
};
event { name = "tick"; id = 2; stream_id = 3; fields := struct { uint32_t n; }; };
"#;

/// A packet with events `tick(n)` at these times.
fn ticks(order: Order, head: Head, times: &[u64]) -> Vec<u8> {
    writer::packet(order, Head { stream: 3, ..head }, |bits| {
        for (n, time) in times.iter().enumerate() {
            bits.put(8, 8, 2);
            bits.put(32, 8, *time as i64);
            bits.put(32, 8, n as i64);
        }
    })
}

fn read(order: Order, stream: Vec<u8>) -> (Vec<u64>, Vec<Loss>) {
    let metadata = writer::head(order, "ust") + SMALL;
    let trace = CtfTrace::from_bytes("small", metadata.as_bytes(), vec![("s".to_owned(), stream)]).unwrap();
    let (events, losses) = drain(&trace);
    (events.iter().map(|event| event.tick.0).collect(), losses)
}

// packet      0           1           3           4           number 2 is missing
// time        100..200    300..400    500..600    700..800
// discarded   7           7           10          10 of all
#[test]
fn discarded_events_and_missing_packets_are_rows_with_their_span() {
    for order in [Order::Little, Order::Big] {
        let head = |begin, sequence, discarded| Head {
            begin,
            end: begin + 100,
            sequence,
            discarded,
            cpu: 5,
            ..Head::default()
        };
        let packets = [head(100, 0, 7), head(300, 1, 7), head(500, 3, 10), head(700, 4, 10)];
        let (times, losses) = read(order, stream_of(order, &packets));
        assert_eq!(times, [101, 150, 301, 350, 501, 550, 701, 750]);
        let rows: Vec<_> = losses.iter().map(|l| (l.kind, l.count, l.from, l.to)).collect();
        let at = |time| Some(Ticks(time));
        let expected = [
            (LossKind::Dropped, Some(7), None, at(200)),
            (LossKind::Dropped, None, at(400), at(500)),
            (LossKind::Dropped, Some(3), at(400), at(600)),
        ];
        assert_eq!(rows, expected, "{losses:#?}");
        assert!(losses.iter().all(|l| l.cpu == Some(Cpu(5)) && l.severity == Severity::Gap));
        assert!(losses[1].detail.contains("1 packets are missing"), "{}", losses[1].detail);
        counts_the_same(order, stream_of(order, &packets));
    }
}

fn stream_of(order: Order, heads: &[Head]) -> Vec<u8> {
    heads.iter().flat_map(|head| ticks(order, *head, &[head.begin + 1, head.begin + 50])).collect()
}

/// babeltrace2 prints on standard error how many events were discarded. It prints no number for the first packet,
/// because it does not know whether the stream begins there; packet number 0 shows that.
fn counts_the_same(order: Order, stream: Vec<u8>) {
    if !tool_exists("babeltrace2") {
        return skipped("babeltrace2 is not installed");
    }
    let dir = tempfile::tempdir().unwrap();
    let metadata = writer::head(order, "ust") + SMALL;
    lay_out(dir.path(), metadata.as_bytes(), &[("s".to_owned(), stream)]);
    let output = Command::new("babeltrace2").arg(dir.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    for part in ["may have discarded events", "discarded 1 packet", "discarded 3 events"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

// packet      0       1       2
// discarded   5       3       4 of all
#[test]
fn a_count_of_discarded_events_that_goes_back_is_a_contradiction() {
    let head = |sequence, discarded| Head {
        begin: sequence * 100,
        end: sequence * 100 + 50,
        sequence,
        discarded,
        ..Head::default()
    };
    let (_, losses) = read(Order::Little, stream_of(Order::Little, &[head(0, 5), head(1, 3), head(2, 4)]));
    let rows: Vec<_> = losses.iter().map(|loss| (loss.kind, loss.count)).collect();
    let (dropped, contradiction) = (LossKind::Dropped, LossKind::Contradiction);
    assert_eq!(rows, [(dropped, Some(5)), (contradiction, None), (dropped, Some(1))], "{losses:#?}");
}

// 32 bits of time: begin 0xffff_fff0 of the first 2^32, then two periods.
#[test]
fn times_of_32_bits_go_on_past_their_end() {
    let base = 0x5_ffff_fff0u64;
    let times = [base + 1, base + 0x20, base + 0xffff_0000, base + 0x1_0000_0100];
    let head = Head { begin: base, end: base + 0x1_0000_0200, ..Head::default() };
    let (seen, losses) = read(Order::Little, ticks(Order::Little, head, &times));
    assert_eq!((seen.as_slice(), losses), (&times[..], vec![]));
}

// | packet 0 | damaged: its size | packet 2 |          the magic number of packet 2 is found again
#[test]
fn a_packet_with_a_damaged_head_costs_itself() {
    let order = Order::Big;
    let head = |begin, sequence| Head { begin, end: begin + 99, sequence, ..Head::default() };
    let mut packets: Vec<Vec<u8>> =
        [(100, 0), (200, 1), (300, 2)].map(|(b, s)| ticks(order, head(b, s), &[b + 1, b + 2])).to_vec();
    packets[1][48] = 0x80;
    packets[1][40] = 0x81;
    let (times, losses) = read(order, packets.concat());
    assert_eq!(times, [101, 102, 301, 302]);
    let kinds: Vec<_> = losses.iter().map(|l| (l.kind, l.from, l.to)).collect();
    let damaged = (LossKind::Damaged, Some(Ticks(102)), Some(Ticks(300)));
    assert_eq!(kinds, [damaged, (LossKind::Dropped, Some(Ticks(199)), Some(Ticks(300)))], "{losses:#?}");
}

#[test]
fn a_packet_cut_short_gives_its_whole_events_and_a_row() {
    let head = Head { begin: 100, end: 200, ..Head::default() };
    let whole = ticks(Order::Little, head, &[101, 102, 103]);
    let first = whole.len() - 16 - 3 * 9;
    let (times, losses) = read(Order::Little, whole[..first + 9 + 8].to_vec());
    assert_eq!(times, [101]);
    assert_eq!(losses.len(), 1);
    assert_eq!((losses[0].kind, losses[0].from), (LossKind::Truncated, Some(Ticks(101))), "{losses:#?}");
    // Only padding is missing, so nothing is lost.
    let (times, losses) = read(Order::Little, whole[..whole.len() - 16].to_vec());
    assert_eq!((times.len(), losses), (3, vec![]));
}

#[test]
fn files_of_one_stream_instance_follow_each_other() {
    let metadata = writer::head(Order::Little, "ust")
        .replace("uint32_t stream_id; };", "uint32_t stream_id; uint64_t stream_instance_id; };")
        + SMALL;
    let file = |begin: u64, discarded: u64| {
        let head = Head { begin, end: begin + 50, sequence: begin / 100, discarded, ..Head::default() };
        let mut packet = ticks(Order::Little, head, &[begin + 1]);
        // The instance is between the stream's id and the packet's context; sizes grow accordingly.
        packet.splice(24..24, 9u64.to_le_bytes());
        for at in [48, 56] {
            let size = u64::from_le_bytes(packet[at..at + 8].try_into().unwrap()) + 64;
            packet[at..at + 8].copy_from_slice(&size.to_le_bytes());
        }
        packet
    };
    let files = vec![("ch_0_0".to_owned(), file(100, 4)), ("ch_0_1".to_owned(), file(0, 4))];
    let trace = CtfTrace::from_bytes("rotated", metadata.as_bytes(), files).unwrap();
    let streams = TraceFile::streams(&trace);
    assert_eq!((streams.len(), streams[0].buffer.as_str()), (1, "ch"));
    let (events, losses) = drain(&trace);
    assert_eq!(events.iter().map(|event| event.tick.0).collect::<Vec<_>>(), [1, 101]);
    // Four in total, not four in each file.
    assert_eq!(losses.iter().map(|loss| loss.count).collect::<Vec<_>>(), [Some(4)]);
}
