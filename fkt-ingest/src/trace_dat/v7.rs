//! Version 7: sections, found through options.
//!
//! ```text
//!   | common header | compression\0 | its version\0 | u64 offset of the first options section | sections …
//!
//!   section   | u16 id | u16 flags | u32 name | u64 size in the file | content
//!               flags bit 0: the content is | u32 compressed size | u32 size | zstd frame |
//!   options   (id 0) {u16 id, u32 n, n bytes}…; the last is DONE (0): u64 offset of the next options, or 0
//!   16..=21   an option with u64 offset of the section of the same id: header info, ftrace events, events,
//!             kallsyms, printk formats, saved cmdlines
//!   BUFFER    u64 offset of its section, name\0, clock\0, u32 page size, u32 n, n × {u32 cpu, u64 offset, u64 size}
//! ```
//!
//! All offsets are from the start of the file. trace-cmd writes the BUFFER options after the pages, so a truncated file
//! does not have them; our recorder writes them before. If the options end early, the sections are read one after the
//! other, in the order in which both writers put them. This finds the declarations of events, and options that nothing
//! refers to any more, but not pages without their BUFFER option, because nothing else identifies them.

use std::borrow::Cow;
use std::collections::BTreeSet;

use sigmund_model::{Cpu, LossKind, Severity};

use super::file_header::FileHeader;
use super::frames::{Compression, Frames};
use super::metadata::{Buffer, MAX_REGIONS, Metadata, Region, option};
use crate::cut::{ByteOrder, Cut};
use crate::error::{Error, ErrorKind, ParseError};
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
    /// Largest id of a section, including those of later writers (BTF, boot, modules).
    pub(super) const MOST: u16 = 64;
}

const COMPRESSED: u16 = 1;

/// No real file has that many; a damaged one may have a loop, or a section at every byte.
const MAX_SECTIONS: usize = 1000;

/// Largest decompressed size of all sections except pages. No real file exceeds it.
const MOST_BYTES: u64 = 128 << 20;

/// Largest size of one options section; real ones have some kilobytes.
const MOST_OPTIONS: usize = 8 << 20;

pub(super) fn read(input: &Input, head: &FileHeader, mut cut: Cut<'_>) -> Result<Metadata, Error> {
    let fail = |kind| move |parse_error| Error::at(kind, input.path(), parse_error);
    let before = cut.clone();
    let name = cut.text("compression").map_err(fail(ErrorKind::Damaged))?;
    cut.text("version of the compression").map_err(fail(ErrorKind::Damaged))?;
    let Some(compression) = Compression::from_name(&name) else {
        let expected = "none, zlib or zstd".to_owned();
        let parse_error = before.parse_error("compression", expected, format!("{name:?}"));
        return Err(fail(ErrorKind::Unsupported)(parse_error));
    };
    let first = cut.u64("offset of the options").map_err(fail(ErrorKind::Damaged))?;

    let metadata = Metadata { compression, ..Metadata::new(input.name(), head) };
    let (order, read) = (head.order, BTreeSet::new());
    let mut sections =
        Sections { input, order, compression, metadata, read, bytes: 0, regions: 0, readable: 0 };
    if let Err((at, parse_error)) = sections.follow_options(first) {
        sections.walk(cut.at());
        if sections.readable == 0 {
            return Err(fail(ErrorKind::Damaged)(parse_error));
        }
        let kind = if at >= input.len() { LossKind::Truncated } else { LossKind::Damaged };
        sections.metadata.note_loss(kind, Severity::Serious, &parse_error);
    }
    let mut metadata = sections.metadata;
    if metadata.buffers.is_empty() {
        let parse_error =
            cut.parse_error("BUFFER option", "where the events are".to_owned(), "none".to_owned());
        metadata.note_loss(LossKind::Truncated, Severity::Serious, &parse_error);
    }
    Ok(metadata)
}

/// Finds sections, and keeps their content.
struct Sections<'a> {
    input: &'a Input,
    order: ByteOrder,
    compression: Compression,
    metadata: Metadata,
    /// Offsets of the sections that were read, so that each is read once.
    read: BTreeSet<u64>,
    /// Bytes of content so far.
    bytes: u64,
    /// CPUs of the buffers so far.
    regions: usize,
    /// The number of readable sections.
    readable: usize,
}

impl<'a> Sections<'a> {
    /// Reads the options from `at` on; an error includes the offset of the missing section.
    fn follow_options(&mut self, mut at: u64) -> Result<(), (u64, ParseError)> {
        while at != 0 && self.read.len() < MAX_SECTIONS && !self.read.contains(&at) {
            at = self.options(at).map_err(|parse_error| (at, parse_error))?;
        }
        Ok(())
    }

    /// Reads one options section and what it refers to; returns the offset of the next one.
    fn options(&mut self, at: u64) -> Result<u64, ParseError> {
        let bytes = self.content(at, section::OPTIONS, "options")?;
        let mut cut = Cut::new(&bytes, at).with_order(self.order);
        loop {
            let id = cut.u16("option")?;
            let size = cut.u32("size of an option")?;
            let mut option = cut.part(u64::from(size), "option")?;
            if id == option::DONE {
                return option.u64("offset of the next options");
            }
            if let Err(parse_error) = self.option(id, option) {
                self.metadata.note_loss(LossKind::Damaged, Severity::Serious, &parse_error);
            }
        }
    }

