//! Programs and headers of libotf2, which may not be installed.

use std::{env, path::Path};

use crate::skipped::skipped;

/// Whether all of these programs are installed; prints what is missing.
pub(crate) fn all_there(tools: &[&str]) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> = env::split_paths(&path).collect();
    let is_there = |tool: &&str| folders.iter().any(|folder| folder.join(tool).exists());
    tools.iter().all(|tool| is_there(tool) || missing(tool))
}

/// Whether a library's header is installed; prints what is missing.
pub(crate) fn header_exists(header: &str) -> bool {
    Path::new("/usr/include").join(header).exists() || missing(header)
}

fn missing(what: &str) -> bool {
    skipped(&format!("needs {what}"));
    false
}
