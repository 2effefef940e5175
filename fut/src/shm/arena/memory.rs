//! Allocates the memory of arenas.
//!
//! Under `sigmund record` the recorder creates the memory. It is a memfd that is sealed, so that no process, including
//! the recorded one, can shrink or grow it. Accessing a page beyond the end of a file would raise SIGBUS; of sealed
//! memory, all pages exist. A process that records without a recorder creates such memory, too. There is one exception:
//! if [`ENV_ARENA_DIR`](crate::ENV_ARENA_DIR) names a folder without a recorder, the process creates a file there. A
//! reader of the file has to trust that process.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

use rustix::fs::{FallocateFlags, SealFlags, fallocate};
use sigmund_model::Pid;

use super::{
    Arena, ArenaError, ArenaHeader, Geometry, MAGIC, Mode, RINGS_START, STATES_START, VERSION, header_of,
};
use crate::shm::mapping::Mapping;

/// Name of the memory in `/proc/PID/maps`.
#[cfg(feature = "drain")]
const NAME: &str = "fut-arena";

/// The seals that fix the length of the memory.
const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

impl Arena {
    /// Creates the arena of process `pid` in a file at `path`. Only its owner can read the file. The file must not
    /// exist before.
    ///
    /// # Errors
    /// If the file cannot be created or mapped, or the geometry is out of bounds.
    pub fn create(path: &Path, geometry: Geometry, mode: Mode, pid: Pid) -> Result<Arena, ArenaError> {
        check(path, geometry, mode)?;
        let io_error = |error| ArenaError::Io(path.to_path_buf(), error);
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
        let file = file.map_err(io_error)?;
        file.set_len(geometry.arena_len() as u64).map_err(io_error)?;
        allocate_start(&file).map_err(io_error)?;
        let arena = Arena::map(&file, path, geometry, mode).map_err(io_error)?;
        arena.describe();
        arena.publish(pid);
        Ok(arena)
    }

