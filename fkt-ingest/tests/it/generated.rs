//! Files from known events, in every byte order, word size, version, page size and compression: the reader must return
//! the events, and `trace-cmd report` must read the same.

use std::path::Path;
use std::process::Command;

use fkt_ingest::{TraceDat, TraceFile};
use sigmund_model::{ClockDomain, Event, EventStream, Lwp, Nanos};

use crate::fixture;
use crate::generator::{Buffer, Content, Random, Record, Shape, trace_dat};
use crate::report;
use crate::{live::tool_exists, skipped::skipped};

const SIZES: &str = "name: sizes\nID: 77\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
    \tfield:u8 a;\toffset:8;\tsize:1;\tsigned:0;\n\
    \tfield:s8 b;\toffset:9;\tsize:1;\tsigned:1;\n\
    \tfield:u16 c;\toffset:10;\tsize:2;\tsigned:0;\n\
    \tfield:int d;\toffset:12;\tsize:4;\tsigned:1;\n\
    \tfield:u64 e;\toffset:16;\tsize:8;\tsigned:0;\n\
    \tfield:unsigned long f;\toffset:24;\tsize:LONG;\tsigned:0;\n\
    \tfield:char g[8];\toffset:32;\tsize:8;\tsigned:0;\n\
    \tfield:__data_loc char[] h;\toffset:40;\tsize:4;\tsigned:0;\n\
    \tfield:u32 i[2];\toffset:44;\tsize:8;\tsigned:0;\n\
    \tfield:__data_loc u16[] j;\toffset:52;\tsize:4;\tsigned:0;\n\
    \tfield:__data_loc unsigned long[] k;\toffset:56;\tsize:4;\tsigned:0;\n\n\
    print fmt: \"a=%u b=%d c=%x d=%d e=%llu f=%lx g=%s h=%s i=%u,%u j=%s k=%s %s %s\", REC->a, REC->b, REC->c, REC->d, \
    REC->e, REC->f, REC->g, __get_str(h), REC->i[0], REC->i[1], \
    __print_array(__get_dynamic_array(j), __get_dynamic_array_len(j) / 2, 2), __get_bitmask(k), \
    __print_symbolic(REC->a, { 0, \"zero\" }, { 1, \"one\" }), __print_flags(REC->c, \"|\", { 1, \"low\" }, { 2, \"second\" })\n";

/// One event of `sizes`.
#[derive(Clone, Debug)]
struct Known {
    time: u64,
    pid: u32,
    a: u8,
    b: i8,
    c: u16,
    d: i32,
    e: u64,
    f: u32,
    g: String,
    h: String,
    i: [u32; 2],
    j: Vec<u16>,
    k: u64,
}

impl Known {
    fn random(random: &mut Random, time: u64) -> Known {
        let text = |random: &mut Random, max: u64| -> String {
            let len = random.below(max);
            (0..len).map(|_| char::from(b'a' + random.below(26) as u8)).collect()
        };
        Known {
            time,
            pid: random.below(30_000) as u32 + 1,
            a: random.below(3) as u8,
            b: random.next() as i8,
            c: random.below(9) as u16,
            d: random.next() as i32,
            e: random.next(),
            f: random.next() as u32,
            g: text(random, 8),
            // Sometimes longer than 112 bytes: records have two forms.
            h: text(random, 200),
            i: [random.next() as u32, 7],
            j: (0..random.next() % 4).collect::<Vec<_>>().into_iter().map(|_| random.next() as u16).collect(),
            k: random.next(),
        }
    }

    fn record(&self, shape: Shape) -> Record {
        let mut bytes = shape.u16(77).to_vec();
        bytes.extend([0, 0]);
        bytes.extend(shape.u32(self.pid));
        bytes.extend([self.a, self.b as u8]);
        bytes.extend(shape.u16(self.c));
        bytes.extend(shape.u32(self.d as u32));
        bytes.extend(shape.u64(self.e));
        bytes.extend(shape.number(i64::from(self.f), shape.long));
        bytes.resize(32, 0);
        bytes.extend(self.g.bytes());
        bytes.resize(40, 0);
        let (h, j) = (self.h.len() as u32 + 1, 2 * self.j.len() as u32);
        let k_at = (60 + h + j).next_multiple_of(8);
        bytes.extend(shape.u32(h << 16 | 60));
        self.i.iter().for_each(|i| bytes.extend(shape.u32(*i)));
        bytes.extend(shape.u32(j << 16 | (60 + h)));
        bytes.extend(shape.u32(8 << 16 | k_at));
        bytes.extend(self.h.bytes());
        bytes.push(0);
        self.j.iter().for_each(|j| bytes.extend(shape.u16(*j)));
        bytes.resize(k_at as usize, 0);
        // An array of longs, the lowest bits in the first.
        let longs: Vec<u64> =
            if shape.long == 8 { vec![self.k] } else { vec![self.k & 0xffff_ffff, self.k >> 32] };
        longs.iter().for_each(|long| bytes.extend(shape.number(*long as i64, shape.long)));
        Record::new(self.time, bytes)
    }

