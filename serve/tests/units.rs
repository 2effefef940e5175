//! The tests of modules that need no server: for these few the crate, which builds for a minute, is not built once more.
#![expect(dead_code, unreachable_pub, reason = "what the server calls, and its users")]

#[path = "../src/statement.rs"]
mod statement;
#[path = "../src/token.rs"]
mod token;
