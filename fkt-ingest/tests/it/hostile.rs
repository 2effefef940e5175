//! Files that were cut anywhere, whose bits were flipped, or that promise more than there is: an error, or a part with
//! its losses; never a panic, and never more memory than such a file is worth.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use fkt_ingest::{TraceFile, from_bytes};
use sigmund_model::{Event, Loss, LossKind};

use crate::generator::{Buffer, Content, Random, Record, Shape, trace_dat};

/// Counts what a thread has allocated.
struct Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // A thread that ends has no counters any more.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        let _ = MOST.try_with(|most| most.set(most.get().max(live.get())));
    });
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller keeps `alloc`'s contract, which is the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as above; `at` came from the system's allocator.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MEMORY: isize = 100 << 20;

/// Opens and reads all; how many events, and how many losses that are not the kernel's own. `None` if the head is
/// refused.
fn read_all(bytes: &[u8]) -> Option<(usize, usize)> {
    MOST.set(LIVE.get());
    let before = LIVE.get();
    let read = from_bytes("hostile.dat", bytes.to_vec()).ok().map(|trace| drain(&*trace));
    assert!(MOST.get() - before < MEMORY, "{} bytes of memory", MOST.get() - before);
    read
}

fn drain(trace: &dyn TraceFile) -> (usize, usize) {
    let damage = |losses: &[Loss]| losses.iter().filter(|loss| loss.kind != LossKind::Dropped).count();
    let (mut events, mut losses) = (0, damage(trace.losses()));
    let mut event = Event::default();
    for mut stream in trace.streams() {
        while stream.events.next_into(&mut event).unwrap() {
            events += 1;
        }
        losses += damage(&stream.events.take_losses());
    }
    trace.facts();
    trace.snapshots();
    (events, losses)
}

const EVENT: &str = "name: e\nID: 9\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
    \tfield:__data_loc char[] s;\toffset:8;\tsize:4;\tsigned:0;\n\
    \tfield:u32 v;\toffset:12;\tsize:4;\tsigned:0;\n\
    print fmt: \"%s %s\", __get_str(s), __print_symbolic(REC->v, {1, \"one\"})\n";

/// Some 5 KiB: two CPUs, an instance, pages of 512 bytes.
fn tiny(version: u32, compression: &'static str, big_endian: bool) -> Vec<u8> {
    let shape =
        Shape { version, compression, big_endian, page_size: 512, long: if big_endian { 4 } else { 8 } };
    let record = |time: u64| {
        let mut bytes = [shape.u16(9), [0, 0]].concat();
        [7, 5 << 16 | 16, 1].iter().for_each(|word| bytes.extend(shape.u32(*word)));
        bytes.extend(b"text\0");
        Record { time, payload: bytes, lost_before: (time == 5000).then_some(3) }
    };
    let cpu = |events: u64| (1..=events).map(|at| record(at * 1000)).collect::<Vec<_>>();
    let buffer =
        |name: &str| Buffer { name: name.to_owned(), clock: "mono".to_owned(), cpus: vec![cpu(30), cpu(9)] };
    let shift = [shape.u64(5).to_vec(), shape.u32(1).to_vec(), shape.u32(0).to_vec()].concat();
    let content = Content {
        formats: vec![("x".to_owned(), EVENT.to_owned())],
        buffers: vec![buffer(""), buffer("aside")],
        kallsyms: "1000 T f\n".to_owned(),
        printk_formats: "0x1 : \"p\"\n".to_owned(),
        cmdlines: "7 seven\n".to_owned(),
        options: vec![(7, b"12\0".to_vec()), (12, shift), (11, shape.u64(77).to_vec()), (999, vec![1, 2, 3])],
    };
    trace_dat(shape, &content)
}

fn all_tiny() -> Vec<Vec<u8>> {
    let mut files = Vec::new();
    for big_endian in [false, true] {
        for (version, compression) in [(6, "none"), (7, "none"), (7, "zstd"), (7, "zlib")] {
            files.push(tiny(version, compression, big_endian));
        }
    }
    files
}

#[test]
fn a_file_cut_at_any_byte_says_what_is_missing() {
    for whole in all_tiny() {
        let (all, none) = read_all(&whole).unwrap();
        assert_eq!((all, none), (78, 0));
        for len in 0..whole.len() {
            let Some((events, losses)) = read_all(&whole[..len]) else { continue };
            assert!(events <= all);
            // A file may end with bytes that no event needs.
            assert!(losses > 0 || events == all, "cut at {len} of {}: {events} events", whole.len());
        }
    }
}

