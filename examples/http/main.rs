//! An HTTP/1.1 server on user threads, one for each connection: `cargo run --release --example http -- 127.0.0.1:8080`.
//!
//! SIGTERM and Ctrl-C end it: requests under way are answered, idle connections are closed. Under `sigmund record`, its spans
//! show what a slow request waited for.

mod answer;
mod connection;
mod request;
mod server;

use std::{env, io, time::Duration};

use fut::signal::{Signal, SignalKind};

use self::server::{Limits, Server};

fn main() -> io::Result<()> {
    let mut arguments = env::args().skip(1);
    let address = arguments.next().unwrap_or("127.0.0.1:8080".into());
    let lwps = arguments.next().and_then(|lwps| lwps.parse().ok()).unwrap_or(2);
    let runtime = fut::Runtime::builder().lwps(lwps).build()?;
    runtime.run(move || {
        let server = Server::bind(&address, Limits::default())?;
        println!("listening at {}", server.address());
        for kind in [SignalKind::terminate(), SignalKind::interrupt()] {
            let (signal, stopper) = (Signal::new(kind)?, server.stopper());
            fut::Builder::new().name("signals").spawn(move || signal.recv().map(|()| stopper.stop()));
        }
        let answered = server.run();
        println!("{answered} requests");
        io::Result::Ok(())
    })?;
    // The threads that wait for signals never end.
    let _ = runtime.shutdown(Duration::from_millis(10));
    Ok(())
}
