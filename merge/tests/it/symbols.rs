//! Names for addresses. A trace may name any file as the binary that contains the addresses.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use fut::trace::{Module, NamedPlace, PacketKind, encode_modules, encode_places, file_head};
use sigmund_model::{FieldType, Pid};
use tempfile::TempDir;

use crate::supertrace::{
    Inputs,
    user_file::{Packet, declarations, head, lwp_end},
};

const ENTER: u32 = 5;

fn module(start: u64, path: &str) -> Module {
    let path = path.to_string();
    Module { pid: Pid(60), start, end: start.wrapping_add(0x1000), offset: 0, path, build_id: String::new() }
}

/// A trace in which functions at these addresses were entered.
fn trace(modules: &[Module], places: &[NamedPlace], addresses: &[u64]) -> Vec<u8> {
    let fields = [("function", FieldType::Pointer), ("call_site", FieldType::Pointer)];
    let words: Vec<[u64; 2]> = addresses.iter().map(|address| [*address; 2]).collect();
    let events: Vec<(u64, u32, &[u64])> =
        (100..).zip(&words).map(|(tick, words)| (tick, ENTER, words.as_slice())).collect();
    [
        file_head().to_vec(),
        declarations(&[(ENTER, "FUNC_ENTER", &fields)]),
        head(PacketKind::MODULES, 0).encode(&encode_modules(modules)),
        head(PacketKind::PLACES, 0).encode(&encode_places(places)),
        Packet { lwp: 70, sequence: 0, thread: 0, lost: 0, events: &events }.encode(),
        lwp_end(70, 0),
    ]
    .concat()
}

/// The texts of the events, and the rows of `losses`.
fn merged(trace: &[u8]) -> (Vec<String>, Vec<String>) {
    let merged = Inputs::new().file("user.fut", trace).merge();
    (merged.table("events", &["texts"]), merged.table("losses", &["kind", "severity", "count", "detail"]))
}

fn fifo(folder: &Path) -> PathBuf {
    let fifo = folder.join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    fifo
}

#[test]
fn any_file_named_as_a_binary_causes_at_most_a_note() {
    let folder = TempDir::new().unwrap();
    let huge = folder.path().join("huge");
    File::create(&huge).unwrap().set_len(100 << 30).unwrap();
    let garbage = folder.path().join("garbage");
    fs::write(&garbage, [b"\x7fELF\x02\x01\x01".as_slice(), &[0xff; 5000]].concat()).unwrap();
    let text = |path: PathBuf| path.to_str().unwrap().to_string();
    let cases = [
        ("/etc/shadow".to_string(), ""),
        ("/dev/zero".into(), "expected a regular file"),
        ("/proc/self/mem".into(), ""),
        ("/".into(), "expected a regular file"),
        ("relative/path".into(), "expected an absolute path"),
        ("/no/such/file".into(), "No such file"),
        (text(fifo(folder.path())), "expected a regular file"),
        (text(huge), "expected a file of at most"),
        (text(garbage), "expected a 64-bit ELF file"),
        (format!("/{}", "x".repeat(1 << 16)), ""),
        ("/nul\0l".into(), ""),
    ];
    let modules: Vec<Module> = (1..).zip(&cases).map(|(n, (path, _))| module(n * 0x1_0000, path)).collect();
    let addresses: Vec<u64> = modules.iter().flat_map(|m| [m.start, m.end - 1, m.start + 7]).collect();
    let (texts, notes) = merged(&trace(&modules, &[], &addresses));
    assert!(texts.iter().all(|texts| texts == "[]"), "{texts:?}");
    assert_eq!(notes.len(), cases.len(), "{notes:?}");
    for ((path, expected), note) in cases.iter().zip(&notes) {
        assert!(note.starts_with("not-recorded note ? "), "{note}");
        assert!(note.contains(&format!("{path:?}")) && note.contains(expected), "{note}");
    }
}

#[test]
fn a_module_with_numbers_at_their_limits_is_unknown() {
    let program = "/bin/sh";
    for n in [0, 1, i64::MAX as u64, 1 << 63, u64::MAX - 1, u64::MAX] {
        for offset in [0, 1 << 63, u64::MAX] {
            let modules = [
                Module { end: u64::MAX, offset, ..module(0, program) },
                Module { end: n, offset, ..module(n.wrapping_sub(8), program) },
            ];
            merged(&trace(&modules, &[], &[0, 1, n.wrapping_sub(1), n, u64::MAX]));
        }
    }
}

#[test]
fn places_have_their_recorded_names_and_other_addresses_are_counted() {
    let place = NamedPlace {
        pid: Pid(60),
        address: 0x10,
        name: "parse".into(),
        file: "src/daemon.rs".into(),
        line: 17,
    };
    let (texts, notes) = merged(&trace(&[], &[place], &[0x10, 0x20, 0x20]));
    assert_eq!(texts, ["[parse at daemon.rs:17]", "[]", "[]"]);
    assert_eq!(notes.len(), 1);
    assert!(notes[0].starts_with("not-recorded note 2 "), "{notes:?}");
}

/// Finds the name of this test function in its own binary.
#[test]
fn functions_of_rust_are_demangled() {
    let this = std::env::current_exe().unwrap();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let here = functions_of_rust_are_demangled as fn() as usize as u64;
    let of_here = maps.lines().find_map(|line| {
        let mut cells = line.split_whitespace();
        let (range, offset) = (cells.next()?, cells.nth(1)?);
        let (start, end) = range.split_once('-')?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let (start, end, offset) = (hex(start)?, hex(end)?, hex(offset)?);
        (start..end).contains(&here).then_some((start, end, offset))
    });
    let (start, end, offset) = of_here.unwrap();
    let module = Module { start, end, offset, ..module(0, this.to_str().unwrap()) };
    let (texts, notes) = merged(&trace(&[module], &[], &[here]));
    assert!(
        texts[0].starts_with("[it::symbols::functions_of_rust_are_demangled at symbols.rs:"),
        "{texts:?}"
    );
    assert!(notes.is_empty(), "{notes:?}");
}
