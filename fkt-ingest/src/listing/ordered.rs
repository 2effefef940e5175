//! The lines of a listing in the order of time.
//!
//! ```text
//! tick   1 5 7 | 2 6 | 3 4 | …        few stretches of ordered lines, as parts of the file: merged directly from it
//! many   7 1 5 … | 6 2 3 … | …        batches of lines: each is sorted and written to a temporary file; merged from
//! there
//! ```
//! Lines with the same tick keep the order of the file.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::header::Header;
use super::lines::Lines;
use super::row::Row;
use super::stretches::Stretches;
use super::survey::parse;
use crate::input::Input;

/// How much is kept in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes that are read at once, if nothing else is being read.
    pub(super) block: usize,
    /// The largest number of stretches that are merged directly from the file.
    pub(super) stretches: usize,
    /// Bytes of a batch of lines to sort.
    pub(super) batch: usize,
}

impl Limits {
    pub(super) const USUAL: Limits = Limits { block: 256 << 10, stretches: 256, batch: 16 << 20 };
}

/// The location of the ordered lines.
#[derive(Clone, Debug)]
pub(super) struct Sorted {
    header: Arc<Header>,
    input: Input,
    parts: Vec<Range<u64>>,
    block: usize,
}

impl Sorted {
    /// Finds the order of the lines of `input`.
    ///
    /// # Errors
    /// If a file cannot be read, or a temporary file cannot be written.
    pub(super) fn of(
        input: &Input,
        header: Header,
        stretches: &Stretches,
        limits: &Limits,
    ) -> io::Result<Sorted> {
        let header = Arc::new(header);
        let sorted = |input, parts: Vec<Range<u64>>| {
            // The buffers of all stretches together have at most 16 blocks, except that each buffer has at least 16
            // KiB: so it usually contains a whole line.
            let block = (16 * limits.block / parts.len().max(1)).max(16 << 10);
            Sorted { header: Arc::clone(&header), input, parts, block: block.min(limits.block) }
        };
        match stretches.all() {
            Some(all) => Ok(sorted(input.clone(), all.to_vec())),
            None => {
                let all = sorted(input.clone(), vec![stretches.span()]).lines()?;
                let (input, parts) = in_batches(all, limits.batch)?;
                Ok(sorted(input, parts))
            }
        }
    }

    /// The lines from the first one on.
    pub(super) fn lines(&self) -> io::Result<Ordered> {
        let part = |part: &Range<u64>| Lines::new(self.input.clone(), part.clone(), self.block);
        let mut ordered = Ordered {
            header: Arc::clone(&self.header),
            parts: self.parts.iter().map(part).collect(),
            first: BinaryHeap::new(),
            current: None,
        };
        // If there is only one part, its lines need no merging.
        if ordered.parts.len() > 1 {
            for part in 0..ordered.parts.len() {
                ordered.queue(part)?;
            }
        }
        Ok(ordered)
    }
}

/// Reads lines in the order of time.
#[derive(Debug)]
pub(super) struct Ordered {
    header: Arc<Header>,
    parts: Vec<Lines>,
    /// The tick of the current line of each part, and the part; without the part `current`.
    first: BinaryHeap<Reverse<(u64, usize)>>,
    /// The part with the current line.
    current: Option<usize>,
}

impl Ordered {
    /// Moves to the next line. It can be a damaged line only if there is a single part. `false` after the last line.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        if let [only] = &mut self.parts[..] {
            self.current = Some(0);
            return only.advance();
        }
        if let Some(current) = self.current.take() {
            self.queue(current)?;
        }
        self.current = self.first.pop().map(|Reverse((_, part))| part);
        Ok(self.current.is_some())
    }

    /// The current line; empty if there is none.
    pub(super) fn line(&self) -> &[u8] {
        self.current.map_or(&[], |part| self.parts[part].line())
    }

    /// Reads the current line into `line`; `None` if it is damaged, or has no event.
    pub(super) fn row<'l>(&self, line: &'l str) -> Option<Row<'l>> {
        row_of(&self.header, &self.parts[self.current?], line)
    }

    /// Moves a part to its next line that is not damaged, and puts it into the queue.
    fn queue(&mut self, part: usize) -> io::Result<()> {
        let lines = &mut self.parts[part];
        while lines.advance()? {
            if let Some(row) = row_of(&self.header, lines, &String::from_utf8_lossy(lines.line())) {
                self.first.push(Reverse((row.tick, part)));
                return Ok(());
            }
        }
        Ok(())
    }
}

fn row_of<'l>(header: &Header, lines: &Lines, line: &'l str) -> Option<Row<'l>> {
    if line.starts_with('#') {
        return None;
    }
    parse(header, line, lines.is_too_long()).ok()
}

/// Sorts `lines`, which are one part, in batches of this many bytes, and writes them to a temporary file. Returns this
/// file, and its ordered parts.
fn in_batches(mut lines: Ordered, size: usize) -> io::Result<(Input, Vec<Range<u64>>)> {
    let file = tempfile::tempfile()?;
    let mut out = BufWriter::with_capacity(1 << 18, &file);
    let (mut batch, mut parts, mut end) = (Batch::default(), Vec::new(), 0);
    let mut write = |batch: &mut Batch| {
        let start = end;
        end += batch.write(&mut out)?;
        parts.push(start..end);
        io::Result::Ok(())
    };
    while lines.advance()? {
        let line = String::from_utf8_lossy(lines.line());
        if let Some(row) = lines.row(&line) {
            batch.add(row.tick, &line);
        }
        if batch.text.len() >= size {
            write(&mut batch)?;
        }
    }
    write(&mut batch)?;
    out.flush()?;
    drop(out);
    Ok((temporary(file)?, parts))
}

/// A file without a name, as an input.
fn temporary(file: File) -> io::Result<Input> {
    Input::of_file(Path::new("a temporary file"), file).map_err(|error| io::Error::other(error.to_string()))
}

/// Lines that are sorted together.
#[derive(Debug, Default)]
struct Batch {
    text: String,
    lines: Vec<(u64, Range<usize>)>,
}

impl Batch {
    fn add(&mut self, tick: u64, line: &str) {
        let start = self.text.len();
        self.text.push_str(line);
        self.text.push('\n');
        self.lines.push((tick, start..self.text.len()));
    }

    /// Writes the lines in order, and removes them from memory. Returns the number of bytes written.
    fn write(&mut self, out: &mut impl Write) -> io::Result<u64> {
        // Ranges begin in the order of the file, so lines with the same tick keep it.
        self.lines.sort_unstable_by_key(|(tick, line)| (*tick, line.start));
        for (_, line) in self.lines.drain(..) {
            out.write_all(self.text[line].as_bytes())?;
        }
        let written = self.text.len() as u64;
        self.text.clear();
        Ok(written)
    }
}
