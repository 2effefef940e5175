//! A server of the command, and what it answers.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::Duration,
};

use serde_json::Value;

use crate::sigmund::{Sigmund, program};

/// A server, ended when this is dropped.
pub(crate) struct Server {
    pub(super) child: Child,
    pub(crate) address: String,
    pub(crate) token: String,
}

/// An answer of HTTP.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(super) head: String,
    pub(crate) body: Vec<u8>,
}

impl Server {
    pub(crate) fn start(sigmund: &Sigmund, trace: &str, more: &[&str]) -> Server {
        Server::of(sigmund, &[&[trace, "--cache", "cache"], more].concat())
    }

    pub(crate) fn of(sigmund: &Sigmund, words: &[&str]) -> Server {
        let mut child = Command::new(program())
            .args(["view", "--no-open"])
            .args(words)
            .current_dir(sigmund.folder())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (address, token) = line.trim_end().split_once("/#token=").unwrap_or_else(|| panic!("{line:?}"));
        let address = address.rsplit("://").next().unwrap().to_string();
        Server { child, address, token: token.to_string() }
    }

    /// A request with these headers, and an answer.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut text =
            format!("{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(format!("{text}\r\n{body}").as_bytes()).unwrap();
        Reply::read(stream)
    }

    pub(super) fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    pub(crate) fn get(&self, question: &str) -> Reply {
        let headers = [("Host", self.address.as_str()), ("Authorization", &self.bearer())];
        self.request("GET", &format!("/api/{question}"), &headers, "")
    }

    pub(crate) fn post(&self, question: &str, body: &Value) -> Reply {
        let headers = [("Host", self.address.as_str()), ("Authorization", &self.bearer())];
        self.request("POST", &format!("/api/{question}"), &headers, &body.to_string())
    }

    pub(crate) fn json(&self, question: &str) -> Value {
        self.get(question).json()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Reply {
    pub(super) fn read(mut stream: impl Read) -> Reply {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap().to_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Reply { status, head, body: bytes[end + 4..].to_vec() }
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.status, 200, "{}", String::from_utf8_lossy(&self.body));
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Numbers that look random, the same in each run.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, sides: u64) -> u64 {
        // Knuth's constants (MMIX); the high bits are the better ones.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}