    fn option(&mut self, id: u16, mut option: Cut<'_>) -> Result<(), ParseError> {
        match id {
            option::BUFFER => self.buffer(option),
            section::HEADER_INFO..=section::CMDLINES => {
                let at = option.u64("offset of a section")?;
                if self.read.contains(&at) { Ok(()) } else { self.named_section(at, id) }
            }
            section::BUFFER_TEXT => {
                let found = "a buffer of text (latency tracer)".to_owned();
                let parse_error = option.parse_error("BUFFER_TEXT", "a buffer of records".to_owned(), found);
                self.metadata.note_loss(LossKind::NotRecorded, Severity::Note, &parse_error);
                Ok(())
            }
            _ => self.metadata.option(id, option),
        }
    }

    /// One of the sections that options refer to by an id of their own.
    fn named_section(&mut self, at: u64, id: u16) -> Result<(), ParseError> {
        let bytes = self.content(at, id, "section")?;
        let cut = &mut Cut::new(&bytes, at).with_order(self.order);
        let tracing = &mut self.metadata.tracing;
        match id {
            section::HEADER_INFO => tracing.header_info(cut),
            section::FTRACE_EVENTS => tracing.ftrace_events(cut),
            section::EVENT_FORMATS => tracing.events(cut),
            section::KALLSYMS => tracing.kallsyms(cut),
            section::PRINTK => tracing.printk_formats(cut),
            _ => tracing.cmdlines(cut),
        }
    }

    fn buffer(&mut self, mut option: Cut<'_>) -> Result<(), ParseError> {
        let before = option.clone();
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
        // Counts one more, so that buffers without CPUs are limited as well.
        self.regions += regions.len() + 1;
        if self.regions > MAX_REGIONS {
            let expected = format!("at most {MAX_REGIONS} CPUs of all buffers");
            return Err(before.parse_error("BUFFER", expected, format!("{}", self.regions)));
        }
        // The section's header has the compression flag; the pages do not need the header otherwise.
        let head = self.section_header(at, section::FLYRECORD, "buffer");
        let compressed =
            head.as_ref().map_or(self.compression != Compression::None, |(head, _)| head.compressed);
        if let Err(parse_error) = head {
            let kind = if at >= self.input.len() { LossKind::Truncated } else { LossKind::Damaged };
            self.metadata.note_loss(kind, Severity::Serious, &parse_error);
        }
        let compression = if compressed { self.compression } else { Compression::None };
        let clock = (!clock.is_empty()).then_some(clock);
        self.metadata.buffers.push(Buffer { name, clock, page_size, compression, regions });
        Ok(())
    }

    /// Reads consecutive sections from `at` on; those that were already read are skipped.
    fn walk(&mut self, mut at: u64) {
        for _ in 0..MAX_SECTIONS {
            let mut cut = self.cut(at);
            let (Ok(id), Ok(flags)) = (cut.u16("section"), cut.u16("section")) else { return };
            let (Ok(_), Ok(size)) = (cut.u32("section"), cut.u64("section")) else { return };
            // A section that was being written has no size yet, so nothing after it can be found.
            let known = id <= section::MOST && flags & !COMPRESSED == 0;
            let Some(next) = cut.at().checked_add(size).filter(|_| known && size > 0) else { return };
            if !self.read.contains(&at) {
                // Nothing refers to a section that cannot be read here, and its absence is already a loss.
                let _ = match id {
                    section::OPTIONS => self.options(at).map(|_| ()),
                    section::HEADER_INFO..=section::CMDLINES => self.named_section(at, id),
                    _ => Ok(()),
                };
            }
            at = next;
        }
    }

    fn cut(&self, at: u64) -> Cut<'a> {
        Cut::of_file(self.input.bytes(), at).with_order(self.order)
    }

    /// The header of a section, which must have this id, and the bytes after it.
    fn section_header(
        &self,
        at: u64,
        id: u16,
        part: &'static str,
    ) -> Result<(SectionHeader, Cut<'a>), ParseError> {
        let mut cut = self.cut(at);
        let found = cut.u16(part)?;
        if found != id {
            return Err(self.cut(at).parse_error(part, format!("section {id}"), format!("section {found}")));
        }
        let flags = cut.u16(part)?;
        cut.u32(part)?;
        let head = SectionHeader { compressed: flags & COMPRESSED != 0, size: cut.u64(part)? };
        Ok((head, cut))
    }

    /// The content of a section other than a buffer, decompressed if necessary.
    fn content(&mut self, at: u64, id: u16, part: &'static str) -> Result<Cow<'a, [u8]>, ParseError> {
        let (head, mut cut) = self.section_header(at, id, part)?;
        let before = cut.clone();
        let content = if head.compressed {
            let (compressed, size) = (cut.u32(part)?, cut.u32(part)?);
            let frame = cut.bytes(u64::from(compressed), part)?;
            let mut bytes = Vec::new();
            Frames::new(self.compression)
                .decompress(frame, size, &mut bytes)
                .map_err(|found| before.parse_error(part, format!("a frame of {size} bytes"), found))?;
            Cow::Owned(bytes)
        } else {
            Cow::Borrowed(cut.bytes(head.size, part)?)
        };
        if id == section::OPTIONS && content.len() > MOST_OPTIONS {
            let expected = format!("at most {MOST_OPTIONS} bytes of options");
            return Err(before.parse_error(part, expected, content.len().to_string()));
        }
        self.bytes += content.len() as u64;
        if self.bytes > MOST_BYTES {
            let expected = format!("at most {MOST_BYTES} bytes of sections");
            return Err(before.parse_error(part, expected, format!("{}", self.bytes)));
        }
        self.read.insert(at);
        self.readable += 1;
        Ok(content)
    }
}

struct SectionHeader {
    compressed: bool,
    size: u64,
}
