//! An echo server's cost: a client in a process of its own sends messages over connections, one at a time on each, and
//! waits for the echo; the server measures its CPU time for each request.

use std::{
    fs,
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{machine, sample::Sample, work::Work};

/// Bytes of a message.
pub(crate) const MESSAGE: usize = 64;

/// What an echo server took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Echo {
    /// CPU time of the server's process, user and system, without that of a recording's drain.
    pub(crate) cpu_ns: u64,
    /// Time from sending a message to receiving its echo, as the client sees it.
    pub(crate) p50_ns: u64,
    pub(crate) p99_ns: u64,
}

/// Requests before the measured ones: a part of them, and at least ten on each connection.
fn warm_up(connections: u64, requests: u64) -> u64 {
    (requests / 5).max(10 * connections)
}

/// Counts the requests of a server, and reads its CPU time at the first and the last that is measured.
#[derive(Debug)]
pub(crate) struct Meter {
    begin: u64,
    end: u64,
    count: AtomicU64,
    first: OnceLock<Duration>,
    last: OnceLock<Duration>,
}

impl Meter {
    fn new(connections: u64, requests: u64) -> Meter {
        let begin = warm_up(connections, requests);
        let (first, last) = (OnceLock::new(), OnceLock::new());
        Meter { begin, end: begin + requests, count: AtomicU64::new(0), first, last }
    }

    /// Called for each request.
    #[inline]
    pub(crate) fn request(&self) {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        if count == self.begin {
            let drain = drain_time();
            let _ = self.first.set(cpu_time().saturating_sub(drain));
        } else if count == self.end {
            let time = cpu_time();
            let _ = self.last.set(time.saturating_sub(drain_time()));
        }
    }
}

/// CPU time of the thread that takes the records of a recording: it is the recorder's, which is another process if `sigmund record`
/// records.
fn drain_time() -> Duration {
    let time = |task: std::path::PathBuf| {
        let is_drain = fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "fut-drain");
        let times = fs::read_to_string(task.join("schedstat")).ok().filter(|_| is_drain)?;
        times.split(' ').next()?.parse().ok().map(Duration::from_nanos)
    };
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    tasks.filter_map(|task| time(task.path())).sum()
}

/// CPU time of this process, user and system.
pub(crate) fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Starts the client, and calls `serve`, which accepts that number of connections, and returns when all are closed.
pub(crate) fn run(
    connections: u64,
    requests: u64,
    serve: impl FnOnce(TcpListener, u64, Arc<Meter>),
) -> Result<Sample, String> {
    let in_our_words = |error: io::Error| error.to_string();
    let listener = TcpListener::bind("127.0.0.1:0").map_err(in_our_words)?;
    // The standard library's backlog is 128.
    rustix::net::listen(&listener, 4096).map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(in_our_words)?;
    let program = std::env::current_exe().map_err(in_our_words)?;
    let client = start_client(&program, address, connections, requests).map_err(in_our_words)?;
    let meter = Arc::new(Meter::new(connections, requests));
    serve(listener, connections, Arc::clone(&meter));
    let said = client.wait_with_output().map_err(in_our_words)?;
    let mut sample = Sample::parse(String::from_utf8_lossy(&said.stdout).trim())?;
    let (first, last) = meter.first.get().zip(meter.last.get()).ok_or("the server got too few requests")?;
    let echo = sample.echo.as_mut().ok_or("the client gave no latencies")?;
    echo.cpu_ns = (*last - *first).as_nanos() as u64;
    Ok(sample)
}

fn start_client(program: &Path, address: SocketAddr, connections: u64, requests: u64) -> io::Result<Child> {
    let mut command = Command::new(program);
    command.arg("client").arg(address.to_string());
    command.arg(Work::Echo { connections, requests }.to_string()).stdout(Stdio::piped()).spawn()
}

/// The client: keeps to the last CPU, and prints the sample without the server's CPU time.
pub(crate) fn client(address: SocketAddr, connections: u64, requests: u64) -> io::Result<Sample> {
    // The server has limited this process to its own CPUs.
    machine::keep_to(&[machine::all()? - 1])?;
    let (begin, end) = (warm_up(connections, requests), warm_up(connections, requests) + requests);
    let epoll = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC)?;
    let mut streams = Vec::new();
    for key in 0..connections {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let data = rustix::event::epoll::EventData::new_u64(key);
        rustix::event::epoll::add(&epoll, &stream, data, rustix::event::epoll::EventFlags::IN)?;
        streams.push(stream);
    }
    let message = [7; MESSAGE];
    let mut sent_at = vec![Instant::now(); streams.len()];
    let (mut sent, mut received) = (0, 0);
    let mut send = |key: usize, sent_at: &mut Vec<Instant>| -> io::Result<()> {
        if sent < end {
            sent += 1;
            sent_at[key] = Instant::now();
            assert_eq!((&streams[key]).write(&message)?, MESSAGE);
        }
        Ok(())
    };
    for key in 0..streams.len() {
        send(key, &mut sent_at)?;
    }
    let mut latencies = Vec::with_capacity(requests as usize);
    let mut start = Instant::now();
    let mut events = Vec::with_capacity(1024);
    while received < end {
        events.clear();
        rustix::event::epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in &events {
            let key = event.data.u64() as usize;
            let mut reply = [0; MESSAGE];
            assert_eq!((&streams[key]).read(&mut reply)?, MESSAGE, "an echo arrives in one piece");
            received += 1;
            if received == begin {
                start = Instant::now();
            } else if received > begin {
                latencies.push(sent_at[key].elapsed().as_nanos() as u64);
            }
            send(key, &mut sent_at)?;
        }
    }
    let elapsed = start.elapsed();
    latencies.sort_unstable();
    let at = |percent: usize| latencies.get(latencies.len() * percent / 100).copied().unwrap_or(0);
    let echo = Echo { cpu_ns: 0, p50_ns: at(50), p99_ns: at(99) };
    Ok(Sample { echo: Some(echo), ..Sample::of(elapsed) })
}
