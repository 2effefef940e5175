//! Enumerations of the format, with their numbers from `OTF2_Definitions.h` and `OTF2_GeneralDefinitions.h` of libotf2
//! 3.0. Some values are omitted.

macro_rules! enumerations {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $number:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum $name { $($(#[$vdoc])* $variant = $number,)* }

        impl From<$name> for u8 {
            fn from(value: $name) -> u8 {
                value as u8
            }
        }
    )*};
}

enumerations! {
    /// Domain of a system tree node: the kind of hardware unit.
    SystemTreeDomain {
        /// A whole machine.
        Machine = 0,
        /// A unit with shared memory, usually a node of a cluster.
        SharedMemory = 1,
    }
    /// Kind of a location group.
    LocationGroupType {
        /// Not a process.
        Unknown = 0,
        /// A process. It must have a location that is a [`LocationType::CpuThread`].
        Process = 1,
    }
    /// Kind of a location.
    LocationType {
        /// Something else.
        Unknown = 0,
        /// A thread; it enters and leaves regions.
        CpuThread = 1,
        /// A location that only records metrics.
        Metric = 3,
    }
    /// Role of a region.
    RegionRole {
        /// Something else.
        Unknown = 0,
        /// A function.
        Function = 1,
        /// A section of code.
        Code = 4,
        /// Defined by the measurement system.
        Artificial = 31,
    }
    /// The programming model that a region, a group or a lock belongs to.
    Paradigm {
        /// Unknown.
        Unknown = 0,
        /// Marked by the program's author.
        User = 1,
        /// Marked by the compiler.
        Compiler = 2,
        /// OpenMP: threads that are forked and joined.
        OpenMp = 3,
        /// The measurement system.
        MeasurementSystem = 6,
        /// POSIX threads, which are created and waited for.
        Pthread = 7,
        /// The hardware.
        Hardware = 10,
        /// No programming model.
        None = 22,
    }
    /// How threads of a paradigm are created.
    ParadigmClass {
        /// Processes that communicate.
        Process = 0,
        /// A team of threads is forked and joined.
        ThreadForkJoin = 1,
        /// Each thread is created and waited for.
        ThreadCreateWait = 2,
    }
    /// The type of a value.
    Type {
        /// Unsigned.
        U64 = 4,
        /// Signed.
        I64 = 8,
        /// Floating point.
        F64 = 10,
        /// A [`StringId`](crate::StringId).
        String = 11,
        /// A [`LocationId`](crate::LocationId).
        Location = 13,
    }
    /// Kind of the members of a group.
    GroupType {
        /// Locations.
        Locations = 1,
        /// Regions.
        Regions = 2,
        /// All locations of a paradigm. Members of its [`GroupType::CommGroup`]s are indices into it, so it is defined
        /// first.
        CommLocations = 4,
        /// Some locations of a paradigm, as indices into its [`GroupType::CommLocations`].
        CommGroup = 5,
    }
    /// Whether the values of a metric are absolute, and for which time they are valid.
    MetricMode {
        /// An absolute value at one point in time.
        AbsolutePoint = 0x11,
        /// An absolute value that is valid until the next one.
        AbsoluteNext = 0x31,
    }
    /// Base of a metric's scale factor.
    Base {
        /// Powers of 2.
        Binary = 0,
        /// Powers of 10.
        Decimal = 1,
    }
    /// When the values of a metric are recorded.
    MetricOccurrence {
        /// At every enter and leave.
        SynchronousStrict = 0,
        /// At some enters and leaves.
        Synchronous = 1,
        /// At any time.
        Asynchronous = 2,
    }
    /// Kind of the locations that record a metric class.
    RecorderKind {
        /// Unknown.
        Unknown = 0,
        /// None: only metric instances of the class are recorded.
        Abstract = 1,
        /// Locations that are threads.
        Cpu = 2,
    }
}
