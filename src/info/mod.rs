//! `sigmund info`: describes a file and its contents, without merging it.
//!
//! ```text
//! supertrace.rs      a super-trace: facts, tables, events, the cost of recording
//! show.rs            anything else (`crate::inputs`): prints the summary of each trace, for people and for programs
//! ```

mod show;
#[cfg(feature = "sql")]
mod supertrace;

use std::path::Path;

use anyhow::{Result, bail};
use sigmund_model::tables::INFO;

use crate::{Found, cli::InfoArgs, inputs};

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

pub(crate) fn is_super_trace(path: &Path) -> bool {
    path.is_dir() && (path.join(INFO.name).is_dir() || path.extension().is_some_and(|e| e == "supertrace"))
}
