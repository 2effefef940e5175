//! Writes rows of the tables of a super-trace. [`encoding`](crate::encoding) encodes their columns.

pub(crate) mod about;
mod directory;
mod events;
mod optional;
mod syscalls;
mod writer;

pub(crate) use self::{
    directory::Directory,
    events::EventRows,
    optional::OptionalTable,
    syscalls::{SyscallRow, SyscallRows},
    writer::TableWriter,
};
