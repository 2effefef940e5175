//! What is said of a file as a whole, and how ticks are told from other numbers.

use parquet::{
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};

/// How the pages of all columns are compressed.
pub(super) fn level() -> ZstdLevel {
    ZstdLevel::default()
}

/// How columns are encoded and what a reader can skip them by is decided by each chunk, not here.
pub(super) fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(level()))
        .set_created_by(concat!("sigmund ", env!("CARGO_PKG_VERSION")).into())
        .build()
}

/// Whether a column of this name holds ticks, which are written as differences.
pub(super) fn is_difference(name: &str) -> bool {
    name.ends_with("_tick")
}
