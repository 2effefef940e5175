//! Truncated files, and files with flipped bits: no panic, no unfounded error, and everything readable is kept.

use fkt_ingest::TraceDat;
use sigmund_model::{LossKind, Ticks};

use crate::fixture;

/// Opens and drains; returns events and losses, or `None` if the header is refused.
fn try_all(dir: &tempfile::TempDir, bytes: &[u8]) -> Option<(usize, usize)> {
    let trace = TraceDat::open(&fixture::file(dir, "damaged.dat", bytes)).ok()?;
    let (streams, losses) = fixture::drain_trace(&trace);
    Some((streams.iter().map(Vec::len).sum(), losses.len()))
}

#[test]
fn a_file_cut_anywhere_keeps_what_is_readable() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["small-tsc-v7-zstd.dat", "small-tsc-v6.dat"] {
        let whole = fixture::bytes(name);
        let (all, none) = try_all(&dir, &whole).unwrap();
        assert_eq!(none, 0);
        let mut before = 0;
        for cut in (0..whole.len()).step_by(997) {
            let Some((events, losses)) = try_all(&dir, &whole[..cut]) else { continue };
            // A file may end with bytes that no event needs.
            assert!(losses > 0 || events == all, "{name} cut at {cut}: {events} of {all} events, no loss");
            assert!(events >= before, "{name} cut at {cut}: fewer events than when cut before");
            before = events;
        }
        assert!(name.contains("v7") || before > all * 9 / 10, "{name}: {before} of {all} events");
    }
}

#[test]
fn flipped_bits_cost_no_more_than_their_page() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = 0x5167_4d75_6e64_0001;
    for name in ["small-tsc-v7-zstd.dat", "small-tsc-v7-none.dat", "small-tsc-v6.dat"] {
        let whole = fixture::bytes(name);
        let mut refused = 0;
        for _ in 0..700 {
            let mut bytes = whole.clone();
            let at = fixture::random(&mut state) as usize % bytes.len();
            bytes[at] ^= 1 << (fixture::random(&mut state) % 8);
            refused += usize::from(try_all(&dir, &bytes).is_none());
        }
        assert!(refused < 350, "{name}: {refused} of 700 refused");
    }
}

// v6, uncompressed: the pages are the end of the file. Page 3 of CPU 0 gets a time of 2^60 more, page 5 a
// length of 4095.
#[test]
fn a_damaged_page_costs_that_page_and_one_row() {
    let dir = tempfile::tempdir().unwrap();
    let whole = fixture::bytes("small-tsc-v6.dat");
    let trace = TraceDat::open(&fixture::file(&dir, "whole.dat", &whole)).unwrap();
    let (intact, _) = fixture::drain_trace(&trace);

    // Page boundaries: the first event of each page of CPU 0 has the page's time.
    let is_time = |at: usize, tick: Ticks| whole[at..at + 8] == tick.0.to_le_bytes();
    let pages: Vec<usize> = (0..whole.len() / 4096)
        .map(|p| p * 4096)
        .filter(|at| intact[0].iter().any(|e| is_time(*at, e.tick)))
        .collect();
    assert!(pages.len() > 6, "{pages:?}");

    let mut bytes = whole.clone();
    bytes[pages[3] + 7] ^= 0x10;
    bytes[pages[5] + 9] |= 0x0f;
    bytes[pages[5] + 8] |= 0xff;
    let trace = TraceDat::open(&fixture::file(&dir, "damaged.dat", &bytes)).unwrap();
    let (damaged, losses) = fixture::drain_trace(&trace);
    assert_eq!(losses.iter().filter(|l| l.kind == LossKind::Damaged).count(), 2, "{losses:#?}");
    assert!(losses[1].detail.contains(&format!("damaged.dat: cpu 0: at byte {} (page header)", pages[5])));
    let per_page = intact[0].len() / pages.len();
    let lost = intact[0].len() - damaged[0].len();
    assert!(lost > 0 && lost < 4 * per_page, "{lost} of {} events lost", intact[0].len());
    assert_eq!(intact[1].len(), damaged[1].len());
}
