//! Writes a trace.dat of version 7, with compressed or uncompressed pages. The format is drawn in [`crate::TraceDat`].
//!
//! ```text
//!   | common header | header info | ftrace events | events | kallsyms (empty) | printk formats | cmdlines |
//!   | options, all of them | strings | buffer "" : pages of cpu 0, cpu 1, … | buffer "program": … |
//! ```
//!
//! The options are before the pages, although trace-cmd writes them after the pages: so a truncated file keeps the
//! table of its pages' positions. Each section and each CPU's first page begin on a page boundary.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::atomic::AtomicBool;

use sigmund_model::Cpu;

use super::compressed_pages::{self, CHUNKS_HEAD};
use super::recorded::{CpuSummary, Summary};
use super::system::System;
use super::unfinished::{Buffer, Description};
use crate::trace_dat::{MAGIC, option, section};

const SECTION_HEAD: u64 = 16;
/// Flag of a section whose content is compressed.
const COMPRESSED: u16 = 1;

/// The position of a CPU's pages.
struct Region {
    offset: u64,
    /// In the file.
    size: u64,
    page_bytes: u64,
}

/// The position of a buffer's section.
struct BufferPlace {
    section: u64,
    regions: Vec<Region>,
    end: u64,
}

/// How the pages are written.
#[derive(Clone, Copy)]
pub(super) enum Compression<'s> {
    None,
    /// Compressed. When this is set, writing ends with an error.
    Zstd(&'s AtomicBool),
}

/// Writes the file; `pages` are the files of each buffer, one for each of its CPUs.
pub(super) fn write(
    description: &Description,
    pages: &mut [Vec<File>],
    out: &mut File,
    compression: Compression<'_>,
) -> io::Result<Summary> {
    let Description { system, buffers, .. } = description;
    let mut strings = Strings::default();
    let names: Vec<u32> =
        buffers.iter().map(|b| strings.add(&format!("buffer flyrecord {}", b.name))).collect();
    let mut head = head(system, buffers, &mut strings, compression);

    // The table of the pages' positions precedes the pages. Its size does not depend on them, so it is written last.
    let start = head.with_options(system, buffers, &[], &strings).len() as u64;
    let (mut places, mut summary) = (Vec::new(), Summary::default());
    let mut at = start;
    for ((buffer, files), name) in buffers.iter().zip(pages).zip(names) {
        let placed = match compression {
            Compression::None => place(buffer, files, at)?,
            Compression::Zstd(stop) => compress(buffer, files, at, out, stop)?,
        };
        at = placed.end;
        out.seek(SeekFrom::Start(placed.section))?;
        let size = placed.end - placed.section - SECTION_HEAD;
        let is_plain = matches!(compression, Compression::None);
        let flags = if is_plain { 0 } else { COMPRESSED };
        out.write_all(&section_header(section::FLYRECORD, flags, name, size))?;
        for ((cpu, file), region) in buffer.cpus.iter().zip(files).zip(&placed.regions) {
            if is_plain {
                copy(file, region, out)?;
            }
            let (buffer, cpu, lost) = (buffer.name.clone(), Cpu(cpu.cpu), cpu.lost);
            summary.cpus.push(CpuSummary { buffer, cpu, bytes: region.page_bytes, lost });
        }
        places.push(placed);
    }
    out.rewind()?;
    out.write_all(&head.with_options(system, buffers, &places, &strings))?;
    out.set_len(at)?;
    Ok(Summary { bytes: at, ..summary })
}

/// Copies the pages of a CPU to their place.
fn copy(file: &mut File, region: &Region, out: &mut File) -> io::Result<()> {
    out.seek(SeekFrom::Start(region.offset))?;
    file.rewind()?;
    // Whole pages: the last one of a recorder that was killed may be incomplete. Copied within the kernel: std
    // uses copy_file_range(2) for two files.
    let copied = io::copy(&mut file.take(region.size), out)?;
    if copied != region.size {
        return Err(io::Error::other(format!("{} bytes of pages became {copied}", region.size)));
    }
    Ok(())
}

