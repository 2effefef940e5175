//! Rows of the tables of a super-trace. How their columns become bytes is the business of [`encoding`](crate::encoding).

pub(crate) mod about;
mod directory;
mod events;
mod optional;
mod writer;

pub(crate) use self::{
    directory::Directory, events::EventRows, optional::OptionalTable, writer::TableWriter,
};
