//! One binary: its symbols, and its source lines if it has them (DWARF).
//!
//! The path comes from a trace, and may name anything. Only regular files up to a maximum size are opened. From these,
//! the symbol table and the DWARF sections are read. The file must have the build id of the file that the program had
//! mapped.

use std::{
    borrow::Cow,
    fmt::Write,
    fs::{self, File, OpenOptions},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::Arc,
};

use addr2line::Context;
use gimli::{Dwarf, EndianArcSlice, RunTimeEndian, SectionId};
use object::{
    Endianness, Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind,
    read::{ReadCache, elf::ElfFile64},
};

use super::{Address, debug_file::candidates, name_with_line};

/// A larger file is not opened.
const MAX_FILE: u64 = 2 << 30;
/// DWARF sections that are larger, all together and uncompressed, are not read.
const MAX_DWARF: u64 = 1 << 30;
/// Maximum number of symbols that are kept.
const MAX_SYMBOLS: usize = 16 << 20;
/// `O_NONBLOCK` (include/uapi/asm-generic/fcntl.h). Without it, opening a FIFO in place of the file would wait.
const NONBLOCKING: i32 = 0o4000;

type Elf<'data> = ElfFile64<'data, Endianness, &'data ReadCache<File>>;
type Lines = Context<EndianArcSlice<RunTimeEndian>>;

/// A binary that was opened. Addresses in it are offsets in the file.
pub(super) struct Binary {
    segments: Vec<Segment>,
    symbols: Vec<Symbol>,
    lines: Option<Lines>,
    problem: Option<String>,
}

/// A loaded segment: `len` bytes at `offset` in the file have the address `address`.
struct Segment {
    offset: u64,
    len: u64,
    address: u64,
}

struct Symbol {
    address: u64,
    /// 0 if the table does not contain it.
    len: u64,
    name: Box<str>,
}

impl Binary {
    /// Opens the binary at `path`, if it has this build id (in hexadecimal; if it is empty, any build id is accepted).
    ///
    /// # Errors
    /// What is wrong, as a text for users.
    pub(super) fn open(path: &Path, build_id: &str) -> Result<Binary, String> {
        if !path.is_absolute() {
            return Err("expected an absolute path".into());
        }
        let cache = ReadCache::new(open_file(path)?);
        let elf = Elf::parse(&cache).map_err(|error| format!("expected a 64-bit ELF file: {error}"))?;
        let found = elf.build_id().ok().flatten().map(hex).unwrap_or_default();
        if !build_id.is_empty() && found != build_id {
            let found = if found.is_empty() { "none" } else { &found };
            return Err(format!("expected the build id {build_id}, found {found}: it was built anew"));
        }
        let segment = |s: object::read::elf::ElfSegment64<'_, '_, Endianness, &ReadCache<File>>| {
            let (offset, len) = s.file_range();
            Segment { offset, len, address: s.address() }
        };
        let mut binary = Binary {
            segments: elf.segments().map(segment).collect(),
            symbols: symbols(&elf),
            lines: None,
            problem: None,
        };
        match lines(&elf) {
            Ok(Some(lines)) => binary.lines = Some(lines),
            Ok(None) => {
                let link = elf.gnu_debuglink().ok().flatten().map(|(name, _)| name);
                let files = candidates(path, &found, link);
                files.iter().any(|file| binary.take_split_off(file, &found).is_some());
            }
            Err(problem) => binary.problem = Some(format!("its source lines cannot be read: {problem}")),
        }
        if binary.symbols.is_empty() && binary.lines.is_none() && binary.problem.is_none() {
            binary.problem = Some("it is stripped".into());
        }
        Ok(binary)
    }

    /// Takes the symbols and lines from a debug file, if it belongs to this build.
    fn take_split_off(&mut self, file: &Path, build_id: &str) -> Option<()> {
        let cache = ReadCache::new(open_file(file).ok()?);
        let elf = Elf::parse(&cache).ok()?;
        if build_id.is_empty() || elf.build_id().ok().flatten().map(hex)? != build_id {
            return None;
        }
        self.lines = lines(&elf).ok()?;
        let split_off = symbols(&elf);
        if split_off.len() > self.symbols.len() {
            self.symbols = split_off;
        }
        self.lines.is_some().then_some(())
    }

    /// Why the binary has fewer names than it could have.
    pub(super) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// The name of the code at `offset` in the file.
    pub(super) fn name(&self, offset: u64, what: Address) -> Option<Arc<str>> {
        let inside = |s: &&Segment| offset.checked_sub(s.offset).is_some_and(|behind| behind < s.len);
        let segment = self.segments.iter().find(inside)?;
        let address = segment.address.checked_add(offset - segment.offset)?;
        let address = if what == Address::Return { address.checked_sub(1)? } else { address };
        self.named_by_lines(address).or_else(|| self.named_by_symbols(address))
    }

