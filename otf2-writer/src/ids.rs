//! Ids of definitions, one type for each kind.

macro_rules! ids {
    ($($(#[$doc:meta])* $id:ident($number:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $id(pub $number);
    )*};
}

ids! {
    /// A string.
    StringId(u32);
    /// An attribute: the declaration of a value that events can have.
    AttributeId(u32);
    /// A node of the system tree: a machine, or a part of one.
    SystemTreeNodeId(u32);
    /// A group of locations: a process.
    LocationGroupId(u32);
    /// A location: a thread, or a series of metrics. Its files are named after it: `traces/17.evt`.
    LocationId(u64);
    /// A region: a function or another section of code or time that is entered and left.
    RegionId(u32);
    /// A group: a set of other definitions.
    GroupId(u32);
    /// A metric member: one quantity.
    MetricMemberId(u32);
    /// A metric class (a list of quantities), or an instance of one.
    MetricId(u32);
    /// A communicator: a set of locations that belong together.
    CommId(u32);
}

impl StringId {
    /// The empty string, which every archive defines.
    pub const EMPTY: StringId = StringId(0);
}
