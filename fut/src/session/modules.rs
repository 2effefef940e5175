//! Addresses of the code of this process: its executable segments, as listed by the dynamic linker.
//!
//! They are written to the trace when the session starts. Libraries that are loaded later are detected by the linker's
//! count of loads. It is checked whenever an LWP stops recording (so also at a normal end of the program), and when the
//! recording of a C program ends. If a program is killed before that, these libraries are missing from the trace, and
//! addresses in them stay numbers. Probes do not check the count, because that takes the linker's lock.

use std::{
    ffi::{CStr, OsStr, c_int, c_void},
    fmt::Write,
    os::unix::ffi::OsStrExt,
    path::Path,
    slice,
    sync::atomic::{AtomicU64, Ordering},
};

use sigmund_model::Pid;

use crate::trace::Module;

/// Type of the note that holds the build id (`NT_GNU_BUILD_ID`, elf.h); its owner is `GNU`.
const BUILD_ID: u32 = 3;

/// The dynamic linker's count of loaded objects when the modules were last listed.
static LOADS: AtomicU64 = AtomicU64::new(0);

/// Whether an object was loaded since the modules were last listed.
pub(super) fn have_changed() -> bool {
    loads() != LOADS.load(Ordering::Relaxed)
}

/// Whether an address is in the program itself, which is never unloaded.
pub(super) fn is_of_program(address: u64) -> bool {
    let mut is_of_program = false;
    // The program is the first object in the linker's list.
    for_each_object(|object| {
        is_of_program = is_loaded(object, address, 1);
        false
    });
    is_of_program
}

/// Whether these addresses are in one readable segment of an object.
fn is_loaded(object: &libc::dl_phdr_info, address: u64, len: u64) -> bool {
    let at = address.wrapping_sub(object.dlpi_addr);
    let holds = |h: &libc::Elf64_Phdr| {
        let readable = h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_R != 0;
        let inside = at.checked_sub(h.p_vaddr).and_then(|from| from.checked_add(len));
        readable && inside.is_some_and(|end| end <= h.p_memsz)
    };
    headers_of(object).iter().any(holds)
}

/// All executable segments of this process.
pub(super) fn gather(pid: Pid) -> Vec<Module> {
    LOADS.store(loads(), Ordering::Relaxed);
    let mut found: Vec<Module> = Vec::new();
    for_each_object(|object| {
        let path = path_of(object);
        let headers = headers_of(object);
        let build_id = headers.iter().filter_map(|h| build_id_in(object, h)).next().unwrap_or_default();
        let executable = |h: &&libc::Elf64_Phdr| h.p_type == libc::PT_LOAD && h.p_flags & libc::PF_X != 0;
        found.extend(headers.iter().filter(executable).map(|header| {
            let start = object.dlpi_addr.wrapping_add(header.p_vaddr);
            Module {
                pid,
                start,
                end: start.wrapping_add(header.p_memsz),
                offset: header.p_offset,
                path: path.clone(),
                build_id: build_id.clone(),
            }
        }));
        true
    });
    found
}

fn loads() -> u64 {
    let mut loads = 0;
    for_each_object(|object| {
        loads = object.dlpi_adds;
        false
    });
    loads
}

/// Calls `visit` for each loaded object, until it returns `false`.
fn for_each_object<F: FnMut(&libc::dl_phdr_info) -> bool>(mut visit: F) {
    unsafe extern "C" fn call<F: FnMut(&libc::dl_phdr_info) -> bool>(
        object: *mut libc::dl_phdr_info,
        _: usize,
        visit: *mut c_void,
    ) -> c_int {
        // SAFETY: `dl_iterate_phdr` passes on the pointer given below, to an `F` that is valid during the call.
        let visit = unsafe { &mut *visit.cast::<F>() };
        // SAFETY: `dl_iterate_phdr` passes an object that is valid during the call.
        let object = unsafe { &*object };
        c_int::from(!visit(object))
    }
    let visit = (&raw mut visit).cast::<c_void>();
    // SAFETY: the callback has the right signature, and does not keep its arguments.
    unsafe { libc::dl_iterate_phdr(Some(call::<F>), visit) };
}

fn headers_of(object: &libc::dl_phdr_info) -> &[libc::Elf64_Phdr] {
    if object.dlpi_phdr.is_null() {
        return &[];
    }
    // SAFETY: the dynamic linker keeps `dlpi_phnum` program headers there while the object is loaded, and holds its
    // lock during this callback.
    unsafe { slice::from_raw_parts(object.dlpi_phdr, usize::from(object.dlpi_phnum)) }
}

