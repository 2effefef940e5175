//! Ring-buffer pages from records.

use super::{Record, Shape};

pub(super) struct Pages {
    shape: Shape,
    pages: Vec<u8>,
    /// The open page, without its header.
    data: Vec<u8>,
    page_time: u64,
    last: u64,
    lost: Option<u32>,
}

const TIME_EXTEND: u32 = 30;

impl Pages {
    pub(super) fn of(shape: Shape, records: &[Record]) -> Vec<u8> {
        let mut pages =
            Pages { shape, pages: Vec::new(), data: Vec::new(), page_time: 0, last: 0, lost: None };
        for record in records {
            pages.add(record);
        }
        pages.close();
        pages.pages
    }

    fn head(&self) -> usize {
        8 + self.shape.long
    }

    fn add(&mut self, record: &Record) {
        let len = record.payload.len().next_multiple_of(4);
        let room = self.shape.page_size - self.head();
        assert!(len + 8 <= room, "a record of {len} bytes");
        let full = self.data.len() + len + 16 + self.shape.long > room;
        if self.data.is_empty() || full || record.lost_before.is_some() {
            self.close();
            (self.page_time, self.last) = (record.time, record.time);
            self.lost = record.lost_before;
        }
        let delta = record.time - self.last;
        self.last = record.time;
        let mut left = delta;
        if delta >= 1 << 27 {
            self.word(TIME_EXTEND, (delta & 0x7ff_ffff) as u32);
            self.data.extend(self.shape.u32((delta >> 27) as u32));
            left = 0;
        }
        match len / 4 {
            words @ 1..=28 => self.word(words as u32, left as u32),
            _ => {
                self.word(0, left as u32);
                self.data.extend(self.shape.u32(len as u32 + 4));
            }
        }
        self.data.extend(&record.payload);
        self.data.resize(self.data.len().next_multiple_of(4), 0);
    }

    fn word(&mut self, type_len: u32, delta: u32) {
        let word = if self.shape.big_endian { type_len << 27 | delta } else { delta << 5 | type_len };
        self.data.extend(self.shape.u32(word));
    }

    fn close(&mut self) {
        if self.data.is_empty() {
            return;
        }
        let start = self.pages.len();
        let missed: i64 = if self.lost.is_some() { 0xffff_ffff_c000_0000u64 as i64 } else { 0 };
        self.pages.extend(self.shape.u64(self.page_time));
        self.pages.extend(self.shape.number(missed | self.data.len() as i64, self.shape.long));
        self.pages.append(&mut self.data);
        if let Some(lost) = self.lost.take() {
            self.pages.extend(self.shape.number(i64::from(lost), self.shape.long));
        }
        self.pages.resize(start + self.shape.page_size, 0xa5);
    }
}
