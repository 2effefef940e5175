//! Pajé's events, and the declarations of their fields in a file.

use super::{FaultKind, LineFault};

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum $name { $($variant,)* }

        impl $name {
            const ALL: &'static [$name] = &[$($name::$variant,)*];

            pub(super) fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}

words! {
    Event {
        DefineContainerType = "PajeDefineContainerType",
        DefineStateType = "PajeDefineStateType",
        DefineEventType = "PajeDefineEventType",
        DefineVariableType = "PajeDefineVariableType",
        DefineLinkType = "PajeDefineLinkType",
        DefineEntityValue = "PajeDefineEntityValue",
        CreateContainer = "PajeCreateContainer",
        DestroyContainer = "PajeDestroyContainer",
        SetState = "PajeSetState",
        PushState = "PajePushState",
        PopState = "PajePopState",
        ResetState = "PajeResetState",
        New = "PajeNewEvent",
        SetVariable = "PajeSetVariable",
        AddVariable = "PajeAddVariable",
        SubVariable = "PajeSubVariable",
        StartLink = "PajeStartLink",
        EndLink = "PajeEndLink",
    }
}

words! {
    /// Fields that Pajé defines; a declaration may have others.
    FieldName {
        Time = "Time",
        Alias = "Alias",
        Type = "Type",
        Name = "Name",
        Container = "Container",
        Value = "Value",
        Color = "Color",
        StartContainerType = "StartContainerType",
        EndContainerType = "EndContainerType",
        StartContainer = "StartContainer",
        EndContainer = "EndContainer",
        Key = "Key",
    }
}

impl Event {
    pub(super) fn from_name(name: &str) -> Result<Event, LineFault> {
        let known = Event::ALL.iter().copied().find(|event| event.name() == name);
        known.ok_or_else(|| (FaultKind::Header, format!("expected an event of Pajé, found {name}")))
    }

    fn required(self) -> &'static [FieldName] {
        use FieldName::{
            Container, EndContainer, EndContainerType, Key, Name, StartContainer, StartContainerType, Time,
            Type, Value,
        };
        match self {
            Event::DefineContainerType
            | Event::DefineStateType
            | Event::DefineEventType
            | Event::DefineVariableType
            | Event::DefineEntityValue => &[Type, Name],
            Event::DefineLinkType => &[Type, Name, StartContainerType, EndContainerType],
            Event::CreateContainer => &[Time, Type, Container, Name],
            Event::DestroyContainer => &[Time, Type, Name],
            Event::PopState | Event::ResetState => &[Time, Type, Container],
            Event::SetState
            | Event::PushState
            | Event::New
            | Event::SetVariable
            | Event::AddVariable
            | Event::SubVariable => &[Time, Type, Container, Value],
            Event::StartLink => &[Time, Type, Container, StartContainer, Value, Key],
            Event::EndLink => &[Time, Type, Container, EndContainer, Value, Key],
        }
    }
}

/// The declaration of an event in a file.
pub(super) struct EventDeclaration {
    pub(super) event: Event,
    fields: Vec<(Option<FieldName>, FieldType)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldType {
    Text,
    Int,
    Double,
    Hex,
    Color,
}

impl EventDeclaration {
    pub(super) fn new(event: Event) -> EventDeclaration {
        EventDeclaration { event, fields: Vec::new() }
    }

    pub(super) fn add(&mut self, name: &str, ty: &str) -> Result<(), LineFault> {
        let ty = match ty {
            "string" => FieldType::Text,
            "int" => FieldType::Int,
            "date" | "double" => FieldType::Double,
            "hex" => FieldType::Hex,
            "color" => FieldType::Color,
            _ => return Err((FaultKind::Header, format!("expected the type of {name}, found {ty}"))),
        };
        let name = FieldName::ALL.iter().copied().find(|field| field.name() == name);
        if name.is_some() && self.fields.iter().any(|(known, _)| *known == name) {
            return Err((FaultKind::Header, format!("{} has the field {name:?} twice", self.event.name())));
        }
        self.fields.push((name, ty));
        Ok(())
    }

    /// The required fields that are missing.
    pub(super) fn missing(&self) -> Vec<&'static str> {
        let has = |field: &FieldName| self.fields.iter().any(|(name, _)| *name == Some(*field));
        self.event.required().iter().filter(|field| !has(field)).map(|field| field.name()).collect()
    }

    /// Assigns the words of a line to its fields.
    pub(super) fn fields<'a>(&self, words: &[&'a str]) -> Result<Fields<'a>, LineFault> {
        let (name, expected) = (self.event.name(), self.fields.len());
        if words.len() != expected {
            let what = format!("{name}: expected {expected} fields, found {}: {words:?}", words.len());
            return Err((FaultKind::Fields, what));
        }
        let mut fields = Fields::default();
        for ((field, ty), word) in self.fields.iter().zip(words) {
            if !ty.takes(word) {
                return Err((
                    FaultKind::Fields,
                    format!("{name}: {word:?} does not have the type of its field"),
                ));
            }
            if let Some(field) = field {
                fields.words[*field as usize] = Some(*word);
            }
        }
        Ok(fields)
    }
}

impl FieldType {
    fn takes(self, word: &str) -> bool {
        let is_number = |word: &str| word.parse::<f64>().is_ok_and(f64::is_finite);
        match self {
            FieldType::Text => true,
            FieldType::Int => word.parse::<i64>().is_ok(),
            FieldType::Double => is_number(word),
            FieldType::Hex => u64::from_str_radix(word.trim_start_matches("0x"), 16).is_ok(),
            FieldType::Color => {
                let part = |word: &str| word.parse::<f64>().is_ok_and(|part| (0.0..=1.0).contains(&part));
                let parts: Vec<&str> = word.split_ascii_whitespace().collect();
                parts.len() == 3 && parts.into_iter().all(part)
            }
        }
    }
}

/// The fields of a line that Pajé defines.
#[derive(Default)]
pub(super) struct Fields<'a> {
    words: [Option<&'a str>; FieldName::ALL.len()],
}

impl<'a> Fields<'a> {
    pub(super) fn get(&self, field: FieldName) -> Option<&'a str> {
        self.words[field as usize]
    }

    /// A required field.
    pub(super) fn need(&self, field: FieldName) -> Result<&'a str, LineFault> {
        self.get(field).ok_or_else(|| (FaultKind::Header, format!("has no field {}", field.name())))
    }

    pub(super) fn time(&self) -> Result<f64, LineFault> {
        let word = self.need(FieldName::Time)?;
        word.parse().map_err(|_| (FaultKind::Fields, format!("expected a time, found {word:?}")))
    }
}
