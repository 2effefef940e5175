//! The arena: the file that holds all rings of a process, and its metadata.
//!
//! ```text
//! arena  0      4 KiB                4 KiB + 16 KiB        1 MiB
//!        | head | states of the rings | metadata packets    | ring 0 | …
//!
//! head   0          8         12    16              20      24           28     32             40
//!        | FUTARENA | version | pid | packets/ring  | rings | rings used | full | metadata len | unattached |
//!
//!        48     52         56              64                   72
//!        | mode | reserved | overwritten LWPs | packets of theirs | bytes of theirs | lost of theirs |
//! ```

use std::{
    fmt,
    fs::{File, OpenOptions},
    io,
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
};

use sigmund_model::Pid;

use super::{mapping::Mapping, platform::PACKET_LEN, ring::Ring};
#[cfg(feature = "probes")]
use crate::trace::PACKET_HEAD_LEN;

const MAGIC: u64 = u64::from_le_bytes(*b"FUTARENA");
const VERSION: u32 = 2;
const STATES_START: usize = 4096;
const MAX_RINGS: u32 = 4096;
const METADATA_START: usize = STATES_START + 4 * MAX_RINGS as usize;
const RINGS_START: usize = 1 << 20;

/// How large an arena is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Packets of 64 KiB in each ring; a power of two, 2 to 65536.
    pub packets: u32,
    /// Rings, so: LWPs at one time; 1 to 4096.
    pub rings: u32,
}

/// What a full ring does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Loses the newest: what finds no room is counted. A drain writes the trace meanwhile.
    #[default]
    Discard,
    /// Loses the oldest: the flight recorder. Nobody drains; a snapshot takes what is there.
    Overwrite,
}

impl Default for Geometry {
    /// 4 MiB for each of up to 512 LWPs: 4 ms of the fastest probes. Only rings in use take memory.
    fn default() -> Geometry {
        Geometry { packets: 64, rings: 512 }
    }
}

impl Geometry {
    /// Rule 11 of the ring wants a few in overwrite mode.
    fn least_packets(mode: Mode) -> u32 {
        match mode {
            Mode::Discard => 2,
            Mode::Overwrite => 4,
        }
    }

    fn is_valid(self, mode: Mode) -> bool {
        self.packets.is_power_of_two()
            && (Geometry::least_packets(mode)..=65536).contains(&self.packets)
            && (1..=MAX_RINGS).contains(&self.rings)
    }

    fn ring_len(self) -> usize {
        PACKET_LEN * (1 + self.packets as usize)
    }

    fn arena_len(self) -> usize {
        RINGS_START + self.ring_len() * self.rings as usize
    }
}

#[repr(C)]
struct Head {
    magic: AtomicU64,
    version: AtomicU32,
    pid: AtomicU32,
    packets: AtomicU32,
    rings: AtomicU32,
    rings_used: AtomicU32,
    /// 1 when there is no memory for rings that were never used.
    full: AtomicU32,
    metadata_len: AtomicU64,
    unattached_lost: AtomicU64,
    /// 0 for `Mode::Discard`, 1 for `Mode::Overwrite`.
    mode: AtomicU32,
    _reserved: AtomicU32,
    overwritten_lwps: AtomicU64,
    overwritten_packets: AtomicU64,
    overwritten_bytes: AtomicU64,
    overwritten_lost: AtomicU64,
}

/// What an arena in overwrite mode has lost together with LWPs that ended and whose rings others needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OverwrittenLwps {
    /// How many.
    pub lwps: u64,
    /// Packets that they had written.
    pub packets: u64,
    /// Bytes of records in these.
    pub bytes: u64,
    /// Records that they had lost themselves.
    pub lost: u64,
}

/// Why an arena cannot be used.
#[derive(Debug)]
pub enum ArenaError {
    /// The file cannot be made, opened, sized or mapped.
    Io(PathBuf, io::Error),
    /// It is not an arena, or not one of ours.
    Foreign {
        /// The file.
        file: PathBuf,
        /// What should have been there.
        expected: String,
        /// What was.
        found: String,
    },
}

impl fmt::Display for ArenaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArenaError::Io(file, error) => write!(f, "{}: {error}", file.display()),
            ArenaError::Foreign { file, expected, found } => {
                write!(f, "{}: expected {expected}, found {found}", file.display())
            }
        }
    }
}

impl std::error::Error for ArenaError {}

/// A process's arena, mapped.
#[derive(Debug)]
pub struct Arena {
    mapping: Mapping,
    geometry: Geometry,
    mode: Mode,
    path: PathBuf,
}

