//! `sigmund info`: what a file is, and what it holds, without merging it.
//!
//! ```text
//! supertrace.rs   a super-trace: facts, tables, events, what recording cost
//! inputs.rs       anything else: which traces a path holds, whatever their format
//! held.rs         one of them: streams, events, LWPs, losses, counted by reading it once
//! show.rs         the same for people, and for programs
//! ```

mod held;
mod inputs;
mod show;
mod supertrace;

use std::path::Path;

use anyhow::Result;
use sigmund_model::tables::INFO;

use crate::{Found, cli::InfoArgs};

pub(crate) async fn run(args: InfoArgs) -> Result<Found> {
    match args.file.as_deref() {
        Some(path) if path.exists() && !is_super_trace(path) => match inputs::open(path)? {
            Some(inputs) => show::run(inputs, &args),
            // Neither is it a super-trace: what is missing of one is said best by who opens one.
            None => supertrace::run(&args).await,
        },
        _ => supertrace::run(&args).await,
    }
}

fn is_super_trace(path: &Path) -> bool {
    path.is_dir() && (path.join(INFO.name).is_dir() || path.extension().is_some_and(|e| e == "supertrace"))
}
