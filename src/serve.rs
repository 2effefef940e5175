//! `sigmund serve`: a server of Arrow Flight SQL.

use std::{
    fs,
    net::TcpListener,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use anyhow::{Context, Result};
use sigmund_serve::{Limits, Token};
use sigmund_sql::OpenOptions;

use crate::{Found, answer, cli::ServeArgs, signals, sql, terminal};

/// How often it checks for a signal.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) async fn run(args: ServeArgs) -> Result<Found> {
    let how = OpenOptions { memory: Some(args.memory), ..args.damage.into() };
    let trace = match &args.fleet {
        Some(folder) => answer::open_fleet(folder, how).await?,
        None => sql::open(args.subjects()?, how).await?,
    };
    let trace = Arc::new(trace);
    sigmund_query::register_measures(&trace);
    let token = match &args.token_file {
        Some(path) => {
            let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
            Token::new(text.trim_end()).with_context(|| path.display().to_string())?
        }
        None => Token::random().context("a new token")?,
    };
    let (stop, _) = signals::stop_at_signals()?;
    let listener = TcpListener::bind(args.listen).with_context(|| format!("--listen {}", args.listen))?;
    let address = listener.local_addr().with_context(|| format!("--listen {}", args.listen))?;
    if !address.ip().is_loopback() {
        terminal::notice(&format!(
            "warning: {address} is open to other machines, and nothing is encrypted: who sees the traffic sees the token"
        ));
    }
    terminal::line(format_args!("listening on grpc://{address}"))?;
    if args.token_file.is_none() {
        terminal::line(format_args!("token {}", token.text()))?;
    }
    let limits = Limits { time: args.time, queries: args.queries as usize };
    let stopped = async move {
        while !stop.load(Ordering::Relaxed) {
            tokio::time::sleep(LOOK).await;
        }
    };
    sigmund_serve::serve(trace, listener, token, limits, stopped).await.context("serving")?;
    Ok(Found::Something)
}
