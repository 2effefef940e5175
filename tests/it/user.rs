//! `record --user`: the program has another user's rights and nothing of root's; and the files belong to who called sudo.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{
    kernel,
    sigmund::{Reported, Sigmund, program, said, user_traces},
};

/// User and group `nobody` where tests run; there, they are in no other group.
const NOBODY: &str = "65534";
/// As whom sudo was called, as far as the recorder can tell: nobody has an entry for this number.
const CALLER: u32 = 54321;

/// A folder that anybody may enter, with the command in it: `nobody` may not be allowed to go where it was built.
fn open_to_all() -> (Sigmund, PathBuf) {
    let sigmund = Sigmund::new();
    fs::set_permissions(sigmund.folder(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = sigmund.path("sigmund");
    fs::hard_link(program(), &copy).or_else(|_| fs::copy(program(), &copy).map(drop)).unwrap();
    (sigmund, copy)
}

/// What the program prints that is recorded with these options: `NAME=value` lines.
fn printed(
    sigmund: &Sigmund,
    environment: &[(&str, &str)],
    options: &[&str],
    script: &str,
) -> (Reported, BTreeMap<String, String>) {
    let mut command = Command::new("sh");
    // The recorder has a file open that only root may read, as number 9.
    command.args([
        "-c",
        "exec 9</etc/shadow; exec \"$@\"",
        "sh",
        program(),
        "record",
        "--no-merge",
        "-o",
        "RUN",
    ]);
    command.args(options).args(["--", "sh", "-c", script]).envs(environment.iter().copied());
    command.current_dir(sigmund.folder()).stdin(Stdio::null());
    let said = said(command);
    let pairs = said.stdout.lines().filter_map(|line| line.split_once('='));
    let printed = pairs.map(|(name, value)| (name.to_string(), value.to_string())).collect();
    (said, printed)
}

/// Ids, groups, capabilities and open files of the program, and its environment.
const WHO: &str = "echo RUID=$(id -ru); echo EUID=$(id -u); echo GID=$(id -g); echo GROUPS=$(id -G); \
    while read name value; do case $name in Cap*|Uid:|Gid:|Groups:|NSpid:) echo $name=$value;; esac; done < /proc/self/status; \
    ls -l /proc/self/fd | sed -n 's/.* \\([0-9]*\\) -> \\(.*\\)/FD\\1=\\2/p'; cat /etc/shadow > /dev/null 2>&1 && echo SHADOW=readable; \
    test -w \"$FUT_ARENA_DIR/arenas\" && echo ARENAS=writable; env";

#[test]
fn the_program_has_the_users_rights_and_nothing_of_roots() {
    let Some(_alone) = kernel::as_root() else { return };
    let (sigmund, _) = open_to_all();
    let environment =
        [("XDG_RUNTIME_DIR", "/run/user/0"), ("XDG_CONFIG_HOME", "/root/.config"), ("KEPT", "yes")];
    let (said, who) = printed(&sigmund, &environment, &["--user", "nobody"], WHO);
    let is = |name: &str, value: &str| {
        assert_eq!(who.get(name).map(String::as_str), Some(value), "{name}: {said:?}")
    };
    for name in ["RUID", "EUID", "GID", "GROUPS"] {
        is(name, NOBODY);
    }
    let four = [NOBODY; 4].join(" ");
    // The shell splits at blanks and tabs.
    is("Uid:", &four);
    is("Gid:", &four);
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapAmb:"] {
        is(set, "0000000000000000");
    }
    is("USER", "nobody");
    is("LOGNAME", "nobody");
    is("KEPT", "yes");
    is("HOME", "/nonexistent");
    assert!(
        !who.contains_key("XDG_CONFIG_HOME") && who.get("XDG_RUNTIME_DIR").is_none_or(|f| f != "/run/user/0")
    );
    // 0 to 2, and the folder that `ls` reads.
    let files: Vec<_> = who.iter().filter(|(name, _)| name.starts_with("FD")).collect();
    assert!(files.len() == 4 && who["FD3"].starts_with("/proc/"), "{files:?}");
    assert!(!who.contains_key("SHADOW"), "{who:?}");
    is("ARENAS", "writable");
    assert_eq!(kernel::held_by(said.pid), Vec::<String>::new());
    assert!(said.stderr.contains("sh as nobody"), "{said:?}");

    // Without it, the program is root's, and has what root has.
    fs::remove_dir_all(sigmund.path("RUN")).unwrap();
    let (said, who) = printed(&sigmund, &[], &[], WHO);
    assert_eq!((who["EUID"].as_str(), who["SHADOW"].as_str()), ("0", "readable"), "{said:?}");
    assert_eq!(who["FD9"], "/etc/shadow", "{said:?}");
}

#[test]
fn a_program_of_another_user_records_its_events() {
    let Some(_alone) = kernel::as_root() else { return };
    let (sigmund, copy) = open_to_all();
    let copy = copy.to_str().unwrap();
    let said =
        sigmund.run(["record", "--user", NOBODY, "-o", "RUN", "--", copy, "sumtime", "6", "2", "1000"]);
    assert_eq!((said.status, said.stdout.as_str()), (0, "sumtime: 64 leaves\n"), "{said:?}");
    assert_eq!(sigmund.number("RUN.supertrace", "SELECT count(*) FROM node_end"), 127);
    assert!(sigmund.number("RUN.supertrace", "SELECT count(*) FROM threads WHERE active_tick > 0") > 0);
    // The trace itself is root's: the program cannot change what was recorded of it.
    assert_eq!(fs::metadata(&user_traces(&sigmund.path("RUN"))[0]).unwrap().uid(), 0);
    assert_eq!(kernel::held_by(said.pid), Vec::<String>::new());
}

fn owners(path: &Path, found: &mut BTreeMap<PathBuf, (u32, u32)>) {
    let metadata = fs::symlink_metadata(path).unwrap();
    found.insert(path.to_path_buf(), (metadata.uid(), metadata.gid()));
    if metadata.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| owners(&entry.unwrap().path(), found));
    }
}

