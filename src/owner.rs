//! The owner of output files: the caller, or under sudo the user who called sudo.

use sigmund_files::Owner;

/// The user who called sudo, if this process runs under it.
pub(crate) fn owner() -> Option<Owner> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    let (uid, gid) = (number("SUDO_UID")?, number("SUDO_GID")?);
    // `sudo` by root changes nothing.
    (uid != 0).then_some(Owner { uid, gid })
}
