//! The initial key mask of a recording, set from outside the program.
//!
//! `FUT_KEYMASK` contains it, or `FUT_KEYMASK_FILE` names a file that contains it. The mask is the union of words,
//! separated by blanks, commas or line ends; `#` begins a comment.
//!
//! ```text
//! word := scheduler | lwp | sync | locks | functions | spans | program | c | all | default
//!       | FUT_KEYMASK0 … FUT_KEYMASK31 | FUT_KEYMASKALL      the keys of C programs
//!       | 0x…                                                any of the 64 bits
//! ```
//! `all` is everything. `default` is everything but `locks`; this is the initial mask if neither variable is set. An
//! error message shows an invalid word of the variable, but of a file only the line: the person who sees the message
//! may not be allowed to read the file. A set-user-ID program reads neither variable (`environment`).
//!
//! `lwp` is always on: without it, LWPs cannot be assigned to runtimes. If the text is malformed, the mask does not
//! change.

use std::{
    fmt, fs,
    io::Read,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::{environment, keys, warning::warn};

/// The environment variable with the initial key mask.
pub const ENV_KEYMASK: &str = "FUT_KEYMASK";
/// The environment variable that names a file with the initial key mask.
pub const ENV_KEYMASK_FILE: &str = "FUT_KEYMASK_FILE";

/// Maximum length of a file with a mask, in bytes.
const MAX_LEN: u64 = 64 << 10;

/// Whether the mask of the session came from the environment.
static GIVEN: AtomicBool = AtomicBool::new(false);

/// Why a key mask cannot be used.
#[derive(Debug)]
pub struct KeymaskError {
    place: String,
    expected: &'static str,
    found: String,
}

impl fmt::Display for KeymaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, found {}", self.place, self.expected, self.found)
    }
}

impl std::error::Error for KeymaskError {}

/// The mask from the environment. `None` if there is none, or if it is malformed, which is reported on stderr.
pub(super) fn from_environment() -> Option<u64> {
    let asked = if let Some(text) = environment::variable(ENV_KEYMASK) {
        parse(&text.to_string_lossy(), ENV_KEYMASK, |word| {
            format!("{:?}", word.chars().take(64).collect::<String>())
        })
    } else {
        from_file(&environment::variable(ENV_KEYMASK_FILE)?.to_string_lossy())
    };
    // The user set the variable, and stderr is the only way to report the error.
    let mask = asked.map_err(|error| warn(format_args!("{error}; the key mask stays as it is"))).ok();
    GIVEN.store(mask.is_some(), Ordering::Relaxed);
    mask
}

/// Whether the session began with a mask from the environment. If so, the program should not change it.
#[doc(hidden)]
pub fn keymask_is_given() -> bool {
    GIVEN.load(Ordering::Relaxed)
}

fn from_file(path: &str) -> Result<u64, KeymaskError> {
    let expected = "a file with a key mask";
    let error = |found: String| KeymaskError { place: path.into(), expected, found };
    if !fs::metadata(path).map_err(|e| error(e.to_string()))?.is_file() {
        return Err(error("something else".into()));
    }
    let mut text = Vec::new();
    let file = fs::File::open(path).map_err(|e| error(e.to_string()))?;
    file.take(MAX_LEN + 1).read_to_end(&mut text).map_err(|e| error(e.to_string()))?;
    if text.len() as u64 > MAX_LEN {
        return Err(error(format!("more than {MAX_LEN} bytes")));
    }
    parse_keymask(&String::from_utf8_lossy(&text), path)
}

/// Parses a key mask; `place` is the file or the variable, for error messages.
///
/// # Errors
/// For the first word that is not a key, with its line; or if there are no words. The message does not contain the
/// word: the text may come from a file that the person who sees the message may not be allowed to read.
pub fn parse_keymask(text: &str, place: &str) -> Result<u64, KeymaskError> {
    parse(text, place, |word| format!("an unknown word of {} characters", word.chars().count()))
}

fn parse(text: &str, place: &str, describe: impl Fn(&str) -> String) -> Result<u64, KeymaskError> {
    let mut mask = None;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or("");
        for word in line.split(|c: char| c.is_whitespace() || c == ',').filter(|w| !w.is_empty()) {
            let bits = key(word).ok_or_else(|| KeymaskError {
                place: format!("{place}:{number}"),
                expected: "a key (scheduler, lwp, sync, locks, functions, spans, program, c, all, default, \
                           FUT_KEYMASK0 to FUT_KEYMASK31, 0x…)",
                found: describe(word),
            })?;
            mask = Some(mask.unwrap_or(0) | bits);
        }
    }
    let nothing = || KeymaskError { place: place.into(), expected: "a key", found: "none".into() };
    Ok(mask.ok_or_else(nothing)? | keys::LWP)
}

fn key(word: &str) -> Option<u64> {
    if let Some(hex) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        let digits = hex.chars().all(|c| c.is_ascii_hexdigit());
        return u64::from_str_radix(hex, 16).ok().filter(|_| digits);
    }
    let named = match word.to_ascii_lowercase().as_str() {
        "scheduler" => keys::SCHEDULER,
        "lwp" => keys::LWP,
        "sync" => keys::SYNC,
        "locks" => keys::LOCKS,
        "functions" => keys::FUNCTIONS,
        "spans" => keys::SPANS,
        "program" => keys::PROGRAM,
        "c" | "fut_keymaskall" => keys::C_PROGRAM,
        "all" => keys::ALL,
        "default" => keys::DEFAULT,
        other => {
            let digits =
                other.strip_prefix("fut_keymask").filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?;
            let bit: u32 = digits.parse().ok().filter(|bit| *bit < 32)?;
            1 << (32 + bit)
        }
    };
    Some(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_the_union_of_names_and_numbers() {
        let text = "scheduler, sync # who waits\n\nFUT_KEYMASK3\t0x100\n";
        let expected = keys::SCHEDULER | keys::SYNC | keys::LWP | 1 << 35 | 0x100;
        assert_eq!(parse_keymask(text, "keys").unwrap(), expected);
        assert_eq!(parse_keymask("all", "FUT_KEYMASK").unwrap(), u64::MAX);
        assert_eq!(parse_keymask("default", "FUT_KEYMASK").unwrap(), !keys::LOCKS);
        assert_eq!(parse_keymask("default locks", "FUT_KEYMASK").unwrap(), u64::MAX);
        assert_eq!(parse_keymask("FUT_KEYMASKALL", "keys").unwrap(), 0xffff_ffff << 32 | keys::LWP);
    }

    #[test]
    fn an_invalid_mask_is_refused_with_its_line() {
        let wrong = |text: &str| parse_keymask(text, "keys.txt").unwrap_err().to_string();
        assert!(wrong("scheduler\nshceduler").starts_with("keys.txt:2: expected a key ("));
        for text in
            ["0x", "0xfg", "0x+1", "0x10000000000000000", "7", "FUT_KEYMASK32", "FUT_KEYMASK+1", "all;"]
        {
            let message = wrong(text);
            assert!(
                message.starts_with("keys.txt:1: ")
                    && message.ends_with(&format!("an unknown word of {} characters", text.len())),
                "{message}"
            );
        }
        assert_eq!(wrong("# nothing\n"), "keys.txt: expected a key, found none");
    }
}
