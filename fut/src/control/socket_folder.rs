//! The folders of the control sockets: one for each user.
//!
//! Any user can make files in `/tmp`, so another user may have taken the usual name of the folder. Then the folder has
//! a random name (`mkdtemp`). It is found by the beginning of its name and by its owner. Root's folder is in `/run`,
//! where only root can make files.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, Permissions},
    io::{self, ErrorKind},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
        net::UnixListener,
    },
    path::{Path, PathBuf},
};

use super::wire;
use crate::environment;

/// Maximum number of sockets that are examined to find those of ended processes.
const LOOKED_AT: usize = 4096;
/// Maximum number of names in `/tmp` that are examined to find a user's folder.
const NAMES_LOOKED_AT: usize = 1 << 16;

const TEMPORARY: &str = "/tmp";
const OF_ROOT: &str = "/run/fut";

/// Makes the socket of this process, and removes the sockets of ended processes.
pub(super) fn listen(pid: u32) -> io::Result<(UnixListener, PathBuf)> {
    let uid = wire::effective_uid();
    for folder in folders_to_use(uid) {
        if let Ok(listening) = listen_in(&folder, uid, pid) {
            return Ok(listening);
        }
    }
    let folder = other_name(Path::new(TEMPORARY), uid)?;
    listen_in(&folder, uid, pid)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))
}

fn listen_in(folder: &Path, uid: u32, pid: u32) -> io::Result<(UnixListener, PathBuf)> {
    make_private(folder, uid)?;
    remove_left(folder);
    let path = socket_in(folder, pid);
    // A socket may be left by an earlier process with the same number, or by this process before `exec`. If a process
    // in another PID namespace has the same number now, its socket stays: then the address is in use.
    remove_if_nobody_listens(&path);
    let listener = UnixListener::bind(&path)?;
    // Until now, only the mode of the folder has kept other users out.
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    Ok((listener, path))
}

