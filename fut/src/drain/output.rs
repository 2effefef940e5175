//! The file of a user trace while it is written. It holds only whole packets, even when the disk is full.

use std::{
    fs::File,
    io::{self, ErrorKind, Write},
};

use crate::{
    shm::PACKET_LEN,
    trace::{PACKET_HEAD_LEN, PacketHead},
};

/// Four packets are written at once. This amount of data stays in the cache of a CPU.
const BUFFER_LEN: usize = 4 * PACKET_LEN;

/// A file to which packets are appended. If that fails, the file ends with its last whole packet, and the records of
/// all later packets are counted.
#[derive(Debug)]
pub(super) struct Output {
    file: File,
    buffer: Box<[u8]>,
    filled: usize,
    /// The packets in the buffer: the offset of each packet's end, and its number of records.
    packets: Vec<(usize, u64)>,
    /// Bytes of the file that hold whole packets.
    written: u64,
    /// Bytes of whole packets in the earlier files.
    written_before: u64,
    failed: bool,
    /// The first failure, until it is returned.
    error: Option<io::Error>,
    /// Records that could not be written.
    unwritten: u64,
}

impl Output {
    /// Writes to `file`, which is empty.
    pub(super) fn new(file: File) -> Output {
        let buffer = vec![0; BUFFER_LEN].into_boxed_slice();
        Output {
            file,
            buffer,
            filled: 0,
            packets: Vec::new(),
            written: 0,
            written_before: 0,
            failed: false,
            error: None,
            unwritten: 0,
        }
    }

    /// Continues in another file, which is empty. What is in the buffer is written to the current one first.
    pub(super) fn next_file(&mut self, file: File) {
        self.flush();
        self.file = file;
        self.written_before += std::mem::take(&mut self.written);
        self.failed = false;
    }

    /// Bytes of whole packets in all files, including those in the buffer.
    pub(super) fn bytes(&self) -> u64 {
        self.written_before + self.written + if self.failed { 0 } else { self.filled as u64 }
    }

    pub(super) fn unwritten(&self) -> u64 {
        self.unwritten
    }

    /// Space for the payload of a packet of events. It is discarded unless `push` is called for it.
    pub(super) fn payload(&mut self) -> &mut [u8] {
        self.make_space(PACKET_LEN);
        &mut self.buffer[self.filled + PACKET_HEAD_LEN..][..PACKET_LEN - PACKET_HEAD_LEN]
    }

    /// Appends a packet whose payload, `head.length` bytes, the caller has written to `payload()`.
    pub(super) fn push(&mut self, head: &PacketHead, records: u64) {
        let end = self.filled + PACKET_HEAD_LEN + head.length as usize;
        head.encode_before(&mut self.buffer[self.filled..end]);
        self.advance(end, records);
    }

    /// Appends bytes that are whole packets, or the header of the file.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(BUFFER_LEN) {
            self.make_space(part.len());
            let end = self.filled + part.len();
            self.buffer[self.filled..end].copy_from_slice(part);
            self.advance(end, 0);
        }
    }

    fn advance(&mut self, end: usize, records: u64) {
        self.filled = end;
        self.packets.push((end, records));
    }

    fn make_space(&mut self, len: usize) {
        if self.filled + len > self.buffer.len() {
            self.flush();
        }
    }

    /// Writes the buffer to the file.
    pub(super) fn flush(&mut self) {
        let (reached, result) = if self.failed { (0, Ok(())) } else { self.write_buffer() };
        let whole = self.packets.iter().rev().find(|(end, _)| *end <= reached).map_or(0, |(end, _)| *end);
        self.written += whole as u64;
        if let Err(error) = result {
            self.failed = true;
            self.error = Some(error);
            // A device cannot be truncated, and need not be.
            let _ = self.file.set_len(self.written);
        }
        self.unwritten += self.packets.iter().filter(|(end, _)| *end > whole).map(|(_, n)| n).sum::<u64>();
        self.packets.clear();
        self.filled = 0;
    }

    /// The first failure, if it has not been returned yet.
    pub(super) fn failure(&mut self) -> io::Result<()> {
        self.error.take().map_or(Ok(()), Err)
    }

    /// Returns the number of bytes of the buffer that were written, and the error if these are not all.
    fn write_buffer(&mut self) -> (usize, io::Result<()>) {
        let mut at = 0;
        while at < self.filled {
            match self.file.write(&self.buffer[at..self.filled]) {
                Ok(0) => return (at, Err(ErrorKind::WriteZero.into())),
                Ok(len) => at += len,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return (at, Err(error)),
            }
        }
        (at, Ok(()))
    }
}
