//! The blocks of a file, and the positions of its records.

use super::infos::Infos;
use super::words::Words;
use crate::cut::ByteOrder;
use crate::cut::Cut;
use crate::error::ParseError;

/// Size of a block's header: u64 size, s32 type, s32 subtype.
const HEADER_SIZE: u64 = 16;

const INFOS: u32 = 1;

/// Largest nesting depth of blocks of a kind.
const MAX_DEPTH: u32 = 4;

/// Largest number of blocks of records, and of errors, that are kept. A recording has one block of records.
const MAX_BLOCKS: usize = 1 << 12;

/// The first word of a file, big endian: the machine. Machines from 0x10000 on are big endian.
const MACHINES: &[(u32, &str)] = &[
    (0, "i386"),
    (1, "ia64"),
    (2, "x86_64"),
    (3, "alpha"),
    (4, "arm"),
    (5, "aarch64"),
    (6, "mipsel"),
    (7, "sh"),
    (8, "ppc64le"),
    (9, "riscv64"),
    (255, "unknown little-endian machine"),
    (0x10000, "ppc"),
    (0x20000, "ppc64"),
    (0x30000, "avr32"),
    (0x40000, "hppa"),
    (0x50000, "m68k"),
    (0x60000, "mips"),
    (0x70000, "s390"),
    (0x80000, "s390x"),
    (0x90000, "sparc"),
    (0xff_0000, "unknown big-endian machine"),
];

/// The layout of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Kernel32,
    Kernel64,
    User32,
    User64,
}

impl Layout {
    fn of_type(block_type: u32) -> Option<Layout> {
        Some(match block_type {
            0x100 => Layout::Kernel32,
            0x101 => Layout::Kernel64,
            0x200 => Layout::User32,
            0x201 => Layout::User64,
            _ => return None,
        })
    }

    #[inline]
    pub(super) fn is_kernel(self) -> bool {
        matches!(self, Layout::Kernel32 | Layout::Kernel64)
    }
}

/// A block of records, without its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordBlock {
    pub(super) layout: Layout,
    pub(super) from: usize,
    pub(super) to: usize,
    /// Whether the file ends before the block does.
    pub(super) cut_off: bool,
}

/// The content of a file.
#[derive(Debug)]
pub(super) struct Blocks {
    pub(super) machine: &'static str,
    pub(super) order: ByteOrder,
    pub(super) infos: Infos,
    pub(super) records: Vec<RecordBlock>,
    /// Unreadable parts of the blocks before the records.
    pub(super) parse_errors: Vec<ParseError>,
}

#[derive(Clone, Copy, Debug)]
struct BlockHeader {
    block_type: u32,
    /// The beginning of its content; its end is unknown if the block extends to the end of the file.
    from: u64,
    to: Option<u64>,
}

/// The machine and byte order of a file with a plausible beginning: a known machine, a block INFOS, and in it a block
/// of a known type.
pub(super) fn machine(file: &[u8]) -> Option<(&'static str, ByteOrder)> {
    let arch = u32::from_be_bytes(*file.first_chunk()?);
    let (_, name) = MACHINES.iter().find(|(number, _)| *number == arch)?;
    let order = if arch < 0x10000 { ByteOrder::Little } else { ByteOrder::Big };
    let infos = block_header(file, 4, order).ok()?;
    let first = block_header(file, infos.from, order).ok()?;
    let plausible = infos.block_type == INFOS && matches!(first.block_type, 0x10..=0x14);
    plausible.then_some((name, order))
}

impl Blocks {
    /// Finds all blocks. `None` if the beginning of the file is not that of an FxT trace.
    pub(super) fn find(file: &[u8]) -> Option<Blocks> {
        let (machine, order) = machine(file)?;
        let mut blocks =
            Blocks { machine, order, infos: Infos::default(), records: Vec::new(), parse_errors: Vec::new() };
        if let Err(parse_error) = blocks.walk(file, 4, file.len() as u64, 0) {
            blocks.parse_errors.push(parse_error);
        }
        Some(blocks)
    }

    /// All blocks from `at` to `end`.
    fn walk(&mut self, file: &[u8], mut at: u64, end: u64, depth: u32) -> Result<(), ParseError> {
        while at < end {
            let head = block_header(file, at, self.order)?;
            let to = head.to.unwrap_or(end).min(end);
            if self.records.len() + self.parse_errors.len() >= MAX_BLOCKS {
                let (expected, found) = (format!("at most {MAX_BLOCKS} blocks"), "more".to_owned());
                return Err(ParseError { at, part: "blocks", expected, found });
            }
            if let Some(layout) = Layout::of_type(head.block_type) {
                let cut_off = head.to.is_some_and(|to| to > end);
                self.records.push(RecordBlock { layout, from: head.from as usize, to: to as usize, cut_off });
            } else if head.block_type == INFOS && depth < MAX_DEPTH {
                self.walk(file, head.from, to, depth + 1)?;
            } else {
                self.read_info(file, head, to)?;
            }
            at = to;
        }
        Ok(())
    }

    fn read_info(&mut self, file: &[u8], head: BlockHeader, to: u64) -> Result<(), ParseError> {
        let content = Cut::of_file(file, head.from).bytes(to.saturating_sub(head.from), "block")?;
        let mut words = Words::new(Cut::new(content, head.from), self.order);
        match self.infos.read(head.block_type, &mut words) {
            Ok(true) => {}
            Ok(false) => self.parse_errors.push(ParseError {
                at: head.from - HEADER_SIZE,
                part: "block",
                expected: "a type of libfxt".to_owned(),
                found: format!("{:#x}", head.block_type),
            }),
            Err(parse_error) => self.parse_errors.push(parse_error),
        }
        Ok(())
    }
}

fn block_header(file: &[u8], at: u64, order: ByteOrder) -> Result<BlockHeader, ParseError> {
    let mut words = Words::new(Cut::of_file(file, at), order);
    let size = words.u64("size of a block")?;
    let block_type = words.u32("type of a block")?;
    words.u32("subtype of a block")?;
    if size != 0 && size < HEADER_SIZE {
        let (expected, found) = (format!("0 or at least {HEADER_SIZE}"), size.to_string());
        return Err(ParseError { at, part: "size of a block", expected, found });
    }
    let to = (size != 0).then(|| at.saturating_add(size));
    Ok(BlockHeader { block_type, from: at + HEADER_SIZE, to })
}
