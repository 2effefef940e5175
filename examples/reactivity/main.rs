//! Figure 3 of the paper as a program: compute threads, and one daemon that waits for datagrams on loopback. Measures
//! the daemon's reactivity with four ways of waiting, each under the same load:
//!
//! - **polling**: the daemon makes non-blocking calls, and yields if there is nothing to receive. It reacts at its turn
//!   in the ready queue: after the slices of all compute threads before it.
//! - **integrated**: the daemon blocks, and the reactor of the runtime waits in the kernel. When it is ready, it runs
//!   at the next yield of any compute thread.
//! - **integrated, urgent**: the same with [`Priority::Urgent`]. The reactor's LWP runs it as soon as the kernel gives
//!   that LWP a CPU.
//! - **… real-time**: the same, and the kernel runs the reactor's LWP ahead of all ordinary ones, if this is permitted.
//!
//! ```text
//! cargo run --release --example reactivity -- [MESSAGES] [COMPUTE_THREADS] [LWPS]
//! sigmund record -o reactivity -- target/release/examples/reactivity
//! sigmund -f reactivity.supertrace --reactivity sent_msg 'received_msg@daemon'
//! sigmund -f reactivity.supertrace --reactivity sent_msg_integrated received_msg_integrated
//! sigmund -f reactivity.supertrace --reactivity sent_msg_urgent received_msg_urgent
//! sigmund -f reactivity.supertrace --reactivity sent_msg_realtime received_msg_realtime
//! ```
//! Datagrams on loopback arrive with a softirq on the sender's CPU, without an interrupt of a device: so the detection
//! is the sending, or `softirq_entry(vec=3)` (3 is NET_RX).

mod daemon;
mod load;
mod table;

use std::{env, error::Error, fs, io, net, thread, time::Instant};

use fut::{Builder, Priority, Runtime};

use daemon::Way;
use load::{Load, intervals};
use table::Latencies;

/// The parameters of a run.
#[derive(Clone, Copy)]
struct Plan {
    messages: u32,
    compute_threads: u32,
    lwps: u32,
    unit: load::Unit,
}

fn main() -> Result<(), Box<dyn Error>> {
    let argument =
        |n: usize, default: u32| env::args().nth(n).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (messages, compute_threads, lwps) = (argument(1, 500), argument(2, 20), argument(3, 2));
    // Starts recording under `sigmund record`. The runtime does this, too, but the client is a plain thread.
    let _ = fut::init();

    let plan = Plan { messages, compute_threads, lwps, unit: load::Unit::calibrate() };
    let cpus = thread::available_parallelism()?;
    let others = fs::read_to_string("/proc/loadavg")?;
    let others = others.split(' ').next().unwrap_or("?");
    println!("{messages} datagrams, {compute_threads} compute threads on {lwps} LWPs");
    println!("{cpus} CPUs, load average {others} before\n");
    println!("{}", table::HEAD);
    let mut measured = Vec::new();
    for way in Way::ALL {
        let latencies = measure(plan, way)?;
        println!("{}", latencies.row(way.name()));
        measured.push(latencies);
    }
    let times_better = |n: usize| measured[0].p99() / measured[n].p99();
    println!("\np99 of polling is {:.0} times that of integrated, urgent", times_better(2));
    println!("p99 of polling is {:.0} times that of the same with a real-time reactor", times_better(3));
    Ok(())
}

/// From the sender's stamp to the handler, for each message.
fn measure(plan: Plan, way: Way) -> Result<Latencies, Box<dyn Error>> {
    let socket = net::UdpSocket::bind("127.0.0.1:0")?;
    let address = socket.local_addr()?;
    let started = Instant::now();
    let realtime = way == Way::Realtime;
    let runtime = Runtime::builder().lwps(plan.lwps as usize).realtime_reactor(realtime).build()?;
    if let Err(error) = runtime.is_reactor_realtime() {
        eprintln!("no real-time reactor here, so an ordinary one: {error}");
    }
    let measured = runtime.spawn(move || {
        let load = Load::start(plan.compute_threads, plan.unit);
        let priority = if way.is_urgent() { Priority::Urgent } else { Priority::Normal };
        let builder = Builder::new().name(way.thread_name()).priority(priority);
        let daemon = builder.spawn(move || daemon::receive(way, socket, plan.messages, started));
        let measured = daemon.join().expect("the daemon panicked");
        load.stop();
        measured
    });
    let client = thread::Builder::new().name("client".into()).spawn(move || -> io::Result<()> {
        let socket = net::UdpSocket::bind("127.0.0.1:0")?;
        for (number, interval) in intervals().take(plan.messages as usize).enumerate() {
            thread::sleep(interval);
            way.record_sent(number as u32);
            let stamp = started.elapsed().as_nanos() as u64;
            socket.send_to(&daemon::message(number as u32, stamp), address)?;
        }
        Ok(())
    })?;
    let latencies = measured.join().expect("the program panicked")?;
    client.join().expect("the client panicked")?;
    Ok(latencies)
}
