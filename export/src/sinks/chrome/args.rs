//! The arguments of an event: `"args":{…}`.

use sigmund_model::{FieldType, Param};

use super::{StateSlice, json::Json};
use crate::timeline::{Actors, RecordedEvent, Track};

/// The arguments of one event. Without arguments, nothing is written.
struct Args<'a> {
    out: &'a mut Vec<u8>,
    any: bool,
}

impl<'a> Args<'a> {
    fn new(out: &'a mut Vec<u8>) -> Args<'a> {
        Args { out, any: false }
    }

    /// Begins an argument with a name in two parts. The caller appends its value.
    fn name(&mut self, name: &str, more: &str) -> &mut Vec<u8> {
        self.out.put(if self.any { "," } else { ",\"args\":{" });
        self.any = true;
        self.out.text_with(name, more);
        self.out.push(b':');
        self.out
    }

    fn end(self) {
        if self.any {
            self.out.push(b'}');
        }
    }
}

/// Arguments of a state: its LWP, its CPU, the object it waits for.
pub(super) fn state(out: &mut Vec<u8>, actors: &Actors, interval: &StateSlice) {
    let mut args = Args::new(out);
    if let Some(lwp) = interval.lwp {
        args.name("lwp", "").number(u64::from(actors[lwp].lwp.0));
    }
    if let Some(cpu) = interval.cpu {
        args.name("cpu", "").number(u64::from(actors[cpu].0));
    }
    if let Some(object) = interval.blocked_on {
        pointer(args.name("blocked on", ""), object);
    }
    args.end();
}

/// Arguments of a migration: `"from cpu":3,"to cpu":0`.
pub(super) fn migration(out: &mut Vec<u8>, actors: &Actors, from: Track, to: Track) {
    let mut args = Args::new(out);
    for (end, track) in [("from ", from), ("to ", to)] {
        let (kind, number) = match track {
            Track::Cpu(cpu) => ("cpu", u64::from(actors[cpu].0)),
            Track::Lwp(lwp) => ("lwp", u64::from(actors[lwp].lwp.0)),
            Track::Thread(thread) => ("thread", actors[thread].thread.0),
        };
        args.name(end, kind).number(number);
    }
    args.end();
}

/// Arguments of an event: its readable parameters, its LWP and its CPUs.
pub(super) fn event(out: &mut Vec<u8>, actors: &Actors, event: &RecordedEvent<'_>) {
    let mut args = Args::new(out);
    for (field, param) in actors[event.kind].fields.iter().zip(event.params.iter()) {
        let Param { number, text } = param;
        if let Some(number) = number {
            value(args.name(&field.name, ""), field.ty, number);
        }
        if let Some(text) = text {
            args.name(&field.name, if number.is_some() { " name" } else { "" }).text(text);
        }
    }
    if let Some(lwp) = event.lwp {
        args.name("on lwp", "").number(u64::from(actors[lwp].lwp.0));
    }
    if let Some(cpu) = event.cpu {
        args.name("on cpu", "").number(u64::from(actors[cpu].0));
    }
    let cpu = event.cpu.map(|cpu| actors[cpu]);
    if let Some(cpu) = event.cpu_seen.filter(|seen| cpu != Some(*seen)) {
        args.name("cpu seen", "").number(u64::from(cpu.0));
    }
    args.end();
}

fn value(out: &mut Vec<u8>, ty: FieldType, number: i64) {
    match ty {
        FieldType::U8 | FieldType::U16 | FieldType::U32 | FieldType::U64 | FieldType::Thread => {
            out.number(number as u64);
        }
        FieldType::I64 | FieldType::Text => out.signed(number),
        FieldType::F64 => out.float(f64::from_bits(number as u64)),
        FieldType::Bool => out.put(if number == 0 { "false" } else { "true" }),
        FieldType::Pointer => pointer(out, number),
    }
}

fn pointer(out: &mut Vec<u8>, address: i64) {
    out.put("\"0x");
    let digits = (address as u64 | 1).ilog2() / 4;
    for digit in (0..=digits).rev() {
        let digit = (address as u64 >> (4 * digit) & 0xf) as usize;
        out.push(b"0123456789abcdef"[digit]);
    }
    out.push(b'"');
}