    /// Opens the arena that another process has created in a file. Use it only for trusted processes: such a process
    /// can still truncate the file, and then the reader gets SIGBUS. For untrusted processes, a recorder hands out
    /// memory of fixed length: [`ArenaServer`](crate::drain::ArenaServer).
    ///
    /// # Errors
    /// If the file cannot be opened or mapped, or is not (yet) a complete arena.
    pub fn open(path: &Path) -> Result<Arena, ArenaError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
        let file = options.open(path).map_err(|error| ArenaError::Io(path.to_path_buf(), error))?;
        let arena = Arena::of_file(&file, path)?;
        if arena.is_published() {
            return Ok(arena);
        }
        // Acquire: as in `is_published`.
        let magic = arena.header().magic.load(Ordering::Acquire);
        Err(foreign(path, "\"FUTARENA\"", format!("{magic:#x}")))
    }

    /// An arena in private memory of this process. The memory has no descriptor, and no name elsewhere.
    #[cfg(all(feature = "probes", feature = "drain"))]
    pub(crate) fn alone(geometry: Geometry, mode: Mode) -> Result<Arena, ArenaError> {
        let name = std::path::PathBuf::from(NAME);
        check(&name, geometry, mode)?;
        let io_error = |error| ArenaError::Io(name.clone(), error);
        let file = sealed(geometry).map_err(io_error)?;
        allocate_start(&file).map_err(io_error)?;
        let arena = Arena::map(&file, &name, geometry, mode).map_err(io_error)?;
        arena.describe();
        Ok(arena)
    }

    /// An arena for another process, and a descriptor of its memory. The header is filled in. The process publishes the
    /// arena after it has written its metadata.
    #[cfg(feature = "drain")]
    pub(crate) fn for_another(geometry: Geometry, mode: Mode, pid: Pid) -> Result<(Arena, File), ArenaError> {
        let name = std::path::PathBuf::from(NAME);
        check(&name, geometry, mode)?;
        let io_error = |error| ArenaError::Io(name.clone(), error);
        let file = sealed(geometry).map_err(io_error)?;
        let arena = Arena::map(&file, &name, geometry, mode).map_err(io_error)?;
        arena.describe();
        arena.pid.store(pid.0, Ordering::Relaxed);
        Ok((arena, file))
    }

    /// Maps memory that the recorder has created for this process. `socket` is the socket of the recorder.
    #[cfg(feature = "probes")]
    pub(crate) fn received(memory: std::os::fd::OwnedFd, socket: &Path) -> Result<Arena, ArenaError> {
        let file = File::from(memory);
        let io_error = |error| ArenaError::Io(socket.to_path_buf(), error);
        let seals = rustix::fs::fcntl_get_seals(&file).map_err(|error| io_error(error.into()))?;
        if !seals.contains(SEALS) {
            return Err(foreign(socket, "sealed memory", format!("{seals:?}")));
        }
        let arena = Arena::of_file(&file, socket)?;
        leave_address_space(arena.geometry.arena_len() as u64).map_err(io_error)?;
        allocate_start(&file).map_err(io_error)?;
        Ok(arena)
    }

    /// Maps an arena according to its header. The header is read once, and checked against the length of the file.
    fn of_file(file: &File, path: &Path) -> Result<Arena, ArenaError> {
        let io_error = |error| ArenaError::Io(path.to_path_buf(), error);
        let found = file.metadata().map_err(io_error)?;
        let len = found.len();
        if !found.is_file() || len < RINGS_START as u64 {
            return Err(foreign(
                path,
                "a file of at least 1 MiB",
                format!("{:?}, {len} bytes", found.file_type()),
            ));
        }
        let (geometry, mode) = {
            let mapping = Mapping::new(file, STATES_START).map_err(io_error)?;
            let header = header_of(&mapping);
            // Acquire: pairs with the Release in `describe`.
            let version = header.version.load(Ordering::Acquire);
            if version != VERSION {
                return Err(foreign(
                    path,
                    &format!("an arena of version {VERSION}"),
                    format!("version {version}"),
                ));
            }
            let mode = header.mode.load(Ordering::Relaxed);
            let mode =
                Mode::from_number(mode).ok_or_else(|| foreign(path, "mode 0 or 1", mode.to_string()))?;
            let geometry = Geometry {
                packets: header.packets.load(Ordering::Relaxed),
                rings: header.rings.load(Ordering::Relaxed),
            };
            (geometry, mode)
        };
        if !geometry.is_valid(mode) || len < geometry.arena_len() as u64 {
            return Err(foreign(
                path,
                "a geometry that fits the file",
                format!("{geometry:?} in {len} bytes"),
            ));
        }
        let len = geometry.arena_len() as u64;
        Arena::map(file, path, geometry, mode).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOMEM) => io_error(no_address_space(len)),
            _ => io_error(error),
        })
    }

    fn map(file: &File, path: &Path, geometry: Geometry, mode: Mode) -> io::Result<Arena> {
        let mapping = Mapping::new(file, geometry.arena_len())?;
        Ok(Arena {
            mapping,
            geometry,
            mode,
            pid: AtomicU32::new(0),
            published: AtomicBool::new(false),
            drained: AtomicBool::new(false),
            path: path.to_path_buf(),
        })
    }

    /// Fills in the header.
    fn describe(&self) {
        let header: &ArenaHeader = self.header();
        header.packets.store(self.geometry.packets, Ordering::Relaxed);
        header.rings.store(self.geometry.rings, Ordering::Relaxed);
        header.mode.store(self.mode.to_number(), Ordering::Relaxed);
        // Release: pairs with the Acquire in `of_file`.
        header.version.store(VERSION, Ordering::Release);
    }

    /// Publishes the arena as complete, and stores the process that it belongs to.
    pub(crate) fn publish(&self, pid: Pid) {
        self.pid.store(pid.0, Ordering::Relaxed);
        self.published.store(true, Ordering::Relaxed);
        self.header().pid.store(pid.0, Ordering::Relaxed);
        // Release: pairs with the Acquire in `is_published`. A reader that sees the magic word also sees the complete
        // header and the first metadata.
        self.header().magic.store(MAGIC, Ordering::Release);
    }

    /// Whether the process has published the arena. From then on [`pid`](Arena::pid) is the number that the process
    /// stored.
    pub(crate) fn is_published(&self) -> bool {
        // Acquire: pairs with the Release in `publish`.
        let published = self.header().magic.load(Ordering::Acquire) == MAGIC;
        if published && !self.published.swap(true, Ordering::Relaxed) {
            self.pid.store(self.header().pid.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        published
    }
}

fn check(path: &Path, geometry: Geometry, mode: Mode) -> Result<(), ArenaError> {
    if geometry.is_valid(mode) {
        return Ok(());
    }
    Err(foreign(path, &Geometry::bounds(mode), format!("{} and {}", geometry.packets, geometry.rings)))
}

fn foreign(path: &Path, expected: &str, found: String) -> ArenaError {
    ArenaError::Foreign { file: path.to_path_buf(), expected: expected.into(), found }
}

/// Memory of fixed length.
#[cfg(feature = "drain")]
fn sealed(geometry: Geometry) -> io::Result<File> {
    use rustix::fs::{MemfdFlags, fcntl_add_seals, memfd_create};

    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // NOEXEC_SEAL marks the memory as not executable, which some systems require. It exists since Linux 6.3.
    let memory = match memfd_create(NAME, flags | MemfdFlags::NOEXEC_SEAL) {
        Err(rustix::io::Errno::INVAL) => memfd_create(NAME, flags)?,
        made => made?,
    };
    rustix::fs::ftruncate(&memory, geometry.arena_len() as u64)?;
    fcntl_add_seals(&memory, SEALS)?;
    Ok(File::from(memory))
}

/// Refuses an arena of more than a third of a limited address space (`RLIMIT_AS`): the program itself needs the space.
#[cfg(feature = "probes")]
fn leave_address_space(arena: u64) -> io::Result<()> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current;
    if limit.is_some_and(|limit| arena > limit / 3) { Err(no_address_space(arena)) } else { Ok(()) }
}

fn no_address_space(arena: u64) -> io::Error {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current;
    let limit = limit.map_or("it has no limit".into(), |limit| format!("RLIMIT_AS is {} MiB", limit >> 20));
    let text = format!(
        "no address space for buffers of {} MiB, which may take at most a third of it: {limit}",
        arena >> 20
    );
    io::Error::new(io::ErrorKind::OutOfMemory, text)
}

/// Returns an error if there is no memory for the start of the arena. Otherwise a later access would kill the process.
fn allocate_start(file: &File) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::empty(), 0, RINGS_START as u64)?)
}
