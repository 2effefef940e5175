//! `fut_declare`: declares a name, fields and a format for a code.

use std::ffi::{CStr, c_char, c_int};

use fut::{
    DeclareError, declare,
    model::{EventType, Field, FieldType, Level},
    trace::Declaration,
};

use crate::own_events::is_reserved;

/// Declares the event `code`; the macro `fut_declare` of the header passes file and line. Returns 0, or a negative
/// error number; the reason is reported on stderr, with the location.
///
/// # Safety
/// The texts are C strings; `fields`, `format` and `file` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fut_declare_at(
    code: u32,
    name: *const c_char,
    fields: *const c_char,
    format: *const c_char,
    file: *const c_char,
    line: u32,
) -> c_int {
    // SAFETY: this is a C string or null, as the caller guarantees.
    let name = unsafe { text(name) };
    // SAFETY: as above.
    let fields = unsafe { text(fields) };
    // SAFETY: as above.
    let format = unsafe { text(format) };
    // SAFETY: as above.
    let file = unsafe { text(file) };
    let place = format!("{file}:{line}");
    let refused = |message: String, error: c_int| {
        fut::__warn(format_args!("{message}; the event is not declared"));
        -error
    };
    if name.is_empty() {
        return refused(format!("{place}: expected a name for event {code:#x}, found none"), libc::EINVAL);
    }
    if is_reserved(&name, code) {
        return refused(format!("{place}: {}", DeclareError::ReservedName(name)), libc::EINVAL);
    }
    let fields = match parse_fields(&fields) {
        Ok(fields) => fields,
        Err(problem) => return refused(format!("{place}: {problem}"), libc::EINVAL),
    };
    let event = EventType { level: Level::User, code: Some(code), name, key: 0, fields, format };
    match declare(Declaration { event, file, line }) {
        Ok(()) => 0,
        Err(error @ DeclareError::Contradicts { .. }) => refused(error.to_string(), libc::EEXIST),
        Err(error @ DeclareError::NoRoom) => refused(format!("{place}: {error}"), libc::ENOSPC),
        Err(error) => refused(format!("{place}: {error}"), libc::EINVAL),
    }
}

/// Copies a C string as UTF-8; other bytes are replaced.
///
/// # Safety
/// `text` is null or a C string.
unsafe fn text(text: *const c_char) -> String {
    // SAFETY: this is a C string or null, as the caller guarantees.
    String::from_utf8_lossy(&unsafe { bytes(text) }).into_owned()
}

/// Copies the bytes of a C string, which need not be UTF-8. The copy of a null pointer is empty.
///
/// # Safety
/// `text` is null or a C string.
pub(crate) unsafe fn bytes(text: *const c_char) -> Vec<u8> {
    if text.is_null() {
        return Vec::new();
    }
    // SAFETY: this is a C string, as the caller guarantees.
    unsafe { CStr::from_ptr(text) }.to_bytes().to_vec()
}

/// Parses `len:u64 from:text`, with blanks or commas between the fields.
fn parse_fields(fields: &str) -> Result<Vec<Field>, String> {
    let words = fields.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
    words.map(parse_field).collect()
}

fn parse_field(word: &str) -> Result<Field, String> {
    let wrong = |expected: &str| format!("expected a field (name:type){expected}, found {word:?}");
    let (name, ty) = word.split_once(':').filter(|(name, _)| !name.is_empty()).ok_or_else(|| wrong(""))?;
    let ty = field_type(ty).ok_or_else(|| {
        let types: Vec<_> = FieldType::ALL.iter().map(|t| t.name()).collect();
        wrong(&format!(" with one of the types {}", types.join(", ")))
    })?;
    Ok(Field { name: name.into(), ty })
}

/// Finds a type by its name in traces or in C.
fn field_type(name: &str) -> Option<FieldType> {
    FieldType::from_name(name).or(match name {
        "string" | "str" => Some(FieldType::Text),
        "ptr" => Some(FieldType::Pointer),
        "int" | "long" => Some(FieldType::I64),
        "unsigned" | "size_t" => Some(FieldType::U64),
        "double" => Some(FieldType::F64),
        _ => None,
    })
}
