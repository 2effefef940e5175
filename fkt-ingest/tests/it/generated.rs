//! Files from known events, in every byte order, word size, version, page size and compression: what is read must be
//! what was written, and `trace-cmd report` must read the same.

use std::path::Path;
use std::process::Command;

use fkt_ingest::{TraceDat, TraceFile};
use sigmund_model::{ClockDomain, Event, EventStream, Lwp};

use crate::fixture;
use crate::generator::{Buffer, Content, Random, Record, Shape, trace_dat};
use crate::live::{skipped, tool_exists};
use crate::report;

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
        // Version 6 keeps one clock; version 7 one for each buffer.
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

/// One buffer's events as lines: name, task and sentence, CPU by CPU.
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
    // libtraceevent 1.7.1 takes every field of 8 or 16 bits for an unsigned one.
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
