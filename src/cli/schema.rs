//! The arguments of `sigmund schema`.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Print this one, as TOML.
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
}
