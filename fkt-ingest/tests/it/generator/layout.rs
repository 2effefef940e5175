//! The two versions of the file around the pages.

use std::io::Write;

use super::{Buffer, Content, Shape};

/// Pages of each CPU of each buffer.
type Regions = [Vec<Vec<u8>>];

const DONE: u16 = 0;
const BUFFER: u16 = 3;
const TRACECLOCK: u16 = 4;
const CPUCOUNT: u16 = 8;

struct Out {
    shape: Shape,
    bytes: Vec<u8>,
}

impl Out {
    fn u16(&mut self, number: u16) {
        self.bytes.extend(self.shape.u16(number));
    }

    fn u32(&mut self, number: u32) {
        self.bytes.extend(self.shape.u32(number));
    }

    fn u64(&mut self, number: u64) {
        self.bytes.extend(self.shape.u64(number));
    }

    fn text(&mut self, text: &str) {
        self.bytes.extend(text.bytes());
        self.bytes.push(0);
    }

    fn sized(&mut self, text: &str) {
        self.u64(text.len() as u64);
        self.bytes.extend(text.bytes());
    }

    fn option(&mut self, id: u16, data: &[u8]) {
        self.u16(id);
        self.u32(data.len() as u32);
        self.bytes.extend(data);
    }

    fn align(&mut self) {
        let size = self.bytes.len().next_multiple_of(self.shape.page_size);
        self.bytes.resize(size, 0);
    }

    fn part(shape: Shape, fill: impl FnOnce(&mut Out)) -> Vec<u8> {
        let mut out = Out { shape, bytes: Vec::new() };
        fill(&mut out);
        out.bytes
    }
}

fn head(shape: Shape) -> Out {
    let mut out = Out { shape, bytes: b"\x17\x08\x44tracing".to_vec() };
    out.text(&shape.version.to_string());
    out.bytes.extend([u8::from(shape.big_endian), shape.long as u8]);
    out.u32(shape.page_size as u32);
    out
}

/// Header info, ftrace events, events, kallsyms, printk formats, saved command lines; and the ids of their sections.
fn declarations(shape: Shape, content: &Content) -> [(u16, Vec<u8>); 6] {
    let (ftrace, events): (Vec<_>, Vec<_>) =
        content.formats.iter().partition(|(system, _)| system == "ftrace");
    let mut systems: Vec<&str> = events.iter().map(|(system, _)| system.as_str()).collect();
    systems.dedup();
    let long = shape.long;
    let (data, size) = (8 + long, shape.page_size - 8 - long);
    let header_page = format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
         \tfield: local_t commit;\toffset:8;\tsize:{long};\tsigned:1;\n\
         \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
         \tfield: char data;\toffset:{data};\tsize:{size};\tsigned:1;\n"
    );
    let headers = Out::part(shape, |out| {
        out.text("header_page");
        out.sized(&header_page);
        out.text("header_event");
        out.sized("# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n");
    });
    let ftrace = Out::part(shape, |out| {
        out.u32(ftrace.len() as u32);
        ftrace.iter().for_each(|(_, format)| out.sized(format));
    });
    let events = Out::part(shape, |out| {
        out.u32(systems.len() as u32);
        for system in &systems {
            let own: Vec<_> = events.iter().filter(|(s, _)| s == system).collect();
            out.text(system);
            out.u32(own.len() as u32);
            own.iter().for_each(|(_, format)| out.sized(format));
        }
    });
    let counted = |text: &str| {
        Out::part(shape, |out| {
            out.u32(text.len() as u32);
            out.bytes.extend(text.bytes());
        })
    };
    let cmdlines = Out::part(shape, |out| out.sized(&content.cmdlines));
    [
        (16, headers),
        (17, ftrace),
        (18, events),
        (19, counted(&content.kallsyms)),
        (20, counted(&content.printk_formats)),
        (21, cmdlines),
    ]
}

pub(super) fn version_6(shape: Shape, content: &Content, regions: &Regions) -> Vec<u8> {
    let mut out = head(shape);
    declarations(shape, content).iter().for_each(|(_, bytes)| out.bytes.extend(bytes));
    let top = &content.buffers[0];
    out.u32(top.cpus.len() as u32);
    out.bytes.extend(b"options  \0");
    for (id, data) in &content.options {
        out.option(*id, data);
    }
    // Without it, trace-cmd does not read the clock after the CPU table.
    out.option(TRACECLOCK, format!("local [{}] global\0", top.clock).as_bytes());
    let mut instances = Vec::new();
    for buffer in &content.buffers[1..] {
        assert_eq!(buffer.cpus.len(), top.cpus.len(), "version 6 has one number of CPUs");
        instances.push(out.bytes.len() + 6);
        out.option(BUFFER, &[&[0; 8], buffer.name.as_bytes(), &[0]].concat());
    }
    out.u16(DONE);
    let mut tables = Vec::new();
    for (index, buffer) in content.buffers.iter().enumerate() {
        if let Some(at) = index.checked_sub(1) {
            let here = shape.u64(out.bytes.len() as u64);
            out.bytes[instances[at]..instances[at] + 8].copy_from_slice(&here);
        }
        out.bytes.extend(b"flyrecord\0");
        tables.push(out.bytes.len());
        out.bytes.resize(out.bytes.len() + 16 * buffer.cpus.len(), 0);
        if index == 0 {
            out.sized(&format!("local [{}] global", buffer.clock));
        }
    }
    for (table, regions) in tables.iter().zip(regions) {
        for (cpu, pages) in regions.iter().enumerate() {
            out.align();
            let place = [shape.u64(out.bytes.len() as u64), shape.u64(pages.len() as u64)].concat();
            out.bytes[table + 16 * cpu..table + 16 * cpu + 16].copy_from_slice(&place);
            out.bytes.extend(pages);
        }
    }
    out.bytes
}