/// Folders where this process may put its socket, best first.
fn folders_to_use(uid: u32) -> impl Iterator<Item = PathBuf> {
    let runtime = environment::variable("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|folder| folder.is_absolute() && is_folder_of(folder, uid));
    let longest = wire::longest_path() - "/4294967295.sock".len();
    let runtime = runtime.map(|folder| folder.join("fut"));
    let runtime = runtime.into_iter().filter(move |f| f.as_os_str().as_bytes().len() <= longest);
    runtime.chain(usual_names(uid))
}

/// Paths of the folder if the session of the user has no folder.
fn usual_names(uid: u32) -> impl Iterator<Item = PathBuf> {
    let of_root = (uid == 0).then(|| PathBuf::from(OF_ROOT));
    of_root.into_iter().chain([Path::new(TEMPORARY).join(format!("fut-{uid}"))])
}

/// A folder of the user in `base` with a random name: an existing one, or a new one.
fn other_name(base: &Path, uid: u32) -> io::Result<PathBuf> {
    let usable = |folder: &PathBuf| make_private(folder, uid).is_ok();
    if let Some(folder) = other_names(base, uid).into_iter().find(usable) {
        return Ok(folder);
    }
    let mut name = base.join(format!("fut-{uid}-XXXXXX")).into_os_string().into_vec();
    name.push(0);
    // SAFETY: `name` is a C string that ends with six X; they are changed in place.
    let made = unsafe { libc::mkdtemp(name.as_mut_ptr().cast()) };
    if made.is_null() {
        let error = io::Error::last_os_error();
        return Err(io::Error::new(error.kind(), format!("{}: {error}", base.display())));
    }
    name.pop();
    Ok(PathBuf::from(OsString::from_vec(name)))
}

/// The folders of the user in `base` with a random name.
fn other_names(base: &Path, uid: u32) -> Vec<PathBuf> {
    let begin = format!("fut-{uid}-");
    let names = fs::read_dir(base).into_iter().flatten().take(NAMES_LOOKED_AT).flatten();
    let names = names.filter(|entry| entry.file_name().as_bytes().starts_with(begin.as_bytes()));
    names.map(|entry| entry.path()).filter(|folder| is_folder_of(folder, uid)).collect()
}

/// Folders where the socket of a process of `uid` may be, likely ones first. Only folders that belong to that user.
pub(super) fn folders_of(uid: u32, pid: u32) -> Vec<PathBuf> {
    let mut folders = vec![PathBuf::from(format!("/run/user/{uid}/fut"))];
    folders.extend(usual_names(uid));
    folders.append(&mut other_names(Path::new(TEMPORARY), uid));
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let theirs = environment.split(|byte| *byte == 0).find_map(|v| v.strip_prefix(b"XDG_RUNTIME_DIR="));
    let theirs = theirs.map(|folder| PathBuf::from(std::ffi::OsStr::from_bytes(folder)).join("fut"));
    let ours = environment::variable("XDG_RUNTIME_DIR").map(|folder| PathBuf::from(folder).join("fut"));
    folders.extend(theirs.into_iter().chain(ours));
    let mut seen = Vec::new();
    for folder in folders {
        if !seen.contains(&folder) && is_folder_of(&folder, uid) {
            seen.push(folder);
        }
    }
    seen
}

pub(super) fn socket_in(folder: &Path, pid: u32) -> PathBuf {
    folder.join(format!("{pid}.sock"))
}

fn is_folder_of(folder: &Path, uid: u32) -> bool {
    fs::symlink_metadata(folder).is_ok_and(|found| found.is_dir() && found.uid() == uid)
}

/// Makes the folder, or checks that the existing one belongs to this user, and makes it private.
fn make_private(folder: &Path, uid: u32) -> io::Result<()> {
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    // The folder is opened, so that it cannot be replaced between the check and the change, and not through a symbolic
    // link.
    let open: File =
        OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW).open(folder)?;
    let found = open.metadata()?;
    if found.uid() != uid {
        let why = format!("expected a folder of user {uid}, found one of user {}", found.uid());
        return Err(io::Error::new(ErrorKind::PermissionDenied, why));
    }
    if found.mode() & 0o777 != 0o700 {
        open.set_permissions(Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Removes the sockets of ended processes.
pub(super) fn remove_left(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten().take(LOOKED_AT) {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_suffix(".sock")?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !is_there(pid)) {
            remove_if_nobody_listens(&entry.path());
        }
    }
}

/// Removes the socket if no process listens on it. A process that is not visible here may still run, in another PID
/// namespace; so listening is what shows that a process runs.
pub(super) fn remove_if_nobody_listens(socket: &Path) {
    let refused = wire::connect(socket).is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused);
    if refused {
        // If this process is not allowed to remove it, another one will.
        let _ = fs::remove_file(socket);
    }
}

/// Whether there is such a process. True if this is unknown.
pub(super) fn is_there(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists() || !Path::new("/proc/self").exists()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_is_made_private_and_one_that_is_not_ours_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let uid = wire::effective_uid();
        let folder = place.path().join("fut");
        let mode = || fs::symlink_metadata(&folder).unwrap().mode() & 0o777;
        make_private(&folder, uid).unwrap();
        assert_eq!(mode(), 0o700);
        fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        make_private(&folder, uid).unwrap();
        assert_eq!(mode(), 0o700);

        let error = make_private(&folder, uid + 1).unwrap_err().to_string();
        assert!(error.contains(&format!("of user {}, found one of user {uid}", uid + 1)), "{error}");
        let link = place.path().join("link");
        symlink(&folder, &link).unwrap();
        assert!(make_private(&link, uid).is_err(), "through a link");
        assert!(!is_folder_of(&link, uid) && is_folder_of(&folder, uid) && !is_folder_of(&folder, uid + 1));
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(make_private(&file, uid).is_err(), "a file");
    }

    #[test]
    fn a_name_taken_by_another_user_does_not_prevent_listening() {
        let base = tempfile::tempdir().unwrap();
        let uid = wire::effective_uid();
        // What another user may put there: links, files, and (if this user may make them here) folders of another user.
        symlink("/etc", base.path().join(format!("fut-{uid}-linked"))).unwrap();
        fs::write(base.path().join(format!("fut-{uid}-filled")), "").unwrap();
        let foreign = base.path().join(format!("fut-{uid}-theirs"));
        fs::create_dir(&foreign).unwrap();
        if uid == 0 {
            std::os::unix::fs::chown(&foreign, Some(65534), None).unwrap();
        } else {
            fs::remove_dir(&foreign).unwrap();
        }

        assert_eq!(other_names(base.path(), uid), Vec::<PathBuf>::new());
        let folder = other_name(base.path(), uid).unwrap();
        let (listener, socket) = listen_in(&folder, uid, 1).unwrap();
        assert_eq!(fs::symlink_metadata(&folder).unwrap().mode() & 0o777, 0o700);
        // The next process uses the same folder, and clients find it.
        assert_eq!(other_name(base.path(), uid).unwrap(), folder);
        assert_eq!(other_names(base.path(), uid), std::slice::from_ref(&folder));
        assert!(wire::connect(&socket).is_ok());
        drop(listener);
        if uid == 0 {
            assert_eq!(usual_names(0).next().unwrap(), Path::new("/run/fut"));
        }
    }

    #[test]
    fn sockets_of_the_dead_are_removed_and_those_of_the_living_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        // No process has such a number: PID_MAX_LIMIT is 2^22.
        drop(UnixListener::bind(path("4194305.sock")).unwrap());
        drop(UnixListener::bind(path(&format!("{}.sock", std::process::id()))).unwrap());
        let _listens = UnixListener::bind(path("4194306.sock")).unwrap();
        fs::write(path("4194307.sock"), "not a socket").unwrap();
        fs::write(path("notes.txt"), "").unwrap();
        remove_left(folder.path());
        let mut left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        let own = format!("{}.sock", std::process::id());
        let mut expected = vec!["4194306.sock".to_string(), own, "notes.txt".into()];
        expected.sort();
        // Connecting to a file that is not a socket is refused like connecting to a socket without a listener. So it is
        // removed.
        assert_eq!(left, expected);
    }
}
