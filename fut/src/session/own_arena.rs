//! The arena of this process: in memory that its recorder hands out, or in a file that the process creates.

use std::{io, path::Path};

use sigmund_model::Pid;

use super::{ENV_MODE, ENV_PACKETS};
use crate::{
    clock, environment, handover,
    shm::{Arena, ArenaError, Geometry, Mode},
};

/// The arena of this process. `describe` writes its description before a recorder reads it. `folder` is the value of
/// [`ENV_ARENA_DIR`](super::ENV_ARENA_DIR). If a recorder listens there, it provides the memory and chooses its size.
pub(super) fn arena_in(folder: &Path, pid: Pid, describe: impl FnOnce(&Arena)) -> Result<Arena, ArenaError> {
    let socket = folder.join(handover::SOCKET);
    match handover::ask(&socket) {
        // No recorder listens, but the folder exists: create a file in it.
        Err(ArenaError::Unreachable { error, .. })
            if error.kind() == io::ErrorKind::NotFound && folder.is_dir() => {}
        Err(error) => return Err(error),
        Ok(arena) => {
            describe(&arena);
            return Ok(arena);
        }
    }
    let mode = mode(folder)?;
    let packets = environment::variable(ENV_PACKETS).and_then(|packets| packets.to_str()?.parse().ok());
    let geometry =
        Geometry { packets: packets.unwrap_or(Geometry::default().packets), ..Geometry::default() };
    arena_file(folder, geometry, mode, pid, describe)
}

fn mode(folder: &Path) -> Result<Mode, ArenaError> {
    let asked = environment::variable(ENV_MODE);
    match asked.as_ref().map(|mode| mode.to_str()) {
        None | Some(Some("discard")) => Ok(Mode::Discard),
        Some(Some("overwrite")) => Ok(Mode::Overwrite),
        Some(_) => Err(ArenaError::Foreign {
            file: folder.to_path_buf(),
            expected: format!("{ENV_MODE} to be discard or overwrite"),
            found: format!("{:?}", asked.unwrap_or_default()),
        }),
    }
}

/// Creates the arena in a file. The file gets its name only when it is complete, so that a drain never sees a partial
/// one. A process that has become another program by `exec` has used that name before. If that earlier file was not
/// opened yet, it keeps its name, and the new one gets a number appended.
fn arena_file(
    folder: &Path,
    geometry: Geometry,
    mode: Mode,
    pid: Pid,
    describe: impl FnOnce(&Arena),
) -> Result<Arena, ArenaError> {
    // A name that no other process uses, not even a process with the same number in another namespace.
    let unfinished = folder.join(format!("{pid}-{:x}.new", clock::ticks()));
    let mut arena = Arena::create(&unfinished, geometry, mode, pid)?;
    describe(&arena);
    let mut named = Err(io::ErrorKind::AlreadyExists.into());
    for number in 1..100 {
        let number = if number == 1 { String::new() } else { format!(".{number}") };
        let path = folder.join(format!("{pid}{number}.arena"));
        // Unlike renaming, this fails if the name is taken.
        named = std::fs::hard_link(&unfinished, &path);
        if !matches!(&named, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
            arena.set_path(path);
            break;
        }
    }
    let removed = std::fs::remove_file(&unfinished);
    named.and(removed).map_err(|error| ArenaError::Io(folder.to_path_buf(), error))?;
    Ok(arena)
}