impl Arena {
    /// Makes the arena of process `pid` at `path`, readable by its owner only. The file must not exist.
    ///
    /// # Errors
    /// When the file cannot be made or mapped, or the geometry is out of bounds.
    pub fn create(path: &Path, geometry: Geometry, mode: Mode, pid: Pid) -> Result<Arena, ArenaError> {
        if !geometry.is_valid(mode) {
            let least = Geometry::least_packets(mode);
            return Err(ArenaError::Foreign {
                file: path.to_path_buf(),
                expected: format!("{least} to 65536 packets (a power of two) and 1 to 4096 rings"),
                found: format!("{} and {}", geometry.packets, geometry.rings),
            });
        }
        let io_error = |error| ArenaError::Io(path.to_path_buf(), error);
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path);
        let file = file.map_err(io_error)?;
        file.set_len(geometry.arena_len() as u64).map_err(io_error)?;
        // Touching a page of tmpfs for which there is no memory would kill the process: better an error now.
        // SAFETY: the descriptor is open; the call has no other requirement.
        let allocated = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, RINGS_START as i64) };
        if allocated != 0 {
            return Err(io_error(io::Error::from_raw_os_error(allocated)));
        }
        let arena = Arena::map(&file, path, geometry, mode)?;
        let head = arena.head();
        head.version.store(VERSION, Ordering::Relaxed);
        head.pid.store(pid.0, Ordering::Relaxed);
        head.packets.store(geometry.packets, Ordering::Relaxed);
        head.rings.store(geometry.rings, Ordering::Relaxed);
        head.mode.store(u32::from(mode == Mode::Overwrite), Ordering::Relaxed);
        // Release: pairs with the Acquire in `open`; the head is whole when the magic is there.
        head.magic.store(MAGIC, Ordering::Release);
        Ok(arena)
    }

    /// Opens the arena of another process.
    ///
    /// # Errors
    /// When the file cannot be opened or mapped, or is not a whole arena (yet).
    pub fn open(path: &Path) -> Result<Arena, ArenaError> {
        let io_error = |error| ArenaError::Io(path.to_path_buf(), error);
        let foreign = |expected: &str, found: String| ArenaError::Foreign {
            file: path.to_path_buf(),
            expected: expected.into(),
            found,
        };
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(io_error)?;
        let len = file.metadata().map_err(io_error)?.len();
        if len < RINGS_START as u64 {
            return Err(foreign("an arena of 1 MiB at least", format!("{len} bytes")));
        }
        let (geometry, mode) = {
            let head = Mapping::new(&file, STATES_START).map_err(io_error)?;
            let head = head_of(&head);
            // Acquire: pairs with the Release in `create`.
            let magic = head.magic.load(Ordering::Acquire);
            let version = head.version.load(Ordering::Relaxed);
            if magic != MAGIC || version != VERSION {
                return Err(foreign(
                    &format!("\"FUTARENA\", version {VERSION}"),
                    format!("{magic:#x}, version {version}"),
                ));
            }
            let mode = match head.mode.load(Ordering::Relaxed) {
                0 => Mode::Discard,
                1 => Mode::Overwrite,
                other => return Err(foreign("mode 0 or 1", other.to_string())),
            };
            let geometry = Geometry {
                packets: head.packets.load(Ordering::Relaxed),
                rings: head.rings.load(Ordering::Relaxed),
            };
            (geometry, mode)
        };
        if !geometry.is_valid(mode) || len < geometry.arena_len() as u64 {
            return Err(foreign("a geometry that fits the file", format!("{geometry:?} in {len} bytes")));
        }
        Arena::map(&file, path, geometry, mode)
    }

    fn map(file: &File, path: &Path, geometry: Geometry, mode: Mode) -> Result<Arena, ArenaError> {
        let mapping = Mapping::new(file, geometry.arena_len());
        let mapping = mapping.map_err(|error| ArenaError::Io(path.to_path_buf(), error))?;
        Ok(Arena { mapping, geometry, mode, path: path.to_path_buf() })
    }

    fn head(&self) -> &Head {
        head_of(&self.mapping)
    }

    /// The process it belongs to.
    pub fn pid(&self) -> Pid {
        Pid(self.head().pid.load(Ordering::Relaxed))
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How large it is.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// What its rings do when they are full.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The rings that were ever used.
    pub fn rings(&self) -> impl Iterator<Item = Ring<'_>> {
        // Acquire: pairs with the AcqRel in `use_ring`.
        let used = self.head().rings_used.load(Ordering::Acquire).min(self.geometry.rings);
        (0..used).map(|index| self.ring(index))
    }

    pub(crate) fn ring(&self, index: u32) -> Ring<'_> {
        assert!(index < self.geometry.rings);
        let start = RINGS_START + self.geometry.ring_len() * index as usize;
        let control = self.mapping.at(start).cast();
        let packets = self.mapping.at(start + PACKET_LEN).cast();
        let state = self.mapping.at(STATES_START + 4 * index as usize).cast();
        // SAFETY: the ring is inside the mapping, which lives as long as `self`; it starts at a multiple of
        // 64 KiB, and the geometry was checked to be a power of two.
        unsafe { Ring::from_raw(state, control, packets, u64::from(self.geometry.packets)) }
    }

    /// Records that were emitted by LWPs for which there was no ring.
    pub fn unattached_lost(&self) -> u64 {
        self.head().unattached_lost.load(Ordering::Relaxed)
    }

    /// What was overwritten as a whole, in overwrite mode.
    pub fn overwritten_lwps(&self) -> OverwrittenLwps {
        let head = self.head();
        OverwrittenLwps {
            lwps: head.overwritten_lwps.load(Ordering::Relaxed),
            packets: head.overwritten_packets.load(Ordering::Relaxed),
            bytes: head.overwritten_bytes.load(Ordering::Relaxed),
            lost: head.overwritten_lost.load(Ordering::Relaxed),
        }
    }

    /// The finished packets of metadata behind the first `from` bytes.
    pub fn metadata(&self, from: usize) -> Vec<u8> {
        // Acquire: pairs with the Release in `push_metadata`.
        let len = self.head().metadata_len.load(Ordering::Acquire) as usize;
        let len = len.min(RINGS_START - METADATA_START);
        if from >= len {
            return Vec::new();
        }
        let mut bytes = vec![0; len - from];
        let start = self.mapping.at(METADATA_START + from).as_ptr();
        // SAFETY: inside the mapping by the bounds above; the process wrote these bytes before it published
        // their length, and changes them no more.
        unsafe { std::ptr::copy_nonoverlapping(start, bytes.as_mut_ptr(), bytes.len()) };
        bytes
    }
}