#[test]
fn flipped_bits_do_no_harm() {
    // Mostly those without compression: a decompressor costs more than all the rest.
    let (plain, compressed): (Vec<_>, Vec<_>) =
        all_tiny().into_iter().enumerate().partition(|(at, _)| at % 4 < 2);
    let mut random = Random(0x1234_5678_9abc);
    let mut refused = 0;
    for flips in 0..100_000 {
        let files = if flips % 16 == 0 { &compressed } else { &plain };
        let mut bytes = files[random.below(files.len() as u64) as usize].1.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << random.below(8);
        }
        refused += usize::from(read_all(&bytes).is_none());
    }
    assert!(refused < 30_000, "{refused} of 100000 refused");
}

/// All bits set of two, four or eight bytes, at every place: counts and sizes, among others.
#[test]
fn absurd_sizes_and_counts_cost_no_memory() {
    for whole in all_tiny() {
        for at in 0..whole.len() - 8 {
            let mut bytes = whole.clone();
            bytes[at..at + [2, 4, 8][at % 3]].fill(0xff);
            read_all(&bytes);
        }
    }
}

/// 100 bytes that say they hold a terabyte.
#[test]
fn a_terabyte_in_a_hundred_bytes_is_refused_or_lost() {
    let huge = (1u64 << 40).to_le_bytes();
    let head = |version: &[u8]| [b"\x17\x08\x44tracing", version, b"\0\0\x08", &[0, 16, 0, 0]].concat();
    let v6 = [head(b"6"), b"header_page\0".to_vec(), huge.to_vec()].concat();
    assert!(read_all(&padded(v6)).is_none());
    // An options section with a BUFFER of a terabyte: CPU 0, at byte 20.
    let mut v7 = [head(b"7"), b"none\0\0".to_vec()].concat();
    let options = v7.len() as u64 + 8;
    let buffer = [
        &[0; 8],
        b"\0\0".as_slice(),
        &4096u32.to_le_bytes(),
        &1u32.to_le_bytes(),
        &[0; 4],
        &20u64.to_le_bytes(),
        &huge,
    ]
    .concat();
    let option = |id: u16, data: &[u8]| {
        [&id.to_le_bytes(), (data.len() as u32).to_le_bytes().as_slice(), data].concat()
    };
    let content = [option(3, &buffer), option(0, &[0; 8])].concat();
    v7.extend(options.to_le_bytes());
    v7.extend([0; 8]);
    v7.extend((content.len() as u64).to_le_bytes());
    v7.extend(content);
    let (events, losses) = read_all(&padded(v7)).unwrap();
    assert!(events == 0 && losses > 0);
}

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().max(100), 0);
    bytes
}

/// A frame of some kilobytes that becomes 4 GiB.
#[test]
fn a_frame_that_grows_without_end_is_refused() {
    let zeros = vec![0; 1 << 20];
    let bomb = zstd::bulk::compress(&zeros, 1).unwrap();
    let whole = tiny(7, "zstd", false);
    // Wherever a frame is, this one instead, with a promise as large as can be.
    for at in 0..whole.len() - 4 {
        if whole[at..at + 4] == [0x28, 0xb5, 0x2f, 0xfd] {
            let mut bytes = whole[..at - 8].to_vec();
            bytes.extend((bomb.len() as u32).to_le_bytes());
            bytes.extend(u32::MAX.to_le_bytes());
            bytes.extend(&bomb);
            bytes.extend(&whole[at..]);
            read_all(&bytes);
        }
    }
}

/// A section of some kilobytes that becomes eight million bytes of options, each of them wrong.
#[test]
fn a_million_damaged_options_are_listed_up_to_a_limit() {
    let section = [&16u16.to_le_bytes()[..], &8u32.to_le_bytes(), &u64::MAX.to_le_bytes()].concat();
    let buffer = [&3u16.to_le_bytes()[..], &18u32.to_le_bytes(), &[0; 18]].concat();
    for option in [section, buffer] {
        let content = option.repeat((7 << 20) / option.len());
        let frame = zstd::bulk::compress(&content, 1).unwrap();
        let mut bytes = [b"\x17\x08\x44tracing7\0\0\x08".as_slice(), &[0, 16, 0, 0], b"zstd\x001\0"].concat();
        bytes.extend((bytes.len() as u64 + 8).to_le_bytes());
        bytes.extend([0, 0, 1, 0, 0, 0, 0, 0]);
        bytes.extend((frame.len() as u64 + 8).to_le_bytes());
        bytes.extend((frame.len() as u32).to_le_bytes());
        bytes.extend((content.len() as u32).to_le_bytes());
        bytes.extend(&frame);
        if let Some((events, losses)) = read_all(&bytes) {
            assert!(events == 0 && (1..100_000).contains(&losses), "{losses} losses");
        }
    }
}
