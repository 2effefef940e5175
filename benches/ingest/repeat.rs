//! Makes a long trace.dat from a short one, to measure whether the cost of an event depends on their number: repeats
//! the pages of each CPU, each time later by the length of the recording.
//!
//! For files of our own recorder: version 7, uncompressed, all CPU tables before the pages. The format is described at
//! the top of `fkt-ingest/src/trace_dat/mod.rs`.

use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::Path,
};

const OPTION_DONE: u16 = 0;
const OPTION_BUFFER: u16 = 3;
const SECTION_HEAD: usize = 16;
const PAGE_HEAD: usize = 16;
const LENGTH: u64 = (1 << 20) - 1;
/// Ticks between the last page of one repetition and the first of the next.
const PAUSE: u64 = 1 << 32;

/// The position of a CPU's pages, and the position in the file of their offset.
struct Region {
    said_at: usize,
    offset: usize,
    size: usize,
}

/// Writes the trace `times` times to `out`.
pub(crate) fn repeat(trace: &Path, times: u64, out: &Path) -> io::Result<()> {
    let mut bytes = fs::read(trace)?;
    let (page, mut regions) =
        regions(&bytes).ok_or_else(|| io::Error::other("not a trace of our own recorder"))?;
    regions.retain(|region| region.size > 0);
    let first = regions.iter().map(|r| r.offset).min().ok_or_else(|| io::Error::other("no pages"))?;
    let times_of =
        |at: &dyn Fn(&Region) -> usize| regions.iter().map(|r| u64_at(&bytes, at(r)).unwrap_or(0)).collect();
    let begins: Vec<u64> = times_of(&|r| r.offset);
    let ends: Vec<u64> = times_of(&|r| r.offset + r.size - page);
    let length = ends.iter().max().unwrap_or(&0) - begins.iter().min().unwrap_or(&0) + PAUSE;

    let mut at = first as u64;
    for region in &regions {
        let size = region.size as u64 * times;
        bytes[region.said_at..region.said_at + 8].copy_from_slice(&at.to_le_bytes());
        bytes[region.said_at + 8..region.said_at + 16].copy_from_slice(&size.to_le_bytes());
        at += size;
    }
    let mut file = BufWriter::new(File::create(out)?);
    file.write_all(&bytes[..first])?;
    for region in &regions {
        for time in 0..times {
            for page in bytes[region.offset..region.offset + region.size].chunks(page) {
                file.write_all(&later(page, time * length))?;
            }
        }
    }
    file.flush()
}

/// The size of a page, and the regions of all buffers.
fn regions(bytes: &[u8]) -> Option<(usize, Vec<Region>)> {
    // magic (10), "7\0", endian, long size, page size, "none\0\0", offset of the options
    let page = u32_at(bytes, 14)? as usize;
    let options = u64_at(bytes, 24)? as usize;
    let mut regions = Vec::new();
    let mut at = options + SECTION_HEAD;
    loop {
        let (id, size) =
            (u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?), u32_at(bytes, at + 2)? as usize);
        match id {
            OPTION_DONE => return Some((page, regions)),
            OPTION_BUFFER => {
                // offset, name\0, clock\0, page size, CPUs, CPUs × (number, offset, size)
                let texts = bytes.get(at + 14..at + 6 + size)?;
                let name = texts.iter().position(|b| *b == 0)?;
                let clock = texts.get(name + 1..)?.iter().position(|b| *b == 0)?;
                let cpus_at = at + 14 + name + 1 + clock + 1 + 4;
                for cpu in 0..u32_at(bytes, cpus_at)? as usize {
                    let said_at = cpus_at + 4 + cpu * 20 + 4;
                    let (offset, size) =
                        (u64_at(bytes, said_at)? as usize, u64_at(bytes, said_at + 8)? as usize);
                    regions.push(Region { said_at, offset, size });
                }
            }
            _ => {}
        }
        at += 6 + size;
    }
}

/// Returns the page with its time increased by `ticks`. Its records have times relative to the previous one, except for
/// a few absolute ones.
fn later(page: &[u8], ticks: u64) -> Vec<u8> {
    let mut page = page.to_vec();
    let time = u64_at(&page, 0).unwrap_or(0) + ticks;
    page[..8].copy_from_slice(&time.to_le_bytes());
    let end = PAGE_HEAD + (u64_at(&page, 8).unwrap_or(0) & LENGTH) as usize;
    let mut at = PAGE_HEAD;
    while let (Some(word), true) = (u32_at(&page, at), at < end) {
        let first = u32_at(&page, at + 4).unwrap_or(0);
        at += match word & 31 {
            length @ 1..=28 => 4 + 4 * length as usize,
            29 if word >> 5 == 0 => return page,
            30 => 8,
            31 => {
                let stamp = (u64::from(word >> 5) + (u64::from(first) << 27) + ticks) & ((1 << 59) - 1);
                page[at..at + 4].copy_from_slice(&((stamp << 5) as u32 | 31).to_le_bytes());
                page[at + 4..at + 8].copy_from_slice(&((stamp >> 27) as u32).to_le_bytes());
                8
            }
            _ => 4 + first.next_multiple_of(4) as usize,
        };
    }
    page
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}
