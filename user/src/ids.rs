//! The ids of a user and its groups, and how a process adopts them.

use std::{fmt, fs, io, str::FromStr};

use caps::CapSet;

/// Ids of a user, as text `UID:GID:GROUP,…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    /// The user.
    pub uid: u32,
    /// The primary group.
    pub gid: u32,
    /// Supplementary groups; the primary one may be among them.
    pub groups: Vec<u32>,
}

impl fmt::Display for Ids {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let groups: Vec<String> = self.groups.iter().map(u32::to_string).collect();
        write!(f, "{}:{}:{}", self.uid, self.gid, groups.join(","))
    }
}

impl FromStr for Ids {
    type Err = String;

    fn from_str(text: &str) -> Result<Ids, String> {
        let numbers = || {
            let mut parts = text.splitn(3, ':');
            let (uid, gid) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
            let groups = parts.next()?.split(',').filter(|group| !group.is_empty());
            let groups = groups.map(str::parse).collect::<Result<_, _>>().ok()?;
            Some(Ids { uid, gid, groups })
        };
        numbers().ok_or_else(|| format!("expected UID:GID:GROUPS, found {text:?}"))
    }
}

impl Ids {
    /// Makes this process permanently run with these ids: real, effective and saved user and group, and supplementary
    /// groups. It keeps no capability, unless the user is root. The next `exec` closes all files other than the three
    /// standard ones.
    ///
    /// # Errors
    /// When the process has several threads (the kernel changes only the calling one), lacks root's rights, or cannot
    /// give them up. A part of the change may then have been made, so the process must not continue.
    pub fn become_them(&self) -> io::Result<()> {
        let threads = fs::read_dir("/proc/self/task")?.count();
        if threads != 1 {
            return Err(io::Error::other(format!("expected one thread, found {threads}")));
        }
        super::close_on_exec_from(3)?;
        // The groups come first, because only root may change them. For the same reason the user comes last.
        // SAFETY: the pointer and the length are those of a list that lives until the call returns.
        checked(unsafe { libc::setgroups(self.groups.len(), self.groups.as_ptr()) })?;
        // SAFETY: takes numbers only.
        checked(unsafe { libc::setresgid(self.gid, self.gid, self.gid) })?;
        // SAFETY: takes numbers only.
        checked(unsafe { libc::setresuid(self.uid, self.uid, self.uid) })?;
        if self.uid == 0 {
            return Ok(());
        }
        // The kernel has removed all capabilities except the inheritable ones, unless it was configured not to.
        for set in [CapSet::Ambient, CapSet::Effective, CapSet::Permitted, CapSet::Inheritable] {
            caps::clear(None, set).map_err(|error| io::Error::other(error.to_string()))?;
        }
        // SAFETY: takes numbers only.
        match checked(unsafe { libc::setresuid(0, 0, 0) }) {
            Err(_) => Ok(()),
            Ok(()) => Err(io::Error::other("the process could become root again")),
        }
    }
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let ids = Ids { uid: 1000, gid: 100, groups: vec![100, 27] };
        assert_eq!(ids.to_string(), "1000:100:100,27");
        assert_eq!(ids.to_string().parse(), Ok(ids));
        assert_eq!("7:8:".parse(), Ok(Ids { uid: 7, gid: 8, groups: Vec::new() }));
        for wrong in ["", "7", "7:8", "7:8:x", "-1:8:", "7:8:9:10"] {
            assert!(wrong.parse::<Ids>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_process_with_several_threads_is_refused_before_anything_is_changed() {
        // Tests run on threads of their own.
        let before = fs::read_to_string("/proc/self/status").unwrap();
        assert!(Ids { uid: 1, gid: 1, groups: Vec::new() }.become_them().is_err());
        let uid = |status: &str| status.lines().find(|line| line.starts_with("Uid:")).map(String::from);
        assert_eq!(uid(&before), uid(&fs::read_to_string("/proc/self/status").unwrap()));
    }
}
