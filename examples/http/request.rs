//! The head of a request, parsed by httparse, and what it means for the connection.

use httparse::{EMPTY_HEADER, Error, Status};

use super::server::Limits;

/// Maximum number of header fields.
const MOST_FIELDS: usize = 64;

/// A request without its body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Bytes of the head.
    pub(crate) len: usize,
    pub(crate) method: String,
    pub(crate) target: String,
    /// Bytes of the body that follows.
    pub(crate) body_len: usize,
    /// Whether the connection stays open after the response.
    pub(crate) keeps_alive: bool,
    /// The client waits for a response before it sends the body.
    pub(crate) expects_continue: bool,
}

/// A status with which a request is refused, and the connection closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) u16);

/// The first request in `bytes`; `None` if its head is not there as a whole.
pub(crate) fn parse(bytes: &[u8], limits: &Limits) -> Result<Option<Head>, Refused> {
    let mut fields = [EMPTY_HEADER; MOST_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let within = &bytes[..bytes.len().min(limits.head)];
    let len = match request.parse(within) {
        Ok(Status::Complete(len)) => len,
        Ok(Status::Partial) if bytes.len() >= limits.head => return Err(Refused(431)),
        Ok(Status::Partial) => return Ok(None),
        Err(Error::TooManyHeaders) => return Err(Refused(431)),
        Err(Error::Version) => return Err(Refused(505)),
        Err(_) => return Err(Refused(400)),
    };
    let is_1_1 = request.version == Some(1);
    let mut head = Head {
        len,
        method: request.method.unwrap_or_default().into(),
        target: request.path.unwrap_or_default().into(),
        body_len: 0,
        keeps_alive: is_1_1,
        expects_continue: false,
    };
    let (mut hosts, mut lengths) = (0, Vec::new());
    for field in request.headers.iter() {
        let is = |name: &str| field.name.eq_ignore_ascii_case(name);
        if is("host") {
            hosts += 1;
        } else if is("content-length") {
            lengths.push(field.value);
        } else if is("transfer-encoding") {
            // This server takes bodies by length only. To ignore the field would be to read a body as a request.
            return Err(Refused(411));
        } else if is("expect") {
            head.expects_continue = field.value.eq_ignore_ascii_case(b"100-continue");
        } else if is("connection") {
            for word in field.value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                if word.eq_ignore_ascii_case(b"close") {
                    head.keeps_alive = false;
                } else if word.eq_ignore_ascii_case(b"keep-alive") && !is_1_1 {
                    head.keeps_alive = true;
                }
            }
        }
    }
    // RFC 9112, 3.2.
    if hosts > 1 || is_1_1 && hosts == 0 {
        return Err(Refused(400));
    }
    if let Some(first) = lengths.first() {
        // RFC 9112, 6.3: two that differ may hide a request from others that read them.
        if lengths.iter().any(|length| length != first) {
            return Err(Refused(400));
        }
        head.body_len = number(first)?;
    }
    if head.body_len > limits.body { Err(Refused(413)) } else { Ok(Some(head)) }
}

/// Digits alone: `parse` would take a sign.
fn number(digits: &[u8]) -> Result<usize, Refused> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Refused(400));
    }
    let number = str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    // Too large for a `usize`.
    number.ok_or(Refused(413))
}
