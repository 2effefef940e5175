//! The tests of modules that need no server: for these few the crate, which builds for a minute, is not built once more.
#![expect(dead_code, reason = "what only the server calls")]

#[path = "../src/statement.rs"]
mod statement;
#[path = "../src/token.rs"]
mod token;