/// What only the traced process does.
#[cfg(feature = "probes")]
impl Arena {
    /// Takes a free ring, in the state `Busy`; its memory is there.
    pub(crate) fn use_ring(&self) -> Option<Ring<'_>> {
        use super::ring::RingState;

        let head = self.head();
        let full = head.full.load(Ordering::Relaxed) != 0;
        let tried = if full { head.rings_used.load(Ordering::Relaxed) } else { self.geometry.rings };
        for ring_index in 0..tried {
            let ring = self.ring(ring_index);
            if ring.state() != RingState::Free || !ring.take_over(RingState::Free, RingState::Busy) {
                continue;
            }
            let start = RINGS_START + self.geometry.ring_len() * ring_index as usize;
            if !self.mapping.prefault(start, self.geometry.ring_len()) {
                // What it did get is given back: others may need it more.
                self.mapping.discard(start, self.geometry.ring_len());
                head.full.store(1, Ordering::Relaxed);
                ring.set_state(RingState::Free);
                break;
            }
            // AcqRel: pairs with the Acquire in `rings`.
            head.rings_used.fetch_max(ring_index + 1, Ordering::AcqRel);
            return Some(ring);
        }
        if self.mode == Mode::Overwrite { self.take_oldest_ended() } else { None }
    }

    /// The ring of the LWP that ended first: in overwrite mode, it is the oldest of its kind.
    fn take_oldest_ended(&self) -> Option<Ring<'_>> {
        use super::ring::RingState;

        let ended_at = |ring: &Ring<'_>| ring.control().ended_at.load(Ordering::Relaxed);
        loop {
            let ended = self.rings().filter(|ring| ring.state() == RingState::Ended);
            let oldest = ended.min_by_key(ended_at)?;
            // If not, somebody else was faster, and the one that ended next is looked for.
            if oldest.take_over(RingState::Ended, RingState::Busy) {
                let (head, (sequence, offset)) = (self.head(), oldest.position());
                let open = (offset as usize).clamp(PACKET_HEAD_LEN, PACKET_LEN) - PACKET_HEAD_LEN;
                let bytes = oldest.control().closed_bytes.load(Ordering::Relaxed) + open as u64;
                head.overwritten_lwps.fetch_add(1, Ordering::Relaxed);
                head.overwritten_packets.fetch_add(sequence + 1, Ordering::Relaxed);
                head.overwritten_bytes.fetch_add(bytes, Ordering::Relaxed);
                head.overwritten_lost.fetch_add(oldest.lost(), Ordering::Relaxed);
                return Some(oldest);
            }
        }
    }

    pub(crate) fn count_unattached(&self) {
        self.head().unattached_lost.fetch_add(1, Ordering::Relaxed);
    }

    /// Publishes a packet of metadata; `false` if there is no room for it. One caller at a time.
    pub(crate) fn push_metadata(&self, packet: &[u8]) -> bool {
        let len = &self.head().metadata_len;
        let from = len.load(Ordering::Relaxed) as usize;
        if METADATA_START + from + packet.len() > RINGS_START {
            return false;
        }
        let to = self.mapping.at(METADATA_START + from).as_ptr();
        // SAFETY: inside the metadata part by the check above, and behind what is published, so nobody reads it.
        unsafe { std::ptr::copy_nonoverlapping(packet.as_ptr(), to, packet.len()) };
        // Release: pairs with the Acquire in `metadata`.
        len.store((from + packet.len()) as u64, Ordering::Release);
        true
    }
}

fn head_of(mapping: &Mapping) -> &Head {
    assert!(mapping.len() >= size_of::<Head>());
    // SAFETY: a mapping is aligned to a page and as long as a head; all fields of the head are atomic.
    unsafe { mapping.at(0).cast::<Head>().as_ref() }
}
