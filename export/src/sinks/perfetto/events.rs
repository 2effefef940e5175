//! Track events: slices, instants and counters, with their annotations.

use std::{io, sync::Arc};

use sigmund_model::{EventType, FieldType, Param, Params};

use super::{
    batch::Batch,
    schema::{annotation, packet, track_event},
    strings::{Category, EventNames, Iid, Note, Strings},
    tracks::{Row, SEQUENCE, Tracks},
    wire::Wire,
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
    /// When no thread can be started for compression.
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
        self.event(at, track_event::SLICE_BEGIN, row, named(category, name, more));
    }

    /// Ends the innermost slice of this row.
    #[inline]
    pub(super) fn end(&mut self, at: u64, row: Row) {
        self.event(at, track_event::SLICE_END, row, |_| {});
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
        self.event(at, track_event::INSTANT, row, named(category, name, more));
    }

    /// Sets the value of a counter.
    #[inline]
    pub(super) fn count(&mut self, at: u64, row: Row, value: u64) {
        self.event(at, track_event::COUNTER, row, |out| out.number(track_event::COUNTER_VALUE, value));
    }

    #[inline]
    fn event(&mut self, at: u64, kind: u64, row: Row, more: impl FnOnce(&mut Vec<u8>)) {
        let uuid = self.tracks.uuid(row, &self.actors, &mut self.batch);
        let Events { batch, strings, .. } = self;
        batch.packet(|out| {
            out.number(packet::TIMESTAMP, at);
            out.number(packet::TRUSTED_PACKET_SEQUENCE_ID, SEQUENCE);
            strings.take_unsent(|fresh, cleared| {
                let cleared = if cleared { packet::SEQ_INCREMENTAL_STATE_CLEARED } else { 0 };
                out.number(packet::SEQUENCE_FLAGS, packet::SEQ_NEEDS_INCREMENTAL_STATE | cleared);
                if !fresh.is_empty() {
                    out.counted(packet::INTERNED_DATA, fresh);
                }
            });
            out.message(packet::TRACK_EVENT, |out| {
                out.number(track_event::TYPE, kind);
                out.number(track_event::TRACK_UUID, uuid);
                more(out);
            });
        });
    }
}

/// The common fields of slices and instants, then `more`.
#[inline]
fn named(category: Category, name: Iid, more: impl FnOnce(&mut Vec<u8>)) -> impl FnOnce(&mut Vec<u8>) {
    move |out| {
        out.number(track_event::CATEGORY_IIDS, Strings::category(category));
        out.number(track_event::NAME_IID, name);
        more(out);
    }
}

/// Annotates a number.
#[inline]
pub(super) fn note(out: &mut Vec<u8>, note: Note, value: u64) {
    out.message(track_event::DEBUG_ANNOTATIONS, |out| {
        out.number(annotation::NAME_IID, Strings::note(note));
        out.number(annotation::UINT_VALUE, value);
    });
}

/// Annotates an address.
#[inline]
pub(super) fn note_address(out: &mut Vec<u8>, note: Note, value: i64) {
    out.message(track_event::DEBUG_ANNOTATIONS, |out| {
        out.number(annotation::NAME_IID, Strings::note(note));
        out.signed(annotation::POINTER_VALUE, value);
    });
}

/// Annotates an event's parameters. A parameter that could not be read is left out.
pub(super) fn note_params(out: &mut Vec<u8>, ty: &EventType, names: EventNames, params: &Params) {
    for (index, (field, param)) in ty.fields.iter().zip(params.iter()).enumerate() {
        let Param { number, text } = param;
        if let Some(number) = number {
            out.message(track_event::DEBUG_ANNOTATIONS, |out| {
                out.number(annotation::NAME_IID, names.field(index));
                value(out, field.ty, number);
            });
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

fn value(out: &mut Vec<u8>, ty: FieldType, number: i64) {
    match ty {
        FieldType::U8 | FieldType::U16 | FieldType::U32 | FieldType::U64 | FieldType::Thread => {
            out.signed(annotation::UINT_VALUE, number);
        }
        FieldType::I64 | FieldType::Text => out.signed(annotation::INT_VALUE, number),
        FieldType::F64 => out.fixed64(annotation::DOUBLE_VALUE, number as u64),
        FieldType::Bool => out.number(annotation::BOOL_VALUE, u64::from(number != 0)),
        FieldType::Pointer => out.signed(annotation::POINTER_VALUE, number),
    }
}
