//! The beginning of a thread's name, for inspecting a live program. It can be read at any time, without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum length, in bytes.
const LEN: usize = 32;

/// The bytes of the name, padded with zeros.
#[derive(Debug, Default)]
pub(super) struct NameTag([AtomicU64; LEN / 8]);

impl NameTag {
    /// Called by the thread that creates this one, or by the thread that frees its block.
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

    /// The name. If the name changes meanwhile, the result may be mixed. The caller then checks whether the block still
    /// belongs to the same thread.
    pub(super) fn get(&self) -> String {
        if self.0[0].load(Ordering::Relaxed) == 0 {
            return String::new();
        }
        let bytes: Vec<u8> =
            self.0.iter().flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(LEN);
        // A character that was cut in the middle is dropped.
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
