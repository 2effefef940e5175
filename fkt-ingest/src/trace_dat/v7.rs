//! Version 7: sections, found through options.
//!
//! ```text
//!   | common head | compression\0 | its version\0 | u64 offset of the first options section | sections …
//!
//!   section   | u16 id | u16 flags | u32 name | u64 size in the file | content
//!               flags bit 0: the content is | u32 compressed size | u32 size | zstd frame |
//!   options   (id 0) {u16 id, u32 n, n bytes}…; the last is DONE (0): u64 offset of the next options, or 0
//!   16..=21   an option with u64 offset of the section of the same id: header info, ftrace events, events,
//!             kallsyms, printk formats, saved cmdlines
//!   BUFFER    u64 offset of its section, name\0, clock\0, u32 page size, u32 n, n × {u32 cpu, u64 offset, u64 size}
//! ```
//!
//! All offsets count from the start of the file. trace-cmd writes the BUFFER options behind the pages, so a
//! file that was cut off has lost them; ours has them before.

use std::borrow::Cow;

use sigmund_model::{Cpu, LossKind, Severity};

use super::head::Head;
use super::metadata::{Buffer, Metadata, Region, option};
use super::zstd_frame::ZstdFrames;
use crate::cut::Cut;
use crate::error::{Error, ErrorKind, Misfit};
use crate::input::Input;

/// Ids of sections, and of the options that refer to them.
pub(crate) mod section {
    pub(crate) const OPTIONS: u16 = 0;
    pub(crate) const FLYRECORD: u16 = 3;
    pub(crate) const STRINGS: u16 = 15;
    pub(crate) const HEADER_INFO: u16 = 16;
    pub(crate) const FTRACE_EVENTS: u16 = 17;
    pub(crate) const EVENT_FORMATS: u16 = 18;
    pub(crate) const KALLSYMS: u16 = 19;
    pub(crate) const PRINTK: u16 = 20;
    pub(crate) const CMDLINES: u16 = 21;
    pub(super) const BUFFER_TEXT: u16 = 22;
}

const COMPRESSED: u16 = 1;

/// No real file has so many; a damaged one may have a loop.
const MAX_OPTION_SECTIONS: usize = 1000;

pub(super) fn read(input: &Input, head: &Head, mut cut: Cut<'_>) -> Result<Metadata, Error> {
    let fail = |kind| move |misfit| Error::at(kind, input.path(), misfit);
    let before = cut.clone();
    let compression = cut.text("compression").map_err(fail(ErrorKind::Damaged))?;
    cut.text("version of the compression").map_err(fail(ErrorKind::Damaged))?;
    if !matches!(compression.as_str(), "none" | "zstd") {
        let misfit = before.misfit("compression", "none or zstd".to_owned(), format!("{compression:?}"));
        return Err(fail(ErrorKind::Unsupported)(misfit));
    }
    let mut next = cut.u64("offset of the options").map_err(fail(ErrorKind::Damaged))?;

    let mut metadata = Metadata::new(input.name(), head.page_size);
    let mut seen = Vec::new();
    while next != 0 && seen.len() < MAX_OPTION_SECTIONS && !seen.contains(&next) {
        match metadata.options(input, next) {
            Ok(following) => {
                seen.push(next);
                next = following;
            }
            Err(misfit) if seen.is_empty() => return Err(fail(ErrorKind::Damaged)(misfit)),
            Err(misfit) => {
                let kind = if next >= input.len() { LossKind::Truncated } else { LossKind::Damaged };
                metadata.lose(kind, Severity::Serious, &misfit);
                break;
            }
        }
    }
    if metadata.buffers.is_empty() {
        let misfit = cut.misfit("BUFFER option", "where the events are".to_owned(), "none".to_owned());
        metadata.lose(LossKind::Truncated, Severity::Serious, &misfit);
    }
    Ok(metadata)
}