    fn params(&self) -> Vec<String> {
        let symbol = match self.a {
            0 => "(zero)",
            1 => "(one)",
            _ => "",
        };
        let flags = match self.c {
            1 => "(low)".to_owned(),
            2 => "(second)".to_owned(),
            3 => "(low|second)".to_owned(),
            c if c & 3 == 0 => String::new(),
            c => format!("({}|{:#x})", ["low", "second", "low|second"][(c & 3) as usize - 1], c & !3),
        };
        let j: Vec<String> = self.j.iter().map(u16::to_string).collect();
        let k = format!("{:08x},{:08x}", self.k >> 32, self.k & 0xffff_ffff);
        vec![
            format!("{}{symbol}", self.a),
            self.b.to_string(),
            format!("{}{flags}", self.c),
            self.d.to_string(),
            (self.e as i64).to_string(),
            self.f.to_string(),
            self.g.clone(),
            self.h.clone(),
            self.i[0].to_string(),
            self.i[1].to_string(),
            j.join(","),
            k,
        ]
    }
}

/// Streams of known events: two CPUs of the top buffer, two of an instance with a clock of its own.
fn known(random: &mut Random) -> Vec<Vec<Known>> {
    (0..4)
        .map(|stream| {
            let mut time = 1_000_000_000;
            let events = if stream == 3 { 0 } else { 40 + 30 * stream };
            (0..events)
                .map(|_| {
                    // Some gaps are too long for 27 bits.
                    let most = if random.below(10) == 0 { 1 << 30 } else { 1 << 12 };
                    time += random.below(most);
                    Known::random(random, time)
                })
                .collect()
        })
        .collect()
}

fn content(shape: Shape, streams: &[Vec<Known>]) -> Content {
    let cpus = |streams: &[Vec<Known>]| -> Vec<Vec<Record>> {
        streams.iter().map(|stream| stream.iter().map(|known| known.record(shape)).collect()).collect()
    };
    let buffer = |name: &str, clock: &str, streams| Buffer {
        name: name.to_owned(),
        clock: clock.to_owned(),
        cpus: cpus(streams),
    };
    Content {
        formats: vec![("made".to_owned(), SIZES.replace("LONG", &shape.long.to_string()))],
        buffers: vec![buffer("", "x86-tsc", &streams[..2]), buffer("aside", "mono", &streams[2..])],
        kallsyms: "c0001000 T first\nc0002000 T second\n".to_owned(),
        cmdlines: "7 seven\n8 eight of\n".to_owned(),
        ..Content::default()
    }
}

fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for big_endian in [false, true] {
        for long in [4, 8] {
            for page_size in [4096, 16384, 65536] {
                for (version, compression) in [(6, "none"), (7, "none"), (7, "zlib"), (7, "zstd")] {
                    shapes.push(Shape { version, big_endian, long, page_size, compression });
                }
            }
        }
    }
    shapes
}

#[test]
fn every_byte_order_word_size_page_size_and_compression_reads_as_it_was_written() {
    let streams = known(&mut Random(0x5eed_0001));
    for shape in shapes() {
        let bytes = trace_dat(shape, &content(shape, &streams));
        let dir = tempfile::tempdir().unwrap();
        let trace = TraceDat::open(&fixture::file(&dir, "made.dat", &bytes)).unwrap();
        let (found, losses) = fixture::drain_trace(&trace);
        assert_eq!(losses, [], "{shape:?}");
        assert_eq!(found.len(), 4, "{shape:?}");
        for (found, known) in found.iter().zip(&streams) {
            same_events(found, known, shape);
        }
        assert_eq!(trace.lwp_names(), [(Lwp(7), "seven".to_owned()), (Lwp(8), "eight of".to_owned())]);
        // Version 6 stores one clock; version 7 one for each buffer.
        let clocks: Vec<ClockDomain> = TraceFile::streams(&trace).iter().map(|s| s.clock).collect();
        let aside = if shape.version == 6 { ClockDomain::Tsc } else { ClockDomain::Monotonic };
        assert_eq!(clocks, [ClockDomain::Tsc, ClockDomain::Tsc, aside, aside], "{shape:?}");
    }
}

