//! Track events: slices, instants and counters, with their annotations.

use std::{io, sync::Arc};

use sigmund_model::{EventType, FieldType, Param, Params};

use super::{
    batch::Batch,
    schema::{annotation, packet, track_event},
    strings::{Category, EventNames, Iid, Note, Strings},
    tracks::{Row, SEQUENCE, Tracks},
    wire::{Short, Wire, set_length},
};
use crate::timeline::Actors;

/// Writes track events into a batch, with the definitions that they refer to.
pub(super) struct Events {
    pub(super) actors: Arc<Actors>,
    pub(super) batch: Batch,
    pub(super) strings: Strings,
    tracks: Tracks,
}

impl Events {
    /// # Errors
    /// If no thread can be started for compression.
    pub(super) fn new(actors: Arc<Actors>, level: Option<u32>) -> io::Result<Events> {
        let strings = Strings::new(&actors);
        Ok(Events { actors, batch: Batch::new(level)?, strings, tracks: Tracks::new() })
    }

    /// Begins a slice on this row. `more` may add annotations and flows.
    #[inline]
    pub(super) fn begin(
        &mut self,
        at: u64,
        row: Row,
        category: Category,
        name: Iid,
        more: impl FnOnce(&mut Vec<u8>),
    ) {
        self.event(at, track_event::SLICE_BEGIN, row, Some((category, name)), more);
    }

    /// Ends the innermost slice of this row.
    #[inline]
    pub(super) fn end(&mut self, at: u64, row: Row) {
        self.event(at, track_event::SLICE_END, row, None, |_| {});
    }

    /// Writes an instant.
    #[inline]
    pub(super) fn instant(
        &mut self,
        at: u64,
        row: Row,
        category: Category,
        name: Iid,
        more: impl FnOnce(&mut Vec<u8>),
    ) {
        self.event(at, track_event::INSTANT, row, Some((category, name)), more);
    }

    /// Sets the value of a counter.
    #[inline]
    pub(super) fn count(&mut self, at: u64, row: Row, value: u64) {
        self.event(at, track_event::COUNTER, row, None, |out| out.number(track_event::COUNTER_VALUE, value));
    }

    /// Slices and instants have a category and a name.
    #[inline]
    fn event(
        &mut self,
        at: u64,
        kind: u64,
        row: Row,
        named: Option<(Category, Iid)>,
        more: impl FnOnce(&mut Vec<u8>),
    ) {
        let uuid = self.tracks.uuid(row, &self.actors, &mut self.batch);
        let Events { batch, strings, .. } = self;
        batch.packet(|out| {
            let mut head = Short::default();
            head.number(packet::TIMESTAMP, at);
            head.number(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
            strings.take_unsent(|fresh, cleared| {
                let cleared = if cleared { packet::SEQ_INCREMENTAL_STATE_CLEARED } else { 0 };
                head.number(packet::SEQUENCE_FLAGS, packet::SEQ_NEEDS_INCREMENTAL_STATE | cleared);
                if !fresh.is_empty() {
                    std::mem::take(&mut head).append_to(out);
                    out.counted(packet::INTERNED_DATA, fresh);
                }
            });
            head.begin(packet::TRACK_EVENT);
            let from = out.len() + head.len();
            head.number(track_event::TYPE, kind);
            head.number(track_event::TRACK_UUID, uuid);
            if let Some((category, name)) = named {
                head.number(track_event::CATEGORY_IIDS, Strings::category(category));
                head.number(track_event::NAME_IID, name);
            }
            head.append_to(out);
            more(out);
            set_length(out, from);
        });
    }
}

/// Annotates a number.
#[inline]
pub(super) fn note(out: &mut Vec<u8>, note: Note, value: u64) {
    annotate(out, Strings::note(note), |out| out.number(annotation::UINT_VALUE, value));
}

/// Annotates an address.
#[inline]
pub(super) fn note_address(out: &mut Vec<u8>, note: Note, value: i64) {
    annotate(out, Strings::note(note), |out| out.number(annotation::POINTER_VALUE, value as u64));
}

/// Annotates a value that is not a text.
#[inline]
fn annotate(out: &mut Vec<u8>, name: Iid, value: impl FnOnce(&mut Short)) {
    let mut short = Short::default();
    short.begin(track_event::DEBUG_ANNOTATIONS);
    let from = short.len();
    short.number(annotation::NAME_IID, name);
    value(&mut short);
    short.end(from);
    short.append_to(out);
}

/// Annotates an event's parameters. A parameter that could not be read is left out.
pub(super) fn note_params(out: &mut Vec<u8>, ty: &EventType, names: EventNames, params: &Params) {
    for (index, (field, param)) in ty.fields.iter().zip(params.iter()).enumerate() {
        let Param { number, text } = param;
        if let Some(number) = number {
            annotate(out, names.field(index), |out| value(out, field.ty, number));
        }
        if let Some(text) = text {
            let name = if number.is_some() { names.name_of_field(index) } else { names.field(index) };
            out.message(track_event::DEBUG_ANNOTATIONS, |out| {
                out.number(annotation::NAME_IID, name);
                out.text(annotation::STRING_VALUE, text);
            });
        }
    }
}

/// A negative number takes ten bytes.
#[inline]
fn value(out: &mut Short, ty: FieldType, number: i64) {
    match ty {
        FieldType::U8 | FieldType::U16 | FieldType::U32 | FieldType::U64 | FieldType::Thread => {
            out.number(annotation::UINT_VALUE, number as u64);
        }
        FieldType::I64 | FieldType::Text => out.number(annotation::INT_VALUE, number as u64),
        FieldType::F64 => out.fixed64(annotation::DOUBLE_VALUE, number as u64),
        FieldType::Bool => out.number(annotation::BOOL_VALUE, u64::from(number != 0)),
        FieldType::Pointer => out.number(annotation::POINTER_VALUE, number as u64),
    }
}
