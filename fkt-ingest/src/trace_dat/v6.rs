//! Version 6: all parts in a fixed order.
//!
//! ```text
//!   | common header | header info | ftrace events | events | kallsyms | printk formats | saved cmdlines |
//!   | u32 CPUs | "options  \0" {u16 id, u32 n, n bytes}… u16 0 | "flyrecord\0" {u64 offset, u64 size} per CPU |
//!   | u64 n, clock "[x86-tsc]" | … pages at those offsets
//! ```
//!
//! An instance is an option BUFFER: u64 offset, name\0; at the offset there is again "flyrecord\0" and a CPU table.

use sigmund_model::{Cpu, LossKind, Severity};

use super::file_header::FileHeader;
use super::frames::Compression;
use super::metadata::{Buffer, MAX_REGIONS, Metadata, Region, option, selected_clock};
use crate::cut::Cut;
use crate::error::{Error, ErrorKind, ParseError};
use crate::input::Input;

pub(super) fn read(input: &Input, head: &FileHeader, mut cut: Cut<'_>) -> Result<Metadata, Error> {
    let mut metadata = Metadata::new(input.name(), head);
    metadata
        .read_v6(input, &mut cut)
        .map_err(|parse_error| Error::at(ErrorKind::Damaged, input.path(), parse_error))?;
    Ok(metadata)
}

impl Metadata {
    fn read_v6(&mut self, input: &Input, cut: &mut Cut<'_>) -> Result<(), ParseError> {
        self.tracing.read_all(cut)?;
        self.tracing.cmdlines(cut)?;
        let cpus = cut.u32("number of CPUs")?;
        self.cpu_count = Some(cpus);

        let mut instances = Vec::new();
        if cut.tag(b"options  \0", "options").is_ok() {
            loop {
                let id = cut.u16("option")?;
                if id == option::DONE {
                    break;
                }
                let size = cut.u32("size of an option")?;
                let mut option = cut.part(u64::from(size), "option")?;
                match id {
                    option::BUFFER => instances.push((option.u64("BUFFER")?, option.text("BUFFER")?)),
                    _ => self.option(id, option)?,
                }
            }
        }
        let regions = cpu_table(cut, cpus)?;
        if let Ok(size) = cut.u64("clock")
            && let Ok(clock) = cut.bytes(size, "clock")
        {
            self.clock = selected_clock(&String::from_utf8_lossy(clock)).or(self.clock.take());
        }
        self.add_buffer(String::new(), regions);
        for (at, name) in instances {
            match cpu_table(&mut Cut::of_file(input.bytes(), at).with_order(cut.order()), cpus) {
                Ok(regions) => self.add_buffer(name, regions),
                Err(parse_error) => self.note_loss(LossKind::Truncated, Severity::Serious, &parse_error),
            }
        }
        Ok(())
    }

    fn add_buffer(&mut self, name: String, regions: Vec<Region>) {
        let page_size = self.tracing.layout.page_size;
        self.buffers.push(Buffer { name, clock: None, page_size, compression: Compression::None, regions });
    }
}

fn cpu_table(cut: &mut Cut<'_>, cpus: u32) -> Result<Vec<Region>, ParseError> {
    cut.tag(b"flyrecord\0", "CPU table")?;
    let mut regions = Vec::new();
    if cpus as usize > MAX_REGIONS {
        return Err(cut.parse_error("CPU table", format!("at most {MAX_REGIONS} CPUs"), cpus.to_string()));
    }
    for cpu in 0..cpus {
        let (offset, size) = (cut.u64("CPU table")?, cut.u64("CPU table")?);
        regions.push(Region { cpu: Cpu(cpu), offset, size });
    }
    Ok(regions)
}
