//! Compute threads, and one daemon that waits for datagrams on loopback, as in figure 3 of the paper: the daemon
//! polls with a non-blocking call, and yields when there is none. So how soon it reacts depends on how long the
//! compute threads run before they yield.
//!
//! ```text
//! sigmund record -o reactivity -- target/release/examples/reactivity
//! sigmund --trace-file reactivity.supertrace --reactivity 'sent_msg' 'received_msg@daemon'
//! ```
//! Datagrams on loopback arrive by a softirq of the sender's CPU, not by an interrupt of a device: so the detection
//! is `sent_msg`, or `--reactivity 'softirq_entry(vec=3)' 'received_msg@daemon'` (3 is NET_RX).

use std::{
    env,
    io::{self, ErrorKind},
    net::UdpSocket,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use fut::{Builder, Runtime, yield_now};

fut::events! {
    /// The client has sent a datagram.
    fn sent_msg(number: u32) => "datagram {number}";
    /// The daemon has got it.
    fn received_msg(number: u32) => "datagram {number}";
}

/// How long a compute thread runs between two yields.
const SLICE: Duration = Duration::from_millis(1);

fn main() -> io::Result<()> {
    let argument =
        |n: usize, default: u32| env::args().nth(n).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (messages, compute_threads, lwps) = (argument(1, 50), argument(2, 20), argument(3, 2));
    // Under `sigmund record`, from here on; the runtime would do so itself, but the client is a plain thread.
    let _ = fut::init();

    let server = UdpSocket::bind("127.0.0.1:0")?;
    server.set_nonblocking(true)?;
    let address = server.local_addr()?;
    let client = thread::Builder::new().name("client".into()).spawn(move || -> io::Result<()> {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        for number in 0..messages {
            thread::sleep(Duration::from_millis(7));
            sent_msg(number);
            socket.send_to(&number.to_le_bytes(), address)?;
        }
        Ok(())
    })?;

    let runtime = Runtime::builder().lwps(lwps as usize).build()?;
    let received = runtime.run(move || {
        let done = Arc::new(AtomicBool::new(false));
        let workers: Vec<_> = (0..compute_threads)
            .map(|n| {
                let done = Arc::clone(&done);
                Builder::new().name(format!("work/{n}")).spawn(move || work(&done))
            })
            .collect();
        let daemon = Builder::new().name("daemon").spawn(move || receive(&server, messages, &done));
        let received = daemon.map(|daemon| daemon.join().expect("the daemon panicked"));
        for worker in workers.into_iter().flatten() {
            worker.join().expect("a compute thread panicked");
        }
        received
    })??;
    client.join().expect("the client panicked")?;
    println!("{received} datagrams received, beside {compute_threads} compute threads on {lwps} LWPs");
    Ok(())
}

fn work(done: &AtomicBool) {
    while !done.load(Ordering::Relaxed) {
        let start = std::time::Instant::now();
        while start.elapsed() < SLICE {
            std::hint::spin_loop();
        }
        yield_now();
    }
}

/// The polling daemon.
fn receive(socket: &UdpSocket, messages: u32, done: &AtomicBool) -> io::Result<u32> {
    let mut datagram = [0; 4];
    let mut received = 0;
    while received < messages {
        match socket.recv(&mut datagram) {
            Ok(_) => {
                received_msg(u32::from_le_bytes(datagram));
                received += 1;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => yield_now(),
            Err(error) => return Err(error),
        }
    }
    done.store(true, Ordering::Relaxed);
    Ok(received)
}
