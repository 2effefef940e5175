//! Hash maps by small keys: numbers of threads, LWPs, CPUs and words. Their hash is seeded, and quicker than that of std.

/// A map by small keys.
pub(crate) type Map<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
