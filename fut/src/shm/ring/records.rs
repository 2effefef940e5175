//! Finds the committed records in a private copy of a packet's bytes.

use crate::trace::{RECORD_HEAD_LEN, RecordHead};

/// The result of [`keep_committed`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept {
    /// Bytes of the committed records, which are now contiguous.
    pub(super) len: usize,
    /// Number of committed records.
    pub(super) records: u64,
    /// Records that were reserved and not committed.
    pub(super) holes: u64,
    pub(super) last_tick: u64,
}

/// Keeps the committed records, and removes the gaps between them.
///
/// A probe writes the header first and the tick last. So a record that was never committed has a length, or is all
/// zeros (its probe was interrupted between reserving and writing). In the latter case, only the next record shows
/// where it ends. `first_tick` is approximately when the packet was begun.
pub(super) fn keep_committed(bytes: &mut [u8], first_tick: u64) -> Kept {
    let mut kept = Kept::default();
    let mut at = 0;
    while let Some((tick, head)) = words_at(bytes, at) {
        if tick == 0 && head == 0 {
            kept.holes += 1;
            at = skip_zeros(bytes, at + RECORD_HEAD_LEN, first_tick);
            continue;
        }
        let len = RecordHead::from_word(head).record_len();
        if at + len > bytes.len() {
            kept.holes += 1;
            break;
        }
        if tick == 0 {
            kept.holes += 1;
        } else {
            kept.records += 1;
            kept.last_tick = kept.last_tick.max(tick);
            if kept.len != at {
                bytes.copy_within(at..at + len, kept.len);
            }
            kept.len += len;
        }
        at += len;
    }
    kept
}

/// Keeps the records before the first one that is not committed: these are final.
pub(super) fn committed_prefix(bytes: &[u8]) -> Kept {
    let mut kept = Kept::default();
    while let Some((tick, head)) = words_at(bytes, kept.len) {
        let end = kept.len + RecordHead::from_word(head).record_len();
        if tick == 0 || end > bytes.len() {
            break;
        }
        kept.records += 1;
        kept.last_tick = kept.last_tick.max(tick);
        kept.len = end;
    }
    kept
}

/// Where the next record begins. That is at the next non-zero word, if this word is a tick. Otherwise this word is the
/// header of another record without a tick.
#[cold]
fn skip_zeros(bytes: &[u8], from: usize, first_tick: u64) -> usize {
    let is_something = |at: &usize| words_at(bytes, *at).is_some_and(|(word, _)| word != 0);
    let Some(at) = (from..bytes.len()).step_by(8).find(is_something) else { return bytes.len() };
    let is_record = words_at(bytes, at).is_some_and(|(tick, word)| {
        let head = RecordHead::from_word(word);
        tick > first_tick / 2 && head.code != 0 && head.flags == 0 && at + head.record_len() <= bytes.len()
    });
    if is_record || at < from + 8 { at } else { at - 8 }
}

#[inline(always)]
fn words_at(bytes: &[u8], at: usize) -> Option<(u64, u64)> {
    let (tick, rest) = bytes.get(at..)?.split_first_chunk::<8>()?;
    let head = rest.first_chunk::<8>()?;
    const { assert!(RECORD_HEAD_LEN == 16) };
    Some((u64::from_le_bytes(*tick), u64::from_le_bytes(*head)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    fn head(words: u8) -> u64 {
        RecordHead { code: 1, words, flags: 0, cpu: 0 }.to_word()
    }

    const T: u64 = 1 << 50;

    //  |  committed  | no tick |  nothing yet  | committed |
    #[test]
    fn records_with_a_tick_are_kept_and_the_others_are_counted() {
        let mut copied = bytes(&[T, head(1), 70, 0, head(0), 0, 0, T + 2, head(2), 90, 91]);
        let kept = keep_committed(&mut copied, T);
        assert_eq!(kept, Kept { len: 56, records: 2, holes: 2, last_tick: T + 2 });
        assert_eq!(copied[..56], bytes(&[T, head(1), 70, T + 2, head(2), 90, 91]));
    }

    //  |  nothing yet  |  no tick  | committed |
    #[test]
    fn of_two_holes_the_second_may_have_a_header() {
        let mut copied = bytes(&[0, 0, 0, 0, head(1), 80, T + 9, head(0)]);
        let kept = keep_committed(&mut copied, T);
        assert_eq!((kept.records, kept.holes, &copied[..16]), (1, 2, &bytes(&[T + 9, head(0)])[..]));
    }

    #[test]
    fn a_record_that_is_longer_than_its_packet_is_not_kept() {
        assert_eq!(keep_committed(&mut bytes(&[T, head(2), 70]), T).len, 0);
        assert_eq!(keep_committed(&mut bytes(&[T]), T), Kept::default());
    }
}
