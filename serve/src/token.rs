//! Access control: clients have to know a token.

use std::io;

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use tonic::{Request, Status};

/// Some clients write padding, and some do not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The number of random bytes of a generated token.
const RANDOM: usize = 24;

/// The minimum length of a token, in characters.
const SHORTEST: usize = 16;

/// A secret that clients send with each call: as `authorization: Bearer TOKEN`, or as the password of any user.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A new token from the kernel's random numbers.
    ///
    /// # Errors
    /// When the kernel has no random numbers.
    pub fn random() -> io::Result<Token> {
        let mut bytes = [0; RANDOM];
        getrandom::fill(&mut bytes)?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The token with this text.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] when it is too short, or has characters other than visible ASCII.
    pub fn new(text: &str) -> io::Result<Token> {
        if text.len() >= SHORTEST && text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Ok(Token(text.to_string()));
        }
        let message = format!("expected a token of at least {SHORTEST} visible ASCII characters");
        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The header's value.
    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Accepts a call that has the token.
    pub(crate) fn check(&self, request: Request<()>) -> Result<Request<()>, Status> {
        let header = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
        match header.and_then(shown).is_some_and(|shown| self.is(&shown)) {
            true => Ok(request),
            false => Err(Status::unauthenticated(
                "expected the token that the server has printed: authorization: Bearer TOKEN, or as a password",
            )),
        }
    }

    /// Compares in a time that depends only on the length, not on where the tokens differ.
    fn is(&self, shown: &str) -> bool {
        let differing =
            self.0.bytes().zip(shown.bytes()).fold(0, |differing, (own, other)| differing | (own ^ other));
        self.0.len() == shown.len() && differing == 0
    }
}

/// The token in a header: `Bearer TOKEN`, or `Basic` with the base64 of `USER:TOKEN`.
fn shown(header: &str) -> Option<String> {
    match header.split_once(' ')? {
        (scheme, token) if scheme.eq_ignore_ascii_case("bearer") => Some(token.trim().to_string()),
        (scheme, pair) if scheme.eq_ignore_ascii_case("basic") => {
            let pair = String::from_utf8(BASE64.decode(pair.trim()).ok()?).ok()?;
            Some(pair.split_once(':')?.1.to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(token: &Token, header: Option<&str>) -> bool {
        let mut request = Request::new(());
        if let Some(header) = header {
            request.metadata_mut().insert("authorization", header.parse().unwrap());
        }
        token.check(request).is_ok()
    }

    #[test]
    fn only_calls_with_the_token_pass() {
        let token = Token::new("0123456789abcdef").unwrap();
        let basic = |pair: &str| format!("Basic {}", BASE64.encode(pair));
        for right in [
            "Bearer 0123456789abcdef".to_string(),
            "bearer 0123456789abcdef".to_string(),
            basic("sigmund:0123456789abcdef"),
            basic(":0123456789abcdef"),
            basic("any:0123456789abcdef").trim_end_matches('=').to_string(),
        ] {
            assert!(passes(&token, Some(&right)), "{right}");
        }
        assert!(!passes(&token, None));
        for wrong in [
            String::new(),
            "0123456789abcdef".to_string(),
            "Bearer 0123456789abcdeF".to_string(),
            "Bearer 0123456789abcdef0".to_string(),
            "Bearer 0123456789abcde".to_string(),
            "Bearer".to_string(),
            "Basic !".to_string(),
            basic("0123456789abcdef"),
            basic("0123456789abcdef:"),
            "Digest 0123456789abcdef".to_string(),
        ] {
            assert!(!passes(&token, Some(&wrong)), "{wrong}");
        }
    }

    #[test]
    fn tokens_are_long_visible_and_not_the_same_twice() {
        let (a, b) = (Token::random().unwrap(), Token::random().unwrap());
        assert!(a.text() != b.text() && a.text().len() == 2 * RANDOM);
        assert!(Token::new(a.text()).is_ok());
        for wrong in ["", "short", "with a space in it", "wit\u{e9} sixteen characters"] {
            assert!(Token::new(wrong).is_err(), "{wrong}");
        }
    }
}