/// The path of the object's file. The program itself has no name in the linker's list, and other names may be relative.
fn path_of(object: &libc::dl_phdr_info) -> String {
    let name = if object.dlpi_name.is_null() {
        c""
    } else {
        // SAFETY: the dynamic linker keeps the name as a C string while the object is loaded.
        unsafe { CStr::from_ptr(object.dlpi_name) }
    };
    let path = match name.to_bytes() {
        [] => std::fs::read_link("/proc/self/exe").unwrap_or_default(),
        bytes => {
            let name = Path::new(OsStr::from_bytes(bytes));
            std::fs::canonicalize(name).unwrap_or_else(|_| name.to_path_buf())
        }
    };
    path.to_string_lossy().into_owned()
}

fn build_id_in(object: &libc::dl_phdr_info, header: &libc::Elf64_Phdr) -> Option<String> {
    if header.p_type != libc::PT_NOTE || header.p_memsz == 0 {
        return None;
    }
    let start = object.dlpi_addr.wrapping_add(header.p_vaddr);
    // Notes should be loaded (ELF gABI), but a packer or a linker script may have left them only in the file.
    if !is_loaded(object, start, header.p_memsz) {
        return None;
    }
    let start = start as usize;
    // SAFETY: these bytes are inside a loaded, readable segment; notes are not modified after loading.
    let notes = unsafe {
        slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(start), header.p_memsz as usize)
    };
    build_id(notes, (header.p_align as usize).max(4))
}

/// The build id among notes: `{u32 name length, u32 content length, u32 type, name, content}…`, each part padded.
fn build_id(mut notes: &[u8], align: usize) -> Option<String> {
    let word = |bytes: &[u8], at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    loop {
        let (name_len, len) = (word(notes, 0)? as usize, word(notes, 4)? as usize);
        let kind = word(notes, 8)?;
        let content = name_len.checked_add(12)?.checked_next_multiple_of(align)?;
        let bytes = notes.get(content..content.checked_add(len)?)?;
        if kind == BUILD_ID && notes.get(12..12 + name_len)? == b"GNU\0" {
            return Some(bytes.iter().fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            }));
        }
        notes = notes.get((content + len).checked_next_multiple_of(align)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_is_in_its_own_file() {
        let modules = gather(Pid(1));
        let here = this_test_is_in_its_own_file as fn() as usize as u64;
        let module = modules.iter().find(|m| (m.start..m.end).contains(&here)).unwrap();
        assert_eq!(Path::new(&module.path), std::env::current_exe().unwrap());
        assert!(!have_changed());
    }

    #[test]
    fn notes_that_are_not_loaded_are_not_read() {
        let mut headers = Vec::new();
        let mut base = 0;
        for_each_object(|object| {
            (headers, base) = (headers_of(object).to_vec(), object.dlpi_addr);
            false
        });
        let note = headers.iter_mut().find(|h| h.p_type == libc::PT_NOTE).expect("of the compiler");
        // An unmapped address.
        note.p_vaddr = 0_u64.wrapping_sub(base).wrapping_add(4096);
        let note = *note;
        // SAFETY: plain data, for which zeros are valid.
        let mut object: libc::dl_phdr_info = unsafe { std::mem::zeroed() };
        (object.dlpi_addr, object.dlpi_phdr) = (base, headers.as_ptr());
        object.dlpi_phnum = headers.len() as u16;
        assert_eq!(build_id_in(&object, &note), None);
        assert!(is_of_program(notes_that_are_not_loaded_are_not_read as fn() as usize as u64));
        assert!(!is_of_program(4096));
    }

    #[test]
    fn a_build_id_is_found_after_another_note() {
        let note = |kind: u32, content: &[u8]| {
            let head = [4, content.len() as u32, kind].into_iter().flat_map(u32::to_ne_bytes);
            head.chain(*b"GNU\0").chain(content.iter().copied()).collect::<Vec<u8>>()
        };
        let notes = [note(1, &[1, 2, 3, 4]), note(BUILD_ID, &[0xc0, 0xff, 0xee, 0])].concat();
        assert_eq!(build_id(&notes, 4).as_deref(), Some("c0ffee00"));
        (0..notes.len()).for_each(|len| assert_eq!(build_id(&notes[..len], 4), None));
    }
}
