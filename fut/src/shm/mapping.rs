//! A shared mapping of a file, for the lifetime of the value.

use std::{
    fs::File,
    io,
    os::fd::AsRawFd,
    ptr::NonNull,
    sync::atomic::{AtomicU8, AtomicU64, Ordering},
};

/// A shared, writable mapping of the first bytes of a file.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is plain memory that is not bound to a thread. It is accessed only through raw pointers and
// atomics, whose users state their own rules (see `ring`).
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes of `file`.
    pub(super) fn new(file: &File, len: usize) -> io::Result<Mapping> {
        // SAFETY: a null hint: the kernel chooses an unused range, so no existing memory is affected.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start =
            NonNull::new(start.cast::<u8>()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Mapping { start, len })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Address of the byte at `offset`.
    ///
    /// # Panics
    /// If `offset` is not inside the mapping. Offsets are never computed from unchecked contents of the mapping.
    pub(super) fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.len, "offset {offset} of a mapping of {} bytes", self.len);
        // SAFETY: `offset` is inside the mapping, by the assertion.
        unsafe { self.start.add(offset) }
    }

    /// Takes the page faults of a range now, so that probes need not take them (the first access to a 4 KiB page costs
    /// 3600 ticks, a probe 25). `false` if there is no memory for the range: then an access would kill the process
    /// (SIGBUS). Before Linux 5.14 this is not supported, and the probes take the faults.
    #[cfg(feature = "probes")]
    pub(super) fn prefault(&self, offset: usize, len: usize) -> bool {
        const MADV_POPULATE_WRITE: i32 = 23;
        assert!(offset + len <= self.len);
        // SAFETY: the range is inside the mapping; populating it changes no byte of it.
        let done = unsafe { libc::madvise(self.at(offset).as_ptr().cast(), len, MADV_POPULATE_WRITE) };
        done == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EINVAL)
    }

    /// Copies the bytes from `offset` on. If another process writes them meanwhile, any mixture may be copied.
    pub(super) fn copy(&self, offset: usize, to: &mut [u8]) {
        assert!(offset < self.len && to.len() <= self.len - offset);
        // A mapping begins at a page boundary.
        let before = (offset.next_multiple_of(8) - offset).min(to.len());
        let (first, rest) = to.split_at_mut(before);
        let words = rest.len() / 8 * 8;
        let (middle, last) = rest.split_at_mut(words);
        self.copy_bytes(offset, first);
        for (word, to) in (offset + before..).step_by(8).zip(middle.chunks_exact_mut(8)) {
            // SAFETY: the word is inside the mapping by the assertion, and aligned; concurrent writes are allowed for
            // atomics.
            let word = unsafe { self.at(word).cast::<AtomicU64>().as_ref() };
            to.copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
        self.copy_bytes(offset + before + words, last);
    }

    fn copy_bytes(&self, offset: usize, to: &mut [u8]) {
        for (index, to) in (offset..).zip(to) {
            // SAFETY: the byte is inside the mapping, as `at` asserts; concurrent writes are allowed for atomics.
            *to = unsafe { self.at(index).cast::<AtomicU8>().as_ref() }.load(Ordering::Relaxed);
        }
    }

    /// Frees the memory of a range, which reads as zeros afterwards.
    pub(super) fn discard(&self, offset: usize, len: usize) {
        assert!(offset + len <= self.len);
        // SAFETY: the range is inside the mapping. The bytes of the mapping are only used as atomics, so they may
        // become zeros at any time.
        unsafe { libc::madvise(self.at(offset).as_ptr().cast(), len, libc::MADV_REMOVE) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `start` and `len` are those of the `mmap` call, and nothing borrows from a mapping that is dropped.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_copied_from_any_offset() {
        let file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..=255).collect();
        std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).unwrap();
        let mapping = Mapping::new(&file, 256).unwrap();
        for (from, len) in (0..20).flat_map(|from| (0..40).map(move |len| (from, len))) {
            let mut copied = vec![0; len];
            mapping.copy(from, &mut copied);
            assert_eq!(copied, bytes[from..from + len], "{len} bytes from {from}");
        }
    }
}
