//! The records of a page (`struct ring_buffer_event`, include/linux/ring_buffer.h, v6.12).
//!
//! Each begins with a word of 32 bits; `t` starts at the page's time, and the deltas accumulate in it:
//!
//! ```text
//!   31            5 4       0
//!   | time_delta   | type_len |  array[0] | …
//!
//!   type_len   what it is                                                          size
//!   1..28      an event of 4×type_len bytes; t += delta                            4 + 4×type_len
//!   0          an event; array[0] is its length, array[0] included; t += delta     4 + array[0], up to 4
//!   29         delta 0: nothing follows. Else a discarded event; t += delta        4 + array[0]
//!   30         TIME_EXTEND: t += delta + (array[0] << 27)                          8
//!   31         TIME_STAMP:  t  = delta + (array[0] << 27), bits 59..63 kept        8
//! ```
//!
//! A big-endian machine has `type_len` in the upper five bits of the word, and the delta below.
//!
//! Absolute timestamps also occur in "delta" mode: when the writer was interrupted by another one that recorded.

use crate::cut::ByteOrder;

/// Bits of an absolute timestamp.
const TIME_STAMP_BITS: u32 = 59;

/// Iterates over the records of one page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Records {
    /// Position of the next record, in bytes from the start of the page.
    at: usize,
    end: usize,
    time: u64,
    order: ByteOrder,
}

/// The next item of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageItem {
    /// An event: its time, and its position, bytes `from..to` of the page.
    Event { time: u64, from: usize, to: usize },
    /// The end of the page.
    End,
    /// At byte `at` of the page, a record of `len` bytes of which only `left` are left in the page.
    Overrun { at: usize, len: u64, left: usize },
}

impl Records {
    /// The records in bytes `range.0..range.1` of a page whose time is `time`.
    pub(crate) fn new(range: (usize, usize), time: u64, order: ByteOrder) -> Records {
        Records { at: range.0, end: range.1, time, order }
    }

    /// The next event.
    #[inline]
    pub(crate) fn next(&mut self, page: &[u8]) -> PageItem {
        match self.order {
            ByteOrder::Little => self.step::<false>(page),
            ByteOrder::Big => self.step::<true>(page),
        }
    }

    #[inline]
    fn step<const BIG: bool>(&mut self, page: &[u8]) -> PageItem {
        loop {
            let left = self.end.saturating_sub(self.at);
            if left == 0 {
                return PageItem::End;
            }
            let overrun = |len| PageItem::Overrun { at: self.at, len, left };
            let Some(word) = word_at::<BIG>(page, self.at, self.end) else { return overrun(4) };
            let (type_len, delta) =
                if BIG { (word >> 27, word & 0x07ff_ffff) } else { (word & 0x1f, word >> 5) };
            let delta = u64::from(delta);
            if let 1..=28 = type_len {
                let (from, to) = (self.at + 4, self.at + 4 + 4 * type_len as usize);
                if to > self.end {
                    return overrun((to - self.at) as u64);
                }
                self.at = to;
                self.time = self.time.wrapping_add(delta);
                return PageItem::Event { time: self.time, from, to };
            }
            if type_len == 29 && delta == 0 {
                return PageItem::End;
            }
            let Some(first) = word_at::<BIG>(page, self.at + 4, self.end) else { return overrun(8) };
            let beyond = delta + (u64::from(first) << 27);
            match type_len {
                30 => {
                    self.time = self.time.wrapping_add(beyond);
                    self.at += 8;
                }
                31 => {
                    self.time = absolute(beyond, self.time);
                    self.at += 8;
                }
                _ => {
                    // 0: array[0] includes its own size. 29: it does not, and is a multiple of 4.
                    let len = 4 + (u64::from(first)).next_multiple_of(4);
                    if len < 8 || len > left as u64 {
                        return overrun(len);
                    }
                    let from = self.at + 8;
                    let to = from.max(self.at + 4 + first as usize);
                    self.at += len as usize;
                    self.time = self.time.wrapping_add(delta);
                    if type_len == 0 {
                        return PageItem::Event { time: self.time, from, to };
                    }
                }
            }
        }
    }
}

/// The absolute time, completed with the upper bits of the running time (`rb_fix_abs_ts`).
fn absolute(stamp: u64, running: u64) -> u64 {
    let stamp = stamp & ((1 << TIME_STAMP_BITS) - 1);
    let upper = running >> TIME_STAMP_BITS << TIME_STAMP_BITS;
    let time = stamp | upper;
    if upper != 0 && time < running { time.wrapping_add(1 << TIME_STAMP_BITS) } else { time }
}

