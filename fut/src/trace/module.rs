//! The addresses of a process's code and of its named places. With these, readers resolve addresses.
//!
//! ```text
//! MODULES  {u64 start, u64 end, u64 file offset, text path, text build id}…      one per executable mapping
//! PLACES   {u64 address, text name, text file, u32 line}…                        one per span or traced function
//! ```
//! Packets of both kinds may occur more than once: modules that are loaded later are in later packets.

use sigmund_model::Pid;

use super::wire::{Cut, TraceError, push_text};

/// An executable mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Its process.
    pub pid: Pid,
    /// Its first address.
    pub start: u64,
    /// The first address after it.
    pub end: u64,
    /// The file offset of `start`.
    pub offset: u64,
    /// The file, with an absolute path; empty if it has none.
    pub path: String,
    /// The note `NT_GNU_BUILD_ID` in hexadecimal; empty if it has none.
    pub build_id: String,
}

/// A named place in a program: a span or a traced function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedPlace {
    /// Its process.
    pub pid: Pid,
    /// The address in its records.
    pub address: u64,
    /// Its name.
    pub name: String,
    /// Its source file.
    pub file: String,
    /// Its source line.
    pub line: u32,
}

/// Modules as the payload of a packet of kind `MODULES`.
pub fn encode_modules<'a>(modules: impl IntoIterator<Item = &'a Module>) -> Vec<u8> {
    let mut out = Vec::new();
    for module in modules {
        for word in [module.start, module.end, module.offset] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        push_text(&mut out, &module.path);
        push_text(&mut out, &module.build_id);
    }
    out
}

/// Reads what [`encode_modules`] writes.
///
/// # Errors
/// If the payload ends in the middle of a module.
pub fn decode_modules(payload: &[u8], at: u64, pid: Pid) -> Result<Vec<Module>, TraceError> {
    let mut cut = Cut::new(payload, at);
    let mut modules = Vec::new();
    while !cut.is_empty() {
        modules.push(Module {
            pid,
            start: cut.u64("module: start")?,
            end: cut.u64("module: end")?,
            offset: cut.u64("module: file offset")?,
            path: cut.text("module: path")?,
            build_id: cut.text("module: build id")?,
        });
    }
    Ok(modules)
}

/// Places as the payload of a packet of kind `PLACES`.
pub fn encode_places<'a>(places: impl IntoIterator<Item = &'a NamedPlace>) -> Vec<u8> {
    let mut out = Vec::new();
    for place in places {
        out.extend_from_slice(&place.address.to_le_bytes());
        push_text(&mut out, &place.name);
        push_text(&mut out, &place.file);
        out.extend_from_slice(&place.line.to_le_bytes());
    }
    out
}

/// Reads what [`encode_places`] writes.
///
/// # Errors
/// If the payload ends in the middle of a place.
pub fn decode_places(payload: &[u8], at: u64, pid: Pid) -> Result<Vec<NamedPlace>, TraceError> {
    let mut cut = Cut::new(payload, at);
    let mut places = Vec::new();
    while !cut.is_empty() {
        places.push(NamedPlace {
            pid,
            address: cut.u64("place: address")?,
            name: cut.text("place: name")?,
            file: cut.text("place: file")?,
            line: cut.u32("place: line")?,
        });
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_and_places_come_back_as_they_were_and_cut_ones_are_an_error() {
        let (start, end, offset) = (0x5000, 0x6000, 0x1000);
        let path = "/usr/lib/libm.so.6".to_string();
        let module = Module { pid: Pid(7), start, end, offset, path, build_id: "c0ffee".into() };
        let bytes = encode_modules([&module, &module]);
        assert_eq!(decode_modules(&bytes, 0, Pid(7)).unwrap(), [module.clone(), module.clone()]);
        let one = bytes.len() / 2;
        assert!((1..one).all(|len| decode_modules(&bytes[..len], 0, Pid(7)).is_err()));

        let (name, file) = ("parse".to_string(), "daemon.rs".to_string());
        let place = NamedPlace { pid: Pid(7), address: 0x7000, name, file, line: 17 };
        let bytes = encode_places([&place]);
        assert_eq!(decode_places(&bytes, 0, Pid(7)).unwrap(), [place]);
        assert!((1..bytes.len()).all(|len| decode_places(&bytes[..len], 0, Pid(7)).is_err()));
    }
}
