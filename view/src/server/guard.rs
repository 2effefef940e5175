//! Decides which requests are answered: rules 1 to 3 of the server.

use std::net::SocketAddr;

use hyper::{HeaderMap, header};

/// The names and the token of a server.
pub(super) struct Guard {
    /// The server's address; `None` for a Unix socket, because a tunnel connects it to any port of a client's machine.
    address: Option<SocketAddr>,
    token: String,
}

/// Names of a machine for itself.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

impl Guard {
    pub(super) fn new(address: Option<SocketAddr>, token: String) -> Guard {
        Guard { address, token }
    }

    /// The reason why a request is refused before its content is examined; `None` if it is not refused.
    pub(super) fn refuses(&self, headers: &HeaderMap) -> Option<&'static str> {
        let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok()).unwrap_or_default();
        if hosts.next().is_some() || !self.is_own(host) {
            return Some("this server has another name");
        }
        // A page of this server sends only its own origin.
        let is_own_origin = |origin: &str| origin.strip_prefix("http://") == Some(host);
        if text(header::ORIGIN).is_some_and(|origin| !is_own_origin(origin)) {
            return Some("another origin may not ask");
        }
        let site = headers.get("sec-fetch-site").map(|value| value.to_str().unwrap_or("?"));
        if site.is_some_and(|site| !matches!(site, "same-origin" | "none")) {
            return Some("another site may not ask");
        }
        None
    }

    fn is_own(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            // An IPv6 address contains colons.
            Some((name, port)) if !port.ends_with(']') => (name, port),
            _ => (host, "80"),
        };
        let Ok(port) = port.parse::<u16>() else { return false };
        match self.address {
            None => LOOPBACK.contains(&name),
            Some(address) if address.port() != port => false,
            Some(address) => {
                let is_loopback = LOOPBACK.contains(&name);
                let is_address = name.trim_matches(['[', ']']).parse() == Ok(address.ip());
                // A server on all addresses of a machine accepts any address as its name, but no host name: a host name
                // could be rebound.
                let is_any = address.ip().is_unspecified()
                    && name.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
                (is_loopback && (address.ip().is_loopback() || address.ip().is_unspecified()))
                    || is_address
                    || is_any
            }
        }
    }

    /// Whether a request has the token.
    pub(super) fn knows(&self, headers: &HeaderMap) -> bool {
        let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        shown.and_then(|shown| shown.strip_prefix("Bearer ")).is_some_and(|shown| self.is_token(shown))
    }

    /// Takes the same time for all texts of the token's length.
    fn is_token(&self, shown: &str) -> bool {
        let pairs = self.token.bytes().zip(shown.bytes());
        let differing = pairs.fold(0, |differing, (own, other)| differing | (own ^ other));
        !self.token.is_empty() && self.token.len() == shown.len() && differing == 0
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let header = |(name, value): &(&str, &str)| {
            (name.parse::<HeaderName>().unwrap(), HeaderValue::from_str(value).unwrap())
        };
        let mut map = HeaderMap::new();
        for (name, value) in pairs.iter().map(header) {
            map.append(name, value);
        }
        map
    }

    fn tcp(address: &str) -> Guard {
        Guard::new(Some(address.parse().unwrap()), "0123456789abcdef".into())
    }

    #[test]
    fn only_the_servers_own_names_are_answered() {
        let guard = tcp("127.0.0.1:4000");
        for own in ["127.0.0.1:4000", "localhost:4000", "[::1]:4000"] {
            assert_eq!(guard.refuses(&headers(&[("host", own)])), None, "{own}");
        }
        for other in [
            "127.0.0.1",
            "localhost:4001",
            "evil.example:4000",
            "localhost.evil.example:4000",
            "127.0.0.1.nip.io:4000",
            "",
            "127.0.0.1:4000:4000",
            "[::1",
            "192.168.0.1:4000",
        ] {
            assert!(guard.refuses(&headers(&[("host", other)])).is_some(), "{other}");
        }
        assert!(guard.refuses(&HeaderMap::new()).is_some());
        assert!(guard.refuses(&headers(&[("host", "localhost:4000"), ("host", "evil.example")])).is_some());
    }

    #[test]
    fn on_all_addresses_any_address_is_answered_and_no_name() {
        let guard = tcp("0.0.0.0:4000");
        assert_eq!(guard.refuses(&headers(&[("host", "192.168.0.1:4000")])), None);
        assert!(guard.refuses(&headers(&[("host", "evil.example:4000")])).is_some());
        let unix = Guard::new(None, "0123456789abcdef".into());
        assert_eq!(unix.refuses(&headers(&[("host", "localhost:9999")])), None);
        assert!(unix.refuses(&headers(&[("host", "evil.example:9999")])).is_some());
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        let guard = tcp("127.0.0.1:4000");
        let with = |name, value| guard.refuses(&headers(&[("host", "127.0.0.1:4000"), (name, value)]));
        assert_eq!(with("origin", "http://127.0.0.1:4000"), None);
        for other in ["http://evil.example", "https://127.0.0.1:4000", "http://127.0.0.1:4001", "null", ""] {
            assert!(with("origin", other).is_some(), "{other}");
        }
        assert_eq!(with("sec-fetch-site", "same-origin"), None);
        assert_eq!(with("sec-fetch-site", "none"), None);
        for other in ["cross-site", "same-site", ""] {
            assert!(with("sec-fetch-site", other).is_some(), "{other}");
        }
    }

    #[test]
    fn only_the_token_is_the_token() {
        let guard = tcp("127.0.0.1:4000");
        let knows = |value| guard.knows(&headers(&[("authorization", value)]));
        assert!(knows("Bearer 0123456789abcdef"));
        for wrong in ["Bearer 0123456789abcdeg", "Bearer 0123456789abcde", "Bearer ", "0123456789abcdef", ""]
        {
            assert!(!knows(wrong), "{wrong}");
        }
        assert!(!guard.knows(&HeaderMap::new()));
        assert!(!Guard::new(None, String::new()).knows(&headers(&[("authorization", "Bearer ")])));
    }
}
