//! Accepting connections, and an orderly end.
//!
//! 1. A connection is idle while it waits for the first byte of a request. Only then the server may close it: a request that
//!    has begun is answered.
//! 2. A connection becomes idle, and then looks whether the server ends. The server that ends publishes that, and then looks
//!    which connections are idle, whose reading side it shuts down: at least one of the two sees the other. Bytes that have
//!    arrived by then are still read.

use std::{
    collections::HashMap,
    io,
    net::{Shutdown, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use fut::{
    net::{TcpListener, TcpStream},
    sync::Mutex,
};

use super::{answer::Pages, connection};

/// What a client may ask for.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Bytes of a request's head.
    pub(crate) head: usize,
    /// Bytes of a request's body.
    pub(crate) body: usize,
    /// How long one read or write may take, and a connection may be idle.
    pub(crate) patience: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { head: 8 << 10, body: 1 << 20, patience: Duration::from_secs(30) }
    }
}

/// A server that listens.
pub(crate) struct Server {
    listener: TcpListener,
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    limits: Limits,
    ends: AtomicBool,
    /// Open connections, by number.
    open: Mutex<HashMap<u64, Arc<Open>>>,
    answered: AtomicU64,
    pages: Pages,
}

/// Ends a server.
#[derive(Clone)]
pub(crate) struct Stopper {
    shared: Arc<Shared>,
    address: SocketAddr,
}

struct Open {
    stream: TcpStream,
    is_idle: AtomicBool,
}

/// What a connection knows of the server's end, and the server of it.
pub(crate) struct Idle<'a> {
    server_ends: &'a AtomicBool,
    is_idle: &'a AtomicBool,
}

impl Server {
    /// # Errors
    /// When it cannot listen there.
    pub(crate) fn bind(address: &str, limits: Limits) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let shared = Shared {
            limits,
            ends: AtomicBool::new(false),
            open: Mutex::default(),
            answered: AtomicU64::new(0),
            pages: Pages::default(),
        };
        Ok(Server { listener, address, shared: Arc::new(shared) })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn stopper(&self) -> Stopper {
        Stopper { shared: Arc::clone(&self.shared), address: self.address }
    }

    /// Serves until it is stopped and all requests under way are answered; returns how many were answered.
    pub(crate) fn run(self) -> u64 {
        let mut connections = Vec::new();
        for number in 0.. {
            let stream = self.listener.accept();
            if self.shared.ends.load(Ordering::SeqCst) {
                break;
            }
            let Ok((stream, _)) = stream else {
                // Of that connection alone, or no descriptor is left: others end meanwhile.
                fut::sleep(Duration::from_millis(1));
                continue;
            };
            let shared = Arc::clone(&self.shared);
            connections
                .push(fut::Builder::new().name("connection").spawn(move || shared.serve(number, stream)));
            if connections.len().is_power_of_two() {
                connections.retain(|connection| !connection.is_finished());
            }
        }
        drop(self.listener);
        for connection in connections {
            // A panic of one is not the others' fault.
            let _ = connection.join();
        }
        self.shared.answered.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn serve(self: Arc<Shared>, number: u64, stream: TcpStream) {
        let limit = Some(self.limits.patience);
        let ready = stream.set_nodelay(true);
        if ready.and(stream.set_read_timeout(limit)).and(stream.set_write_timeout(limit)).is_err() {
            return;
        }
        let open = Arc::new(Open { stream, is_idle: AtomicBool::new(false) });
        self.open.lock().insert(number, Arc::clone(&open));
        let idle = Idle { server_ends: &self.ends, is_idle: &open.is_idle };
        // What a client does to its connection is not the server's error.
        let (answered, _) = connection::serve(&open.stream, &self.limits, &idle, &self.pages);
        self.answered.fetch_add(answered, Ordering::Relaxed);
        self.open.lock().remove(&number);
    }
}

impl Stopper {
    /// No connection is accepted from now on; idle ones are closed.
    pub(crate) fn stop(&self) {
        self.shared.ends.store(true, Ordering::SeqCst);
        for open in self.shared.open.lock().values() {
            // SeqCst, as the others: rule 2.
            if open.is_idle.load(Ordering::SeqCst) {
                let _ = open.stream.shutdown(Shutdown::Read);
            }
        }
        // Ends the wait for a connection.
        let _ = TcpStream::connect(self.address);
    }
}

impl Idle<'_> {
    /// The connection is idle from now on; `false` if it has to end.
    pub(crate) fn begin(&self) -> bool {
        self.is_idle.store(true, Ordering::SeqCst);
        !self.server_ends()
    }

    pub(crate) fn end(&self) {
        self.is_idle.store(false, Ordering::SeqCst);
    }

    pub(crate) fn server_ends(&self) -> bool {
        self.server_ends.load(Ordering::SeqCst)
    }
}
