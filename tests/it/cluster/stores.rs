//! Super-traces in an S3-compatible store: moto's server, which `tests/store/install target/store` installs.

use std::{
    fs,
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU16, AtomicU64, Ordering},
    },
    thread,
};

use super::processes::{Client, Cluster, Process, free_port, wait_until};
use crate::{
    sigmund::{Reported, Running, Sigmund, said},
    skipped::skipped,
    views::listing,
};

const BUCKET: &str = "traces";

/// A store at an address of its own: the server behind it can die, and another one can take its place.
struct Store {
    address: u16,
    /// The port of the server; 0 if it is dead.
    target: Arc<AtomicU16>,
    /// How many clients have connected.
    connections: Arc<AtomicU64>,
    server: Process,
}

impl Store {
    /// `None` if the server is not installed.
    fn start() -> Option<Store> {
        if !server_program().exists() {
            skipped("target/store is missing: run tests/store/install target/store");
            return None;
        }
        let (server, port) = serve();
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let (address, target) = (listener.local_addr().unwrap().port(), Arc::new(AtomicU16::new(port)));
        let (behind, connections) = (Arc::clone(&target), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&connections);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, port) = (client.unwrap(), behind.load(Ordering::SeqCst));
                counted.fetch_add(1, Ordering::SeqCst);
                // A client of a dead server is hung up on.
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                forward(client.try_clone().unwrap(), server.try_clone().unwrap());
                forward(server, client);
            }
        });
        Some(Store { address, target, connections, server })
    }

    /// Nobody answers from here on.
    fn die(&mut self) {
        self.target.store(0, Ordering::SeqCst);
        let _ = self.server.0.kill();
        let _ = self.server.0.wait();
    }

    /// Another server takes its place, with these super-traces.
    fn rise(&mut self, traces: &[(PathBuf, &str)]) {
        let (server, port) = serve();
        traces.iter().for_each(|(trace, key)| put(port, trace, key));
        self.server = server;
        self.target.store(port, Ordering::SeqCst);
    }

    fn put(&self, trace: &Path, key: &str) {
        put(self.target.load(Ordering::SeqCst), trace, key);
    }

    fn connections(&self) -> u64 {
        self.connections.load(Ordering::SeqCst)
    }

    fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.address)
    }
}

fn server_program() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("target/store/bin/moto_server")
}

