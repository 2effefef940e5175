//! The ring-buffer pages of one CPU, from its region of the file.
//!
//! ```text
//!   uncompressed   offset                                              offset + size
//!                  | page | page | …                                  |
//!
//!   compressed     offset                                              offset + size + 4
//!                  | u32 chunks | u32 compressed size | u32 size | frame of whole pages | u32 …
//! ```
//!
//! trace-cmd 3.1.6 does not include the leading u32 in `size`. The number of chunks is used; `size` is not relied on.

use std::ops::Range;

use sigmund_model::LossKind;

use super::frames::{Compression, Frames};
use super::metadata::Region;
use crate::cut::{ByteOrder, Cut};
use crate::error::ParseError;
use crate::input::{Input, Window};
use crate::ring_buffer::PageLayout;

/// Largest number of bytes of a mapped file that stay in memory before the current page.
const KEPT: u64 = 4 << 20;

/// The current page and the next two, whose times it is compared with.
const PAGES_SHOWN: u64 = 3;

/// Returns page after page.
#[derive(Debug)]
pub(super) struct Pages {
    input: Input,
    layout: PageLayout,
    /// The next page, or chunk.
    at: u64,
    /// Bytes before this position have been released.
    released: u64,
    source: PageSource,
}

#[derive(Debug)]
enum PageSource {
    /// Pages up to this byte of the file, read through a window if they fit it.
    Plain {
        end: u64,
        window: Option<Window>,
    },
    Chunks(Chunks),
}

#[derive(Debug)]
struct Chunks {
    /// Remaining chunks; `None` before their number has been read.
    left: Option<u32>,
    frames: Frames,
    /// The open chunk, decompressed, and its position in the file.
    chunk: Vec<u8>,
    chunk_at: u64,
    /// The next page in it.
    next: usize,
}

/// The position of one page.
#[derive(Clone, Debug)]
pub(super) struct PageLocation {
    bytes: Range<usize>,
    /// Byte in the file; for compressed pages, that of the chunk.
    pub(super) at: u64,
    /// The times of the next two pages, if they can be read.
    pub(super) next_times: [Option<u64>; 2],
}

/// Pages that could not be read.
#[derive(Debug)]
pub(super) struct Unreadable {
    pub(super) kind: LossKind,
    pub(super) parse_error: ParseError,
}

impl Pages {
    pub(super) fn new(input: Input, layout: PageLayout, region: &Region, compression: Compression) -> Pages {
        let source = match compression {
            Compression::None => {
                let window = (layout.page_size <= Window::LONGEST / PAGES_SHOWN).then(Window::default);
                PageSource::Plain { end: region.offset.saturating_add(region.size), window }
            }
            // The region of a CPU without events does not even have the number of chunks.
            _ if region.size == 0 => PageSource::Plain { end: region.offset, window: None },
            _ => PageSource::Chunks(Chunks {
                left: None,
                frames: Frames::new(compression),
                chunk: Vec::new(),
                chunk_at: region.offset,
                next: 0,
            }),
        };
        Pages { input, layout, at: region.offset, released: region.offset, source }
    }

    /// The bytes of the page at `location`, which must be the last one that [`next`](Self::next) returned.
    #[inline]
    pub(super) fn bytes(&self, location: &PageLocation) -> &[u8] {
        self.all().get(location.bytes.clone()).unwrap_or_default()
    }

    #[inline]
    fn all(&self) -> &[u8] {
        match &self.source {
            PageSource::Plain { window: Some(window), .. } => window.bytes(),
            PageSource::Plain { window: None, .. } => self.input.bytes(),
            PageSource::Chunks(chunks) => &chunks.chunk,
        }
    }

