//! The super-trace does not depend on the number of threads of the merge; a merge that is stopped leaves no output.

use std::{
    collections::BTreeMap,
    fmt::Write,
    fs,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use sigmund_merge::{Error, MergeOptions, Summary, merge};

/// Three listings, one per CPU, with the same ticks; each tick occurs several times in each.
fn listings(folder: &Path, events: u64) -> Vec<PathBuf> {
    let listing = |cpu: u64| {
        let mut text = "type\tdate_tick\tpid\tcpu\tevent\tparams\n".to_string();
        for n in 0..events {
            let (lwp, next) = (10 * cpu + 10 + n % 4, 10 * cpu + 10 + (n + 1) % 4);
            let event = if n % 5 == 4 { "IRQ" } else { "KERN_CONTEXT_SWITCH" };
            writeln!(text, "KERN\t{}\t{lwp}\t{cpu}\t{event}\t{next}(name{next})", 1000 + n / 3).unwrap();
        }
        let path = folder.join(format!("cpu{cpu}.tsv"));
        fs::write(&path, text).unwrap();
        path
    };
    (0..3).map(listing).collect()
}

fn merge_with(
    threads: usize,
    inputs: &[PathBuf],
    out: &Path,
    options: &MergeOptions,
) -> Result<Summary, Error> {
    let options = MergeOptions { threads: NonZeroUsize::new(threads), ..options.clone() };
    merge(inputs, out, &options, |_| {})
}

/// All files of a super-trace.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    let mut add = |path: PathBuf| {
        all.insert(path.strip_prefix(folder).unwrap().to_path_buf(), fs::read(&path).unwrap());
    };
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true => fs::read_dir(&entry).unwrap().for_each(|file| add(file.unwrap().path())),
            false => add(entry),
        }
    }
    all
}

// One thread: | decode | order, state | encode |; four: each on its own. More rows than two row groups hold.
#[test]
fn one_thread_and_four_write_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = listings(folder.path(), 200_000);
    let merged = |threads: usize| {
        let out = folder.path().join(format!("{threads}.supertrace"));
        let summary = merge_with(threads, &inputs, &out, &MergeOptions::default()).unwrap();
        assert_eq!(summary.kernel_events, 600_000);
        files(&out)
    };
    let (one, four) = (merged(1), merged(4));
    assert_eq!(one.keys().collect::<Vec<_>>(), four.keys().collect::<Vec<_>>());
    let different: Vec<_> = one.keys().filter(|path| one[*path] != four[*path]).collect();
    assert!(different.is_empty(), "{different:?}");
}

#[test]
fn a_merge_that_is_stopped_leaves_no_output_and_keeps_an_existing_one() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = listings(folder.path(), 50_000);
    let out = folder.path().join("out.supertrace");
    let names = || -> Vec<String> {
        let names = fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<_> = names.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let stopped =
        MergeOptions { force: true, stop: Some(Arc::new(AtomicBool::new(true))), ..MergeOptions::default() };
    for threads in [1, 2] {
        let result = merge_with(threads, &inputs, &out, &stopped);
        assert!(matches!(result, Err(Error::Interrupted)), "{result:?}");
        assert_eq!(names(), ["cpu0.tsv", "cpu1.tsv", "cpu2.tsv"]);
    }
    merge_with(1, &inputs, &out, &MergeOptions::default()).unwrap();
    let before = files(&out);
    let result = merge_with(2, &inputs, &out, &stopped);
    assert!(matches!(result, Err(Error::Interrupted)), "{result:?}");
    assert_eq!(names(), ["cpu0.tsv", "cpu1.tsv", "cpu2.tsv", "out.supertrace"]);
    assert!(files(&out) == before);
}

#[test]
fn progress_reports_events_and_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = listings(folder.path(), 200_000);
    let mut reports = Vec::new();
    let out = folder.path().join("out.supertrace");
    merge(&inputs, &out, &MergeOptions::default(), |progress| reports.push(progress)).unwrap();
    let events: Vec<u64> = reports.iter().map(|progress| progress.events).collect();
    assert_eq!(events, (1..=9).map(|n| n << 16).collect::<Vec<_>>());
    assert!(reports.windows(2).all(|w| w[0].bytes <= w[1].bytes), "{reports:?}");
}