fn same_events(found: &[Event], known: &[Known], shape: Shape) {
    assert_eq!(found.len(), known.len(), "{shape:?}");
    for (event, known) in found.iter().zip(known) {
        assert_eq!((event.tick.0, event.lwp), (known.time, Some(Lwp(known.pid))), "{shape:?}");
        let params: Vec<String> = event.params.iter().map(|p| p.to_string()).collect();
        assert_eq!(params, known.params(), "{shape:?}");
    }
}

/// The lines of `trace-cmd report`, without plugins.
pub(crate) fn reported(path: &Path) -> (Vec<report::Line>, String) {
    let output = Command::new("trace-cmd").args(["report", "-N"]).arg(path).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let text = if text.is_empty() { String::from_utf8_lossy(&output.stderr).into_owned() } else { text };
    (report::parse(&text).0, text)
}

/// One buffer's events as lines: name, task and text, CPU by CPU.
pub(crate) fn printed(trace: &TraceDat, buffer: &str) -> Vec<Vec<(String, u32, String)>> {
    let mut cpus = Vec::new();
    for mut stream in trace.streams().into_iter().filter(|s| s.buffer() == buffer) {
        let (mut lines, mut event) = (Vec::new(), Event::default());
        while stream.next_into(&mut event).unwrap() {
            let mut sentence = String::new();
            stream.print_last(&mut sentence);
            let name = trace.event_types()[event.kind as usize].name.clone();
            lines.push((name, event.lwp.map_or(0, |lwp| lwp.0), sentence));
        }
        cpus.push(lines);
    }
    cpus
}

#[test]
fn trace_cmd_reads_the_generated_files_the_same_way() {
    if !tool_exists("trace-cmd") {
        return skipped("trace-cmd is not installed");
    }
    let mut streams = known(&mut Random(0x5eed_0002));
    // libtraceevent 1.7.1 treats every field of 8 or 16 bits as unsigned.
    streams.iter_mut().flatten().for_each(|known| known.b &= 0x7f);
    let dir = tempfile::tempdir().unwrap();
    // Debian's trace-cmd 3.1.6 is built without zlib.
    for shape in shapes().into_iter().filter(|shape| shape.compression != "zlib") {
        let mut streams = streams.clone();
        if shape.big_endian {
            // libtraceevent 1.7.1 swaps neither the elements of an array nor the longs of a mask of 32-bit ones.
            streams.iter_mut().flatten().for_each(|known| {
                known.j.clear();
                known.k = if shape.long == 8 { known.k } else { known.k & 0xffff_ffff | known.k << 32 };
            });
        }
        let mut content = content(shape, &streams);
        content.buffers.truncate(1);
        let path = fixture::file(&dir, "made.dat", &trace_dat(shape, &content));
        let trace = TraceDat::open(&path).unwrap();
        let (lines, text) = reported(&path);
        let ours = printed(&trace, "");
        assert_eq!(lines.len(), ours.iter().map(Vec::len).sum::<usize>(), "{shape:?}: {text}");
        for (cpu, ours) in ours.iter().enumerate() {
            let theirs: Vec<_> = lines.iter().filter(|line| line.cpu as usize == cpu).collect();
            for ((their, our), known) in theirs.iter().zip(ours).zip(&streams[cpu]) {
                assert_eq!(their.time, known.time.to_string(), "{shape:?}");
                assert_eq!(
                    (&their.name, their.pid, their.rest.as_str()),
                    (&our.0, our.1, our.2.trim()),
                    "{shape:?}"
                );
            }
        }
    }
}

/// Content of one CPU whose times are 1000, 2000, …
fn steps(options: Vec<(u16, Vec<u8>)>, clock: &str) -> Content {
    let mut random = Random(7);
    let records = (1..=5).map(|at| Known::random(&mut random, at * 1000).record(Shape::PLAIN)).collect();
    Content {
        formats: vec![("made".to_owned(), SIZES.replace("LONG", "8"))],
        buffers: vec![Buffer { name: String::new(), clock: clock.to_owned(), cpus: vec![records] }],
        options,
        ..Content::default()
    }
}

