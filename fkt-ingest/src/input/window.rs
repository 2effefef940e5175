//! A buffered part of a file, which moves forward with its reader.
//!
//! A mapped file costs a page fault for every few pages, and its bytes are not in the cache when first touched. Bytes
//! that are read in blocks are in the cache. Reading a trace.dat of 1 GB from the page cache took 0.70 s of CPU time
//! mapped, and 0.63 s with blocks of 256 KiB (AMD EPYC at 2.6 GHz, `read_speed`). Two windows of 256 KiB fill this
//! CPU's second-level cache: copying the 470 MB of two streams that are read in turns took 0.24 s with them, and takes
//! 0.06 s with blocks of 64 KiB (`ingest decode` of `benches/`, under `perf record -e cpu-clock`).

use super::Input;

/// Bytes per read. The windows of several streams fit in a CPU's second-level cache together with the data that their
/// reader makes of them.
const LENGTH: usize = 64 << 10;

/// A part of a file.
#[derive(Debug, Default)]
pub(crate) struct Window {
    /// Its position in the file.
    at: u64,
    bytes: Vec<u8>,
}

impl Window {
    /// The longest range that a window can show.
    pub(crate) const LONGEST: u64 = 2 * LENGTH as u64;

    /// Moves the window to include bytes `from..to` of the file, at most [`LONGEST`](Self::LONGEST); `false` if they
    /// cannot be read.
    #[inline]
    pub(crate) fn show(&mut self, input: &Input, from: u64, to: u64) -> bool {
        let end = self.at + self.bytes.len() as u64;
        (self.at <= from && to <= end) || self.read(input, from, to)
    }

    #[cold]
    fn read(&mut self, input: &Input, from: u64, to: u64) -> bool {
        self.at = from;
        // No more than the file's size: most files of tests are small, and zeroing costs time.
        let left = input.len().saturating_sub(from);
        let length = to.saturating_sub(from).clamp(LENGTH as u64, Window::LONGEST);
        self.bytes.resize(left.min(length) as usize, 0);
        let read = input.read_at(from, &mut self.bytes);
        self.bytes.truncate(read.unwrap_or(0));
        to.saturating_sub(from) <= self.bytes.len() as u64
    }

    /// The position of its bytes in the file.
    #[inline]
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    //   file    |0 ….. LENGTH ………… 2.5 LENGTH|
    //   shown    [a]      [    b    ]       [c| after the end
    #[test]
    fn a_window_shows_what_the_file_has_and_nothing_after_its_end() {
        let bytes: Vec<u8> = (0..5 * LENGTH / 2).map(|at| (at / 3) as u8).collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        let mapped = Input::open(file.path()).unwrap();
        let owned = Input::from_bytes(Path::new("x"), bytes.clone());
        for input in [mapped, owned] {
            let mut window = Window::default();
            let mut at = 0;
            while at < bytes.len() {
                let to = bytes.len().min(at + 5000);
                assert!(window.show(&input, at as u64, to as u64));
                let from = at - window.at() as usize;
                assert!(window.bytes()[from..from + to - at] == bytes[at..to], "{at}");
                at = to;
            }
            let end = bytes.len() as u64;
            assert!(!window.show(&input, end - 10, end + 1));
            assert!(!window.show(&input, end + 10, end + 11));
            // Longer than a block.
            assert!(window.show(&input, 1, 1 + Window::LONGEST));
            assert!(window.bytes()[..Window::LONGEST as usize] == bytes[1..=Window::LONGEST as usize]);
            assert!(window.show(&input, 0, 9));
            assert!(window.show(&input, end - 10, end));
            assert!(window.show(&input, 7, 9));
            assert_eq!(window.bytes()[..2], bytes[7..9]);
        }
    }
}
