//! The form of a schema's file. `check.rs` checks the values.

use serde::Deserialize;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub(crate) name: Spanned<String>,
    pub(crate) about: Spanned<String>,
    #[serde(default)]
    pub(crate) kernel: Kernel,
    #[serde(default)]
    pub(crate) program: Program,
    #[serde(default)]
    pub(crate) question: Vec<Spanned<FileQuestion>>,
}

/// `system:event`, and `?` after it if a kernel may lack it.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kernel {
    #[serde(default)]
    pub(crate) machine: Vec<Spanned<String>>,
    #[serde(default)]
    pub(crate) program: Vec<Spanned<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Program {
    #[serde(default)]
    pub(crate) keys: Vec<Spanned<String>>,
    #[serde(default)]
    pub(crate) events: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileQuestion {
    pub(crate) text: Spanned<String>,
    pub(crate) measure: Option<Spanned<String>>,
    pub(crate) by: Option<Spanned<String>>,
    pub(crate) worst: Option<Spanned<u32>>,
    pub(crate) subject: Option<Spanned<String>>,
    pub(crate) from: Option<Spanned<String>>,
    pub(crate) to: Option<Spanned<String>>,
    pub(crate) sql: Option<Spanned<String>>,
    #[serde(default)]
    pub(crate) columns: Vec<Spanned<String>>,
    pub(crate) sort: Option<Spanned<String>>,
    pub(crate) top: Option<Spanned<u32>>,
    #[serde(default)]
    pub(crate) needs: Vec<Spanned<String>>,
}
