//! Files.

use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};

use fut::fs::{self, File, OpenOptions};

use super::{beside_another, kind::builder};

#[test]
fn files_are_written_read_and_removed_as_by_the_standard_library() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().to_path_buf();
    builder().lwps(2).build().unwrap().run(move || {
        let (folder, path) = (root.join("a/b"), root.join("a/b/file"));
        fs::create_dir_all(&folder).unwrap();
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), std::fs::read_to_string(&path).unwrap());
        let lines = BufReader::new(File::open(&path).unwrap()).lines().collect::<Result<Vec<_>, _>>();
        assert_eq!(lines.unwrap(), ["one", "two", "three"]);
        let mut file = OpenOptions::new().read(true).append(true).open(&path).unwrap();
        file.write_all(b"four\n").unwrap();
        file.sync_all().unwrap();
        assert_eq!(file.seek(SeekFrom::End(-5)).unwrap(), 14);
        let mut tail = String::new();
        file.read_to_string(&mut tail).unwrap();
        assert_eq!(tail, "four\n");
        file.set_len(3).unwrap();
        assert_eq!((file.metadata().unwrap().len(), fs::read(&path).unwrap()), (3, b"one".to_vec()));
        assert_eq!(fs::copy(&path, folder.join("copy")).unwrap(), 3);
        fs::rename(folder.join("copy"), folder.join("moved")).unwrap();
        let mut names: Vec<_> =
            fs::read_dir(&folder).unwrap().iter().map(|entry| entry.file_name()).collect();
        names.sort();
        assert_eq!(names, ["file", "moved"]);
        fs::remove_dir_all(root.join("a")).unwrap();
        assert!(!fs::exists(&path).unwrap());
        assert_eq!(File::open(&path).unwrap_err().kind(), ErrorKind::NotFound);
    });
}

#[test]
fn a_call_that_blocks_leaves_the_lwp_to_others() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    let name = std::ffi::CString::new(fifo.to_str().unwrap()).unwrap();
    // SAFETY: a path that ends with a zero.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let written = fifo.clone();
    let late = move || std::fs::write(written, "late").unwrap();
    assert_eq!(beside_another(late, move || fs::read_to_string(fifo).unwrap()), "late");
}
