//! Files that were truncated anywhere, that have flipped bits, or that state larger sizes than they have: an error, or
//! a part with its losses; never a panic, and never more memory than such a file justifies.

use fkt_ingest::{Listing, TraceStream, from_bytes};
use sigmund_model::{Event, Loss, LossKind, Ticks};

use crate::generator::Random;
use crate::memory;
use crate::tiny::{self, Tiny};

/// Opens and reads all; returns the number of events, and of losses that are not the recorder's own. `None` if the
/// header is refused.
fn read_all(bytes: &[u8]) -> Option<(usize, usize)> {
    // As in a merge: a file that is not a trace may be a listing.
    let read = memory::bounded(|| read_trace(bytes).or_else(|| read_listing(bytes)));
    read.map(|(events, losses)| (events, losses.iter().filter(|loss| loss.kind != LossKind::Dropped).count()))
}

fn read_trace(bytes: &[u8]) -> Option<(usize, Vec<Loss>)> {
    let trace = from_bytes("hostile", bytes.to_vec()).ok()?;
    let mut losses = trace.losses().to_vec();
    let events = drain(trace.streams(), trace.event_types().len(), &mut losses);
    let _ = (trace.facts(), trace.snapshots(), trace.clock_pairs(), trace.lwp_names());
    Some((events, losses))
}

fn read_listing(bytes: &[u8]) -> Option<(usize, Vec<Loss>)> {
    if !Listing::is_listing(bytes) {
        return None;
    }
    let mut listing = Listing::from_bytes("hostile".as_ref(), bytes).ok()?;
    Some((drain(listing.streams, listing.types.len(), &mut listing.losses), listing.losses))
}

/// All streams are open at once, as in a merge. Time decreases only if there is a loss.
fn drain(mut streams: Vec<TraceStream>, types: usize, losses: &mut Vec<Loss>) -> usize {
    let mut events = 0;
    let mut event = Event::default();
    for stream in &mut streams {
        let (mut last, mut went_back) = (Ticks(0), false);
        while stream.events.next_into(&mut event).unwrap() {
            assert!((event.kind as usize) < types);
            went_back |= event.tick < last;
            last = event.tick;
            events += 1;
        }
        let found = stream.events.take_losses();
        assert!(!went_back || !found.is_empty());
        losses.extend(found);
    }
    for loss in &*losses {
        assert!(loss.from.zip(loss.to).is_none_or(|(from, to)| from <= to), "{loss:?}");
    }
    events
}

#[test]
fn each_tiny_file_is_whole() {
    for Tiny { name, bytes, events } in tiny::all() {
        assert_eq!(read_all(&bytes), Some((events, 0)), "{name}");
    }
}

#[test]
fn a_file_truncated_at_any_byte_has_a_loss() {
    for file in tiny::all() {
        let Tiny { name, bytes, events: all } = &file;
        for len in 0..bytes.len() {
            let Some((events, losses)) = read_all(&bytes[..len]) else { continue };
            assert!(events <= *all, "{name} cut at {len}: {events} events");
            // A file may end with bytes that no event needs.
            let is_told = losses > 0 || events == *all || may_end(&file);
            assert!(is_told, "{name} cut at {len} of {}: {events} events", bytes.len());
        }
    }
}

/// Whether a file truncated here cannot be distinguished from a shorter one: text may end with any line, or any word
/// that can be the last of one; a pipe of perf, and a file of FxT that was killed, with any record.
fn may_end(file: &Tiny) -> bool {
    file.is_text() || file.name.starts_with("perf_data-pipe") || file.name.starts_with("fxt")
}

#[test]
fn flipped_bits_do_no_harm() {
    flip(&["trace_dat"]);
}

#[test]
fn flipped_bits_of_other_formats_do_no_harm() {
    flip(&["perf_data", "fxt", "ftrace_text", "listing"]);
}

/// 10^5 files with one to three flipped bits each, divided equally among the formats.
fn flip(formats: &[&str]) {
    let tiny = tiny::all();
    // Usually those without compression: a decompressor costs more than the rest.
    let of_format = |format: &&str| {
        let files = tiny.iter().filter(|file| file.name.starts_with(format));
        files.partition(|file| file.is_compressed())
    };
    let formats: Vec<(Vec<&Tiny>, Vec<&Tiny>)> = formats.iter().map(of_format).collect();
    let mut random = Random(0x1234_5678_9abc);
    let mut refused = 0;
    for flips in 0..100_000 {
        let (compressed, plain) = &formats[flips % formats.len()];
        let files = if flips % 16 == 0 && !compressed.is_empty() { compressed } else { plain };
        let mut bytes = files[random.below(files.len() as u64) as usize].bytes.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << random.below(8);
        }
        refused += usize::from(read_all(&bytes).is_none());
    }
    assert!(refused < 30_000, "{refused} of 100000 refused");
}

/// Two, four or eight bytes with all bits set, at every position: counts and sizes, among others.
#[test]
fn absurd_sizes_and_counts_cost_no_memory() {
    for whole in tiny::all() {
        for at in 0..whole.bytes.len() - 8 {
            let mut bytes = whole.bytes.clone();
            bytes[at..at + [2, 4, 8][at % 3]].fill(0xff);
            read_all(&bytes);
        }
    }
}

/// Time of the page or record with lost events, from before the last event.
#[test]
fn no_gap_ends_before_it_began_though_time_goes_back() {
    let tiny = tiny::all();
    let bytes = |name: &str| tiny.iter().find(|file| file.name == name).unwrap().bytes.clone();
    for (name, time) in [("trace_dat-v6", 5000_u64), ("perf_data-file", 1450), ("perf_data-pipe", 1450)] {
        let mut bytes = bytes(name);
        let place = bytes.windows(8).position(|bytes| bytes == time.to_le_bytes()).unwrap();
        bytes[place..place + 8].copy_from_slice(&10_u64.to_le_bytes());
        let (_, losses) = read_trace(&bytes).unwrap();
        assert!(losses.iter().any(|loss| loss.kind == LossKind::Dropped), "{name}: {losses:?}");
    }
}

/// A megabyte of invalid lines, each shorter than its loss row would be.
#[test]
fn a_listing_of_damaged_lines_has_rows_for_the_first_and_counts_the_rest() {
    let text = format!("type\tdate_tick\tname\n{}", "a\n".repeat(1 << 19));
    let (events, losses) = read_listing(text.as_bytes()).unwrap();
    assert_eq!((events, losses.len()), (0, 10_001));
    assert_eq!(losses.iter().filter_map(|loss| loss.count).sum::<u64>(), 1 << 19);
    assert!(losses[0].detail.contains("line 2: expected") && losses[10_000].detail.contains("514288 more"));
    assert_eq!(read_all(text.as_bytes()), Some((0, 10_001)));
    // The part of a line in a message does not grow with the line.
    let text = format!("type\tdate_tick\tname\n{}\n", "x".repeat(1 << 20));
    let (_, losses) = read_listing(text.as_bytes()).unwrap();
    assert!(losses[0].detail.len() < 300);
}

/// 100 bytes that claim to hold a terabyte.
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
    let whole = tiny::all().into_iter().find(|file| file.name == "trace_dat-v7-zstd").unwrap().bytes;
    // This frame replaces every frame, with the largest possible stated size.
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
