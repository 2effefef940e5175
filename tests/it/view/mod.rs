//! `sigmund view`: who may ask, and that its numbers are those of the tables and of the command.

mod access;
mod braids;
mod index;
mod instant;
mod lists;
mod measures;
mod numbers;
mod server;
mod two_traces;

pub(crate) use self::server::{Reply, Server};

/// The super-trace of most of these tests.
const TRACE: &str = "t.supertrace";
