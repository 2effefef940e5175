//! The processes of a cluster.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::sigmund::{Reported, Sigmund, program};

/// A process that is killed when this is gone.
pub(super) struct Process(pub(super) Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
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
    pub(super) executors: Vec<Process>,
    _scheduler: Process,
}

impl Cluster {
    /// Starts them. The executors have these variables in their environments.
    pub(super) fn start(environment: &[(&str, &str)]) -> Cluster {
        Cluster::start_with("2", environment)
    }

    /// With executors of so many slots.
    pub(super) fn start_with(cpus: &str, environment: &[(&str, &str)]) -> Cluster {
        let mut scheduler = Command::new(program());
        scheduler.args(["scheduler", "--listen", "127.0.0.1:0", "--lost-after", "6s"]);
        let (scheduler, url) = Process::listening(scheduler);
        let executor = || {
            let mut executor = Command::new(program());
            executor
                .args(["executor", "--scheduler", &url, "--cpus", cpus])
                .envs(environment.iter().copied());
            Process::listening(executor).0
        };
        let cluster =
            Cluster { executors: vec![executor(), executor()], url: url.clone(), _scheduler: scheduler };
        let begin = Instant::now();
        while !is_ready(&cluster.url) {
            assert!(begin.elapsed() < Duration::from_secs(30), "no executor has registered");
            thread::sleep(Duration::from_millis(50));
        }
        cluster
    }

    /// What the command says with `--cluster`.
    pub(super) fn run(&self, sigmund: &Sigmund, words: &[&str]) -> Reported {
        sigmund.run([words, &["--cluster", &self.url]].concat())
    }
}

/// Whether the scheduler has an executor.
fn is_ready(url: &str) -> bool {
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