    /// The next page; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Result<PageLocation, Unreadable>> {
        if self.at.saturating_sub(self.released) >= KEPT {
            self.input.release(self.released, self.at);
            self.released = self.at;
        }
        match &mut self.source {
            PageSource::Plain { end, window } => {
                if self.at >= *end {
                    return None;
                }
                let file_end = self.input.len();
                if self.at >= file_end {
                    let parse_error = cut_off(self.at, *end, file_end);
                    self.at = *end;
                    return Some(Err(Unreadable { kind: LossKind::Truncated, parse_error }));
                }
                let to = self.at.saturating_add(self.layout.page_size).min(*end).min(file_end);
                let (at, ahead) = (self.at, self.layout.page_size.saturating_mul(PAGES_SHOWN));
                self.at = to;
                let shown = at.saturating_add(ahead).min(*end).min(file_end);
                if window.as_mut().is_some_and(|window| !window.show(&self.input, at, shown)) {
                    // The map has the same bytes, or the same error.
                    *window = None;
                }
                let base = window.as_ref().map_or(0, Window::at);
                Some(Ok(self.place((at - base) as usize..(to - base) as usize, at)))
            }
            PageSource::Chunks(chunks) => {
                while chunks.next >= chunks.chunk.len() {
                    if let Err(unreadable) = chunks.open_next(&self.input, self.layout.order, &mut self.at)? {
                        return Some(Err(unreadable));
                    }
                }
                let (from, at) = (chunks.next, chunks.chunk_at);
                chunks.next = chunks.chunk.len().min(from.saturating_add(self.layout.page_size as usize));
                let bytes = from..chunks.next;
                Some(Ok(self.place(bytes, at)))
            }
        }
    }

    fn place(&self, bytes: Range<usize>, at: u64) -> PageLocation {
        let time = |pages_on: usize| {
            let ahead = pages_on.checked_mul(self.layout.page_size as usize)?;
            let ours = match &self.source {
                PageSource::Plain { end, .. } => at.saturating_add(ahead as u64) < *end,
                PageSource::Chunks(_) => true,
            };
            self.layout.time(self.all().get(bytes.start.checked_add(ahead)?..).filter(|_| ours)?)
        };
        let next_times = [time(1), time(2)];
        PageLocation { bytes, at, next_times }
    }
}

impl Chunks {
    /// Decompresses the next chunk; `None` if there is none.
    fn open_next(&mut self, input: &Input, order: ByteOrder, at: &mut u64) -> Option<Result<(), Unreadable>> {
        self.chunk.clear();
        self.next = 0;
        let mut cut = Cut::of_file(input.bytes(), *at).with_order(order);
        let opened = self.read_chunk(&mut cut);
        *at = cut.at();
        match opened {
            Ok(true) => Some(Ok(())),
            Ok(false) => None,
            Err((ends, parse_error)) => {
                let kind = if ends { LossKind::Truncated } else { LossKind::Damaged };
                if ends {
                    self.left = Some(0);
                }
                self.chunk.clear();
                Some(Err(Unreadable { kind, parse_error }))
            }
        }
    }

    /// The `bool` of `Err` is whether nothing more can be read.
    fn read_chunk(&mut self, cut: &mut Cut<'_>) -> Result<bool, (bool, ParseError)> {
        let ends = |parse_error| (true, parse_error);
        let left = match self.left {
            Some(left) => left,
            None => cut.u32("number of chunks").map_err(ends)?,
        };
        if left == 0 {
            self.left = Some(0);
            return Ok(false);
        }
        self.left = Some(left - 1);
        self.chunk_at = cut.at();
        let compressed = cut.u32("compressed size of a chunk").map_err(ends)?;
        let size = cut.u32("size of a chunk").map_err(ends)?;
        let before = cut.clone();
        let frame = cut.bytes(u64::from(compressed), "chunk").map_err(ends)?;
        self.frames.decompress(frame, size, &mut self.chunk).map_err(|found| {
            (false, before.parse_error("chunk", format!("a frame of {size} bytes"), found))
        })?;
        Ok(true)
    }
}

fn cut_off(at: u64, end: u64, file_end: u64) -> ParseError {
    let (expected, found) = (format!("pages up to byte {end}"), format!("the end of the file at {file_end}"));
    ParseError { at, part: "pages", expected, found }
}
