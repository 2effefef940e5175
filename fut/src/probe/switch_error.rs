//! Why probes could not be switched.

use std::{fmt, io};

/// Why probes could not be switched. None was switched.
#[derive(Debug)]
#[non_exhaustive]
pub enum SwitchError {
    /// The kernel refuses `membarrier`.
    Membarrier(io::Error),
    /// The kernel refuses to make the code writable.
    Protect(io::Error),
    /// The bytes at a probe's site are not those of a site, e.g. because of a breakpoint.
    Foreign {
        /// The event.
        event: &'static str,
        /// Address of the site.
        address: usize,
        /// The bytes found.
        found: [u8; 5],
    },
}

impl fmt::Display for SwitchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SwitchError::Membarrier(error) => {
                write!(
                    f,
                    "probes cannot be switched: membarrier with SYNC_CORE (Linux 4.16) is refused: {error}"
                )?;
            }
            SwitchError::Protect(error) => {
                write!(f, "probes cannot be switched: mprotect cannot make the code writable: {error}")?;
            }
            SwitchError::Foreign { event, address, found } => {
                return write!(
                    f,
                    "probes cannot be switched: expected a nop or a jump for the event {event} at {address:#x}, found \
                     {found:02x?} (a breakpoint?)"
                );
            }
        }
        write!(f, "; a program built with RUSTFLAGS=\"--cfg fut_no_patching\" does not patch code")
    }
}

impl std::error::Error for SwitchError {}

impl From<SwitchError> for io::Error {
    fn from(error: SwitchError) -> io::Error {
        io::Error::other(error)
    }
}
