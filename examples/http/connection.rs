//! One connection: requests one after the other, as long as both sides keep it open.
//!
//! Responses are written when no further request is there as a whole, so those of pipelined requests leave together.

use std::io::{self, ErrorKind, Read, Write};

use fut::net::TcpStream;

use super::{
    answer::{self, Pages},
    request::{self, Head, Refused},
    server::{Idle, Limits},
};

/// Bytes that are read at a time.
const PIECE: usize = 16 << 10;
/// Responses are written when there are so many bytes of them.
const ENOUGH: usize = 64 << 10;

/// The buffers of a connection.
struct Connection<'a> {
    stream: &'a TcpStream,
    limits: &'a Limits,
    /// Bytes received, up to `filled`; those before `used` belong to requests that were answered. The rest is room, which
    /// is cleared once and not before each read.
    buffer: Vec<u8>,
    filled: usize,
    used: usize,
    /// Responses that were not yet written.
    out: Vec<u8>,
}

/// Why a connection ends without a response.
enum End {
    Refused(Refused),
    /// The client has closed it, or the server ends.
    Closed,
    Failed(io::Error),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> End {
        match error.kind() {
            ErrorKind::TimedOut => End::Refused(Refused(408)),
            _ => End::Failed(error),
        }
    }
}

/// Answers requests until the connection ends; returns their number.
///
/// # Errors
/// Those of the connection.
pub(crate) fn serve(
    stream: &TcpStream,
    limits: &Limits,
    idle: &Idle<'_>,
    pages: &Pages,
) -> (u64, io::Result<()>) {
    let mut connection =
        Connection { stream, limits, buffer: Vec::new(), filled: 0, used: 0, out: Vec::new() };
    let mut answered = 0;
    let ended = loop {
        match connection.one_request(idle, pages) {
            Ok(keeps_alive) => {
                answered += 1;
                if !keeps_alive {
                    break connection.flush();
                }
            }
            Err(End::Closed) => break connection.flush(),
            Err(End::Failed(error)) => break Err(error),
            Err(End::Refused(Refused(status))) => {
                answer::write(&mut connection.out, &(status, Vec::new()), true, false);
                break connection.flush().and_then(|()| connection.let_the_client_read());
            }
        }
    };
    (answered, ended)
}

impl Connection<'_> {
    /// Whether the connection stays open.
    fn one_request(&mut self, idle: &Idle<'_>, pages: &Pages) -> Result<bool, End> {
        let head = self.head(idle)?;
        let _request = fut::span!("request");
        self.used += head.len;
        if head.expects_continue && self.filled < self.used + head.body_len {
            self.out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
            self.flush()?;
        }
        while self.filled < self.used + head.body_len {
            self.flush()?;
            self.more()?;
        }
        let body = &self.buffer[self.used..self.used + head.body_len];
        let answer = pages.answer(&head, body);
        self.used += head.body_len;
        let keeps_alive = head.keeps_alive && !idle.server_ends();
        answer::write(&mut self.out, &answer, head.method != "HEAD", keeps_alive);
        if self.out.len() >= ENOUGH {
            self.flush()?;
        }
        Ok(keeps_alive)
    }

    /// The head of the next request; waits for it.
    fn head(&mut self, idle: &Idle<'_>) -> Result<Head, End> {
        loop {
            let received = &self.buffer[self.used..self.filled];
            if let Some(head) = request::parse(received, self.limits).map_err(End::Refused)? {
                return Ok(head);
            }
            self.flush()?;
            if self.used < self.filled {
                self.more()?;
                continue;
            }
            // Nothing of the next request is there: the connection is idle, and may be closed without a response.
            if !idle.begin() {
                return Err(End::Closed);
            }
            let more = self.more();
            idle.end();
            match more {
                Err(End::Refused(_)) => return Err(End::Closed),
                done => done?,
            }
        }
    }

    /// Reads a piece.
    fn more(&mut self) -> Result<(), End> {
        self.buffer.copy_within(self.used..self.filled, 0);
        self.filled -= self.used;
        self.used = 0;
        let room = self.filled..self.filled + PIECE;
        if self.buffer.len() < room.end {
            self.buffer.resize(room.end, 0);
        }
        let read = (&mut &*self.stream).read(&mut self.buffer[room])?;
        self.filled += read;
        if read == 0 { Err(End::Closed) } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        (&mut &*self.stream).write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    /// A connection that is closed with unread bytes is reset, and the client may lose the response: reads some first.
    fn let_the_client_read(&mut self) -> io::Result<()> {
        self.stream.shutdown(std::net::Shutdown::Write)?;
        let mut piece = [0; PIECE];
        for _ in 0..64 {
            if (&mut &*self.stream).read(&mut piece)? == 0 {
                break;
            }
        }
        Ok(())
    }
}
