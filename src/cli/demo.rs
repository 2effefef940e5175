//! The arguments of `sigmund demo`, and of the program that it records.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Folder for the recording and the super-trace.
    #[arg(long, short, value_name = "FOLDER", default_value = "sigmund-demo")]
    pub(crate) output: PathBuf,
    /// Height of the tree: 2^(HEIGHT+1) - 1 user threads.
    #[arg(long, default_value_t = 11, value_parser = clap::value_parser!(u32).range(1..=13))]
    pub(crate) height: u32,
}

#[derive(Debug, Args)]
pub(crate) struct SumtimeArgs {
    /// Levels of the tree.
    pub(crate) height: u32,
    /// LWPs that carry it.
    pub(crate) lwps: usize,
    /// Steps that each thread computes.
    pub(crate) work: u32,
}
