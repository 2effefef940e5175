//! Turns the nops of sites into jumps and back, while other threads execute them.
//!
//! ```text
//! off             0f 1f 44 00 00      nop dword ptr [rax + rax + 0]
//! between         a9 dd dd dd dd      test eax, …      whatever the last four bytes are, only flags change
//! on              e9 dd dd dd dd      jmp target
//! ```
//! Each of the three is one instruction of five bytes. A site is changed from any of them to another by these rules:
//!
//! 1. The first byte becomes `a9`, by a store of one byte.
//! 2. All threads of the process execute a serialising instruction: `membarrier`, `PRIVATE_EXPEDITED_SYNC_CORE` (Linux
//!    4.16). From now on no thread executes the old instruction.
//! 3. The last four bytes become those of the new instruction. Meanwhile another CPU may fetch a mixture of old and new
//!    bytes. Any mixture is the operand of a `test` whose result is not used: the site has declared the flags
//!    clobbered.
//! 4. All threads execute a serialising instruction again, as in rule 2. From now on all CPUs fetch the new last four
//!    bytes.
//! 5. The first byte becomes that of the new instruction, by a store of one byte. Rule 2 is applied again after it. So
//!    after the switch returns, no thread takes the old path.
//! 6. Each rule is applied to all sites of a switch together, so a switch costs three `membarrier`s for any number of
//!    sites.
//! 7. Only one thread patches at a time, and none during `fork`: a forked child never inherits code in the middle of a
//!    switch. A child made by a raw `clone` may. But its sites are still whole instructions, and a switch can begin
//!    from any of the three.
//! 8. Code is writable only from rule 1 to rule 5, and only the pages with sites to change. It is always executable.
//!
//! **Justification.** Intel's SDM (vol. 3A, "Handling Self- and Cross-Modifying Code") requires a CPU to execute a
//! serialising instruction before it executes code that another CPU has modified: this is why rules 2 and 4 exist.
//!
//! One assumption remains: a thread that executes a site at the moment in which its first byte changes fetches either
//! the old byte or the new one. No manual states this explicitly. The text of Intel's errata (Core 2: AH33) makes no
//! exception for it. But all patching of running code depends on this assumption, including the kernel's. The kernel
//! uses the same steps with `int3` in place of `test` (`text_poke_bp_batch` in arch/x86/kernel/alternative.c up to
//! v6.15, renamed since). Its last step also replaces a first byte that other CPUs may be fetching. The kernel's
//! djprobe patches state the assumption as a rule ("except the first byte of an instruction"). Intel's confirmation,
//! quoted by R. J. Moore in the kernel's immediate-values patches, is for `int3`.
//! github.com/backtrace-labs/dynamic_flag toggles the same pair of `test` and `jmp` in production without stopping
//! other threads.
//!
//! Why not `int3`: its SIGTRAP kills the process if the thread has the signal blocked, and threads that block all
//! signals are common. Also, a debugger would stop at each `int3`. With these rules, no thread traps or waits.
//!
//! This must not be called in signal handlers: switching takes a lock and allocates.

use std::{
    io,
    sync::atomic::{AtomicU8, Ordering},
};

use super::{EventDecl, SwitchError};

/// Length of a site, in bytes.
pub(super) const SITE_LEN: usize = 5;

const NOP: [u8; SITE_LEN] = [0x0f, 0x1f, 0x44, 0x00, 0x00];
const TEST: u8 = 0xa9;
const JUMP: u8 = 0xe9;

/// The new state of a site.
#[derive(Clone, Copy)]
pub(super) struct Change {
    pub(super) site: *mut u8,
    /// Distance from the end of the site to the target of its jump.
    pub(super) distance: i32,
    pub(super) jumps: bool,
    pub(super) event: &'static EventDecl,
}

impl Change {
    fn byte(&self, index: usize) -> &AtomicU8 {
        assert!(index < SITE_LEN);
        // SAFETY: the address is inside the site, which is mapped as long as the program runs. Other threads only
        // execute it.
        unsafe { AtomicU8::from_ptr(self.site.wrapping_add(index)) }
    }

