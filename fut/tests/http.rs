//! The example of an HTTP server: what it answers, to whom it does not, and how it ends.

#[path = "../../examples/http/answer.rs"]
mod answer;
#[path = "../../examples/http/connection.rs"]
mod connection;
#[path = "../../examples/http/request.rs"]
mod request;
#[path = "../../examples/http/server.rs"]
mod server;

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    thread,
    time::Duration,
};

use fut::Runtime;
use request::{Head, Refused};
use server::{Limits, Server, Stopper};

const PATIENCE: Duration = Duration::from_millis(200);

fn limits() -> Limits {
    Limits { head: 1000, body: 5000, patience: PATIENCE }
}

/// Calls `client` on this thread beside a server; returns the number of requests that it has answered.
fn beside_a_server(client: impl FnOnce(SocketAddr, &Stopper)) -> u64 {
    let runtime = Runtime::builder().lwps(2).build().unwrap();
    let (server, address, stopper) = runtime.run(|| {
        let server = Server::bind("127.0.0.1:0", limits()).unwrap();
        let (address, stopper) = (server.address(), server.stopper());
        (fut::spawn(|| server.run()), address, stopper)
    });
    client(address, &stopper);
    runtime.run(move || stopper.stop());
    server.join().unwrap()
}

/// Everything that the server answers to these pieces.
fn answers(address: SocketAddr, pieces: &[&[u8]]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    for piece in pieces {
        // The server may have refused what came before.
        if stream.write_all(piece).is_err() {
            break;
        }
        if pieces.len() > 1 {
            thread::sleep(Duration::from_millis(1));
        }
    }
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    answers
}

const PIPELINED: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n\
    POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nGET \
    HEAD / HTTP/1.1\r\nHost: x\r\n\r\n\
    GET /none HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Close\r\n\r\n\
    GET / HTTP/1.1\r\nHost: x\r\n\r\n";
const ANSWERED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\nHello, world!\
    HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nGET \
    HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n\
    HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

#[test]
fn pipelined_requests_are_answered_in_order_wherever_the_network_cuts_them() {
    let cuts = (1..PIPELINED.len()).step_by(7);
    let count = cuts.clone().count() as u64;
    let answered = beside_a_server(|address, _| {
        assert_eq!(answers(address, &[PIPELINED]), ANSWERED);
        for cut in cuts {
            let (one, other) = PIPELINED.split_at(cut);
            assert_eq!(answers(address, &[one, other]), ANSWERED, "cut at {cut}");
        }
        let single: Vec<&[u8]> = PIPELINED.chunks(1).collect();
        assert_eq!(answers(address, &single), ANSWERED);
    });
    assert_eq!(answered, 4 * (count + 2));
}

/// The head of a request, as the server takes it.
fn parsed(head: &str) -> Result<Option<Head>, Refused> {
    request::parse(head.as_bytes(), &limits())
}

#[test]
fn what_is_no_request_or_too_much_is_refused_by_its_status() {
    let long = format!("GET / HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "y".repeat(1000));
    let fields = format!("GET / HTTP/1.1\r\nhost: x\r\n{}\r\n", "a: b\r\n".repeat(64));
    let refused = [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n", 400),
        ("GET\0/ HTTP/1.1\r\nhost: x\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nhost : x\r\n\r\n", 400),
        ("GET / HTTP/2.0\r\nhost: x\r\n\r\n", 505),
        ("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: +5\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5, 5\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: \r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 5001\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999999999999999\r\n\r\n", 413),
        ("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n", 411),
        (long.as_str(), 431),
        (fields.as_str(), 431),
    ];
    for (head, status) in refused {
        assert_eq!(parsed(head), Err(Refused(status)), "{head:?}");
    }
    let taken = parsed("POST /a?b HTTP/1.1\r\nhost: x\r\ncontent-length: 5000\r\n\r\n").unwrap().unwrap();
    assert_eq!((taken.body_len, taken.keeps_alive, taken.target.as_str()), (5000, true, "/a?b"));
    assert!(!parsed("GET / HTTP/1.0\r\n\r\n").unwrap().unwrap().keeps_alive);
    assert!(parsed("GET / HTTP/1.0\r\nconnection: Keep-Alive\r\n\r\n").unwrap().unwrap().keeps_alive);
    beside_a_server(|address, _| {
        for (head, status) in refused {
            let answer = answers(address, &[head.as_bytes()]);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{head:?}: {answer:?}");
            assert!(answer.ends_with("connection: close\r\n\r\n"), "{answer:?}");
        }
        // Of one that never ends, the server reads no more than the limit.
        let endless = [b"GET /", [b'a'; 100_000].as_slice()].concat();
        assert!(answers(address, &[&endless]).starts_with("HTTP/1.1 431 "));
    });
}

/// Any bytes at all, from valid requests with changed bytes: an answer or a refusal, and never more than there is.
#[test]
fn changed_bytes_never_make_a_head_longer_than_its_bytes() {
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    for _ in 0..20_000 {
        let mut bytes = PIPELINED[next(40)..].to_vec();
        for _ in 0..next(4) {
            let at = next(bytes.len());
            bytes[at] = next(256) as u8;
        }
        bytes.truncate(next(bytes.len() + 1));
        if let Ok(Some(head)) = request::parse(&bytes, &limits()) {
            assert!(head.len <= bytes.len() && head.body_len <= 5000);
        }
    }
}

#[test]
fn a_client_that_waits_for_it_is_told_to_send_the_body() {
    beside_a_server(|address, _| {
        let mut stream = TcpStream::connect(address).unwrap();
        let head = "POST /echo HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        let mut go_on = [0; 25];
        stream.read_exact(&mut go_on).unwrap();
        assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream.write_all(b"abc").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc");
    });
}

#[test]
fn a_client_that_stops_in_a_request_is_told_and_an_idle_one_is_not() {
    beside_a_server(|address, _| {
        assert!(answers(address, &[b"GET / HT"]).starts_with("HTTP/1.1 408 "));
        assert!(
            answers(address, &[b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nab"])
                .starts_with("HTTP/1.1 408 ")
        );
        assert_eq!(answers(address, &[]), "");
        assert!(answers(address, &[b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"]).ends_with("Hello, world!"));
    });
}

#[test]
fn a_server_that_ends_answers_what_has_begun_and_closes_what_is_idle() {
    let mut answer = String::new();
    let answered = beside_a_server(|address, stopper| {
        let (mut idle, mut busy) =
            (TcpStream::connect(address).unwrap(), TcpStream::connect(address).unwrap());
        idle.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        let mut first = [0; 39 + 13];
        idle.read_exact(&mut first).unwrap();
        busy.write_all(b"POST /echo HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\na").unwrap();
        thread::sleep(Duration::from_millis(20));
        let (ended, stopper) = (Runtime::builder().lwps(1).build().unwrap(), stopper.clone());
        ended.run(move || stopper.stop());
        assert_eq!(idle.read(&mut [0]).unwrap(), 0);
        busy.write_all(b"bc").unwrap();
        busy.read_to_string(&mut answer).unwrap();
        assert!(TcpStream::connect(address).is_err() || answers(address, &[PIPELINED]).is_empty());
    });
    assert_eq!(answer, "HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\nabc");
    assert_eq!(answered, 2);
}
