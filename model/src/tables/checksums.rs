//! The file `checksums` of a super-trace, beside the folders of the tables: checksums of the ends of all files.
//!
//! Each page of a Parquet file has its own checksum. The parts after the pages (indexes, statistics, the footer) have
//! none, and a wrong bit there makes a query leave out rows. So the directory of a super-trace has this text file:
//! ```text
//! sigmund checksums 1
//! 9ae0daaf 4711 5120 events/part-00000.parquet
//! 1c291ca3
//! ```
//!
//! A line has the CRC-32 of a file's bytes from an offset to its end, that offset, the length of the file, and the name
//! of the file. The last line is the CRC-32 of all lines above it. A super-trace without this file was written by an
//! earlier version, or put together from copied files. It is read without this check.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::iter;

/// The name of the file.
pub const CHECKSUMS: &str = "checksums";

/// The most characters of a line in a message.
const MOST_SHOWN: usize = 80;

/// The first line.
const HEAD: &str = "sigmund checksums 1\n";

/// The end of a file, from an offset on, and its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileEnd {
    /// The offset where the end begins.
    pub from: u64,
    /// The length of the file.
    pub len: u64,
    /// The CRC-32 of the bytes from `from` on.
    pub crc: u32,
}

/// The ends of files, by `TABLE/NAME`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checksums(BTreeMap<String, FileEnd>);

impl FileEnd {
    /// The end of a file whose last bytes are `end`, from the offset `from` on.
    pub fn new(from: u64, end: &[u8]) -> FileEnd {
        FileEnd { from, len: from + end.len() as u64, crc: crc32fast::hash(end) }
    }
}

impl Checksums {
    /// Adds a file, by `TABLE/NAME`.
    pub fn insert(&mut self, name: String, end: FileEnd) {
        self.0.insert(name, end);
    }

    /// The names of the files of a table.
    pub fn names<'c>(&'c self, table: &'c str) -> impl Iterator<Item = &'c str> {
        self.0.keys().filter_map(move |name| name.strip_prefix(table)?.strip_prefix('/'))
    }

    /// The expected end of a file; `None` if it is unknown.
    pub fn get(&self, name: &str) -> Option<FileEnd> {
        self.0.get(name).copied()
    }

    /// The text of the file.
    pub fn text(&self) -> String {
        let mut text = String::from(HEAD);
        for (name, FileEnd { from, len, crc }) in &self.0 {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{crc:08x} {from} {len} {name}");
        }
        let crc = crc32fast::hash(text.as_bytes());
        let _ = writeln!(text, "{crc:08x}");
        text
    }

    /// Reads the text of the file.
    ///
    /// # Errors
    /// When the text is damaged, or is not such a file. The message gives what was expected and what was found.
    pub fn parse(text: &[u8]) -> Result<Checksums, String> {
        let text = str::from_utf8(text).map_err(|_| "expected checksums, found bytes that are no text")?;
        let last = text.trim_end_matches('\n').rfind('\n').map_or(0, |at| at + 1);
        let (lines, end) = text.split_at(last);
        let found = crc32fast::hash(lines.as_bytes());
        if u32::from_str_radix(end.trim_end_matches('\n'), 16) != Ok(found) {
            let end = shown(end);
            return Err(format!("expected the checksum {found:08x} of the lines above, found {end:?}"));
        }
        let lines = lines.strip_prefix(HEAD).ok_or_else(|| {
            format!(
                "expected {HEAD:?} at its begin, found {:?}",
                shown(lines.lines().next().unwrap_or_default())
            )
        })?;
        let file = |(line, text): (usize, &str)| {
            let mut words = text.splitn(4, ' ');
            let mut word = || words.next();
            let crc = word().and_then(|crc| u32::from_str_radix(crc, 16).ok());
            let [from, len] = [word(), word()].map(|word| word.and_then(|word| word.parse().ok()));
            let whole = crc.zip(from).zip(len).zip(word());
            let known =
                whole.map(|(((crc, from), len), name)| (name.to_string(), FileEnd { from, len, crc }));
            known.filter(|(_, end)| end.from <= end.len).ok_or_else(|| {
                let text = shown(text);
                format!("line {line}: expected a checksum, an offset, a length and a name, found {text:?}")
            })
        };
        iter::zip(2.., lines.lines()).map(file).collect::<Result<_, _>>().map(Checksums)
    }
}

/// The beginning of a text, for a message. A line of an untrusted file may have millions of characters.
fn shown(text: &str) -> &str {
    text.char_indices().nth(MOST_SHOWN).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_the_text_is_found() {
        let mut checksums = Checksums::default();
        assert_eq!(Checksums::parse(checksums.text().as_bytes()), Ok(checksums.clone()));
        // The check value of CRC-32 (ISO-HDLC).
        let end = FileEnd::new(40, b"123456789");
        assert_eq!(end, FileEnd { from: 40, len: 49, crc: 0xcbf4_3926 });
        checksums.insert("events/part-00000.parquet".into(), end);
        let text = checksums.text();
        assert!(text.contains("\ncbf43926 40 49 events/part-00000.parquet\n"), "{text}");
        assert_eq!(Checksums::parse(text.as_bytes()), Ok(checksums));
        for at in 0..text.len() {
            for bit in 0..8 {
                let mut changed = text.clone().into_bytes();
                changed[at] ^= 1 << bit;
                let read = Checksums::parse(&changed);
                // The last line may be written in other letters, and end otherwise.
                let is_same = at + 10 > text.len();
                assert!(read.is_err() || is_same, "{read:?} from {:?}", String::from_utf8_lossy(&changed));
            }
            assert!(Checksums::parse(&text.as_bytes()[..at]).is_err() || at + 1 == text.len());
        }
    }

    #[test]
    fn what_was_never_written_is_an_error() {
        for lines in
            ["", "sigmund checksums 2\n", "sigmund checksums 1\n00 9 8 n\n", "sigmund checksums 1\n00 8\n"]
        {
            let text = format!("{lines}{:08x}\n", crc32fast::hash(lines.as_bytes()));
            let error = Checksums::parse(text.as_bytes()).unwrap_err();
            assert!(error.contains("expected"), "{error}");
        }
        let long = "x".repeat(1 << 20);
        for text in
            [long.clone(), format!("{long}\n{:08x}\n", crc32fast::hash(format!("{long}\n").as_bytes()))]
        {
            assert!(Checksums::parse(text.as_bytes()).unwrap_err().len() < 300);
        }
    }
}
