//! Folders prepared by a hostile user, and folders that belong to the caller.

#[path = "../../fut/tests/common/skipped.rs"]
mod skipped;

use std::fs::{self, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use sigmund_files::{Destination, Folder, Owner, Replaceable, open_regular};

const NOBODY: u32 = 65534;

/// Whether this is root; if not, the test is reported as skipped.
fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        skipped::skipped("needs root, to make files of another user");
    }
    root
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

const ANYTHING: Replaceable = Replaceable { expected: "anything", files: true, folder: |_| true };

#[test]
fn what_is_made_is_for_its_owner_alone() {
    let dir = tempfile::tempdir().unwrap();
    let run = dir.path().join("above/run");
    let folder = Folder::create_or_take_empty(&run, None).unwrap();
    folder.create_file("x").unwrap();
    folder.create_folder("inner").unwrap().create_file("y").unwrap();
    assert_eq!((mode(&run), mode(&run.join("x"))), (0o700, 0o600));
    assert_eq!((mode(&run.join("inner")), mode(&run.join("inner/y"))), (0o700, 0o600));
    // An existing empty folder becomes private as well.
    let empty = dir.path().join("empty");
    fs::create_dir(&empty).unwrap();
    fs::set_permissions(&empty, Permissions::from_mode(0o755)).unwrap();
    Folder::create_or_take_empty(&empty, None).unwrap();
    assert_eq!(mode(&empty), 0o700);
    let error = Folder::create_or_take_empty(&run, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
}

#[test]
fn a_folder_that_others_may_write_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for bits in [0o777, 0o1777, 0o775, 0o757] {
        let path = dir.path().join(format!("{bits:o}"));
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(bits)).unwrap();
        let error = Folder::create_or_take_empty(&path, None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
        assert!(error.to_string().contains(&format!("mode {bits:04o}")), "{error}");
        assert_eq!(mode(&path), bits, "nothing is changed");
        // What is created in it still belongs to the caller.
        Folder::create_or_take_empty(&path.join("run"), None).unwrap();
    }
}

#[test]
fn a_folder_of_another_user_is_refused_unless_the_caller_runs_on_their_behalf() {
    if !is_root() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("theirs");
    fs::create_dir(&path).unwrap();
    chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    let error = Folder::create_or_take_empty(&path, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("belongs to user 65534"), "{error}");
    assert!(Folder::open_own(&path, None).is_err());

    let owner = Owner { uid: NOBODY, gid: NOBODY };
    let folder = Folder::create_or_take_empty(&path, Some(owner)).unwrap();
    folder.create_file("x").unwrap();
    folder.create_folder("inner").unwrap();
    for name in ["x", "inner"] {
        assert_eq!(fs::metadata(path.join(name)).unwrap().uid(), NOBODY, "{name}");
    }
    let made = dir.path().join("made");
    Folder::create_or_take_empty(&made, Some(owner)).unwrap();
    assert_eq!(fs::metadata(made).unwrap().uid(), NOBODY);
}

#[test]
fn nothing_that_has_the_name_is_opened_or_followed() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("target");
    fs::write(&target, "precious").unwrap();
    let path = dir.path().join("run");
    let folder = Folder::create_or_take_empty(&path, None).unwrap();
    symlink(&target, path.join("link")).unwrap();
    symlink(dir.path().join("nowhere"), path.join("dangling")).unwrap();
    fs::hard_link(&target, path.join("hard")).unwrap();
    fifo(&path.join("fifo"));
    fs::create_dir(path.join("folder")).unwrap();
    for name in ["link", "dangling", "hard", "fifo", "folder"] {
        assert_eq!(folder.create_file(name).unwrap_err().kind(), ErrorKind::AlreadyExists, "{name}");
        assert_eq!(folder.create_folder(name).unwrap_err().kind(), ErrorKind::AlreadyExists, "{name}");
        assert!(folder.reopen_file(name).is_err(), "{name}");
    }
    folder.create_file("x").unwrap();
    assert_eq!(folder.rename("x", "hard").unwrap_err().kind(), ErrorKind::AlreadyExists);
    // A new file replaces a link, and the link's target is kept.
    folder.write_file("link", b"new").unwrap();
    assert_eq!(fs::read(path.join("link")).unwrap(), b"new");
    assert_eq!(fs::read(&target).unwrap(), b"precious");
    assert!(!dir.path().join("nowhere").exists());
    // A link to a folder does not count as one, even with a slash after it.
    symlink(&path, dir.path().join("alias")).unwrap();
    for name in ["alias", "alias/"] {
        let error = Folder::open_own(&dir.path().join(name), None).unwrap_err();
        assert!(error.to_string().contains("found a symbolic link"), "{error}");
    }
}