#[inline]
fn word_at<const BIG: bool>(page: &[u8], at: usize, end: usize) -> Option<u32> {
    let bytes = *page.get(at..end)?.first_chunk()?;
    Some(if BIG { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring_buffer::{Page, PageLayout};

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|w| w.to_le_bytes()).collect()
    }

    fn walk(page: &[u8], time: u64) -> Vec<PageItem> {
        let mut records = Records::new((0, page.len()), time, ByteOrder::Little);
        let mut steps = Vec::new();
        loop {
            let step = records.next(page);
            steps.push(step);
            if !matches!(step, PageItem::Event { .. }) {
                return steps;
            }
        }
    }

    // | type_len 1, delta 3 | x | type_len 0, delta 2 | 6 | x x (2 bytes, padded to 4) |
    #[test]
    fn short_and_long_events_add_their_delta() {
        let page = words(&[(3 << 5) | 1, 7, 2 << 5, 6, 9]);
        let expected = [
            PageItem::Event { time: 103, from: 4, to: 8 },
            PageItem::Event { time: 105, from: 16, to: 18 },
            PageItem::End,
        ];
        assert_eq!(walk(&page, 100), expected);
    }

    // | type_len 1, delta 3 | x | type_len 30, delta 5 | 1 | type_len 1, delta 1 | x |
    #[test]
    fn a_big_endian_machine_has_the_length_in_the_upper_bits() {
        let words = [(1 << 27) | 3, 7, (30 << 27) | 5, 1, (1 << 27) | 1, 7u32];
        let page: Vec<u8> = words.iter().flat_map(|w| w.to_be_bytes()).collect();
        let mut records = Records::new((0, page.len()), 100, ByteOrder::Big);
        assert_eq!(records.next(&page), PageItem::Event { time: 103, from: 4, to: 8 });
        assert_eq!(records.next(&page), PageItem::Event { time: 109 + (1 << 27), from: 20, to: 24 });
        assert_eq!(records.next(&page), PageItem::End);
    }

    #[test]
    fn a_time_extend_adds_and_a_time_stamp_sets() {
        let page = words(&[(5 << 5) | 30, 1, 1, 7, (6 << 5) | 31, 2, 1, 7]);
        let expected = [
            PageItem::Event { time: 100 + 5 + (1 << 27), from: 12, to: 16 },
            PageItem::Event { time: 6 + (2 << 27), from: 28, to: 32 },
            PageItem::End,
        ];
        assert_eq!(walk(&page, 100), expected);
        assert_eq!(absolute(5, (3 << 59) + 4), (3 << 59) + 5);
        assert_eq!(absolute(5, (3 << 59) + 6), (4 << 59) + 5);
    }

    #[test]
    fn a_discarded_event_is_skipped_and_padding_ends_the_page() {
        let page = words(&[(1 << 5) | 29, 8, 0xdead, (1 << 5) | 1, 7, 29, 0xffff]);
        assert_eq!(walk(&page, 100), [PageItem::Event { time: 102, from: 16, to: 20 }, PageItem::End]);
    }

    #[test]
    fn a_record_beyond_the_end_is_an_overrun() {
        assert_eq!(walk(&words(&[28, 0]), 0), [PageItem::Overrun { at: 0, len: 116, left: 8 }]);
        assert_eq!(
            walk(&words(&[0, 0xffff_ffff]), 0),
            [PageItem::Overrun { at: 0, len: 0x1_0000_0004, left: 8 }]
        );
        assert_eq!(walk(&words(&[0, 0]), 0), [PageItem::Overrun { at: 0, len: 4, left: 8 }]);
    }

    // marker-extend.page, from a real kernel: short markers, a pause of 200 ms, and a marker of 220 bytes.
    // At 0x2c, 0x0a51e1c7: type_len 7, delta 0x528f0e. At 0x4c, 0xe7726f1e 3: a TIME_EXTEND.
    #[test]
    fn a_page_of_a_real_kernel_walks_to_its_end() {
        let bytes = include_bytes!("../../tests/fixtures/marker-extend.page");
        let page = Page::parse(bytes, &PageLayout::default(), 0).unwrap();
        assert_eq!((page.time, page.records, page.lost_before), (0x04c2_35fc_a4de, (16, 16 + 0x164), None));
        let mut records = Records::new(page.records, page.time, ByteOrder::Little);
        let mut events = Vec::new();
        let last = loop {
            match records.next(bytes) {
                PageItem::Event { time, from, to } => events.push((time - page.time, to - from)),
                last => break last,
            }
        };
        assert_eq!(last, PageItem::End);
        assert_eq!(events[..2], [(0, 24), (0x52_8f0e, 28)]);
        assert_eq!(events[2].0 - events[1].0, 0x73b_9378 + (3 << 27));
        assert!(events.iter().any(|(_, len)| *len == 220), "{events:?}");
    }

    // overflow.pages: the first page has the flag and the count of events lost before it.
    #[test]
    fn pages_of_an_overflown_buffer_have_the_count_of_lost_events() {
        let bytes = include_bytes!("../../tests/fixtures/overflow.pages.zst");
        let bytes = zstd::decode_all(bytes.as_slice()).unwrap();
        let pages: Vec<Page> =
            bytes.chunks(4096).map(|page| Page::parse(page, &PageLayout::default(), 0).unwrap()).collect();
        assert!(pages.iter().any(|page| matches!(page.lost_before, Some(Some(1..)))), "{pages:?}");
        for (bytes, page) in bytes.chunks(4096).zip(&pages) {
            let mut records = Records::new(page.records, page.time, ByteOrder::Little);
            while let PageItem::Event { time, .. } = records.next(bytes) {
                assert!(time >= page.time);
            }
            assert_eq!(records.next(bytes), PageItem::End);
        }
    }
}
