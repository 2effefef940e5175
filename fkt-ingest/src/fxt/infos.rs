//! The blocks before the records: the clock, the machine, and names.
//!
//! ```text
//!   TIME   0x10   u32 space (0 kernel, 1 user), u32 cpus, u32 mhz[cpus], u32 record_pid, u32 traced_pid,
//!                 u64 start, u64 stop (s since 1970), u64 start, u64 stop (jiffies of times(2)), u32 page size
//!   UNAME  0x11   u32 length, text
//!   IRQS   0x12   u32 count, u32 cpus, count × { u64 number, u32 length, text padded to 4 bytes }
//!   ADDRS  0x13   { u64 address, u32 length, text } …, u64 0
//!   PIDS   0x14   { u64 pid, char comm[16] } …, u64 0
//! ```
//! If a part of one of them cannot be read, the rest of it is skipped.

use std::collections::BTreeMap;

use sigmund_model::Lwp;

use super::words::Words;
use crate::error::ParseError;

pub(super) const TIME: u32 = 0x10;
pub(super) const UNAME: u32 = 0x11;
pub(super) const IRQS: u32 = 0x12;
pub(super) const ADDRS: u32 = 0x13;
pub(super) const PIDS: u32 = 0x14;

/// Largest number of symbols that are kept: a kernel's System.map has some 200,000.
const MAX_NAMES: usize = 1 << 18;

/// The content of the blocks before the records.
#[derive(Debug, Default)]
pub(super) struct Infos {
    pub(super) time: Option<TimeBlock>,
    pub(super) uname: Option<String>,
    /// Names of interrupts by their number.
    pub(super) irqs: BTreeMap<u64, String>,
    /// Names of functions by their address.
    pub(super) functions: BTreeMap<u64, String>,
    pub(super) lwp_names: Vec<(Lwp, String)>,
}

/// The block TIME.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TimeBlock {
    pub(super) space: u32,
    pub(super) cpus: u32,
    /// MHz of the first CPU, as `/proc/cpuinfo` had it.
    pub(super) mhz: u32,
    pub(super) record_pid: u32,
    pub(super) traced_pid: u32,
    pub(super) start: u64,
    pub(super) stop: u64,
    pub(super) start_jiffies: u64,
    pub(super) stop_jiffies: u64,
    pub(super) page_size: u32,
}

impl Infos {
    /// Reads a block of this type; `Ok(false)` if the type is unknown.
    pub(super) fn read(&mut self, block_type: u32, words: &mut Words<'_>) -> Result<bool, ParseError> {
        match block_type {
            TIME => self.time = Some(time(words)?),
            UNAME => {
                let len = words.u32("length of uname")?;
                self.uname = Some(words.text(u64::from(len), "uname")?);
            }
            IRQS => self.read_irqs(words)?,
            ADDRS => self.read_addresses(words)?,
            PIDS => self.read_pids(words)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn read_irqs(&mut self, words: &mut Words<'_>) -> Result<(), ParseError> {
        let count = words.u32("number of interrupts")?;
        words.u32("number of CPUs")?;
        for _ in 0..count {
            let number = words.u64("number of an interrupt")?;
            let len = u64::from(words.u32("length of its name")?);
            let name = words.text(len.next_multiple_of(4), "name of an interrupt")?;
            if self.irqs.len() < MAX_NAMES {
                self.irqs.insert(number, name);
            }
        }
        Ok(())
    }

    fn read_addresses(&mut self, words: &mut Words<'_>) -> Result<(), ParseError> {
        while words.left() > 0 {
            let address = words.u64("address of a function")?;
            if address == 0 {
                break;
            }
            let len = words.u32("length of its name")?;
            let name = words.text(u64::from(len), "name of a function")?;
            if self.functions.len() < MAX_NAMES {
                self.functions.insert(address, name);
            }
        }
        Ok(())
    }

    /// The names are from `ps`, cut to 15 bytes; the bytes after the NUL are undefined.
    fn read_pids(&mut self, words: &mut Words<'_>) -> Result<(), ParseError> {
        while words.left() > 0 {
            let pid = words.u64("pid")?;
            if pid == 0 {
                break;
            }
            let name = words.text(16, "name of a process")?;
            if let Ok(pid) = u32::try_from(pid)
                && self.lwp_names.len() < MAX_NAMES
            {
                self.lwp_names.push((Lwp(pid), name));
            }
        }
        Ok(())
    }
}

fn time(words: &mut Words<'_>) -> Result<TimeBlock, ParseError> {
    let mut time =
        TimeBlock { space: words.u32("space")?, cpus: words.u32("number of CPUs")?, ..TimeBlock::default() };
    for index in 0..time.cpus {
        let mhz = words.u32("MHz of a CPU")?;
        if index == 0 {
            time.mhz = mhz;
        }
    }
    time.record_pid = words.u32("pid of the recorder")?;
    time.traced_pid = words.u32("traced pid")?;
    time.start = words.u64("start")?;
    time.stop = words.u64("stop")?;
    time.start_jiffies = words.u64("start in jiffies")?;
    time.stop_jiffies = words.u64("stop in jiffies")?;
    time.page_size = words.u32("page size")?;
    Ok(time)
}