#[test]
fn a_folder_is_the_same_when_its_name_leads_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run");
    let folder = Folder::create_or_take_empty(&path, None).unwrap();
    let elsewhere = dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("precious"), "years").unwrap();
    fs::rename(&path, dir.path().join("moved")).unwrap();
    symlink(&elsewhere, &path).unwrap();

    folder.create_file("x").unwrap();
    assert!(dir.path().join("moved/x").exists() && !elsewhere.join("x").exists());
    assert!(folder.remove().is_ok());
    assert_eq!(fs::read(elsewhere.join("precious")).unwrap(), b"years");
    assert!(path.symlink_metadata().is_ok(), "another user's link is kept");
    assert_eq!(fs::read_dir(dir.path().join("moved")).unwrap().count(), 0);
}

#[test]
fn a_name_is_one_component() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("secret"), "s").unwrap();
    let folder = Folder::create_or_take_empty(&dir.path().join("run"), None).unwrap();
    for name in ["", ".", "..", "../secret", "/etc/passwd", "a/b", "a\0b"] {
        let errors = [
            folder.create_file(name).err(),
            folder.open_file(name).err(),
            folder.create_folder(name).err(),
            folder.open_folder(name).err(),
            folder.remove_file(name).err(),
            folder.remove_tree(name).err(),
            folder.write_file(name, b"").err(),
            folder.rename("x", name).err(),
        ];
        for error in errors {
            assert_eq!(error.unwrap().kind(), ErrorKind::InvalidInput, "{name:?}");
        }
    }
}

#[test]
fn only_regular_files_are_read_and_opening_never_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let folder = Folder::create_or_take_empty(&dir.path().join("run"), None).unwrap();
    let path = |name: &str| folder.path_of(name);
    folder.write_file("file", b"text").unwrap();
    fs::create_dir(path("folder")).unwrap();
    fifo(&path("fifo"));
    symlink(path("file"), path("link")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    for (name, found) in [("folder", "a folder"), ("fifo", "a FIFO"), ("socket", "a socket")] {
        for error in [folder.open_file(name).unwrap_err(), open_regular(&path(name)).unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
            assert_eq!(error.to_string(), format!("expected a regular file, found {found}"));
        }
    }
    assert!(open_regular(Path::new("/dev/null")).unwrap_err().to_string().contains("a character device"));
    // `open_regular` follows a link; in a folder that another user may have filled, links are refused.
    let mut text = String::new();
    open_regular(&path("link")).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "text");
    assert!(folder.open_file("link").unwrap_err().to_string().contains("a symbolic link"));
}

#[test]
fn what_is_there_stays_until_the_new_one_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("x");
    fs::write(&target, "old").unwrap();
    let error = Destination::new(&target, None, None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    let mut given_up = Destination::new(&target, Some(ANYTHING), None).unwrap();
    given_up.file().unwrap().write_all(b"half").unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    drop(given_up);
    assert_eq!(fs::read_to_string(&target).unwrap(), "old");
    // A folder replaces a file.
    let mut whole = Destination::new(&target, Some(ANYTHING), None).unwrap();
    whole.folder().unwrap().write_file("y", b"new").unwrap();
    whole.finish().unwrap();
    assert_eq!(fs::read_to_string(target.join("y")).unwrap(), "new");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no other file is left");
    let error = Destination::new(&dir.path().join("no/x"), None, None).unwrap_err();
    assert!(error.to_string().contains("there is no folder"), "{error}");
}