/// Writes the pages of a buffer, compressed, one CPU after the other.
fn compress(
    buffer: &Buffer,
    files: &mut [File],
    section: u64,
    out: &mut File,
    stop: &AtomicBool,
) -> io::Result<BufferPlace> {
    let mut at = section + SECTION_HEAD;
    let mut regions = Vec::new();
    for file in files {
        let page_bytes = whole_pages(file, buffer.page_size)?;
        out.seek(SeekFrom::Start(at))?;
        let written = compressed_pages::write(file, page_bytes, buffer.page_size, out, stop)?;
        // Like trace-cmd: the size does not include the count of chunks before them.
        regions.push(Region { offset: at, size: written.saturating_sub(CHUNKS_HEAD), page_bytes });
        at += written;
    }
    Ok(BufferPlace { section, regions, end: at })
}

fn whole_pages(file: &File, page_size: usize) -> io::Result<u64> {
    let page = page_size as u64;
    Ok(file.metadata()?.len() / page * page)
}

fn place(buffer: &Buffer, files: &[File], section: u64) -> io::Result<BufferPlace> {
    let page = buffer.page_size as u64;
    let mut at = section + SECTION_HEAD;
    let mut regions = Vec::new();
    for file in files {
        let offset = at.next_multiple_of(page);
        let size = whole_pages(file, buffer.page_size)?;
        regions.push(Region { offset, size, page_bytes: size });
        at = offset + size;
    }
    Ok(BufferPlace { section, regions, end: at })
}

/// Everything before the options.
struct HeaderSections {
    bytes: Vec<u8>,
    /// The position for the offset of the options.
    options_at: usize,
    /// Options that refer to the sections written so far.
    references: Vec<(u16, u64)>,
    options_name: u32,
    strings_name: u32,
}

fn head(
    system: &System,
    buffers: &[Buffer],
    strings: &mut Strings,
    compression: Compression<'_>,
) -> HeaderSections {
    let page_size = buffers.first().map_or(4096, |b| b.page_size) as u32;
    let mut bytes = MAGIC.to_vec();
    bytes.extend(b"7\0\0\x08");
    bytes.extend(page_size.to_le_bytes());
    match compression {
        Compression::None => bytes.extend(b"none\0\0"),
        Compression::Zstd(_) => {
            text(&mut bytes, "zstd");
            text(&mut bytes, compressed_pages::zstd_version());
        }
    }
    let options_at = bytes.len();
    bytes.extend(0u64.to_le_bytes());
    let (options_name, strings_name) = (strings.add("options"), strings.add("strings"));
    let mut head = HeaderSections { bytes, options_at, references: Vec::new(), options_name, strings_name };

    let mut content = b"header_page\0".to_vec();
    sized(&mut content, &system.header_page);
    content.extend(b"header_event\0");
    sized(&mut content, &system.header_event);
    head.section(section::HEADER_INFO, strings.add("headers"), &content);

    let mut content = (system.ftrace_events.len() as u32).to_le_bytes().to_vec();
    system.ftrace_events.iter().for_each(|format| sized(&mut content, format));
    head.section(section::FTRACE_EVENTS, strings.add("ftrace events"), &content);

    let mut content = (system.events.len() as u32).to_le_bytes().to_vec();
    for (name, formats) in &system.events {
        text(&mut content, name);
        content.extend((formats.len() as u32).to_le_bytes());
        formats.iter().for_each(|format| sized(&mut content, format));
    }
    head.section(section::EVENT_FORMATS, strings.add("events format"), &content);

    head.section(section::KALLSYMS, strings.add("kallsyms"), &0u32.to_le_bytes());

    let mut content = (system.printk_formats.len() as u32).to_le_bytes().to_vec();
    content.extend(system.printk_formats.bytes());
    head.section(section::PRINTK, strings.add("printk"), &content);

    let mut content = Vec::new();
    sized(&mut content, &system.cmdlines());
    head.section(section::CMDLINES, strings.add("command lines"), &content);
    head
}

impl HeaderSections {
    fn section(&mut self, id: u16, name: u32, content: &[u8]) {
        self.references.push((id, self.bytes.len() as u64));
        self.bytes.extend(section_header(id, 0, name, content.len() as u64));
        self.bytes.extend(content);
    }