    /// The name according to DWARF: the innermost function at the address, including inlined ones.
    fn named_by_lines(&self, address: u64) -> Option<Arc<str>> {
        let mut frames = self.lines.as_ref()?.find_frames(address).skip_all_loads().ok()?;
        let frame = frames.next().ok()??;
        let place = frame.location.as_ref().and_then(|l| Some((l.file?, l.line?)));
        let inlined = frames.next().is_ok_and(|outer| outer.is_some());
        let symbol = if inlined { None } else { self.symbol(address).map(|symbol| &*symbol.name) };
        // If there are only line tables, their names lack modules and classes. Mangled symbols have complete names.
        let whole = symbol.map(|symbol| (symbol, demangled(symbol))).filter(|(symbol, name)| symbol != name);
        let function = || Some(frame.function.as_ref()?.demangle().ok()?.into_owned());
        let name = match whole {
            Some((_, name)) => name.into_owned(),
            None => function().or_else(|| symbol.map(String::from))?,
        };
        Some(name_with_line(&name, place))
    }

    fn named_by_symbols(&self, address: u64) -> Option<Arc<str>> {
        Some(name_with_line(&demangled(&self.symbol(address)?.name), None))
    }

    fn symbol(&self, address: u64) -> Option<&Symbol> {
        let behind = self.symbols.partition_point(|symbol| symbol.address <= address);
        let symbol = self.symbols.get(behind.checked_sub(1)?)?;
        (symbol.len == 0 || address - symbol.address < symbol.len).then_some(symbol)
    }
}

fn open_file(path: &Path) -> Result<File, String> {
    let is_usable = |about: fs::Metadata| match about.len() {
        _ if !about.is_file() => Err("expected a regular file".to_string()),
        len if len > MAX_FILE => Err(format!("expected a file of at most {MAX_FILE} bytes, found {len}")),
        _ => Ok(()),
    };
    let text = |error: std::io::Error| error.to_string();
    is_usable(fs::metadata(path).map_err(text)?)?;
    let file = OpenOptions::new().read(true).custom_flags(NONBLOCKING).open(path).map_err(text)?;
    is_usable(file.metadata().map_err(text)?)?;
    Ok(file)
}

/// Functions, sorted by their address. If there are no others, those of the dynamic table.
fn symbols(elf: &Elf<'_>) -> Vec<Symbol> {
    let mut symbols: Vec<Symbol> = elf.symbols().filter_map(function).take(MAX_SYMBOLS).collect();
    if symbols.is_empty() {
        symbols = elf.dynamic_symbols().filter_map(function).take(MAX_SYMBOLS).collect();
    }
    symbols.sort_by_key(|symbol| symbol.address);
    symbols
}

fn function<'data>(symbol: impl ObjectSymbol<'data>) -> Option<Symbol> {
    if !symbol.is_definition() || symbol.kind() != SymbolKind::Text {
        return None;
    }
    let name = symbol.name().ok().filter(|name| !name.is_empty())?;
    Some(Symbol { address: symbol.address(), len: symbol.size(), name: name.into() })
}

/// The DWARF sections, `None` if there are none. They may be compressed.
fn lines(elf: &Elf<'_>) -> Result<Option<Lines>, String> {
    if elf.section_by_name(SectionId::DebugInfo.name()).is_none() {
        return Ok(None);
    }
    let endian = if elf.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let mut left = MAX_DWARF;
    let dwarf = Dwarf::load(|id| -> Result<EndianArcSlice<RunTimeEndian>, String> {
        let data = match elf.section_by_name(id.name()) {
            Some(section) => contents(&section, &mut left)?,
            None => Cow::Borrowed(&[][..]),
        };
        Ok(EndianArcSlice::new(Arc::from(data), endian))
    })?;
    Context::from_dwarf(dwarf).map(Some).map_err(|error| error.to_string())
}

fn contents<'data>(section: &impl ObjectSection<'data>, left: &mut u64) -> Result<Cow<'data, [u8]>, String> {
    let range = section.compressed_file_range().map_err(|error| error.to_string())?;
    let too_long = || format!("expected at most {MAX_DWARF} bytes of them, found more");
    let needed = range.uncompressed_size.max(range.compressed_size);
    *left = left.checked_sub(needed).ok_or_else(too_long)?;
    section.uncompressed_data().map_err(|error| error.to_string())
}

fn demangled(name: &str) -> Cow<'_, str> {
    addr2line::demangle_auto(Cow::Borrowed(name), None)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