fn open(version: u32, content: &Content) -> (tempfile::TempDir, TraceDat) {
    let dir = tempfile::tempdir().unwrap();
    let bytes = trace_dat(Shape { version, ..Shape::PLAIN }, content);
    let trace = TraceDat::open(&fixture::file(&dir, "made.dat", &bytes)).unwrap();
    (dir, trace)
}

fn ticks(trace: &TraceDat) -> Vec<u64> {
    fixture::drain_trace(trace).0.concat().iter().map(|event| event.tick.0).collect()
}

// OFFSET is decimal nanoseconds, DATE hexadecimal microseconds.
#[test]
fn time_offsets_are_added_to_nanoseconds_and_a_date_makes_them_wall_time() {
    let options = vec![(7, b"-500\0".to_vec()), (1, b"0x2\0".to_vec())];
    for version in [6, 7] {
        let content = steps(options.clone(), "mono");
        let (dir, trace) = open(version, &content);
        assert_eq!(ticks(&trace), [2500, 3500, 4500, 5500, 6500]);
        assert_eq!(TraceFile::streams(&trace)[0].clock, ClockDomain::Realtime);
        assert!(trace.facts().contains(&("time_offset_ns".to_owned(), "1500".to_owned())));
        if tool_exists("trace-cmd") {
            let output = Command::new("trace-cmd")
                .args(["report", "-N", "-t"])
                .arg(dir.path().join("made.dat"))
                .output();
            let text = String::from_utf8_lossy(&output.unwrap().stdout).into_owned();
            let times: Vec<String> = report::parse(&text).0.into_iter().map(|line| line.time).collect();
            assert_eq!(times, ["0.000002500", "0.000003500", "0.000004500", "0.000005500", "0.000006500"]);
        } else {
            skipped("trace-cmd is not installed");
        }
        // Nanoseconds cannot be added to ticks of another clock.
        assert_eq!(
            ticks(&open(version, &steps(options.clone(), "x86-tsc")).1),
            [1000, 2000, 3000, 4000, 5000]
        );
    }
}

// The guest's clock is 100 ns slow at 1000, and 300 at 3000.
#[test]
fn a_guests_time_becomes_the_hosts_when_asked_for() {
    let shape = Shape::PLAIN;
    let mut shift = [shape.u64(0xabc).to_vec(), shape.u32(1).to_vec(), shape.u32(1).to_vec()].concat();
    shift.extend(shape.u32(2));
    [1000, 3000, 100, 300, 1, 1, 0, 0].iter().for_each(|number| shift.extend(shape.u64(*number)));
    let options = vec![(12, shift), (11, shape.u64(0xdef).to_vec())];
    for version in [6, 7] {
        let (_dir, mut trace) = open(version, &steps(options.clone(), "mono"));
        assert_eq!(trace.trace_ids(), (Some(0xdef), Some(0xabc)));
        assert_eq!(ticks(&trace), [1000, 2000, 3000, 4000, 5000]);
        assert!(trace.shift_to_host());
        assert_eq!(ticks(&trace), [1100, 2200, 3300, 4400, 5500]);
        let facts = trace.facts();
        assert!(facts.contains(&("trace_id".to_owned(), "0xdef".to_owned())), "{facts:?}");
        assert!(facts.contains(&("host_trace_id".to_owned(), "0xabc".to_owned())), "{facts:?}");
    }
}

// mult / 2^shift = 1/4: 4 GHz.
#[test]
fn a_stated_conversion_of_the_tsc_gives_its_rate_and_instants() {
    let shape = Shape::PLAIN;
    let conversion = [shape.u32(1 << 8).to_vec(), shape.u32(10).to_vec(), shape.u64(70).to_vec()].concat();
    let (_dir, trace) = open(7, &steps(vec![(14, conversion)], "x86-tsc"));
    assert_eq!(ticks(&trace), [1000, 2000, 3000, 4000, 5000]);
    assert_eq!(trace.tick_hz().map(|hz| hz.per_second()), Some(4e9));
    let snapshots = trace.snapshots();
    let instants: Vec<_> = snapshots.iter().map(|(clock, s)| (*clock, s.tick().0, s.ns)).collect();
    let expected = [
        (ClockDomain::Local, 1000, Nanos(250 + 70)),
        (ClockDomain::Local, 4_000_001_000, Nanos(1_000_000_250 + 70)),
    ];
    assert_eq!(instants, expected);
}

