//! A trace in several files, its parts. Each part repeats the metadata of the earlier ones, so that it can be read
//! without them.

use super::{packet::PacketKind, reader::Packet};

/// The metadata packets so far. A part repeats those of the earlier parts, in the same order, so only the rest is new.
#[derive(Debug, Default)]
pub(super) struct RepeatedMetadata {
    /// Kind, length and checksum of each metadata packet.
    known: Vec<(PacketKind, u32, u32)>,
    /// The part that is being read, and the number of metadata packets found in it.
    part: usize,
    found: usize,
}

impl RepeatedMetadata {
    /// Notes a packet of this part. Returns whether it repeats a packet of an earlier part.
    pub(super) fn repeats(&mut self, part: usize, packet: &Packet) -> bool {
        if std::mem::replace(&mut self.part, part) != part {
            self.found = 0;
        }
        let key = (packet.head.kind, packet.head.length, crc32fast::hash(&packet.payload));
        let repeats = self.known.get(self.found) == Some(&key);
        if !repeats {
            self.known.push(key);
        }
        self.found += 1;
        repeats
    }
}

#[cfg(test)]
mod tests {
    use std::{fs::File, path::PathBuf};

    use sigmund_model::{Event, EventStream, Lwp, Pid, Severity, Thread, Ticks};

    use crate::trace::{PacketFlags, PacketHead, PacketKind, RecordHead, UserTrace, file_head};

    fn head(kind: PacketKind, sequence: u64, ticks: (u64, u64), lost: u64) -> PacketHead {
        PacketHead {
            kind,
            flags: PacketFlags::default(),
            length: 0,
            pid: Pid(10),
            lwp: Lwp(11),
            sequence,
            first_tick: Ticks(ticks.0),
            thread: Some(Thread(5)),
            lost,
            last_tick: Ticks(ticks.1),
        }
    }

    /// A packet of three records. Their ticks are 10 × sequence, and the two ticks after that.
    fn packet(sequence: u64, lost: u64) -> Vec<u8> {
        let (first, code) = (10 * sequence, RecordHead { code: 1, words: 1, flags: 0, cpu: 0 }.to_word());
        let payload: Vec<u8> = (0..3).flat_map(|i| [first + i, code, i]).flat_map(u64::to_le_bytes).collect();
        head(PacketKind::EVENTS, sequence, (first, first + 2), lost).encode(&payload)
    }

    fn process(name: &str) -> Vec<u8> {
        let mut payload = (name.len() as u32).to_le_bytes().to_vec();
        payload.extend(name.bytes());
        head(PacketKind::PROCESS, 0, (0, 0), 0).encode(&payload)
    }

    fn end(sequence: u64) -> Vec<u8> {
        head(PacketKind::LWP_END, sequence, (1000, 1000), 0).encode(&[])
    }

    /// Four parts of one trace: packets 0 and 1, 2, 3 and 4, 5 and the end.
    fn parts() -> [Vec<u8>; 4] {
        let (a, b) = (process("a"), process("b"));
        [
            [file_head().to_vec(), a.clone(), packet(0, 0), packet(1, 0)].concat(),
            [file_head().to_vec(), a.clone(), packet(2, 0), b.clone()].concat(),
            [file_head().to_vec(), a.clone(), b.clone(), packet(3, 0), packet(4, 0)].concat(),
            [file_head().to_vec(), a, b, packet(5, 0), end(5)].concat(),
        ]
    }

    fn opened(parts: &[Vec<u8>], begins_later: bool) -> UserTrace {
        let dir = tempfile::tempdir().unwrap();
        let file = |(number, bytes): (usize, &Vec<u8>)| {
            let path = dir.path().join(format!("part-{number}"));
            std::fs::write(&path, bytes).unwrap();
            (path.clone(), File::open(path).unwrap())
        };
        let files: Vec<(PathBuf, File)> = parts.iter().enumerate().map(file).collect();
        UserTrace::of_parts("all".as_ref(), files, begins_later).unwrap()
    }

    /// Ticks of all events, and what is missing.
    fn read(trace: &UserTrace) -> (Vec<u64>, Vec<String>) {
        let (mut ticks, mut event) = (Vec::new(), Event::default());
        let mut losses = trace.losses().to_vec();
        for mut stream in trace.streams() {
            while stream.next_into(&mut event).unwrap() {
                ticks.push(event.tick.0);
            }
            losses.extend(stream.take_losses());
        }
        (ticks, losses.iter().map(|loss| format!("{}: {}", loss.severity.name(), loss.detail)).collect())
    }

    fn ticks_of(packets: std::ops::Range<u64>) -> Vec<u64> {
        packets.flat_map(|packet| 10 * packet..10 * packet + 3).collect()
    }

    #[test]
    fn parts_are_read_as_one_trace_and_repeated_metadata_once() {
        let trace = opened(&parts(), false);
        assert_eq!(read(&trace), (ticks_of(0..6), Vec::new()));
        let names: Vec<&str> = trace.processes().iter().map(|process| process.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn each_part_can_be_read_without_those_before_and_what_was_removed_is_no_gap() {
        for first in 0..4 {
            let trace = opened(&parts()[first..], true);
            assert_eq!(read(&trace), (ticks_of([0, 2, 3, 5][first]..6), Vec::new()), "from part {first}");
        }
        // Records that were lost before the first packet are before the part of the trace that is kept.
        let lost = [file_head().to_vec(), packet(7, 40), packet(8, 40), end(8)].concat();
        assert_eq!(read(&opened(std::slice::from_ref(&lost), true)), (ticks_of(7..9), Vec::new()));
        let (_, losses) = read(&opened(std::slice::from_ref(&lost), false));
        assert!(losses.iter().any(|loss| loss.contains("no free packet before packet 7")), "{losses:?}");
    }

    #[test]
    fn a_part_that_is_missing_between_others_is_a_gap() {
        let [first, _, third, fourth] = parts();
        let (ticks, losses) = read(&opened(&[first, third, fourth], false));
        assert_eq!(ticks, [ticks_of(0..2), ticks_of(3..6)].concat());
        assert_eq!(losses, [format!("{}: all: LWP 11: expected packet 2, found 3", Severity::Gap.name())]);
    }

    #[test]
    fn a_part_that_is_cut_anywhere_costs_its_end_only_and_is_named() {
        let all = parts();
        for len in 16..all[1].len() {
            let cut = [all[0].clone(), all[1][..len].to_vec(), all[2].clone(), all[3].clone()];
            let (ticks, losses) = read(&opened(&cut, false));
            let whole = [ticks_of(0..2), ticks_of(3..6)].concat();
            let kept: Vec<u64> = ticks.iter().copied().filter(|tick| !(20..23).contains(tick)).collect();
            assert_eq!(kept, whole, "cut at {len}: {losses:?}");
            let at_a_packet = [16, 16 + process("a").len(), all[1].len() - process("b").len()].contains(&len);
            assert!(
                at_a_packet || losses.iter().any(|loss| loss.contains("part-1: at byte")),
                "{len}: {losses:?}"
            );
        }
    }

    #[test]
    fn a_part_that_is_none_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("part-9");
        std::fs::write(&path, b"FUTTRICK").unwrap();
        let parts = vec![(path.clone(), File::open(&path).unwrap())];
        let error = UserTrace::of_parts("all".as_ref(), parts, false).unwrap_err().to_string();
        assert!(error.contains("part-9") && error.contains("FUTTRACE"), "{error}");
        let error = UserTrace::of_parts("all".as_ref(), Vec::new(), false).unwrap_err().to_string();
        assert!(error.contains("expected parts"), "{error}");
    }
}
