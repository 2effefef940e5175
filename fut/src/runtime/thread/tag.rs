//! The beginning of a thread's name, for who looks at a live program: readable at any time, without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the name that are kept.
const LEN: usize = 32;

/// See above. Zeros follow the name.
#[derive(Debug, Default)]
pub(super) struct NameTag([AtomicU64; LEN / 8]);

impl NameTag {
    /// By whoever makes or ends the thread.
    #[inline]
    pub(super) fn set(&self, name: &str) {
        if name.is_empty() {
            return self.0[0].store(0, Ordering::Relaxed);
        }
        let mut bytes = [0; LEN];
        let len = name.len().min(LEN);
        bytes[..len].copy_from_slice(&name.as_bytes()[..len]);
        for (word, bytes) in self.0.iter().zip(bytes.chunks_exact(8)) {
            let bytes = bytes.try_into().expect("chunks of 8 bytes");
            word.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
        }
    }

    /// What stands there. A name that changes meanwhile may come out mixed; the caller checks whose it is.
    pub(super) fn get(&self) -> String {
        if self.0[0].load(Ordering::Relaxed) == 0 {
            return String::new();
        }
        let bytes: Vec<u8> =
            self.0.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(LEN);
        // Cut in the middle of a character, the rest of that is dropped.
        String::from_utf8_lossy(&bytes[..end]).trim_end_matches(char::REPLACEMENT_CHARACTER).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_a_name_is_kept() {
        let tag = NameTag::default();
        assert_eq!(tag.get(), "");
        for name in ["a", "reader/7", "exactly thirty-two bytes of text"] {
            tag.set(name);
            assert_eq!(tag.get(), name);
        }
        tag.set("a name of thirty-one bytes, 31 ä and more");
        assert_eq!(tag.get(), "a name of thirty-one bytes, 31 ");
        tag.set("");
        assert_eq!(tag.get(), "");
    }
}
