//! HTTP/1.1 for one page.
//!
//! ```text
//! guard.rs         who may ask
//! assets.rs        the page's files
//! respond.rs       a request and its answer
//! timed_writes.rs  a time limit for clients that do not read
//! ```
//!
//! 1. A request is answered only if its `Host` is one of this server's names. So a request for a name that was rebound
//!    to this machine is refused.
//! 2. A request from a page of another origin is refused. It is recognized by `Origin` and `Sec-Fetch-Site`.
//! 3. A question needs the token. The token is in the URL's fragment, so it is in no request line, log or `Referer`.
//!    The page's files contain no secret and need no token.
//! 4. Questions only read. Each ends when its client disconnects or its time has passed. The number of questions that
//!    run at the same time is limited; others wait.
//! 5. Connections, headers and bodies are limited, and so is the time for which a client takes nothing of an answer. So
//!    a hundred tabs, or clients that send nothing or read nothing, do not keep others from the server.

mod assets;
mod guard;
mod respond;
mod timed_writes;

use std::{
    future::Future, io, net, os::unix::net::UnixListener as StdUnixListener, sync::Arc, time::Duration,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, UnixListener},
    runtime,
    sync::{OwnedSemaphorePermit, Semaphore},
};

use self::{guard::Guard, respond::Site, timed_writes::TimedWrites};
use crate::live::{Shown, Stage};

/// The largest number of simultaneous connections.
const CONNECTIONS: usize = 512;

/// How long a client may take to send a request's headers.
const HEADERS: Duration = Duration::from_secs(10);

/// The largest size of headers, in bytes.
const HEADER_BYTES: usize = 32 << 10;

/// How long a client may take nothing of an answer.
const ANSWERS: Duration = Duration::from_secs(10);

/// The wait after an error of `accept`, for example because no descriptors are left.
const PAUSE: Duration = Duration::from_millis(50);

/// The limits of questions.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest time of one question.
    pub time: Duration,
    /// The number of questions that may run at the same time; others wait.
    pub queries: usize,
    /// Memory for the sorts, groups and joins of queries of a frozen super-trace. Other super-traces have their own
    /// limit.
    pub memory: usize,
}

/// The socket of a server.
#[derive(Debug)]
pub enum Listener {
    /// A TCP socket.
    Tcp(net::TcpListener),
    /// A Unix socket, for `ssh -L`.
    Unix(StdUnixListener),
}

/// Serves the page and its questions until `shutdown` is ready.
///
/// # Errors
/// If the socket cannot be used.
pub async fn serve(
    shown: Shown,
    listener: Listener,
    token: String,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    // Questions have their own threads: a long computation does not keep the server from answering others.
    let threads = runtime::Builder::new_multi_thread()
        .thread_name("sigmund-view")
        .thread_stack_size(sigmund_sql::QUERY_STACK)
        .enable_all()
        .build()?;
    let address = match &listener {
        Listener::Tcp(listener) => Some(listener.local_addr()?),
        Listener::Unix(_) => None,
    };
    let site = Arc::new(Site {
        stage: Arc::new(Stage::new(shown, limits.memory)),
        guard: Guard::new(address, token),
        places: Arc::new(Semaphore::new(limits.queries)),
        time: limits.time,
        threads: threads.handle().clone(),
    });
    let result = tokio::select! {
        result = accept(listener, site) => result,
        () = shutdown => Ok(()),
    };
    threads.shutdown_background();
    result
}

async fn accept(listener: Listener, site: Arc<Site>) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let place = || {
        let places = Arc::clone(&places);
        async { places.acquire_owned().await.map_err(io::Error::other) }
    };
    match listener {
        Listener::Tcp(listener) => {
            listener.set_nonblocking(true)?;
            let listener = TcpListener::from_std(listener)?;
            loop {
                let place = place().await?;
                match listener.accept().await {
                    Ok((stream, _)) => {
                        // Answers are small, and a person waits for them.
                        let _ = stream.set_nodelay(true);
                        connect(stream, Arc::clone(&site), place);
                    }
                    Err(_) => tokio::time::sleep(PAUSE).await,
                }
            }
        }
        Listener::Unix(listener) => {
            listener.set_nonblocking(true)?;
            let listener = UnixListener::from_std(listener)?;
            loop {
                let place = place().await?;
                match listener.accept().await {
                    Ok((stream, _)) => connect(stream, Arc::clone(&site), place),
                    Err(_) => tokio::time::sleep(PAUSE).await,
                }
            }
        }
    }
}

fn connect(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    site: Arc<Site>,
    place: OwnedSemaphorePermit,
) {
    tokio::spawn(async move {
        let service = service_fn(move |request| {
            let site = Arc::clone(&site);
            async move { Ok::<_, std::convert::Infallible>(site.respond(request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADERS)
            .max_buf_size(HEADER_BYTES)
            .serve_connection(TokioIo::new(TimedWrites::new(stream, ANSWERS)), service);
        // Its client may disconnect at any time.
        let _ = connection.await;
        drop(place);
    });
}
