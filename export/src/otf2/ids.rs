//! What definitions are called by: a number for each kind of definition.

macro_rules! ids {
    ($($(#[$doc:meta])* $id:ident($number:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $id(pub $number);
    )*};
}

ids! {
    /// A text.
    StringId(u32);
    /// The declaration of a value that an event can carry.
    AttributeId(u32);
    /// A machine, or a part of one.
    SystemTreeNodeId(u32);
    /// A process.
    LocationGroupId(u32);
    /// Somebody whom things happen to. It names the files too: `traces/17.evt`.
    LocationId(u64);
    /// Something that is entered and left.
    RegionId(u32);
    /// A set of other definitions.
    GroupId(u32);
    /// One quantity that is measured.
    MetricMemberId(u32);
    /// Quantities that are measured together; or these for somebody in particular.
    MetricId(u32);
    /// A set of locations that have to do with each other.
    CommId(u32);
}

impl StringId {
    /// The empty text, which every archive has.
    pub const EMPTY: StringId = StringId(0);
}
