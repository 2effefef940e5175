//! What is said of a file as a whole, and how ticks are told from other numbers.

use parquet::{
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};

/// Level 1 takes as long, for 4 % more bytes; 3 takes a tenth longer, for 2 % less (hackbench with system calls).
const LEVEL: i32 = 2;

/// How the pages of all columns are compressed.
pub(super) fn level() -> ZstdLevel {
    ZstdLevel::try_new(LEVEL).unwrap_or_default()
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
