//! `--user`: the recorder is root, and the program runs as another user. This file sets the variables of the
//! environment that belong to that user. The crate `sigmund-user` changes the user of a process.

use std::{fs, os::unix::fs::MetadataExt, process::Command};

use anyhow::{Context, Result, ensure};
use rustix::process::geteuid;
use sigmund_user::User;

use crate::owner::owner;

/// Variables with paths of the calling user, which are not passed to the program.
const OF_THE_CALLER: [&str; 8] = [
    "MAIL",
    "OLDPWD",
    "XAUTHORITY",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// Finds the user that `--user` names.
pub(super) fn find(text: &str) -> Result<User> {
    ensure!(geteuid().is_root(), "--user {text}: only root may run a program as another user");
    User::find(text).with_context(|| format!("--user {text}"))
}

/// Sets the variables that name the user and the user's folders. All other variables are passed on.
pub(super) fn set_environment(user: &User, command: &mut Command) {
    OF_THE_CALLER.iter().for_each(|name| _ = command.env_remove(name));
    command.env("USER", user.name()).env("LOGNAME", user.name());
    command.env("HOME", user.home()).env("SHELL", user.shell());
    let (uid, runtime) = (user.ids().uid, format!("/run/user/{}", user.ids().uid));
    if fs::symlink_metadata(&runtime).is_ok_and(|found| found.is_dir() && found.uid() == uid) {
        command.env("XDG_RUNTIME_DIR", runtime);
    }
}

/// The name of the user who called sudo, if this process is root because of sudo.
pub(super) fn sudo_caller() -> Option<String> {
    let uid = owner()?.uid.to_string();
    Some(User::find(&uid).map_or(uid, |user| user.name().into()))
}