    fn bytes(&self) -> [u8; SITE_LEN] {
        std::array::from_fn(|index| self.byte(index).load(Ordering::Relaxed))
    }

    fn jump(&self) -> [u8; SITE_LEN] {
        let [a, b, c, d] = self.distance.to_le_bytes();
        [JUMP, a, b, c, d]
    }

    fn goal(&self) -> [u8; SITE_LEN] {
        if self.jumps { self.jump() } else { NOP }
    }

    /// Whether the site has to be changed; an error if its bytes are not those of a site.
    fn is_needed(&self) -> Result<bool, SwitchError> {
        let found = self.bytes();
        // A `test` was left by an earlier switch that failed in the middle.
        if found != NOP && found != self.jump() && found[0] != TEST {
            let address = self.site.addr();
            return Err(SwitchError::Foreign { event: self.event.name(), address, found });
        }
        Ok(found != self.goal())
    }

    fn store(&self, index: usize, byte: u8) {
        self.byte(index).store(byte, Ordering::Relaxed);
    }
}

/// Changes every site to its new state.
pub(super) fn patch(sites: impl Iterator<Item = Change>) -> Result<(), SwitchError> {
    let mut changes = Vec::new();
    for change in sites {
        if change.is_needed()? {
            changes.push(change);
        }
    }
    if changes.is_empty() {
        return Ok(());
    }
    membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE)?;
    let _writable = Writable::make(pages(&changes))?;
    changes.iter().for_each(|change| change.store(0, TEST));
    synchronise()?;
    for (change, index) in changes.iter().flat_map(|c| (1..SITE_LEN).map(move |index| (c, index))) {
        change.store(index, change.goal()[index]);
    }
    synchronise()?;
    changes.iter().for_each(|change| change.store(0, change.goal()[0]));
    synchronise()
}

/// Rule 2. The compiler moves no store across this call, because it is a system call.
fn synchronise() -> Result<(), SwitchError> {
    membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE)
}

fn membarrier(command: libc::c_int) -> Result<(), SwitchError> {
    // SAFETY: the call accesses no memory; it takes a command, no flags, and an unused CPU number.
    let done = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    if done == 0 { Ok(()) } else { Err(SwitchError::Membarrier(io::Error::last_os_error())) }
}

/// The pages with the sites to change, as ranges that neither overlap nor adjoin.
fn pages(changes: &[Change]) -> Vec<(usize, usize)> {
    // SAFETY: reads a constant of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let range = |change: &Change| {
        let first = change.site.addr();
        (first / page * page, (first + SITE_LEN - 1) / page * page + page)
    };
    let mut ranges: Vec<_> = changes.iter().map(range).collect();
    ranges.sort_unstable();
    ranges.dedup_by(|next, kept| {
        let touch = next.0 <= kept.1;
        if touch {
            kept.1 = kept.1.max(next.1);
        }
        touch
    });
    ranges
}

/// Rule 8: code that is writable until this value is dropped.
struct Writable(Vec<(usize, usize)>);

impl Writable {
    fn make(ranges: Vec<(usize, usize)>) -> Result<Writable, SwitchError> {
        let mut writable = Writable(Vec::with_capacity(ranges.len()));
        for range in ranges {
            protect(range, libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC)
                .map_err(SwitchError::Protect)?;
            writable.0.push(range);
        }
        Ok(writable)
    }
}

impl Drop for Writable {
    fn drop(&mut self) {
        for range in self.0.drain(..) {
            // Write access could be added, so it can be removed. If removing it fails, the program continues with
            // writable code pages.
            let _ = protect(range, libc::PROT_READ | libc::PROT_EXEC);
        }
    }
}

fn protect((start, end): (usize, usize), protection: libc::c_int) -> io::Result<()> {
    let start = std::ptr::with_exposed_provenance_mut(start);
    // SAFETY: these are whole pages of this program's code, which stay readable and executable.
    let done = unsafe { libc::mprotect(start, end - start.addr(), protection) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
