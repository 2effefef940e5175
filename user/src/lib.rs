//! Other users: looks them up in the system's database, and makes a root process permanently run as one of them.
//!
//! A process that becomes another user by [`Ids::become_them`] keeps its environment, its working directory, its
//! terminal, its limits and its priority. It loses root's groups, its capabilities, and, at the next `exec`, open files
//! other than the three standard ones.

mod ids;

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

use uzers::os::unix::UserExt;

pub use ids::Ids;

/// The shell of a user without one in the system's database.
const SHELL: &str = "/bin/sh";

/// A user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: String,
    ids: Ids,
    home: PathBuf,
    shell: PathBuf,
}

/// Why a user was not found.
#[derive(Debug)]
#[non_exhaustive]
pub enum UnknownUser {
    /// The system's database has no user of this name, and it is not a number.
    NoEntry,
    /// The user's groups cannot be found, or are more than 1024.
    NoGroups,
}

impl fmt::Display for UnknownUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UnknownUser::NoEntry => "there is no such user",
            UnknownUser::NoGroups => "the user's groups cannot be found",
        })
    }
}

impl std::error::Error for UnknownUser {}

impl User {
    /// Finds a user by name or number. A number without an entry in the database has the number as its name, a group of
    /// the same number, no other groups, and the home `/`.
    ///
    /// # Errors
    /// When there is no such user.
    pub fn find(text: &str) -> Result<User, UnknownUser> {
        let number = text.parse::<u32>().ok();
        let entry = number.map_or_else(|| uzers::get_user_by_name(text), uzers::get_user_by_uid);
        match (entry, number) {
            (Some(entry), _) => User::from_entry(&entry),
            // u32::MAX is no user: the system calls interpret it as "no change".
            (None, Some(number)) if number != u32::MAX => Ok(User {
                name: number.to_string(),
                ids: Ids { uid: number, gid: number, groups: Vec::new() },
                home: "/".into(),
                shell: SHELL.into(),
            }),
            (None, _) => Err(UnknownUser::NoEntry),
        }
    }

    fn from_entry(entry: &uzers::User) -> Result<User, UnknownUser> {
        let gid = entry.primary_group_id();
        let groups = uzers::get_user_groups(entry.name(), gid).ok_or(UnknownUser::NoGroups)?;
        let groups = groups.iter().map(uzers::Group::gid).collect();
        let shell = if entry.shell().as_os_str().is_empty() { Path::new(SHELL) } else { entry.shell() };
        Ok(User {
            name: entry.name().to_string_lossy().into_owned(),
            ids: Ids { uid: entry.uid(), gid, groups },
            home: entry.home_dir().to_path_buf(),
            shell: shell.to_path_buf(),
        })
    }

    /// The name in the system's database, or the number.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Numbers of the user and the groups.
    pub fn ids(&self) -> &Ids {
        &self.ids
    }

    /// Home folder.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Login shell.
    pub fn shell(&self) -> &Path {
        &self.shell
    }
}

/// Makes the kernel close all descriptors from `first` on at the next `exec`.
///
/// # Errors
/// When the kernel has no `close_range` with `CLOSE_RANGE_CLOEXEC` (before 5.11).
pub fn close_on_exec_from(first: u32) -> io::Result<()> {
    // SAFETY: takes no pointer, and closes nothing that this program uses: it only sets a flag of descriptors.
    let done = unsafe { libc::close_range(first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC as libc::c_int) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_is_found_by_name_and_by_number() {
        let root = User::find("root").unwrap();
        assert_eq!(User::find("0").unwrap(), root);
        assert_eq!((root.name(), root.ids().uid, root.ids().gid), ("root", 0, 0));
        assert_eq!(root.home(), Path::new("/root"));
    }

    #[test]
    fn a_number_without_an_entry_has_no_groups_but_its_own() {
        let user = User::find("3987654321").unwrap();
        assert_eq!(
            (user.ids().uid, user.ids().gid, user.ids().groups.len()),
            (3_987_654_321, 3_987_654_321, 0)
        );
        assert_eq!((user.home(), user.shell()), (Path::new("/"), Path::new(SHELL)));
        for nobody in ["4294967295", "4294967296", "-1", "", "no such user"] {
            assert!(User::find(nobody).is_err(), "{nobody}");
        }
    }
}
