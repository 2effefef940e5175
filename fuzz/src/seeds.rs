//! Writes what the fuzz targets begin with to `fuzz/seeds/TARGET/`: the fixtures, cut to sizes that are quick to read.

use std::{fs, io, path::Path};

/// Bytes of a fixture that a target begins with: more is slow, and not more interesting.
const SEED_BYTES: usize = 64 << 10;

fn main() -> io::Result<()> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (target, folder, suffix) in [
        ("trace_dat", "../fkt-ingest/tests/fixtures", ".dat.zst"),
        ("listing", "../tests/fixtures/paper", ".tsv"),
    ] {
        let seeds = fuzz.join("seeds").join(target);
        fs::create_dir_all(&seeds)?;
        for entry in fs::read_dir(fuzz.join(folder))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(name) = name.strip_suffix(suffix) else { continue };
            let mut bytes = fs::read(&path)?;
            if suffix.ends_with(".zst") {
                bytes = zstd::decode_all(bytes.as_slice())?;
            }
            bytes.truncate(SEED_BYTES);
            fs::write(seeds.join(name), bytes)?;
        }
    }
    for target in ["perf_data", "user_trace"] {
        fs::create_dir_all(fuzz.join("seeds").join(target))?;
    }
    Ok(())
}
