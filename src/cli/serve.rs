//! The arguments of `sigmund serve`.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf, time::Duration};

use anyhow::{Result, bail};
use clap::{Args, ValueHint, value_parser};

use super::{
    DamageArgs, Queried, export,
    sql::{memory, named_trace},
};

#[derive(Debug, Args)]
#[command(after_help = "\
It prints its address and the token that clients must show. Ctrl-C ends it.

Example:
  sigmund serve server.supertrace
  sigmund serve before=a.supertrace after=b.supertrace --listen 127.0.0.1:31337 --token-file secret

docs/sql.md has examples of clients.

Exit status: 0 ended by a signal, 2 error.")]
pub(crate) struct ServeArgs {
    /// The super-trace; or several, each as NAME=T: their tables are NAME.events and so on. Names without NAME, and
    /// measures, are about the first.
    #[arg(value_name = "T", required_unless_present = "fleet", num_args = 1.., value_hint = ValueHint::DirPath)]
    words: Vec<OsString>,
    /// Serve all super-traces of this folder, HOST.supertrace, as one: each table and measure has a column host.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, conflicts_with = "words")]
    pub(crate) fleet: Option<PathBuf>,
    /// Where to listen; port 0 is any that is free. Nothing is encrypted: keep to this machine, or use a tunnel.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// A file with the token; without it, a new one is printed.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,
    /// How long a query may take.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = time)]
    pub(crate) time: Duration,
    /// How much memory the sorts, groups and joins of all queries may use; what needs more goes to temporary files, or fails.
    /// So much may the measures of all queries use, too; one that needs more fails.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = memory)]
    pub(crate) memory: usize,
    /// How many queries run at once; others wait.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = value_parser!(u32).range(1..=1024))]
    pub(crate) queries: u32,
    #[command(flatten)]
    pub(crate) damage: DamageArgs,
}

impl ServeArgs {
    /// The super-traces: one, or several with names.
    ///
    /// # Errors
    /// When there are several, and one has no name.
    pub(crate) fn subjects(&self) -> Result<Vec<Queried>> {
        let named: Vec<Queried> = self.words.iter().map_while(|word| named_trace(word)).collect();
        match (named.len() == self.words.len(), self.words.as_slice()) {
            (true, _) => Ok(named),
            (false, [one]) => Ok(vec![Queried { name: None, path: one.into() }]),
            (false, _) => bail!("expected one super-trace, or several as NAME=T"),
        }
    }
}

pub(super) fn time(text: &str) -> Result<Duration, String> {
    let time = export::duration(text).map(|length| Duration::from_nanos(length.0))?;
    if time.is_zero() { Err("expected a time longer than 0".into()) } else { Ok(time) }
}
