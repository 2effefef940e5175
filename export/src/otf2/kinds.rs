//! The enumerations of the format, with the numbers that `OTF2_Definitions.h` and `OTF2_GeneralDefinitions.h` of libotf2
//! 3.0 give them. Those that no writer of ours needed are missing.

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $number:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum $name { $($(#[$vdoc])* $variant = $number,)* }

        impl From<$name> for u8 {
            fn from(kind: $name) -> u8 {
                kind as u8
            }
        }
    )*};
}

kinds! {
    /// What a node of the system tree is.
    SystemTreeDomain {
        /// A whole machine.
        Machine = 0,
        /// What shares its memory: usually a node of a cluster.
        SharedMemory = 1,
    }
    /// What a group of locations is.
    LocationGroupType {
        /// Something else than a process.
        Unknown = 0,
        /// A process. It has to have a location that is a [`LocationType::CpuThread`].
        Process = 1,
    }
    /// What a location is.
    LocationType {
        /// Something else.
        Unknown = 0,
        /// A thread: enters and leaves regions.
        CpuThread = 1,
        /// Measures, and does nothing else.
        Metric = 3,
    }
    /// What a region is.
    RegionRole {
        /// Something else.
        Unknown = 0,
        /// A function.
        Function = 1,
        /// Some section of code.
        Code = 4,
        /// Made up by whoever measured.
        Artificial = 31,
    }
    /// Whose a region, a group or a lock is.
    Paradigm {
        /// Not known.
        Unknown = 0,
        /// Marked by the program's author.
        User = 1,
        /// Marked by the compiler.
        Compiler = 2,
        /// Threads that are forked and joined.
        OpenMp = 3,
        /// Of the software that measured.
        MeasurementSystem = 6,
        /// Threads that are created and waited for.
        Pthread = 7,
        /// The hardware's.
        Hardware = 10,
        /// Nobody's in particular.
        None = 22,
    }
    /// How the threads of a paradigm come into being.
    ParadigmClass {
        /// Processes that communicate.
        Process = 0,
        /// A team is forked, and joined.
        ThreadForkJoin = 1,
        /// Each is created, and waited for.
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
        /// A [`StringId`](super::StringId).
        String = 11,
        /// A [`LocationId`](super::LocationId).
        Location = 13,
    }
    /// What a group is of.
    GroupType {
        /// Locations.
        Locations = 1,
        /// Regions.
        Regions = 2,
        /// All locations of a paradigm. The first group of it; [`GroupType::CommGroup`]s count in it.
        CommLocations = 4,
        /// Some of them, by their places in the group of all.
        CommGroup = 5,
    }
    /// How a metric's values are meant: its property, and the time it is for.
    MetricMode {
        /// A value, at a point in time.
        AbsolutePoint = 0x11,
        /// A value, which holds until the next one.
        AbsoluteNext = 0x31,
    }
    /// Whether a metric is scaled by powers of 2 or of 10.
    Base {
        /// Of 2.
        Binary = 0,
        /// Of 10.
        Decimal = 1,
    }
    /// When a metric is recorded.
    MetricOccurrence {
        /// At every enter and leave.
        SynchronousStrict = 0,
        /// At an enter or leave.
        Synchronous = 1,
        /// At any time.
        Asynchronous = 2,
    }
    /// Who records a class of metrics.
    RecorderKind {
        /// Not known.
        Unknown = 0,
        /// Only its instances are recorded.
        Abstract = 1,
        /// Locations that are threads.
        Cpu = 2,
    }
}