#[test]
fn what_is_replaced_is_of_the_expected_kind_and_the_callers_own() {
    let dir = tempfile::tempdir().unwrap();
    let files = Replaceable { expected: "a picture", files: true, folder: |folder| folder.has("picture") };
    let work = dir.path().join("work");
    fs::create_dir(&work).unwrap();
    fs::write(work.join("thesis"), "years").unwrap();
    fifo(&dir.path().join("fifo"));
    for (name, found) in [("work", "another folder"), ("fifo", "a FIFO")] {
        let error = Destination::new(&dir.path().join(name), Some(files), None).unwrap_err();
        assert_eq!(error.to_string(), format!("expected a picture to overwrite, found {found}"));
    }
    // A link is removed, and its target is kept.
    let link = dir.path().join("link");
    symlink(&work, &link).unwrap();
    let mut destination = Destination::new(&link, Some(files), None).unwrap();
    destination.file().unwrap();
    destination.finish().unwrap();
    assert!(link.symlink_metadata().unwrap().is_file());
    assert_eq!(fs::read(work.join("thesis")).unwrap(), b"years");

    // Links within a folder that is replaced are not followed.
    let picture = dir.path().join("picture");
    fs::create_dir_all(picture.join("inner")).unwrap();
    fs::write(picture.join("picture"), "").unwrap();
    symlink(&work, picture.join("inner/link")).unwrap();
    let mut destination = Destination::new(&picture, Some(files), None).unwrap();
    destination.folder().unwrap();
    destination.finish().unwrap();
    assert_eq!(fs::read_dir(&picture).unwrap().count(), 0);
    assert_eq!(fs::read(work.join("thesis")).unwrap(), b"years");

    if is_root() {
        let theirs = dir.path().join("theirs");
        fs::write(&theirs, "").unwrap();
        chown(&theirs, Some(NOBODY), Some(NOBODY)).unwrap();
        let error = Destination::new(&theirs, Some(files), None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    }
}

#[test]
fn a_replacement_by_another_process_does_not_get_the_name() {
    let dir = tempfile::tempdir().unwrap();
    let target = dir.path().join("x");
    let mut destination = Destination::new(&target, None, None).unwrap();
    destination.file().unwrap();
    let partial = fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
    fs::remove_file(&partial).unwrap();
    symlink("/etc/passwd", &partial).unwrap();
    let error = destination.finish().unwrap_err();
    assert!(error.to_string().contains("another process replaced it"), "{error}");
    assert!(target.symlink_metadata().is_err());
    // It does not belong to us, so it is not removed either.
    assert!(partial.symlink_metadata().is_ok());

    // A file that got the name first is kept.
    let mut destination = Destination::new(&target, None, None).unwrap();
    destination.file().unwrap();
    fs::write(&target, "theirs").unwrap();
    assert_eq!(destination.finish().unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(fs::read(&target).unwrap(), b"theirs");
}

#[test]
fn one_process_at_a_time_has_the_lock() {
    let dir = tempfile::tempdir().unwrap();
    let first = Folder::open_own(dir.path(), None).unwrap();
    let second = Folder::open_own(dir.path(), None).unwrap();
    assert!(first.lock() && !second.lock());
    drop(first);
    // A child that another test has forked holds the lock, too, until it executes its program.
    let until = Instant::now() + Duration::from_secs(10);
    while !second.lock() {
        assert!(Instant::now() < until, "nobody has the lock any more");
        thread::sleep(Duration::from_millis(1));
    }
    second.unlock();
    assert!(Folder::open_own(dir.path(), None).unwrap().lock());
}