#[test]
fn unknown_options_are_skipped() {
    for version in [6, 7] {
        let content = steps(vec![(23, vec![1, 2]), (4711, vec![0; 300])], "mono");
        let (_dir, trace) = open(version, &content);
        assert_eq!((ticks(&trace).len(), trace.losses()), (5, [].as_slice()));
    }
}

// | header | declarations | options | pages | options with BUFFER |
//                                  ^ cut      ^ cut
#[test]
fn a_version_7_file_without_its_last_options_keeps_what_declares_the_events() {
    for compression in ["none", "zstd"] {
        let shape = Shape { compression, ..Shape::PLAIN };
        let mut content = steps(Vec::new(), "mono");
        content.cmdlines = "7 seven\n".to_owned();
        let whole = trace_dat(shape, &content);
        let first = 18 + compression.len() + if compression == "none" { 2 } else { 7 };
        let options = u64::from_le_bytes(whole[first..first + 8].try_into().unwrap()) as usize;
        for cut in [whole.len() - 10, options + 20, options] {
            let dir = tempfile::tempdir().unwrap();
            let trace = TraceDat::open(&fixture::file(&dir, "cut.dat", &whole[..cut])).unwrap();
            assert!(trace.event_types().iter().any(|ty| ty.name == "sizes"), "{compression} cut at {cut}");
            assert_eq!(trace.lwp_names(), [(Lwp(7), "seven".to_owned())]);
            let details: Vec<&str> = trace.losses().iter().map(|loss| loss.detail.as_str()).collect();
            assert!(details.iter().any(|detail| detail.contains("where the events are")), "{details:?}");
            assert!(TraceFile::streams(&trace).is_empty());
        }
    }
}

#[test]
fn a_loss_names_the_instance_it_happened_in() {
    let mut content = steps(Vec::new(), "mono");
    let mut aside = content.buffers[0].clone();
    aside.name = "aside".to_owned();
    aside.cpus[0][3].lost_before = Some(12);
    content.buffers.push(aside);
    for shape in shapes() {
        let mut content = content.clone();
        let known: Vec<Known> = (1..=5).map(|at| Known::random(&mut Random(at), at * 1000)).collect();
        for buffer in &mut content.buffers {
            for (record, known) in buffer.cpus[0].iter_mut().zip(&known) {
                record.payload = known.record(shape).payload;
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let trace = TraceDat::open(&fixture::file(&dir, "made.dat", &trace_dat(shape, &content))).unwrap();
        let losses = fixture::drain_trace(&trace).1;
        assert_eq!(losses.len(), 1, "{shape:?}: {losses:?}");
        assert_eq!(
            (losses[0].count, losses[0].from.unwrap().0, losses[0].to.unwrap().0),
            (Some(12), 3000, 4000)
        );
        assert!(losses[0].detail.ends_with("of cpu 0 of instance aside"), "{}", losses[0].detail);
    }
}

// trace_printk: the kernel keeps the format, the record the arguments.
#[test]
fn a_binary_printk_is_printed_with_its_format() {
    let bprint = "name: bprint\nID: 6\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:const char * fmt;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:u32 buf[];\toffset:24;\tsize:0;\tsigned:0;\n\n\
        print fmt: \"%ps: %s\", (void *)REC->ip, REC->fmt\n";
    let shape = Shape::PLAIN;
    let mut record = [shape.u16(6).to_vec(), vec![0, 0], shape.u32(7).to_vec()].concat();
    record.extend(shape.u64(0xffff_0010));
    record.extend(shape.u64(0xffff_8000));
    record.extend(shape.u32(-4i32 as u32));
    record.extend(b"abc\0");
    record.extend(shape.u64(1 << 40));
    let content = Content {
        formats: vec![("ftrace".to_owned(), bprint.to_owned())],
        buffers: vec![Buffer {
            name: String::new(),
            clock: "x86-tsc".to_owned(),
            cpus: vec![vec![Record::new(1000, record)]],
        }],
        kallsyms: "00000000ffff0000 T some_function\n00000000ffff1000 T other\n".to_owned(),
        printk_formats: "0xffff8000 : \"n=%d s=%s x=%llx\\n\"\n".to_owned(),
        ..Content::default()
    };
    let (dir, trace) = open(7, &content);
    let ours = printed(&trace, "")[0][0].2.clone();
    assert_eq!(ours, "some_function: n=-4 s=abc x=10000000000");
    if !tool_exists("trace-cmd") {
        return skipped("trace-cmd is not installed");
    }
    assert_eq!(reported(&dir.path().join("made.dat")).0[0].rest, ours);
}
