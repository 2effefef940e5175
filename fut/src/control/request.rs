//! The requests to a process, and their encoding as a line.

use super::GREETING;

/// A request to a traced process.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Request {
    /// List the events that the process declares.
    List,
    /// Switch on the events whose names match the pattern; `*` matches any characters.
    Enable(String),
    /// Switch off the events whose names match the pattern.
    Disable(String),
    /// Return the key mask; if one is given, set it first.
    Keys(Option<u64>),
    /// Return the state of the buffers.
    Status,
    /// List the user threads.
    Threads,
    /// Write the contents of a flight recorder's rings to the file that is passed with the request.
    Snapshot,
}

/// Maximum length of a request, newline included, in bytes.
pub(super) const MAX_REQUEST: usize = 4096;

impl Request {
    /// The request as a line, newline included.
    pub(super) fn line(&self) -> String {
        let words = match self {
            Request::List => "list".into(),
            Request::Enable(pattern) => format!("enable {pattern}"),
            Request::Disable(pattern) => format!("disable {pattern}"),
            Request::Keys(None) => "keys".into(),
            Request::Keys(Some(mask)) => format!("keys {mask:#x}"),
            Request::Status => "status".into(),
            Request::Threads => "threads".into(),
            Request::Snapshot => "snapshot".into(),
        };
        format!("{GREETING} {words}\n")
    }

    /// Parses a complete line, without its newline. The error text is sent to the client.
    pub(super) fn parse(line: &[u8]) -> Result<Request, String> {
        let line = std::str::from_utf8(line).map_err(|error| {
            format!("request: expected UTF-8, found something else at byte {}", error.valid_up_to())
        })?;
        let Some(words) = line.strip_prefix(GREETING).and_then(|rest| rest.strip_prefix(' ')) else {
            return Err(format!("request: expected `{GREETING} …`, found {}", shown(line)));
        };
        let (verb, argument) = match words.split_once(' ') {
            Some((verb, argument)) => (verb, Some(argument)),
            None => (words, None),
        };
        match (verb, argument) {
            ("list", None) => Ok(Request::List),
            ("enable", Some(pattern)) => Ok(Request::Enable(pattern.into())),
            ("disable", Some(pattern)) => Ok(Request::Disable(pattern.into())),
            ("keys", None) => Ok(Request::Keys(None)),
            ("keys", Some(mask)) => mask_from(mask).map(|mask| Request::Keys(Some(mask))),
            ("status", None) => Ok(Request::Status),
            ("threads", None) => Ok(Request::Threads),
            ("snapshot", None) => Ok(Request::Snapshot),
            _ => Err(format!(
                "request: expected list, enable PATTERN, disable PATTERN, keys [0xMASK], status, threads or \
                 snapshot, found {}",
                shown(words)
            )),
        }
    }
}

fn mask_from(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
    digits
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .ok_or_else(|| format!("keys: expected a mask as in 0x101, found {}", shown(text)))
}

/// The first characters of `text`, quoted, for an error message.
pub(super) fn shown(text: &str) -> String {
    let beginning: String = text.chars().take(40).collect();
    if beginning.len() < text.len() { format!("{beginning:?}…") } else { format!("{beginning:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let requests = [
            Request::List,
            Request::Enable("USER_*".into()),
            Request::Disable("a b".into()),
            Request::Keys(None),
            Request::Keys(Some(u64::MAX)),
            Request::Status,
            Request::Threads,
            Request::Snapshot,
        ];
        for request in requests {
            let line = request.line();
            assert_eq!(Request::parse(line.strip_suffix('\n').unwrap().as_bytes()), Ok(request), "{line:?}");
        }
    }

    #[test]
    fn the_error_for_an_invalid_request_names_what_was_expected() {
        for (line, expected) in [
            ("", "expected `fut-control 1 …`, found \"\""),
            ("list", "found \"list\""),
            ("fut-control 2 list", "found \"fut-control 2 list\""),
            ("fut-control 1", "found \"fut-control 1\""),
            ("fut-control 1 ", "expected list, enable PATTERN"),
            ("fut-control 1 list ", "found \"list \""),
            ("fut-control 1 list\r", "found \"list\\r\""),
            ("fut-control 1 enable", "found \"enable\""),
            ("fut-control 1 keys 257", "expected a mask as in 0x101, found \"257\""),
            ("fut-control 1 keys 0x", "found \"0x\""),
            ("fut-control 1 keys 0x+1", "found \"0x+1\""),
            ("fut-control 1 keys 0x10000000000000000", "found \"0x1"),
            ("fut-control 1 snapshot /etc/passwd", "expected list"),
        ] {
            let error = Request::parse(line.as_bytes()).unwrap_err();
            assert!(error.contains(expected), "{line:?}: {error}");
        }
        let long = Request::parse("x".repeat(4000).as_bytes()).unwrap_err();
        assert!(long.len() < 120 && long.contains('…'), "{long}");
        assert!(Request::parse(b"fut-control 1 \xff").unwrap_err().contains("at byte 14"));
    }
}
