//! All events that a trace declares, found by the ID in a record.

use std::fmt::Write;
use std::sync::OnceLock;

use sigmund_model::{Effect, Event, EventType, Field, FieldType, Level};

use super::decode::{self, Decoder};
use super::machine::Machine;
use super::names::Names;
use super::print::{FieldLocation, PrintFormat, print_printk};
use super::recorder;
use super::text::{EventFormat, FieldFormat};

/// Declarations, and the plan for each ID.
#[derive(Debug)]
pub(crate) struct EventTable {
    types: Vec<EventType>,
    decoders: Vec<Decoder>,
    /// Index in `decoders` by ID; `u16::MAX` for none.
    by_id: Vec<u16>,
    /// The position of `common_type`, which is the same in every event of a kernel.
    type_offset: usize,
    pid_offset: usize,
    machine: Machine,
    names: Names,
    /// The declarations, and the parsed print formats of those that were printed.
    formats: Vec<EventFormat>,
    sentences: Vec<OnceLock<Option<PrintFormat>>>,
}

const NO_DECODER: u16 = u16::MAX;

impl EventTable {
    /// A table of these events, and one more type at the end: `unknown`, for records with an undeclared ID.
    pub(crate) fn new(formats: &[EventFormat], machine: Machine) -> EventTable {
        let mut table = EventTable {
            types: Vec::with_capacity(formats.len() + 1),
            decoders: Vec::with_capacity(formats.len()),
            by_id: Vec::new(),
            type_offset: common_offset(formats, "common_type").unwrap_or(0),
            pid_offset: common_offset(formats, "common_pid").unwrap_or(4),
            machine,
            names: Names::default(),
            formats: formats.iter().take(usize::from(NO_DECODER)).cloned().collect(),
            sentences: Vec::new(),
        };
        for format in formats.iter().take(usize::from(NO_DECODER)) {
            let (event_type, decoder) = decode::plan(format, table.types.len() as u32, machine);
            let id = usize::from(format.id);
            if table.by_id.len() <= id {
                table.by_id.resize(id + 1, NO_DECODER);
            }
            table.by_id[id] = table.decoders.len() as u16;
            table.types.push(event_type);
            table.decoders.push(decoder);
        }
        table.types.push(unknown());
        table.sentences.resize_with(table.formats.len(), OnceLock::new);
        table
    }

    /// The same table, with names for addresses.
    pub(crate) fn with_names(self, names: Names) -> EventTable {
        EventTable { names, ..self }
    }

    pub(crate) fn types(&self) -> &[EventType] {
        &self.types
    }

    /// Fills all fields of `event` that the record itself contains.
    #[inline]
    pub(crate) fn fill(&self, record: &[u8], event: &mut Event) {
        let id =
            record.get(self.type_offset..).and_then(|r| r.first_chunk()).map(|r| self.machine.order.u16(*r));
        let known = id.and_then(|id| self.by_id.get(usize::from(id))).copied();
        match known.and_then(|index| self.decoders.get(usize::from(index))) {
            Some(decoder) => decoder.fill(record, event),
            None => self.fill_unknown(id, record, event),
        }
    }

    /// Writes the record as the kernel's `trace` file shows it, without the task and the time: by the declaration's
    /// `print fmt`, or field by field if that is not supported.
    pub(crate) fn print(&self, record: &[u8], out: &mut String) {
        let id =
            record.get(self.type_offset..).and_then(|r| r.first_chunk()).map(|r| self.machine.order.u16(*r));
        let index = id.and_then(|id| self.by_id.get(usize::from(id))).map(|index| usize::from(*index));
        let declared = index.and_then(|index| Some((self.formats.get(index)?, self.sentences.get(index)?)));
        match declared {
            Some((format, _)) if format.name == "bprint" => self.print_bprint(format, record, out),
            Some((format, print_format)) => {
                let print_format = print_format.get_or_init(|| PrintFormat::parse(format, self.machine));
                match print_format {
                    Some(print_format) => print_format.print(record, self.machine, &self.names, out),
                    None => self.print_fields(record, out),
                }
            }
            None => self.print_fields(record, out),
        }
    }

    /// `trace_printk` with a format kept by the kernel: `%ps: ` and the text.
    fn print_bprint(&self, format: &EventFormat, record: &[u8], out: &mut String) {
        let location =
            |name: &str| FieldLocation::of(format.fields.iter().find(|f| f.name == name)?, self.machine);
        let number = |name| {
            let location = location(name)?;
            FieldLocation::number(location.element, location.machine, location.bytes(record)?)
        };
        let ip = number("ip").unwrap_or(0) as u64;
        match self.names.symbol(ip) {
            Some((function, _)) => out.push_str(function),
            None => out.push_str(&format!("{ip:#x}")),
        }
        out.push_str(": ");
        let address = number("fmt").unwrap_or(0) as u64;
        let packed = location("buf").and_then(|location| location.bytes(record)).unwrap_or_default();
        match self.names.printk(address) {
            Some(text) => print_printk(text, packed, self.machine, &self.names, out),
            None => out.push_str(&format!("(NO FORMAT FOUND at {address:x})")),
        }
    }

    fn print_fields(&self, record: &[u8], out: &mut String) {
        let mut event = Event::default();
        self.fill(record, &mut event);
        let fields = self.types.get(event.kind as usize).map_or([].as_slice(), |ty| &ty.fields);
        for (index, (field, param)) in fields.iter().zip(event.params.iter()).enumerate() {
            // Writing to a String cannot fail.
            let _ = write!(out, "{}{}={param}", if index > 0 { " " } else { "" }, field.name);
        }
    }

    #[cold]
    fn fill_unknown(&self, id: Option<u16>, record: &[u8], event: &mut Event) {
        event.kind = self.decoders.len() as u32;
        let pid =
            record.get(self.pid_offset..).and_then(|r| r.first_chunk()).map(|r| self.machine.order.u32(*r));
        event.lwp = pid.filter(|pid| *pid <= i32::MAX as u32).map(sigmund_model::Lwp);
        let flags = record.get(self.type_offset + 2).copied().unwrap_or(0);
        event.context = recorder::context(flags, event.lwp);
        event.effect = Effect::None;
        event.params.clear();
        match id {
            Some(id) => event.params.push_number(i64::from(id)),
            None => event.params.push_unknown(),
        }
        event.params.push_number(record.len() as i64);
    }
}

fn common_offset(formats: &[EventFormat], name: &str) -> Option<usize> {
    let fields: &[FieldFormat] = &formats.first()?.fields;
    fields.iter().find(|f| f.name == name).map(|f| f.offset as usize)
}

fn unknown() -> EventType {
    let field = |name: &str| Field { name: name.to_owned(), ty: FieldType::U32 };
    EventType {
        level: Level::Kern,
        code: None,
        name: "unknown".to_owned(),
        key: 0,
        fields: vec![field("id"), field("size")],
        format: "event {id} of {size} bytes".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_an_undeclared_id_is_kept_with_its_number_and_size() {
        let table = EventTable::new(&[], Machine::little_64(true));
        let mut event = Event::default();
        table.fill(&[0x74, 1, 0x08, 0, 70, 0, 0, 0, 1, 2, 3, 4], &mut event);
        assert_eq!(table.types()[event.kind as usize].name, "unknown");
        assert_eq!(event.lwp, Some(sigmund_model::Lwp(70)));
        assert_eq!(event.context, sigmund_model::Context::Irq);
        let printed: Vec<String> = event.params.iter().map(|p| p.to_string()).collect();
        assert_eq!(printed, ["372", "12"]);
    }
}
