//! Other crates' asynchronous code on user threads: futures-io, tokio's traits, rustls, hyper. Loopback only.

#[path = "../common/kind.rs"]
mod kind;

mod http;
mod polled;
mod tls;

use fut::net::{TcpListener, TcpStream};

/// A connection: the client's end and the server's.
fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}
