//! Prints how fast a merge is, and what it writes: `merge_speed OUT.supertrace INPUT…`. OUT is overwritten.
//!
//! With `COLUMNS_TOO=1` in the environment, it also prints the bytes of each column. `LEAVE_OUT=syscalls,wakeups`
//! leaves out these tables.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

use parquet::file::reader::{FileReader, SerializedFileReader};
use sigmund_merge::{MergeOptions, merge};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut paths = std::env::args_os().skip(1).map(PathBuf::from);
    let out = paths.next().ok_or("merge_speed OUT.supertrace INPUT…")?;
    let inputs: Vec<PathBuf> = paths.collect();
    let left_out = std::env::var("LEAVE_OUT").unwrap_or_default();
    let left_out_tables = left_out.split(',').filter(|name| !name.is_empty()).map(String::from).collect();
    let options = MergeOptions { force: true, left_out_tables, ..MergeOptions::default() };
    let (started, cpu) = (Instant::now(), cpu_seconds()?);
    let summary = merge(&inputs, &out, &options, |_| {})?;
    let (wall, cpu) = (started.elapsed().as_secs_f64(), cpu_seconds()? - cpu);
    let events = summary.kernel_events + summary.user_events;
    println!(
        "{events} events in {wall:.3} s, {cpu:.2} s of CPU: {:.2} M events/s, {:.0} ns of CPU an event; peak {} MiB",
        events as f64 / wall / 1e6,
        cpu * 1e9 / events as f64,
        peak_mib()?,
    );
    let tables = fs::read_dir(&out)?.filter_map(|entry| Some(entry.ok()?.path()));
    // Beside the tables there is the file `checksums`.
    let mut tables: Vec<_> = tables.filter(|path| path.is_dir()).collect();
    tables.sort();
    let mut total = 0;
    for table in tables {
        total += describe(&table, events, std::env::var_os("COLUMNS_TOO").is_some())?;
    }
    println!("all tables: {total} bytes, {:.2} an event", total as f64 / events as f64);
    Ok(())
}

/// Prints the contents of a table, and returns its size in bytes.
fn describe(table: &Path, events: u64, columns_too: bool) -> Result<u64, Box<dyn std::error::Error>> {
    let (mut rows, mut bytes, mut files) = (0, 0, 0);
    let mut columns: Vec<(String, i64)> = Vec::new();
    for file in fs::read_dir(table)? {
        let path = file?.path();
        bytes += fs::metadata(&path)?.len();
        files += 1;
        let reader = SerializedFileReader::new(fs::File::open(&path)?)?;
        for group in reader.metadata().row_groups() {
            rows += group.num_rows();
            for (index, column) in group.columns().iter().enumerate() {
                if columns.len() <= index {
                    columns.push((column.column_path().string(), 0));
                }
                columns[index].1 += column.compressed_size();
            }
        }
    }
    if rows < 10_000 {
        return Ok(bytes);
    }
    let name = table.file_name().unwrap_or_default().to_string_lossy().into_owned();
    println!(
        "{name:14} {rows:>11} rows {files:>4} files {bytes:>12} bytes {:.2} an event",
        bytes as f64 / events as f64
    );
    for (column, bytes) in columns.iter().filter(|_| columns_too) {
        println!("    {column:20} {bytes:>12} {:.3} a row", *bytes as f64 / rows as f64);
    }
    Ok(bytes)
}

/// User and system time of this process, from `/proc/self/stat` (proc_pid_stat(5): hundredths of a second).
fn cpu_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 =
        behind_name.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    Ok(ticks as f64 / 100.0)
}

/// The peak memory of this process, without the pages of mapped files.
fn peak_mib() -> Result<String, Box<dyn std::error::Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let kib = |key: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(key));
        line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
    };
    Ok(format!(
        "{} (of it files {}, anonymous now {})",
        kib("VmHWM") >> 10,
        kib("RssFile") >> 10,
        kib("RssAnon") >> 10
    ))
}
