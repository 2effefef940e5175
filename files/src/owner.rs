//! The owner of new files, and of files that count as the caller's own.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{Gid, Uid, fchown};
use rustix::process::geteuid;

/// A user on whose behalf the caller runs, for example the user that called sudo. New files and folders get this owner,
/// and this user's files count as the caller's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// User id.
    pub uid: u32,
    /// Id of the user's group.
    pub gid: u32,
}

impl Owner {
    pub(crate) fn give(self, file: impl AsFd) -> io::Result<()> {
        Ok(fchown(file, Some(Uid::from_raw(self.uid)), Some(Gid::from_raw(self.gid)))?)
    }
}

/// Returns an error if files of user `found` are not the caller's own.
pub(crate) fn check_owner(found: u32, on_behalf_of: Option<Owner>) -> io::Result<()> {
    let caller = geteuid().as_raw();
    if found == caller || on_behalf_of.is_some_and(|owner| owner.uid == found) {
        return Ok(());
    }
    let message = format!("it belongs to user {found}, and the caller is user {caller}");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}
