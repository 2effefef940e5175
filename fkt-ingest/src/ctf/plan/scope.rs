//! The scopes of fields, in which a tag or a length is found by its name.

use std::sync::Arc;

use super::super::metadata::Enum;
use super::Register;

/// A part of a packet whose fields later ones may refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldScope {
    PacketHeader,
    PacketContext,
    EventHeader,
    StreamContext,
    EventContext,
    Fields,
}

impl FieldScope {
    /// The prefix of a path in this scope.
    pub(super) fn path(self) -> &'static [&'static str] {
        match self {
            FieldScope::PacketHeader => &["trace", "packet", "header"],
            FieldScope::PacketContext => &["stream", "packet", "context"],
            FieldScope::EventHeader => &["stream", "event", "header"],
            FieldScope::StreamContext => &["stream", "event", "context"],
            FieldScope::EventContext => &["event", "context"],
            FieldScope::Fields => &["event", "fields"],
        }
    }
}

/// Names that can be referred to, and their values' registers.
pub(super) type Bindings = Vec<(Arc<str>, Binding)>;

#[derive(Clone, Debug)]
pub(super) enum Binding {
    Number { register: Register, ty: Option<Arc<Enum>> },
    Group(Bindings),
}

/// The binding of a path; of two with one name, the later one.
pub(super) fn find<'b>(bindings: &'b Bindings, path: &[Arc<str>]) -> Option<&'b Binding> {
    let (first, rest) = path.split_first()?;
    let (_, binding) = bindings.iter().rev().find(|(name, _)| name == first)?;
    match binding {
        found if rest.is_empty() => Some(found),
        Binding::Group(inner) => find(inner, rest),
        Binding::Number { .. } => None,
    }
}
