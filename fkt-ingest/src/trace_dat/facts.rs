//! Facts in a trace.dat other than its events, for people.

use super::metadata::Metadata;

/// Rows of the table `info`.
pub(super) fn of(metadata: &Metadata) -> Vec<(String, String)> {
    let tracing = &metadata.tracing;
    let mut facts = Facts(Vec::new());
    facts.add("uname", metadata.uname.clone());
    facts.add("writer", metadata.writer.clone());
    facts.add("cpus", metadata.cpu_count);
    facts.add("trace_id", metadata.trace_id.map(|id| format!("{id:#x}")));
    for (name, id) in &metadata.guests {
        facts.add("guest", Some(format!("{name}, trace id {id:#x}")));
    }
    let host = metadata.time_shift.as_ref();
    facts.add("host_trace_id", host.map(|shift| format!("{:#x}", shift.peer_trace_id)));
    facts.add("time_offset_ns", Some(metadata.time_offset).filter(|offset| *offset != 0));
    let conversion = metadata.tsc_to_nanos;
    facts.add("tsc_to_ns", conversion.map(|c| format!("{} + (tsc * {} >> {})", c.offset, c.mult, c.shift)));
    for buffer in &metadata.buffers {
        let name = if buffer.name.is_empty() { "top" } else { &buffer.name };
        let clock = buffer.clock.as_deref().or(metadata.clock.as_deref()).unwrap_or("local");
        let (cpus, page_size) = (buffer.regions.len(), buffer.page_size);
        facts.add("buffer", Some(format!("{name}: clock {clock}, {cpus} CPUs, pages of {page_size} bytes")));
    }
    facts.count("saved_command_lines", tracing.lwp_names.len());
    facts.count("kallsyms", tracing.kallsyms.lines().count());
    facts.count("printk_formats", tracing.printk_formats.lines().count());
    facts.0
}

struct Facts(Vec<(String, String)>);

impl Facts {
    fn add(&mut self, key: &str, value: Option<impl ToString>) {
        self.0.extend(value.map(|value| (key.to_owned(), value.to_string())));
    }

    fn count(&mut self, key: &str, count: usize) {
        self.add(key, (count > 0).then_some(count));
    }
}
