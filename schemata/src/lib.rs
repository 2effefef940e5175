//! Schemata, after KLogger's: a schema names what to record (tracepoints, keys, events of the program), and the questions
//! that such a recording answers.
//!
//! A schema is a TOML file, to be shared; `docs/schemata.md` has the format. Ours are in `ours/`. This crate reads
//! and checks them. It records nothing and asks nothing.
//!
//! ```
//! let text = r#"
//! name = "mine"
//! about = "Who waits for my locks."
//! [[question]]
//! text = "Which locks are waited for?"
//! measure = "locks"
//! "#;
//! let schema = sigmund_schemata::Schema::parse("mine.toml", text)?;
//! assert_eq!(schema.questions[0].top, 5);
//! # Ok::<(), sigmund_schemata::Error>(())
//! ```

#![forbid(unsafe_code)]

mod check;
mod columns;
mod error;
#[cfg(test)]
mod hostile;
mod ours;
mod schema;
mod toml_file;
mod union;

pub use columns::{means, short, unknown_column};
pub use error::Error;
pub use ours::{OURS, OVERVIEW, names, nearest, our};
pub use schema::{Asked, KEYS, Located, MAX_LEN, Question, Schema, Tracepoint};
pub use union::Union;
