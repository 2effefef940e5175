//! `sigmund scheduler` and `sigmund executor`: the processes of a cluster.

use std::{net::IpAddr, sync::atomic::Ordering, time::Duration};

use anyhow::{Context, Result, anyhow};
use sigmund_cluster::{ExecutorOptions, SchedulerOptions, run_executor, run_scheduler};

use crate::{
    Found,
    cli::{ExecutorArgs, SchedulerArgs},
    signals, terminal,
};

/// How often it checks for a signal.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) async fn scheduler(args: SchedulerArgs) -> Result<Found> {
    warn_of_strangers(args.listen.ip());
    check_name(args.listen.ip(), args.host.as_deref())?;
    let SchedulerArgs { listen, host, lost_after } = args;
    let options = SchedulerOptions { listen, host, lost_after };
    let started = |address| _ = terminal::line(format_args!("listening on http://{address}"));
    let (stop, _) = signals::stop_at_signals()?;
    let stopped = async move {
        while !stop.load(Ordering::Relaxed) {
            tokio::time::sleep(LOOK).await;
        }
    };
    tokio::select! {
        ended = run_scheduler(options, started, terminal::notice) => ended.map_err(|error| anyhow!("--listen {listen}: {error}"))?,
        () = stopped => {}
    }
    Ok(Found::Something)
}

pub(crate) async fn executor(args: ExecutorArgs) -> Result<Found> {
    warn_of_strangers(args.listen);
    check_name(args.listen, args.host.as_deref())?;
    let folder = match &args.work {
        Some(folder) => tempfile::tempdir_in(folder)
            .with_context(|| format!("--work {}: expected a folder to write to", folder.display()))?,
        None => tempfile::tempdir().context("a folder for rows")?,
    };
    let every = std::thread::available_parallelism().map_or(2, usize::from);
    let [rows, tasks] = args.ports[..] else { return Err(anyhow!("--ports: expected two")) };
    let (host, port) = args.scheduler.clone();
    let options = ExecutorOptions {
        scheduler: args.scheduler,
        listen: args.listen,
        ports: (rows, tasks),
        host: args.host,
        cpus: args.cpus.map_or(every, usize::from),
        memory: args.memory,
        work: folder.path().to_path_buf(),
    };
    let started =
        |address| _ = terminal::line(format_args!("listening on {address}, for http://{host}:{port}"));
    // The executor handles signals itself: it ends, and tells the scheduler.
    let (stop, _) = signals::stop_at_signals()?;
    loop {
        let ended = run_executor(options.clone(), started, terminal::notice).await;
        ended.map_err(|error| {
            anyhow!("{error}; expected a scheduler at http://{host}:{port} (sigmund scheduler)")
        })?;
        if stop.load(Ordering::Relaxed) {
            return Ok(Found::Something);
        }
        // This happens, for example, after the machine was suspended.
        terminal::notice("the scheduler got no report from this executor, and stopped it: it starts again");
    }
}

/// An unspecified address (0.0.0.0) is none that others could connect to, so a name is needed.
fn check_name(address: IpAddr, host: Option<&str>) -> Result<()> {
    match (address.is_unspecified(), host) {
        (true, None) => {
            Err(anyhow!("--listen {address}: expected --host, too: the name by which others reach it"))
        }
        _ => Ok(()),
    }
}

fn warn_of_strangers(address: IpAddr) {
    if !address.is_loopback() {
        terminal::notice(&format!(
            "warning: {address} is open to other machines: whoever connects can run queries on all that executors can read"
        ));
    }
}
