//! The emitted events of a timeline, for comparison with a reader's output.

use std::io;

use sigmund_export::sinks::ctf::original;
use sigmund_export::timeline::{Actors, Change, RecordedEvent, Sink};
use sigmund_model::{Context, FieldType, Level, Ticks};

use super::babeltrace::{Line, Value};

/// One emitted event.
#[derive(Clone, Debug)]
pub(crate) struct EmittedEvent {
    pub(crate) tick: u64,
    pub(crate) name: String,
    pub(crate) level: Level,
    pub(crate) cpu: Option<i64>,
    context: Vec<(&'static str, String)>,
    /// Names, types, numbers, texts.
    pub(crate) fields: Vec<(String, FieldType, Option<i64>, Option<String>)>,
}

/// Keeps events, and forwards all changes to another sink.
pub(crate) struct EventCollector<'a> {
    pub(crate) actors: &'a Actors,
    pub(crate) emitted: Vec<EmittedEvent>,
    pub(crate) sink: &'a mut dyn Sink,
}

impl Sink for EventCollector<'_> {
    fn change(&mut self, tick: Ticks, change: &Change<'_>) -> io::Result<()> {
        if let Change::Event(event) = change {
            self.emitted.push(EmittedEvent::new(self.actors, tick, event));
        }
        self.sink.change(tick, change)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.sink.finish()
    }
}

impl EmittedEvent {
    fn new(actors: &Actors, tick: Ticks, event: &RecordedEvent<'_>) -> EmittedEvent {
        let ty = &actors[event.kind];
        let cpu = event.cpu.map(|cpu| i64::from(actors[cpu].0));
        let seen = event.cpu_seen.map(|cpu| i64::from(cpu.0));
        let tid = event.lwp.map(|lwp| i64::from(actors[lwp].lwp.0));
        let tid = tid.or((event.context == Some(Context::Idle)).then_some(0));
        let or_none = |number: Option<i64>| number.unwrap_or(-1).to_string();
        let mut context = Vec::new();
        if ty.level == Level::User {
            context.extend([("cpu_id", or_none(cpu)), ("cpu_seen", or_none(seen))]);
        }
        let thread = event.thread.map_or(0, |thread| actors[thread].thread.0);
        let of_cpu = event.context.map_or("unknown", |context| context.name());
        context.extend([("tid", or_none(tid)), ("thread", thread.to_string()), ("context", of_cpu.into())]);
        let fields = ty.fields.iter().zip(event.params.iter());
        let fields = fields.map(|(field, param)| {
            (
                field.name.clone(),
                field.ty,
                param.number,
                param.text.map(|text| text.replace('\0', "\u{2400}")),
            )
        });
        let (level, name) = (ty.level, ty.name.replace('\0', "\u{2400}"));
        EmittedEvent { tick: tick.0, name, level, cpu, context, fields: fields.collect() }
    }

    /// Asserts that a printed line equals this event. Returns the number of compared fields.
    pub(crate) fn assert_is(&self, line: &Line) -> usize {
        assert_eq!((self.tick, &self.name), (line.tick, &line.name), "{self:?} {line:?}");
        if self.level == Level::Kern {
            let cpu = line.packet.iter().find(|(name, _)| name == "cpu_id").map(|(_, cpu)| cpu.clone());
            assert_eq!(cpu, self.cpu.map(|cpu| Value::Number(cpu.to_string())), "{self:?} {line:?}");
        }
        let context: Vec<(&str, String)> =
            line.context.iter().map(|(name, value)| (name.as_str(), plain(name, value))).collect();
        assert_eq!(context, self.context, "{self:?} {line:?}");
        self.assert_fields(line)
    }

    fn assert_fields(&self, line: &Line) -> usize {
        // A parameter that could not be read is missing.
        let emitted = self.fields.iter().filter(|(_, _, number, text)| number.is_some() || text.is_some());
        let emitted: Vec<_> = emitted.collect();
        assert_eq!(emitted.len(), line.fields.len(), "{self:?} {line:?}");
        for ((name, ty, number, text), (shown, value)) in emitted.iter().zip(&line.fields) {
            assert_eq!(*name, original(shown), "{self:?} {line:?}");
            assert!(is_same(*ty, *number, text.as_deref(), value), "{name:?}: {self:?} {line:?}");
        }
        emitted.len()
    }
}

fn plain(name: &str, value: &Value) -> String {
    match value {
        Value::Number(number) => number.clone(),
        Value::Named(_, label) if name == "context" => label.clone(),
        Value::Named(number, _) => number.clone(),
        Value::Text(text) => text.clone(),
    }
}

/// Whether a value is this number, with this name if it has one, or this text.
fn is_same(ty: FieldType, number: Option<i64>, text: Option<&str>, value: &Value) -> bool {
    let Some(number) = number else { return *value == Value::Text(text.unwrap_or_default().into()) };
    let is_number = |shown: &str| match ty {
        FieldType::F64 => {
            shown.parse::<f64>().is_ok_and(|shown| is_near(shown, f64::from_bits(number as u64)))
        }
        FieldType::Pointer => shown == format!("0x{number:X}"),
        FieldType::U64 | FieldType::Thread => shown == (number as u64).to_string(),
        _ => shown == number.to_string(),
    };
    match (value, text) {
        (Value::Named(shown, label), Some(text)) => is_number(shown) && label == text,
        // Floats, and numbers beyond 63 bits, have no names.
        (Value::Number(shown), text) => {
            is_number(shown) && (text.is_none() || ty == FieldType::F64 || number < 0)
        }
        // The same number had a name in another event.
        (Value::Named(shown, _), None) => is_number(shown),
        (Value::Text(_), _) => false,
    }
}

/// Whether two numbers are equal to six digits, as printed.
fn is_near(shown: f64, emitted: f64) -> bool {
    shown == emitted || shown.is_nan() && emitted.is_nan() || (shown - emitted).abs() <= emitted.abs() * 1e-5
}
