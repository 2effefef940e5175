//! `sigmund info`: describes a file and its contents, without merging it.
//!
//! ```text
//! supertrace.rs      a super-trace: facts, tables, events, the cost of recording
//! inputs.rs          anything else: the traces at a path, in any format
//! trace_summary.rs   one trace: streams, events, LWPs, losses, counted by reading it once
//! show.rs            prints the summary of a trace, for people and for programs
//! ```

mod inputs;
mod show;
#[cfg(feature = "sql")]
mod supertrace;
mod trace_summary;

use std::path::Path;

use anyhow::{Result, bail};
use sigmund_model::tables::INFO;

use crate::{Found, cli::InfoArgs};

pub(crate) fn run(args: &InfoArgs) -> Result<Found> {
    match args.file.as_deref() {
        Some(path) if path.exists() && !is_super_trace(path) => match inputs::open(path)? {
            Some(inputs) => show::run(inputs, args),
            None => bail!(
                "{path}: expected a super-trace ({path}/info is missing), a run (run.json, kernel.dat or kernel.perf, \
                user-PID.fut), a CTF trace (metadata) or a perf.data of several files (data); found none of these",
                path = path.display()
            ),
        },
        #[cfg(feature = "sql")]
        _ => crate::wait_for(supertrace::run(args)),
        #[cfg(not(feature = "sql"))]
        Some(path) if path.exists() => bail!(
            "{}: expected an input of `merge`, found a super-trace; this sigmund was built without SQL, which reads it",
            path.display()
        ),
        #[cfg(not(feature = "sql"))]
        Some(path) => bail!("{}: there is no such file", path.display()),
        #[cfg(not(feature = "sql"))]
        None => bail!("expected a FILE, found none"),
    }
}

fn is_super_trace(path: &Path) -> bool {
    path.is_dir() && (path.join(INFO.name).is_dir() || path.extension().is_some_and(|e| e == "supertrace"))
}
