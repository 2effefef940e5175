//! Hash maps and sets with small keys: numbers of threads, LWPs, CPUs and words. Their hash function is seeded, and faster than
//! that of std.

/// A map by small keys.
pub(crate) type Map<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;

/// A set of small keys.
pub(crate) type Set<K> = std::collections::HashSet<K, foldhash::fast::RandomState>;