impl Metadata {
    /// Reads one options section and what it refers to; returns the offset of the next one.
    fn options(&mut self, input: &Input, at: u64) -> Result<u64, Misfit> {
        let (_, bytes) = section(input, at, section::OPTIONS, "options")?;
        let mut cut = Cut::new(&bytes, at);
        loop {
            let id = cut.u16("option")?;
            let size = cut.u32("size of an option")?;
            let mut option = cut.part(u64::from(size), "option")?;
            if id == option::DONE {
                return option.u64("offset of the next options");
            }
            if let Err(misfit) = self.v7_option(input, id, option) {
                self.lose(LossKind::Damaged, Severity::Serious, &misfit);
            }
        }
    }

    fn v7_option(&mut self, input: &Input, id: u16, mut option: Cut<'_>) -> Result<(), Misfit> {
        match id {
            option::BUFFER => {
                let buffer = buffer(input, option)?;
                self.buffers.push(buffer);
            }
            section::HEADER_INFO | section::FTRACE_EVENTS | section::EVENT_FORMATS | section::CMDLINES => {
                let at = option.u64("offset of a section")?;
                let (_, bytes) = section(input, at, id, "section")?;
                let cut = &mut Cut::new(&bytes, at);
                return match id {
                    section::HEADER_INFO => self.header_info(cut),
                    section::FTRACE_EVENTS => self.ftrace_events(cut),
                    section::EVENT_FORMATS => self.events(cut),
                    _ => self.cmdlines(cut),
                };
            }
            section::BUFFER_TEXT => {
                let found = "a buffer of text (latency tracer)".to_owned();
                let misfit = option.misfit("BUFFER_TEXT", "a buffer of records".to_owned(), found);
                self.lose(LossKind::NotRecorded, Severity::Note, &misfit);
            }
            _ => self.option(id, option)?,
        }
        Ok(())
    }
}

fn buffer(input: &Input, mut option: Cut<'_>) -> Result<Buffer, Misfit> {
    let at = option.u64("BUFFER")?;
    let name = option.text("name of a buffer")?;
    let clock = option.text("clock of a buffer")?;
    let page_size = u64::from(option.u32("page size of a buffer")?);
    let mut regions = Vec::new();
    for _ in 0..option.u32("number of CPUs of a buffer")? {
        let cpu = Cpu(option.u32("CPU table")?);
        let (offset, size) = (option.u64("CPU table")?, option.u64("CPU table")?);
        regions.push(Region { cpu, offset, size });
    }
    let head = SectionHead::cut(&mut Cut::of_file(input.bytes(), at), section::FLYRECORD, "buffer")?;
    let clock = (!clock.is_empty()).then_some(clock);
    Ok(Buffer { name, clock, page_size, compressed: head.compressed, regions })
}

struct SectionHead {
    compressed: bool,
    size: u64,
}

impl SectionHead {
    fn cut(cut: &mut Cut<'_>, id: u16, part: &'static str) -> Result<SectionHead, Misfit> {
        let before = cut.clone();
        let found = cut.u16(part)?;
        if found != id {
            return Err(before.misfit(part, format!("section {id}"), format!("section {found}")));
        }
        let flags = cut.u16(part)?;
        cut.u32(part)?;
        Ok(SectionHead { compressed: flags & COMPRESSED != 0, size: cut.u64(part)? })
    }
}

/// The content of a section that is no buffer, decompressed if need be.
fn section<'a>(
    input: &'a Input,
    at: u64,
    id: u16,
    part: &'static str,
) -> Result<(SectionHead, Cow<'a, [u8]>), Misfit> {
    let mut cut = Cut::of_file(input.bytes(), at);
    let head = SectionHead::cut(&mut cut, id, part)?;
    if !head.compressed {
        let bytes = cut.bytes(head.size, part)?;
        return Ok((head, Cow::Borrowed(bytes)));
    }
    let (compressed, size) = (cut.u32(part)?, cut.u32(part)?);
    let before = cut.clone();
    let frame = cut.bytes(u64::from(compressed), part)?;
    let mut bytes = Vec::new();
    ZstdFrames::default()
        .decompress(frame, size, &mut bytes)
        .map_err(|found| before.misfit(part, format!("a zstd frame of {size} bytes"), found))?;
    Ok((head, Cow::Owned(bytes)))
}