#[test]
fn what_is_recorded_through_sudo_belongs_to_who_called_it() {
    let Some(_alone) = kernel::as_root() else { return };
    let (sigmund, copy) = open_to_all();
    let caller = CALLER.to_string();
    let record = |environment: &[(&str, &str)], options: &[&str]| {
        let mut command = sigmund.command();
        command.args(["record", "--force", "-o", "RUN"]).args(options).arg("--").arg(&copy);
        said_of(command.args(["sumtime", "4", "2", "1000"]).envs(environment.iter().copied()))
    };
    let sudo = [("SUDO_UID", caller.as_str()), ("SUDO_GID", "54322")];
    let said = record(&sudo, &[]);
    assert!(said.stderr.contains(&format!("runs as root; --user {CALLER} runs it as {CALLER}")), "{said:?}");
    said.found();
    let mut found = BTreeMap::new();
    owners(&sigmund.path("RUN"), &mut found);
    owners(&sigmund.path("RUN.supertrace"), &mut found);
    assert!(found.len() > 10 && found.values().all(|owner| *owner == (CALLER, 54322)), "{found:?}");

    fs::remove_dir_all(sigmund.path("RUN")).unwrap();
    fs::remove_dir_all(sigmund.path("RUN.supertrace")).unwrap();
    let said = record(&sudo, &["--user", &caller, "--no-merge"]);
    assert!(!said.stderr.contains("runs as root"), "{said:?}");
    said.found();
    assert_eq!(fs::metadata(sigmund.path("RUN/run.json")).unwrap().uid(), CALLER);

    fs::remove_dir_all(sigmund.path("RUN")).unwrap();
    let said = record(&[], &["--no-merge"]);
    assert!(!said.stderr.contains("runs as root"), "{said:?}");
    said.found();
    assert_eq!(fs::metadata(sigmund.path("RUN/run.json")).unwrap().uid(), 0);
}

fn said_of(command: &mut Command) -> Reported {
    let mut own = Command::new(command.get_program());
    own.args(command.get_args()).stdin(Stdio::null());
    own.current_dir(command.get_current_dir().unwrap());
    own.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    said(own)
}

#[test]
fn who_is_not_there_and_who_may_not_are_refused_and_nothing_stays() {
    let Some(_alone) = kernel::as_root() else { return };
    let (sigmund, copy) = open_to_all();
    for wrong in ["no-such-user", "4294967295", "-1"] {
        let said = sigmund.run(["record", &format!("--user={wrong}"), "-o", "RUN", "--", "true"]);
        said.complained(&[wrong, "there is no such user"]);
        assert!(!sigmund.path("RUN").exists(), "{wrong}");
    }
    let theirs = sigmund.path("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::set_permissions(&theirs, fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(copy);
    command.args(["record", "--user", "root", "-o", "RUN", "--", "true"]).current_dir(&theirs);
    said(command).complained(&["only root may"]);
    assert!(!theirs.join("RUN").exists());
}
