//! Writing the tables of a super-trace.

mod directory;
mod writer;

pub(crate) use directory::Directory;
pub(crate) use writer::TableWriter;
