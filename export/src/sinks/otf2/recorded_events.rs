//! Recorded events: a region for each declared event, and attributes for its fields.

use std::io;

use otf2_writer::{Archive, AttributeId, AttributeValue, RegionId, StringId, Type};
use sigmund_model::{Field, FieldType};

use super::regions::Regions;
use crate::timeline::{Actors, EventTypeId, RecordedEvent};

/// The definitions for declared events.
#[derive(Debug)]
pub(super) struct RecordedEvents {
    kinds: Vec<Option<EventDefinition>>,
}

#[derive(Debug)]
struct EventDefinition {
    region: RegionId,
    fields: Vec<FieldAttributes>,
}

/// The attributes of a field, which may be a number, a text, or a number with a name: `24(eth0)`.
#[derive(Debug)]
struct FieldAttributes {
    ty: Type,
    number: AttributeId,
    text: AttributeId,
}

impl RecordedEvents {
    pub(super) fn new(actors: &Actors) -> RecordedEvents {
        RecordedEvents { kinds: actors.event_types.iter().map(|_| None).collect() }
    }

    /// Returns the region of an event, and adds its parameters to `values`.
    pub(super) fn draw(
        &mut self,
        archive: &mut Archive,
        actors: &Actors,
        regions: &mut Regions,
        event: &RecordedEvent<'_>,
        values: &mut Vec<(AttributeId, AttributeValue)>,
    ) -> io::Result<RegionId> {
        let known = &mut self.kinds[event.kind.index()];
        let kind = match known {
            Some(kind) => kind,
            None => known.insert(EventDefinition::define(archive, actors, regions, event.kind)?),
        };
        for (field, param) in kind.fields.iter().zip(event.params.iter()) {
            if let Some(number) = param.number {
                values.push((field.number, field.value(number)));
            }
            if let Some(text) = param.text {
                values.push((field.text, AttributeValue::String(archive.definitions().string(text)?)));
            }
        }
        Ok(kind.region)
    }
}

impl EventDefinition {
    #[cold]
    fn define(
        archive: &mut Archive,
        actors: &Actors,
        regions: &mut Regions,
        kind: EventTypeId,
    ) -> io::Result<EventDefinition> {
        let event = &actors[kind];
        let region = regions.event(archive, &event.name)?;
        let fields = event.fields.iter().map(|field| FieldAttributes::define(archive, &event.name, field));
        Ok(EventDefinition { region, fields: fields.collect::<io::Result<_>>()? })
    }
}

impl FieldAttributes {
    /// The attribute of the declared type has the name of the field; the other has a suffix.
    fn define(archive: &mut Archive, event: &str, field: &Field) -> io::Result<FieldAttributes> {
        let (ty, number, text) = match field.ty {
            FieldType::Text => (Type::I64, format!("{}: number", field.name), field.name.clone()),
            FieldType::I64 => (Type::I64, field.name.clone(), format!("{}: name", field.name)),
            FieldType::F64 => (Type::F64, field.name.clone(), format!("{}: name", field.name)),
            _ => (Type::U64, field.name.clone(), format!("{}: name", field.name)),
        };
        let definitions = archive.definitions();
        let description = definitions.string(event)?;
        let mut attribute = |name: &str, ty| {
            let name: StringId = definitions.string(name)?;
            definitions.attribute(name, description, ty)
        };
        Ok(FieldAttributes { ty, number: attribute(&number, ty)?, text: attribute(&text, Type::String)? })
    }

    fn value(&self, number: i64) -> AttributeValue {
        match self.ty {
            Type::I64 => AttributeValue::I64(number),
            Type::F64 => AttributeValue::F64(f64::from_bits(number as u64)),
            _ => AttributeValue::U64(number as u64),
        }
    }
}
