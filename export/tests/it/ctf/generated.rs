//! Random events with hostile declarations.

use std::io;

use sigmund_export::timeline::{Actors, Change, CpuId, EventTypeId, LwpId, RecordedEvent, Sink, ThreadId};
use sigmund_model::{Context, Cpu, EventType, Field, FieldType, Level, Params, Ticks};

use crate::known_timelines::{self, HOSTILE_NAMES};

/// Names that are hard for TSDL: keywords, names that are not identifiers, names that look like an escape.
const FIELD_NAMES: [&str; 12] =
    ["event", "int", "a b", "_x20_", "a_x20_b", "", "9", "len", "len", "Ü", "two\nlines", "quote\""];

const EVENT_NAMES: [&str; 6] =
    ["plain", "pro:vider", "with \"quotes\" and \\", "Ü \u{1F980}", "%d {x}", "a\u{1}7b"];

pub(super) struct Dice(pub(super) u64);

impl Dice {
    /// xorshift64*, as in G. Marsaglia, "Xorshift RNGs", 2003.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

/// Actors with events of these names.
pub(super) fn actors(dice: &mut Dice, changes: u64) -> Actors {
    let mut actors = known_timelines::actors(1000 + changes * 10);
    actors.event_types.clear();
    for level in [Level::Kern, Level::User] {
        for name in EVENT_NAMES {
            let field =
                |dice: &mut Dice| Field { name: dice.one(&FIELD_NAMES).into(), ty: dice.one(FieldType::ALL) };
            let fields = (0..dice.below(6)).map(|_| field(dice)).collect();
            let ty =
                EventType { level, code: None, name: name.into(), key: 0, fields, format: String::new() };
            actors.event_types.push(ty);
        }
    }
    actors
}

/// Emits this many events, no two at one instant.
pub(super) fn emit(dice: &mut Dice, actors: &Actors, events: u64, sink: &mut dyn Sink) -> io::Result<()> {
    let mut params = Params::default();
    let mut tick = actors.clock.first.0;
    for _ in 0..events {
        // More than a nanosecond apart: within one, the reader chooses the order of streams.
        tick += 3 + dice.below(7);
        let kind = EventTypeId(dice.below(actors.event_types.len() as u64) as u32);
        params.clear();
        for field in &actors[kind].fields {
            push(dice, field.ty, &mut params);
        }
        let often = |dice: &mut Dice, limit| (dice.below(4) > 0).then(|| dice.below(limit) as u32);
        let event = RecordedEvent {
            kind,
            cpu: often(dice, 2).map(CpuId),
            lwp: often(dice, 3).map(LwpId),
            thread: often(dice, 3).map(ThreadId),
            context: dice.one(&[None, Some(Context::Task), Some(Context::Irq), Some(Context::Idle)]),
            cpu_seen: often(dice, 9).map(Cpu),
            params: &params,
        };
        sink.change(Ticks(tick), &Change::Event(&event))?;
    }
    sink.finish()
}

/// Mostly a parameter of the declared type, sometimes of another.
fn push(dice: &mut Dice, ty: FieldType, params: &mut Params) {
    let number = match ty {
        FieldType::F64 => (dice.below(1 << 30) as f64 / 1024.0).to_bits() as i64,
        FieldType::Bool => dice.below(2) as i64,
        _ => dice.below(250) as i64,
    };
    match (dice.below(20), ty) {
        (0, _) => params.push_unknown(),
        (1, _) => params.push_text(dice.one(&HOSTILE_NAMES)),
        // One name per number: a second name is not kept.
        (2, _) => params.push_named(number, HOSTILE_NAMES[number as u64 as usize % HOSTILE_NAMES.len()]),
        (3, FieldType::F64) | (4.., FieldType::U8) => params.push_number(number),
        (3, _) => params.push_number(dice.one(&[-1, i64::MIN, i64::MAX, 1 << 32])),
        (_, FieldType::Text) => {
            params.push_text(dice.one(&["", "text", "a longer text, with a comma = and {"]))
        }
        _ => params.push_number(number),
    }
}
