//! The position of a field, so that a tag or a length can be found by its name.

use std::sync::Arc;

use super::super::metadata::Enum;
use super::Register;

/// A part of a packet whose fields others may refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    PacketHeader,
    PacketContext,
    EventHeader,
    StreamContext,
    EventContext,
    Fields,
}

impl Scope {
    /// How a path says that it begins here.
    pub(super) fn path(self) -> &'static [&'static str] {
        match self {
            Scope::PacketHeader => &["trace", "packet", "header"],
            Scope::PacketContext => &["stream", "packet", "context"],
            Scope::EventHeader => &["stream", "event", "header"],
            Scope::StreamContext => &["stream", "event", "context"],
            Scope::EventContext => &["event", "context"],
            Scope::Fields => &["event", "fields"],
        }
    }
}

/// Names that can be referred to, and where their values will be.
pub(super) type Bindings = Vec<(Arc<str>, Binding)>;

#[derive(Clone, Debug)]
pub(super) enum Binding {
    Number { register: Register, ty: Option<Arc<Enum>> },
    Group(Bindings),
}

/// What a path leads to; of two with one name, the later.
pub(super) fn find<'b>(bindings: &'b Bindings, path: &[Arc<str>]) -> Option<&'b Binding> {
    let (first, rest) = path.split_first()?;
    let (_, binding) = bindings.iter().rev().find(|(name, _)| name == first)?;
    match binding {
        found if rest.is_empty() => Some(found),
        Binding::Group(inner) => find(inner, rest),
        Binding::Number { .. } => None,
    }
}
