//! Generates FxT traces, in each byte order and word size.

/// Parameters of a generated trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) big_endian: bool,
    /// Words of 64 bits.
    pub(crate) wide: bool,
    pub(crate) kernel: bool,
}

/// A record; for the kernel's, `id` is the pid, and `code` may be an unshifted one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) tick: u64,
    pub(crate) id: u64,
    pub(crate) cpu: u16,
    pub(crate) code: u64,
    pub(crate) args: Vec<u64>,
}

pub(crate) fn record(tick: u64, id: u64, code: u64, args: &[u64]) -> Record {
    Record { tick, id, cpu: 0, code, args: args.to_vec() }
}

/// Jiffies at the start of a kernel of 250 Hz that has been up for 1000 s.
pub(crate) const START_JIFFIES: u64 = ((1 << 32) - 300 * 250) * 100 / 250 + 100_000;
pub(crate) const PROCESS: u32 = 777;
const PAGE: usize = 4096;

impl Made {
    pub(crate) fn u16(self, n: u16) -> [u8; 2] {
        if self.big_endian { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    pub(crate) fn u32(self, n: u32) -> [u8; 4] {
        if self.big_endian { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    pub(crate) fn u64(self, n: u64) -> [u8; 8] {
        if self.big_endian { n.to_be_bytes() } else { n.to_le_bytes() }
    }

    fn word(self, n: u64) -> Vec<u8> {
        if self.wide { self.u64(n).to_vec() } else { self.u32(n as u32).to_vec() }
    }

    pub(crate) fn block(self, block_type: u32, content: &[u8]) -> Vec<u8> {
        let size = self.u64(16 + content.len() as u64);
        [&size[..], &self.u32(block_type), &self.u32(0), content].concat()
    }

    fn padded(self, text: &str, to: usize) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(to, 0);
        bytes
    }

    /// Two CPUs of 2600 MHz; optionally names of an interrupt, a function and two processes.
    fn infos(self, names: bool) -> Vec<u8> {
        let u32s = |numbers: &[u32]| numbers.iter().flat_map(|n| self.u32(*n)).collect::<Vec<u8>>();
        let u64s = |numbers: &[u64]| numbers.iter().flat_map(|n| self.u64(*n)).collect::<Vec<u8>>();
        let time = [
            u32s(&[u32::from(!self.kernel), 2, 2600, 2600, PROCESS, 0]),
            u64s(&[1_700_000_000, 1_700_000_003, START_JIFFIES, START_JIFFIES + 300]),
            u32s(&[PAGE as u32]),
        ];
        let irqs = [u32s(&[1, 2]), u64s(&[24]), u32s(&[5]), self.padded("eth0", 8)];
        let uname = "Linux test 2.4.20";
        let addresses = [u64s(&[0x40_1000]), u32s(&[5]), self.padded("main", 5), u64s(&[0])];
        let pids =
            [u64s(&[777]), self.padded("prog", 16), u64s(&[778]), self.padded("other", 16), u64s(&[0])];
        if !names {
            let none = self.u64(0);
            let blocks =
                [self.block(0x10, &time.concat()), self.block(0x12, &none), self.block(0x11, &none[..4])];
            return self
                .block(1, &[blocks.concat(), self.block(0x13, &none), self.block(0x14, &none)].concat());
        }
        let blocks = [
            self.block(0x10, &time.concat()),
            self.block(0x12, &irqs.concat()),
            self.block(0x11, &[u32s(&[uname.len() as u32]), uname.into()].concat()),
            self.block(0x13, &addresses.concat()),
            self.block(0x14, &pids.concat()),
        ];
        self.block(1, &blocks.concat())
    }

    fn record(self, record: &Record) -> Vec<u8> {
        let Record { tick, id, cpu, code, args } = record;
        let shifted = (code << 8) | (if self.kernel { args.len() as u64 * 4 } else { args.len() as u64 + 1 });
        let mut bytes = match self.kernel {
            true => {
                let code = if *code < 0x300 { *code } else { shifted };
                let (tick, id) = (self.u32(*tick as u32), self.u16(*id as u16));
                [&tick[..], &id, &self.u16(*cpu), &self.u32(code as u32)].concat()
            }
            false => [self.u64(*tick).to_vec(), self.word(*id), self.word(shifted)].concat(),
        };
        bytes.extend(args.iter().flat_map(|arg| self.word(*arg)));
        bytes
    }

    /// Kernel records are in pages, user records one after the other.
    fn records(self, records: &[Record]) -> Vec<u8> {
        if !self.kernel {
            return records.iter().flat_map(|record| self.record(record)).collect();
        }
        let mut bytes = self.u64(24).to_vec();
        bytes.extend([0xee; 24]);
        let mut page = Vec::new();
        let mut close = |page: &mut Vec<u8>| {
            bytes.extend(self.u32(page.len() as u32 + 4));
            page.resize(PAGE - 4, 0xaa);
            bytes.append(page);
        };
        for record in records {
            let record = self.record(record);
            if page.len() + record.len() > PAGE - 4 {
                close(&mut page);
            }
            page.extend(record);
        }
        close(&mut page);
        bytes.extend(self.u32(0xfefe_fefe));
        bytes.extend([0xaa; 100]);
        bytes
    }

    /// A complete file.
    pub(crate) fn file(self, records: &[Record]) -> Vec<u8> {
        self.file_of(self.block_type(), &self.records(records))
    }

    /// A file that libfxt reads in either byte order: it does not swap the numbers before names.
    pub(crate) fn file_without_names(self, records: &[Record]) -> Vec<u8> {
        let block = self.block(self.block_type(), &self.records(records));
        [self.machine(), self.infos(false), block].concat()
    }

    fn block_type(self) -> u32 {
        match (self.kernel, self.wide) {
            (true, false) => 0x100,
            (true, true) => 0x101,
            (false, false) => 0x200,
            (false, true) => 0x201,
        }
    }

    pub(crate) fn file_of(self, block_type: u32, content: &[u8]) -> Vec<u8> {
        [self.machine(), self.infos(true), self.block(block_type, content)].concat()
    }

    fn machine(self) -> Vec<u8> {
        let machine: u32 = match (self.big_endian, self.wide) {
            (false, true) => 2,
            (false, false) => 0,
            (true, true) => 0x20000,
            (true, false) => 0x10000,
        };
        machine.to_be_bytes().to_vec()
    }
}
