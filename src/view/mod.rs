//! `sigmund view`: the timeline of a super-trace, or a running program, in the browser.

mod live;

use std::{
    env, fs, io,
    net::TcpListener,
    os::unix::{fs::PermissionsExt, net::UnixListener},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use sigmund_serve::Token;
use sigmund_sql::OpenOptions;
use sigmund_view::{Limits, Listener, Progress, Shown, View};

use self::live::Program;
use crate::{
    Found, answer,
    cli::{Place, ViewArgs},
    output::counted,
    signals, terminal,
};

/// How often it checks for a signal.
const LOOK: Duration = Duration::from_millis(50);

/// How often progress is shown.
const SHOW: Duration = Duration::from_millis(500);

pub(crate) async fn run(args: ViewArgs) -> Result<Found> {
    let (stop, _) = signals::stop_at_signals()?;
    let limits = Limits { time: args.time, queries: args.queries as usize, memory: args.memory };
    let shown = match (&args.trace, &args.other, args.pid) {
        (Some(a), Some(b), _) => {
            Shown::Pair(Arc::new(open(a, &args).await?), Arc::new(open(b, &args).await?))
        }
        (Some(trace), None, _) => Shown::Trace(Arc::new(open(trace, &args).await?)),
        (None, _, Some(pid)) => Shown::Program(Arc::new(Program::find(pid, Arc::clone(&stop))?)),
        (None, _, None) => bail!("expected a super-trace, or --pid"),
    };
    let token = Token::random().context("a new token")?;
    let (listener, socket) = listen(&args.listen)?;
    match &listener {
        Listener::Tcp(listener) => {
            let address = listener.local_addr().context("--listen")?;
            if !address.ip().is_loopback() {
                terminal::notice(&format!(
                    "warning: {address} is open to other machines, and nothing is encrypted: who sees the traffic sees the \
                     trace. --listen unix:PATH with ssh -L is safe"
                ));
            }
            let url = format!("http://{address}/#token={}", token.text());
            terminal::line(format_args!("{url}"))?;
            if !args.no_open {
                open_browser(&url);
            }
        }
        Listener::Unix(_) => {
            let path = socket.as_deref().unwrap_or(Path::new("")).display();
            terminal::line(format_args!(
                "ssh -L 8080:{path} HOST, then http://localhost:8080/#token={}",
                token.text()
            ))?;
        }
    }
    let stopped = async move {
        while !stop.load(Ordering::Relaxed) {
            tokio::time::sleep(LOOK).await;
        }
    };
    let result = sigmund_view::serve(shown, listener, token.text().to_string(), limits, stopped).await;
    if let Some(path) = socket {
        // It may have been removed already.
        let _ = fs::remove_file(path);
    }
    result.context("serving")?;
    Ok(Found::Something)
}

/// Opens a super-trace with its index.
async fn open(trace: &Path, args: &ViewArgs) -> Result<View> {
    let how = OpenOptions { memory: Some(args.memory), ..args.damage.into() };
    let trace = Arc::new(answer::open(Some(trace), how).await?);
    sigmund_query::register_measures(&trace);
    let cache = args.cache.clone().or_else(cache);
    let (begun, mut shown) = (Instant::now(), Instant::now());
    let line = terminal::Progress::new();
    let mut progress = |Progress { table, intervals }: Progress| {
        if shown.elapsed() >= SHOW {
            line.show(&format!("index: {table}, {}", counted(intervals, "interval")));
            shown = Instant::now();
        }
    };
    let view = View::open(trace, cache.as_deref(), &mut progress).await;
    line.clear();
    let view = view?;
    if view.stray() > 0 {
        let stray = counted(view.stray(), "interval");
        terminal::notice(&format!(
            "{stray} of threads or LWPs that this super-trace does not list: not shown"
        ));
    }
    terminal::notice(&format!(
        "index: {:.1} MB, ready after {:.1} s",
        view.index_size() as f64 / 1e6,
        begun.elapsed().as_secs_f64()
    ));
    Ok(view)
}

/// The socket, and its path if it has one.
fn listen(place: &Place) -> Result<(Listener, Option<PathBuf>)> {
    match place {
        Place::Tcp(address) => {
            let listener = TcpListener::bind(address).with_context(|| format!("--listen {address}"))?;
            Ok((Listener::Tcp(listener), None))
        }
        Place::Unix(path) => {
            let on_path = || format!("--listen unix:{}", path.display());
            let listener = bind_private(path).with_context(on_path)?;
            Ok((Listener::Unix(listener), Some(path.clone())))
        }
    }
}

/// Makes a socket to which only this user can connect.
fn bind_private(path: &Path) -> io::Result<UnixListener> {
    // Until its mode is set, the socket is in a folder with mode 0700.
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = tempfile::Builder::new().prefix(".sigmund-view").tempdir_in(parent)?;
    let inner = folder.path().join("socket");
    let listener = UnixListener::bind(&inner)?;
    fs::set_permissions(&inner, fs::Permissions::from_mode(0o600))?;
    // Unlike rename, this does not replace an existing file.
    fs::hard_link(&inner, path)?;
    Ok(listener)
}

/// `$XDG_CACHE_HOME/sigmund/view`, or `~/.cache/sigmund/view`; paths that are not absolute are not used
/// (<https://specifications.freedesktop.org/basedir-spec/>).
fn cache() -> Option<PathBuf> {
    let folder = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")))?;
    Some(caches.join("sigmund").join("view"))
}

/// Opens the user's browser, if this is a desktop.
fn open_browser(url: &str) {
    let is_desktop = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| env::var_os(name).is_some());
    if !is_desktop {
        return;
    }
    let command = Command::new("xdg-open")
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if command.is_err() {
        terminal::notice("no browser was found (xdg-open): open the URL yourself");
    }
}
