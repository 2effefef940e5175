//! Writes what the fuzz targets begin with to `fuzz/seeds/TARGET/`: the fixtures, cut to sizes that are quick to read.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Bytes of a fixture that a target begins with: more is slow, and not more interesting.
const SEED_BYTES: usize = 64 << 10;

fn main() -> io::Result<()> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR"));
    let seeds = |target: &str| -> io::Result<PathBuf> {
        let folder = fuzz.join("seeds").join(target);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    };
    // Of these two there are no fixtures: the fuzzer finds their heads by itself.
    seeds("perf_data")?;
    seeds("user_trace")?;
    for (target, folder, suffix) in [
        ("trace_dat", "../fkt-ingest/tests/fixtures", ".dat.zst"),
        ("ftrace_text", "../fkt-ingest/tests/fixtures", ".report.txt.zst"),
        ("fxt", "../fkt-ingest/tests/fixtures", ".fxt"),
        ("listing", "../tests/fixtures/paper", ".tsv"),
    ] {
        let seeds = seeds(target)?;
        for entry in fs::read_dir(fuzz.join(folder))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(name) = name.strip_suffix(suffix) else { continue };
            let mut bytes = read(&path)?;
            bytes.truncate(SEED_BYTES);
            fs::write(seeds.join(name), bytes)?;
        }
    }
    let seeds = seeds("ctf")?;
    for name in ["small-ust", "mixed-ust"] {
        let trace = fuzz.join("../fkt-ingest/tests/fixtures/ctf").join(name);
        fs::write(seeds.join(name), ctf(&trace)?)?;
    }
    Ok(())
}

/// As the target takes it: `u16 length | metadata | stream`.
fn ctf(trace: &Path) -> io::Result<Vec<u8>> {
    let (metadata, stream) = (read(&trace.join("metadata.zst"))?, read(&trace.join("ch_1.zst"))?);
    let length = u16::try_from(metadata.len()).unwrap_or(u16::MAX);
    let mut bytes = length.to_le_bytes().to_vec();
    bytes.extend(metadata);
    bytes.extend(stream);
    bytes.truncate(SEED_BYTES);
    Ok(bytes)
}

/// A file, decompressed if its name says that it is compressed.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let bytes = fs::read(path)?;
    if path.extension().is_some_and(|e| e == "zst") { zstd::decode_all(bytes.as_slice()) } else { Ok(bytes) }
}
