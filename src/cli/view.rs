//! The arguments of `sigmund view`.

use std::{net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

use clap::{Args, ValueHint, value_parser};

use super::{DamageArgs, serve::time, sql::memory};

#[derive(Debug, Args)]
#[command(after_help = "\
It makes an index (once for each super-trace, in $XDG_CACHE_HOME/sigmund), prints a URL and opens the browser. Ctrl-C ends
it. The URL has a token after its #: who has the URL can read the super-trace.

Examples:
  sigmund view demo.supertrace
  sigmund view before.supertrace after.supertrace
  sigmund view --pid $(pidof myserver)
  sigmund view demo.supertrace --listen unix:/tmp/view.sock    # then, elsewhere: ssh -L 8080:/tmp/view.sock HOST

docs/view.md shows what to look for.

Exit status: 0 ended by a signal, 2 error.")]
pub(crate) struct ViewArgs {
    /// The super-trace.
    #[arg(value_name = "T", required_unless_present = "pid", value_hint = ValueHint::DirPath)]
    pub(crate) trace: Option<PathBuf>,
    /// Another super-trace, to compare: both timelines on one page, from their begins, and the figures of --compare T B.
    #[arg(value_name = "B", value_hint = ValueHint::DirPath)]
    pub(crate) other: Option<PathBuf>,
    /// A running program that is being recorded: its threads, who waits for whom, and its buffers. If it is a flight recorder,
    /// "Freeze" shows its last events as a timeline.
    #[arg(long, value_name = "PID", conflicts_with_all = ["trace", "other", "cache", "keep_going"])]
    pub(crate) pid: Option<u32>,
    /// Where to listen: ADDRESS:PORT, port 0 is any that is free; or unix:PATH, for a tunnel.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: Place,
    /// Do not open a browser.
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Keep the index in this folder instead of the cache.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cache: Option<PathBuf>,
    /// How long a query of the page may take.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = time)]
    pub(crate) time: Duration,
    /// How much memory the sorts, groups and joins of all queries may use together, and all measures.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = memory)]
    pub(crate) memory: usize,
    /// How many queries run at once; others wait.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = value_parser!(u32).range(1..=1024))]
    pub(crate) queries: u32,
    #[command(flatten)]
    pub(crate) damage: DamageArgs,
}

/// Where a server listens.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Place, String> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Place::Unix(path.into()));
        }
        text.parse().map(Place::Tcp).map_err(|_| "expected ADDRESS:PORT or unix:PATH".to_string())
    }
}
