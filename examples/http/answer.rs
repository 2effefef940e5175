//! What the server knows: a greeting, an echo, and a page from a cache that is filled again now and then.

use std::{
    fmt::Write as _,
    hint::black_box,
    time::{Duration, Instant},
};

use fut::sync::Mutex;

use super::request::Head;

/// One in this number of requests of `/page` finds the cache empty.
const EMPTY_EVERY: u64 = 40;

/// What all connections share.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    /// How often the page was asked for.
    page: Mutex<u64>,
}

/// Status, and body.
pub(crate) type Answer = (u16, Vec<u8>);

impl Pages {
    pub(crate) fn answer(&self, head: &Head, body: &[u8]) -> Answer {
        match (head.method.as_str(), head.target.as_str()) {
            ("GET" | "HEAD", "/") => (200, b"Hello, world!".to_vec()),
            ("POST", "/echo") => (200, body.to_vec()),
            ("GET" | "HEAD", "/page") => (200, self.page()),
            ("GET" | "HEAD" | "POST", "/" | "/echo" | "/page") => (405, Vec::new()),
            ("GET" | "HEAD" | "POST", _) => (404, Vec::new()),
            _ => (501, Vec::new()),
        }
    }

    fn page(&self) -> Vec<u8> {
        let _look_up = fut::span!("look_up");
        let mut asked = self.page.lock();
        *asked += 1;
        if *asked % EMPTY_EVERY == EMPTY_EVERY / 2 {
            fill();
        }
        format!("asked for {} times", *asked).into_bytes()
    }
}

/// Lets others run meanwhile, who find the lock held.
#[fut::trace]
fn fill() {
    for _ in 0..20 {
        let start = Instant::now();
        while start.elapsed() < Duration::from_micros(100) {
            black_box(0);
        }
        fut::yield_now();
    }
}

/// Adds a response to `out`, the body of one to HEAD left out.
pub(crate) fn write(out: &mut Vec<u8>, (status, body): &Answer, has_body: bool, keeps_alive: bool) {
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        411 => "Length Required",
        413 => "Content Too Large",
        431 => "Request Header Fields Too Large",
        501 => "Not Implemented",
        505 => "HTTP Version Not Supported",
        _ => "",
    };
    let mut head = String::with_capacity(128);
    let _ = write!(head, "HTTP/1.1 {status} {reason}\r\ncontent-length: {}\r\n", body.len());
    head.push_str(if keeps_alive { "\r\n" } else { "connection: close\r\n\r\n" });
    out.extend_from_slice(head.as_bytes());
    if has_body {
        out.extend_from_slice(body);
    }
}
