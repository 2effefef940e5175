//! Writes the content of the rings to a perf.data, round after round.
//!
//! ```text
//!   | header, 104 bytes | ids of the events | attribute, {offset, size} of the ids | records …
//! ```
//!
//! The header's size of the records is written at the end; 0 means that the recorder was killed.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use sigmund_model::Pid;

use super::PerfSummary;
use super::event::{SwitchEvent, attr_bytes};
use super::ring::Ring;
use crate::perf_data::layout::{ATTR_SIZE, HEADER_SIZE, MAGIC, PERF_RECORD_COMM, PERF_RECORD_FINISHED_ROUND};

/// How long the drain sleeps if it found nothing: a ring of 512 KiB holds 13 000 switches of 40 bytes.
const PAUSE: Duration = Duration::from_millis(10);

/// A perf.data that is being written.
#[derive(Debug)]
pub(super) struct PerfFile {
    file: File,
    first_id: u64,
    data_at: u64,
    /// Bytes of records written.
    size: u64,
}

/// The state of the draining thread.
#[derive(Debug)]
pub(super) struct Drain {
    pub(super) rings: Vec<Ring>,
    pub(super) events: Arc<[SwitchEvent]>,
    pub(super) file: PerfFile,
    pub(super) stop: Arc<AtomicBool>,
}

impl Drain {
    pub(super) fn run(mut self) -> io::Result<PerfSummary> {
        let mut records = Vec::new();
        loop {
            // Acquire: pairs with the Release in PerfRecorder::finish.
            let last_round = self.stop.load(Ordering::Acquire);
            if last_round {
                for event in self.events.iter() {
                    event.disable()?;
                }
            }
            records.clear();
            for ring in &mut self.rings {
                ring.take(&mut records);
            }
            let found = !records.is_empty();
            if found {
                records.extend(record_head(PERF_RECORD_FINISHED_ROUND, 8));
                self.file.write(&records)?;
            }
            if last_round {
                return self.file.finish();
            }
            if !found {
                thread::sleep(PAUSE);
            }
        }
    }
}

impl PerfFile {
    /// Writes the header of the file.
    pub(super) fn create(mut file: File, ids: &[u64]) -> io::Result<PerfFile> {
        let ids_size = 8 * ids.len() as u64;
        let data_at = HEADER_SIZE + ids_size + ATTR_SIZE + 16;
        let mut head = header(data_at, ids_size, 0);
        head.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
        head.extend(attr_bytes());
        head.extend(HEADER_SIZE.to_le_bytes());
        head.extend(ids_size.to_le_bytes());
        file.write_all(&head)?;
        Ok(PerfFile { file, first_id: ids.first().copied().unwrap_or(0), data_at, size: 0 })
    }

    /// Writes the name of an LWP that existed before the recording.
    ///
    /// ```text
    ///   | type u32 | misc u16 | size u16 | pid u32 | tid u32 | comm, padded to 8 | pid, tid | time | cpu, 0 | id |
    /// ```
    pub(super) fn comm(&mut self, pid: Pid, tid: u32, comm: &[u8]) -> io::Result<()> {
        let mut body = [pid.0.to_le_bytes(), tid.to_le_bytes()].concat();
        body.extend(&comm[..comm.len().min(15)]);
        body.push(0);
        body.resize(body.len().next_multiple_of(8), 0);
        body.extend([pid.0.to_le_bytes(), tid.to_le_bytes()].concat());
        body.extend([0; 16]);
        body.extend(self.first_id.to_le_bytes());
        let mut record = record_head(PERF_RECORD_COMM, 8 + body.len() as u16).to_vec();
        record.extend(body);
        self.write(&record)
    }

    fn write(&mut self, records: &[u8]) -> io::Result<()> {
        self.file.write_all(records)?;
        self.size += records.len() as u64;
        Ok(())
    }

    fn finish(mut self) -> io::Result<PerfSummary> {
        let ids_size = self.data_at - HEADER_SIZE - ATTR_SIZE - 16;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&header(self.data_at, ids_size, self.size))?;
        Ok(PerfSummary { bytes: self.data_at + self.size })
    }
}

/// `"PERFILE2" | u64 size | u64 size of an attribute with the position of its ids | {offset, size} of the attributes,
/// of the records, of the event types (unused) | 256 bits of features, none`
fn header(data_at: u64, ids_size: u64, data_size: u64) -> Vec<u8> {
    let mut head = MAGIC.to_vec();
    let attrs = (HEADER_SIZE + ids_size, ATTR_SIZE + 16);
    for number in [HEADER_SIZE, ATTR_SIZE + 16, attrs.0, attrs.1, data_at, data_size] {
        head.extend(number.to_le_bytes());
    }
    head.resize(HEADER_SIZE as usize, 0);
    head
}

fn record_head(ty: u32, size: u16) -> [u8; 8] {
    let mut head = [0; 8];
    head[..4].copy_from_slice(&ty.to_le_bytes());
    head[6..].copy_from_slice(&size.to_le_bytes());
    head
}
