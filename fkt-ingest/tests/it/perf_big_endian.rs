//! A recording as a big-endian machine would have written it: one of this machine with the bytes of every number
//! swapped. perf reads both on any machine.

use std::fs;
use std::process::{Command, Stdio};

use fkt_ingest::{PerfData, TraceFile};
use sigmund_model::Event;

use crate::fixture;
use crate::perf_script;
use crate::{live::tool_exists, skipped::skipped};

/// Bits of the sample type whose field is two numbers of four bytes: LWP, and CPU.
const PAIRS: [u64; 2] = [1 << 1, 1 << 7];
/// The fields of fixed size, in their order in a sample: identifier, ip, tid, time, addr, id, stream id, cpu, period.
const IN_SAMPLE: [u64; 9] = [1 << 16, 1, 1 << 1, 1 << 2, 1 << 3, 1 << 6, 1 << 9, 1 << 7, 1 << 8];
/// Fields of the `sample_id` at the end of other records.
const IN_SAMPLE_ID: [u64; 6] = [1 << 1, 1 << 2, 1 << 6, 1 << 9, 1 << 7, 1 << 16];

/// Swaps the bytes of numbers, from the front.
struct Turn<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Turn<'_> {
    fn numbers(&mut self, sizes: &[usize]) {
        for size in sizes {
            self.bytes[self.at..self.at + size].reverse();
            self.at += size;
        }
    }

    /// The fields of a sample type.
    fn fields(&mut self, order: &[u64], sample_type: u64) {
        for bit in order.iter().filter(|bit| sample_type & **bit != 0) {
            self.numbers(if PAIRS.contains(bit) { &[4, 4] } else { &[8] });
        }
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().unwrap())
}

/// The file without its features, and with only the kernel's records.
fn turned(little: &[u8]) -> Vec<u8> {
    let word = |index: usize| u64_at(little, 8 + 8 * index);
    let (attr_size, attrs_at, attrs_size) = (word(1) as usize, word(2) as usize, word(3) as usize);
    let (data_at, data_size) = (word(4) as usize, word(5) as usize);
    let sample_type = u64_at(little, attrs_at + 24);
    let mut big = little[..data_at].to_vec();
    for attr in (attrs_at..attrs_at + attrs_size).step_by(attr_size) {
        let flags = u64_at(little, attr + 40).reverse_bits();
        big[attr + 40..attr + 48].copy_from_slice(&flags.to_le_bytes());
        let ids = (u64_at(little, attr + attr_size - 16), u64_at(little, attr + attr_size - 8));
        let mut ids = Turn { bytes: &mut big[ids.0 as usize..(ids.0 + ids.1) as usize], at: 0 };
        ids.numbers(&vec![8; ids.bytes.len() / 8]);
        let mut turn = Turn { bytes: &mut big[attr..attr + attr_size], at: 0 };
        turn.numbers(&[4, 4, 8, 8, 8, 8, 8, 4, 4, 8, 8, 8, 8, 4, 4, 8, 4, 2, 2, 4, 4, 8, 8, 8]);
    }
    let mut at = data_at;
    while at < data_at + data_size {
        let size = usize::from(u16::from_le_bytes([little[at + 6], little[at + 7]]));
        let (ty, mut record) = (little[at], little[at..at + size].to_vec());
        at += size;
        if !(1..=15).contains(&ty) {
            continue;
        }
        let mut turn = Turn { bytes: &mut record, at: 0 };
        turn.numbers(&[4, 2, 2]);
        match ty {
            9 => {
                turn.fields(&IN_SAMPLE, sample_type);
                turn.numbers(&vec![8; (size - turn.at) / 8]);
            }
            _ => {
                match ty {
                    1 => turn.numbers(&[4, 4, 8, 8, 8]),
                    2 => turn.numbers(&[8, 8]),
                    13 => turn.numbers(&[8]),
                    10 => turn.numbers(&[4, 4, 8, 8, 8, 4, 4, 8, 8, 4, 4]),
                    4 | 7 => turn.numbers(&[4, 4, 4, 4, 8]),
                    3 | 15 => turn.numbers(&[4, 4]),
                    _ => {}
                }
                let fields = IN_SAMPLE_ID.iter().filter(|bit| sample_type & **bit != 0).count();
                turn.at = size - 8 * fields;
                turn.fields(&IN_SAMPLE_ID, sample_type);
            }
        }
        big.extend(record);
    }
    big[72..104].fill(0);
    let records = (big.len() - data_at) as u64;
    big[48..56].copy_from_slice(&records.to_le_bytes());
    Turn { bytes: &mut big, at: 0 }.numbers(&[8; 13]);
    big
}

fn events(data: &PerfData) -> Vec<Event> {
    data.streams(None).iter_mut().flat_map(fixture::drain).collect()
}

#[test]
fn a_big_endian_recording_reads_like_the_same_little_endian_one() {
    if !tool_exists("perf") {
        return skipped("perf is not installed");
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("little.data");
    let status = Command::new("perf")
        .args("record -q -N -B -g -e cpu-clock -F 999 -a --switch-events -k CLOCK_MONOTONIC -o".split(' '))
        .arg(&path)
        .args(["sh", "-c", "for i in 1 2 3 4 5; do sleep 0.01; done"])
        .stderr(Stdio::null())
        .status();
    if !status.unwrap().success() {
        return skipped("perf record is not allowed here");
    }
    let other = fixture::file(&dir, "big.data", &turned(&fs::read(&path).unwrap()));
    let (little, big) = (PerfData::open(&path).unwrap(), PerfData::open(&other).unwrap());
    assert_eq!(big.format(), "perf.data, big endian");
    assert_eq!((big.clock(), big.lwp_names()), (little.clock(), little.lwp_names()));
    let (of_little, of_big) = (events(&little), events(&big));
    assert!(of_little.len() > 50);
    assert_eq!(of_little.len(), of_big.len());
    let shape = |event: &Event| (event.tick, event.kind, event.cpu, event.lwp, event.effect);
    for (one, other) in of_little.iter().zip(&of_big) {
        assert_eq!((shape(one), &one.params), (shape(other), &other.params));
    }
    // perf recognises the byte order of the swapped file.
    let lines = perf_script::script(&other);
    let records = |name: &str| lines.iter().filter(|line| line.what.contains(name)).count();
    let ours = |name: &str| {
        let named = |event: &&Event| big.event_types()[event.kind as usize].name == name;
        of_big.iter().filter(named).count()
    };
    let switches = ours("perf_switch_in") + ours("perf_switch_out");
    assert_eq!((records("PERF_RECORD_SWITCH"), records("PERF_RECORD_FORK")), (switches, ours("perf_fork")));
    assert!(switches > 10);
}
