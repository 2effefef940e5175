//! The metadata (TSDL, the specification's chapter 7 and appendix C), laid out as LTTng does.

use std::fmt::Write;

use sigmund_model::Context;

use super::clock::Clock;
use super::event_classes::{Declaration, DeclaredField, EventClasses};
use super::form::TsdlType;
use super::names::literal;
use super::packet_stream::StreamClass;
use crate::timeline::Actors;

/// Maximum number of user threads with a name in the metadata.
const MAX_NAMED_THREADS: usize = 1024;

/// The value of an unknown context.
pub(super) const NO_CONTEXT: u8 = 255;

/// The metadata of a trace.
pub(super) fn text(actors: &Actors, uuid: [u8; 16], classes: &EventClasses) -> String {
    let mut text = HEAD.replace("UUID", &uuid_text(uuid));
    let clock = Clock::of(&actors.clock);
    text.push_str(&ENV.replace("NAME", &literal(&actors.name)).replace("VERSION", env!("CARGO_PKG_VERSION")));
    text.push_str(
        &CLOCK.replace("FREQ", &clock.freq.to_string()).replace("OFFSET", &clock.offset.to_string()),
    );
    let threads = threads(actors);
    for stream in StreamClass::ALL {
        text.push_str(&stream_block(stream, &threads));
        for declaration in classes.declarations(stream) {
            event_block(&mut text, stream, &declaration);
        }
    }
    text
}

fn uuid_text(uuid: [u8; 16]) -> String {
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// The type of `_thread`: the numbers of user threads, with the name where a number has exactly one.
fn threads(actors: &Actors) -> String {
    let mut named: Vec<(u64, String)> = actors
        .thread_ids()
        .take(MAX_NAMED_THREADS + 1)
        .map(|id| (actors[id].thread.0, actors.thread_label(id)))
        .collect();
    if named.len() > MAX_NAMED_THREADS {
        named.clear();
    }
    named.sort();
    let is_unique = |number: u64| named.iter().filter(|(other, _)| *other == number).count() == 1;
    // Trace Compass reads labels of 63 bits.
    let labels = named.iter().filter(|(number, _)| i64::try_from(*number).is_ok() && is_unique(*number));
    enumeration("uint64_t", labels.map(|(number, label)| (*number as i64, label.as_str())))
}

fn contexts() -> String {
    let known = Context::ALL.iter().map(|context| (*context as i64, context.name()));
    enumeration("uint8_t", known.chain([(i64::from(NO_CONTEXT), "unknown")]))
}

/// An enumeration type, or the integer type if there are no labels.
fn enumeration<'l>(ty: &str, labels: impl Iterator<Item = (i64, &'l str)>) -> String {
    let labels: Vec<String> =
        labels.map(|(number, label)| format!("{} = {number}", literal(label))).collect();
    if labels.is_empty() { ty.to_owned() } else { format!("enum : {ty} {{ {} }}", labels.join(", ")) }
}

fn stream_block(stream: StreamClass, threads: &str) -> String {
    let (of_packet, of_event) = match stream {
        StreamClass::Kernel => ("\n\t\tuint32_t cpu_id;", ""),
        StreamClass::User => ("\n\t\tint32_t pid;", "\n\t\tint32_t _cpu_id;\n\t\tint32_t _cpu_seen;"),
        StreamClass::Unplaced => ("", ""),
    };
    STREAM
        .replace("ID", &stream.id().to_string())
        .replace("OF_PACKET", of_packet)
        .replace("OF_EVENT", of_event)
        .replace("CONTEXTS", &contexts())
        .replace("THREADS", threads)
}

fn event_block(text: &mut String, stream: StreamClass, event: &Declaration<'_>) {
    let (name, id) = (literal(&event.name), event.id);
    // Writing to a String does not fail.
    let _ = write!(text, "event {{\n\tname = {name};\n\tid = {id};\n\tstream_id = {};\n", stream.id());
    text.push_str("\tfields := struct {\n");
    for DeclaredField { identifier, ty, labels } in &event.fields {
        let ty = match ty {
            TsdlType::Integer(alias) => enumeration(alias, labels.iter().copied()),
            TsdlType::Float => "floating_point { exp_dig = 11; mant_dig = 53; align = 8; }".to_owned(),
            TsdlType::Text => "string".to_owned(),
        };
        let _ = writeln!(text, "\t\t{ty} {identifier};");
    }
    text.push_str("\t};\n};\n\n");
}

const HEAD: &str = r#"/* CTF 1.8 */

typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
typealias integer { size = 64; align = 8; signed = true; } := int64_t;
typealias integer { size = 64; align = 8; signed = false; base = 16; } := pointer_t;

trace {
	major = 1;
	minor = 8;
	uuid = "UUID";
	byte_order = le;
	packet.header := struct {
		uint32_t magic;
		uint8_t  uuid[16];
		uint32_t stream_id;
		uint64_t stream_instance_id;
	};
};

"#;

const ENV: &str = r#"env {
	domain = "kernel";
	sysname = "Linux";
	tracer_name = "lttng-modules";
	tracer_major = 2;
	tracer_minor = 13;
	tracer_patchlevel = 0;
	exporter = "sigmund VERSION";
	trace_name = NAME;
};

"#;

const CLOCK: &str = r#"clock {
	name = "ticks";
	description = "Ticks of the super-trace";
	freq = FREQ;
	offset = OFFSET;
};

typealias integer {
	size = 64; align = 8; signed = false;
	map = clock.ticks.value;
} := uint64_ticks_t;

"#;

const STREAM: &str = r#"stream {
	id = ID;
	event.header := struct {
		uint32_t id;
		uint64_ticks_t timestamp;
	};
	packet.context := struct {
		uint64_ticks_t timestamp_begin;
		uint64_ticks_t timestamp_end;
		uint64_t content_size;
		uint64_t packet_size;
		uint64_t packet_seq_num;
		uint64_t events_discarded;OF_PACKET
	};
	event.context := struct {OF_EVENT
		int32_t _tid;
		THREADS _thread;
		CONTEXTS _context;
	};
};

"#;