pub(super) fn version_7(shape: Shape, content: &Content, regions: &Regions) -> Vec<u8> {
    let mut out = head(shape);
    out.text(shape.compression);
    out.text(if shape.compression == "none" { "" } else { "1.2.3" });
    let options_at = out.bytes.len();
    out.u64(0);

    let mut options = Vec::new();
    for (id, bytes) in declarations(shape, content) {
        options.push((id, shape.u64(out.bytes.len() as u64).to_vec()));
        section(&mut out, id, &bytes);
    }
    options.push((CPUCOUNT, shape.u32(content.buffers[0].cpus.len() as u32).to_vec()));
    options.push((TRACECLOCK, format!("local [{}] global\0", content.buffers[0].clock).into_bytes()));
    options.extend(content.options.iter().cloned());
    // As in trace-cmd: a second options section, after the pages, has their positions.
    let first = shape.u64(out.bytes.len() as u64);
    out.bytes[options_at..options_at + 8].copy_from_slice(&first);
    let next_at = options_section(&mut out, &options);

    let mut buffers = Vec::new();
    for (buffer, regions) in content.buffers.iter().zip(regions) {
        buffers.push((BUFFER, buffer_section(&mut out, buffer, regions)));
    }
    let second = shape.u64(out.bytes.len() as u64);
    out.bytes[next_at..next_at + 8].copy_from_slice(&second);
    options_section(&mut out, &buffers);
    out.bytes
}

/// Returns the position for the offset of the next options.
fn options_section(out: &mut Out, options: &[(u16, Vec<u8>)]) -> usize {
    let content = Out::part(out.shape, |part| {
        options.iter().for_each(|(id, data)| part.option(*id, data));
        part.option(DONE, &[0; 8]);
    });
    // Never compressed here, so that the offset can be filled in later.
    section_head(out, 0, false, content.len() as u64);
    out.bytes.extend(content);
    out.bytes.len() - 8
}

fn section_head(out: &mut Out, id: u16, compressed: bool, size: u64) {
    out.u16(id);
    out.u16(u16::from(compressed));
    out.u32(0);
    out.u64(size);
}

fn section(out: &mut Out, id: u16, content: &[u8]) {
    if out.shape.compression == "none" {
        section_head(out, id, false, content.len() as u64);
        return out.bytes.extend(content);
    }
    let frame = compress(out.shape.compression, content);
    section_head(out, id, true, frame.len() as u64 + 8);
    out.u32(frame.len() as u32);
    out.u32(content.len() as u32);
    out.bytes.extend(frame);
}

/// Writes the section with the pages; returns the option with their positions.
fn buffer_section(out: &mut Out, buffer: &Buffer, regions: &[Vec<u8>]) -> Vec<u8> {
    let (shape, start) = (out.shape, out.bytes.len());
    section_head(out, 3, shape.compression != "none", 0);
    let option = Out::part(shape, |option| {
        option.u64(start as u64);
        option.text(&buffer.name);
        option.text(&buffer.clock);
        option.u32(shape.page_size as u32);
        option.u32(regions.len() as u32);
        for (cpu, pages) in regions.iter().enumerate() {
            out.align();
            let at = out.bytes.len();
            if shape.compression == "none" || pages.is_empty() {
                out.bytes.extend(pages);
            } else {
                chunks(out, pages);
            }
            // trace-cmd does not include the leading word of the chunks in the size.
            let size = (out.bytes.len() - at).saturating_sub(if shape.compression == "none" { 0 } else { 4 });
            option.u32(cpu as u32);
            option.u64(at as u64);
            option.u64(size as u64);
        }
    });
    let size = shape.u64((out.bytes.len() - start - 16) as u64);
    out.bytes[start + 8..start + 16].copy_from_slice(&size);
    option
}

fn chunks(out: &mut Out, pages: &[u8]) {
    let chunks = pages.chunks(2 * out.shape.page_size);
    out.u32(chunks.len() as u32);
    for chunk in chunks {
        let frame = compress(out.shape.compression, chunk);
        out.u32(frame.len() as u32);
        out.u32(chunk.len() as u32);
        out.bytes.extend(frame);
    }
}

fn compress(compression: &str, bytes: &[u8]) -> Vec<u8> {
    if compression == "zstd" {
        return zstd::bulk::compress(bytes, 1).unwrap();
    }
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
