//! The processes of a cluster.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::Pid;

use crate::sigmund::{Reported, Running, Sigmund, program};

/// A process that is killed when this is gone.
pub(super) struct Process(pub(super) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    pub(super) fn pid(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    /// Starts a command, and waits for the line in which it prints where it listens.
    pub(super) fn listening(mut command: Command) -> (Process, String) {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.next().unwrap_or_else(|| panic!("{command:?} ended")).unwrap();
        thread::spawn(move || lines.for_each(drop));
        (Process(child), line.strip_prefix("listening on ").unwrap().to_string())
    }
}

/// A scheduler and two executors.
pub(super) struct Cluster {
    pub(super) url: String,
    pub(super) executors: [Process; 2],
    _scheduler: Process,
}

impl Cluster {
    /// Starts them. The executors have these variables in their environments.
    pub(super) fn start(environment: &[(&str, &str)]) -> Cluster {
        Cluster::start_with("2", "240s", environment)
    }

    /// With executors of so many slots, which are lost after some time without a sign of life.
    pub(super) fn start_with(cpus: &str, lost_after: &str, environment: &[(&str, &str)]) -> Cluster {
        let mut scheduler = Command::new(program());
        scheduler.args(["scheduler", "--listen", "127.0.0.1:0", "--lost-after", lost_after]);
        let (scheduler, url) = Process::listening(scheduler);
        let executor = || {
            let mut executor = Command::new(program());
            executor
                .args(["executor", "--scheduler", &url, "--cpus", cpus])
                .envs(environment.iter().copied());
            Process::listening(executor).0
        };
        let cluster =
            Cluster { executors: [executor(), executor()], url: url.clone(), _scheduler: scheduler };
        wait_until("an executor has registered", || is_ready(&cluster.url));
        cluster
    }

    /// What the command says with `--cluster`.
    pub(super) fn run(&self, sigmund: &Sigmund, words: &[&str]) -> Reported {
        sigmund.run([words, &["--cluster", &self.url]].concat())
    }
}

/// How long anything may take on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(240);

/// Waits until something is so.
#[track_caller]
pub(super) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "not so after {PATIENCE:?}: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A client that has opened its super-traces, and reads queries from its standard input.
pub(super) struct Client(Running);

impl Client {
    pub(super) fn start(mut command: Command) -> Client {
        command.stdin(Stdio::piped());
        let mut client = Running::of(command);
        let mut pipe = client.child.stdin.take().unwrap();
        pipe.write_all(b"\n").unwrap();
        wait_until("the client reads its standard input", || {
            assert!(client.child.try_wait().unwrap().is_none(), "the client has ended");
            rustix::io::ioctl_fionread(&pipe).unwrap() == 0
        });
        client.child.stdin = Some(pipe);
        Client(client)
    }

    /// What it says about some queries.
    pub(super) fn ask(mut self, queries: &str) -> Reported {
        self.0.child.stdin.take().unwrap().write_all(queries.as_bytes()).unwrap();
        self.0.finish()
    }
}

/// The CPU time of a process, in ticks of 10 ms.
pub(super) fn cpu_ticks(process: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    // utime and stime.
    after_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
}

/// Whether the scheduler has an executor.
pub(super) fn is_ready(url: &str) -> bool {
    let address = url.strip_prefix("http://").unwrap();
    let Ok(mut stream) = TcpStream::connect(address) else { return false };
    write!(stream, "GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer.starts_with("HTTP/1.1 200")
}

/// A port that nobody listens on.
pub(super) fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}