/// A server, and its port.
fn serve() -> (Process, u16) {
    let port = free_port();
    let mut server = Command::new(server_program());
    server.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Process(server.spawn().unwrap());
    wait_until("moto_server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    (server, port)
}

fn forward(mut from: TcpStream, mut to: TcpStream) {
    thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// A super-trace as objects below `KEY`.
fn put(port: u16, trace: &Path, key: &str) {
    request(port, "", b"");
    let tables = fs::read_dir(trace).unwrap().map(|entry| entry.unwrap().path());
    for table in tables.filter(|table| table.is_dir()) {
        for file in fs::read_dir(&table).unwrap().map(|entry| entry.unwrap().path()) {
            let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_string();
            request(port, &format!("/{key}/{}/{}", name(&table), name(&file)), &fs::read(&file).unwrap());
        }
    }
}

/// Makes the bucket, or an object.
fn request(port: u16, path: &str, body: &[u8]) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(
        stream,
        "PUT /{BUCKET}{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: AWS key:secret\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )
    .unwrap();
    stream.write_all(body).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
}

fn environment(endpoint: &str) -> [(&str, &str); 5] {
    [
        ("AWS_ENDPOINT", endpoint),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_REGION", "us-east-1"),
    ]
}

fn asked(sigmund: &Sigmund, endpoint: &str, words: &[&str]) -> Reported {
    let mut command = sigmund.command();
    command.args(words).envs(environment(endpoint));
    said(command)
}

#[test]
fn super_traces_are_read_from_a_store_with_and_without_a_cluster() {
    let Some(mut store) = Store::start() else { return };
    let sigmund = Sigmund::with_listing("web-1", &listing());
    sigmund.merge_listing("web-2", &listing().replace("tick_hz=1000000000", "tick_hz=2000000000"));
    for host in ["web-1", "web-2"] {
        store.put(&sigmund.path(&format!("{host}.supertrace")), &format!("fleet/{host}.supertrace"));
    }
    let endpoint = store.endpoint();
    let cluster = Cluster::start(&environment(&endpoint));
    let query = "SELECT name, count(*) AS n FROM events WHERE cpu < 9 GROUP BY name ORDER BY name";
    let at = "s3://traces/fleet/web-1.supertrace";
    let expected = sigmund.run(["sql", "web-1.supertrace", query, "--format", "csv"]).found();
    let sql = ["sql", at, query, "--format", "csv"];
    assert_eq!(asked(&sigmund, &endpoint, &sql).found(), expected);
    let on_cluster = [&sql[..], &["--cluster", &cluster.url]].concat();
    assert_eq!(asked(&sigmund, &endpoint, &on_cluster).found(), expected);
    for words in [&["--states", "--thread", "5", "--format", "csv"][..], &["--summary", "--format", "csv"]] {
        let expected = sigmund.run([words, &["-f", "web-1.supertrace"]].concat()).found();
        let there = [words, &["-f", at, "--cluster", &cluster.url]].concat();
        assert_eq!(asked(&sigmund, &endpoint, &there).found(), expected);
        let expected = sigmund.run([words, &["--fleet", "."]].concat()).found();
        let there = [words, &["--fleet", "s3://traces/fleet", "--cluster", &cluster.url]].concat();
        assert_eq!(asked(&sigmund, &endpoint, &there).found(), expected);
    }
    // The server dies in the time between two requests; the client and the executors wait for the next one.
    store.die();
    let mut waiting = sigmund.command();
    waiting.args(&on_cluster).envs(environment(&endpoint));
    let before = store.connections();
    let waiting = Running::of(waiting);
    wait_until("the client has asked the dead store", || store.connections() > before + 1);
    let again = ["web-1", "web-2"].map(|host| (sigmund.path(&format!("{host}.supertrace")), host));
    let keys = again.clone().map(|(_, host)| format!("fleet/{host}.supertrace"));
    let again: Vec<(PathBuf, &str)> =
        again.into_iter().map(|(path, _)| path).zip(keys.iter().map(String::as_str)).collect();
    store.rise(&again);
    assert_eq!(waiting.finish().found(), expected);
    // A client has opened a super-trace, and other objects take its names before an executor opens it.
    store.put(&sigmund.path("web-1.supertrace"), "one.supertrace");
    let mut client = sigmund.command();
    client
        .args(["sql", "s3://traces/one.supertrace", "--cluster", &cluster.url])
        .envs(environment(&endpoint));
    let client = Client::start(client);
    store.put(&sigmund.path("web-2.supertrace"), "one.supertrace");
    client.ask(query).complained(&["s3://traces/one.supertrace", "replaced"]);
    // A store that does not come back is said in the end.
    let gone = format!("http://127.0.0.1:{}", free_port());
    asked(&sigmund, &gone, &["sql", "s3://traces/none.supertrace", "SELECT 1"])
        .complained(&["s3://traces/none", "AWS_ENDPOINT"]);
}

/// Columns that are larger than what is read with a footer: the objects that a client has opened are those of which it reads more.
#[test]
fn an_object_that_is_replaced_is_not_read_beside_the_old_footer() {
    let Some(store) = Store::start() else { return };
    let listing = |seed: u64| {
        let mut random = seed;
        let mut number = || {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            random >> 1
        };
        let head = "# tick_hz=1000000000\ntype\tdate_tick\tpid\tcpu\tthr\tcode\tname\tparams\n".to_string();
        (0..100_000).fold(head, |all, tick| {
            all + &format!("KERN\t{}\t70\t0\t?\t-\tnoise\ta={} b={}\n", 100 + tick, number(), number())
        })
    };
    let sigmund = Sigmund::with_listing("one", &listing(1));
    sigmund.merge_listing("two", &listing(2));
    let events = fs::metadata(sigmund.path("one.supertrace/events/part-00000.parquet")).unwrap();
    assert!(events.len() > 3 << 19, "{}", events.len());
    store.put(&sigmund.path("one.supertrace"), "large.supertrace");
    let client = || {
        let mut client = sigmund.command();
        let words = ["sql", "s3://traces/large.supertrace", "--format", "csv"];
        client.args(words).envs(environment(&store.endpoint()));
        Client::start(client)
    };
    let query = "SELECT sum(args[1] % 1000) AS sum FROM events";
    let expected = sigmund.run(["sql", "one.supertrace", query, "--format", "csv"]).found();
    assert_eq!(client().ask(query).found(), expected);
    let open = client();
    store.put(&sigmund.path("two.supertrace"), "large.supertrace");
    open.ask(query).complained(&["it was replaced", "ask again"]);
}