    /// The header and the options, up to the page boundary where the first buffer begins. `places` may be empty: then
    /// all positions are 0.
    fn with_options(
        &mut self,
        system: &System,
        buffers: &[Buffer],
        places: &[BufferPlace],
        strings: &Strings,
    ) -> Vec<u8> {
        let mut content = Vec::new();
        for (id, offset) in &self.references {
            push_option(&mut content, *id, &offset.to_le_bytes());
        }
        let clock = buffers.first().map_or("", |b| b.clock.as_str());
        push_text_option(&mut content, option::TRACECLOCK, clock);
        push_text_option(&mut content, option::UNAME, &system.uname);
        push_text_option(&mut content, option::VERSION, concat!("sigmund ", env!("CARGO_PKG_VERSION")));
        for cpu in buffers.iter().flat_map(|b| &b.cpus) {
            push_text_option(&mut content, option::CPUSTAT, &format!("CPU: {}\n{}", cpu.cpu, cpu.stats));
        }
        let cpus = buffers.first().map_or(0, |b| b.cpus.len()) as u32;
        push_option(&mut content, option::CPUCOUNT, &cpus.to_le_bytes());
        for (index, buffer) in buffers.iter().enumerate() {
            push_option(&mut content, option::BUFFER, &buffer_option(buffer, places.get(index)));
        }
        push_option(&mut content, option::DONE, &0u64.to_le_bytes());

        let mut bytes = self.bytes.clone();
        let options = bytes.len() as u64;
        bytes[self.options_at..self.options_at + 8].copy_from_slice(&options.to_le_bytes());
        bytes.extend(section_header(section::OPTIONS, 0, self.options_name, content.len() as u64));
        bytes.extend(&content);
        // The strings section extends to the page boundary, so that there is no gap between sections.
        let page = buffers.first().map_or(4096, |b| b.page_size);
        let end = (bytes.len() + SECTION_HEAD as usize + strings.0.len()).next_multiple_of(page);
        let size = end - bytes.len() - SECTION_HEAD as usize;
        bytes.extend(section_header(section::STRINGS, 0, self.strings_name, size as u64));
        bytes.extend(&strings.0);
        bytes.resize(end, 0);
        bytes
    }
}

fn buffer_option(buffer: &Buffer, placed: Option<&BufferPlace>) -> Vec<u8> {
    let mut bytes = placed.map_or(0, |p| p.section).to_le_bytes().to_vec();
    text(&mut bytes, &buffer.name);
    text(&mut bytes, selected_clock(&buffer.clock));
    bytes.extend((buffer.page_size as u32).to_le_bytes());
    bytes.extend((buffer.cpus.len() as u32).to_le_bytes());
    for (index, cpu) in buffer.cpus.iter().enumerate() {
        let region = placed.and_then(|p| p.regions.get(index));
        bytes.extend(cpu.cpu.to_le_bytes());
        bytes.extend(region.map_or(0, |r| r.offset).to_le_bytes());
        bytes.extend(region.map_or(0, |r| r.size).to_le_bytes());
    }
    bytes
}

/// The strings section: names of sections, by offset.
#[derive(Default)]
struct Strings(Vec<u8>);

impl Strings {
    fn add(&mut self, name: &str) -> u32 {
        let at = self.0.len() as u32;
        text(&mut self.0, name);
        at
    }
}

fn section_header(id: u16, flags: u16, name: u32, size: u64) -> Vec<u8> {
    let mut head = id.to_le_bytes().to_vec();
    head.extend(flags.to_le_bytes());
    head.extend(name.to_le_bytes());
    head.extend(size.to_le_bytes());
    head
}

fn push_option(content: &mut Vec<u8>, id: u16, data: &[u8]) {
    content.extend(id.to_le_bytes());
    content.extend((data.len() as u32).to_le_bytes());
    content.extend(data);
}

fn push_text_option(content: &mut Vec<u8>, id: u16, value: &str) {
    let mut data = Vec::new();
    text(&mut data, value);
    push_option(content, id, &data);
}

fn sized(content: &mut Vec<u8>, value: &str) {
    content.extend((value.len() as u64).to_le_bytes());
    content.extend(value.bytes());
}

fn text(content: &mut Vec<u8>, value: &str) {
    content.extend(value.bytes());
    content.push(0);
}

/// `local global [x86-tsc]` → `x86-tsc`.
fn selected_clock(clocks: &str) -> &str {
    clocks.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or("", |(clock, _)| clock)
}
