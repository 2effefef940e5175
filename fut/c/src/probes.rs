//! The probes. `fut.h` tests the key mask; these functions record.

use std::ffi::c_char;

use fut::{
    EventDecl, Fields, record,
    trace::{MAX_C_CODE, code_with_text},
};

use crate::text::Text;

#[inline(always)]
pub(crate) fn fire(code: u32, params: impl Fields) {
    record(&EventDecl::with_code(code & MAX_C_CODE), params);
}

#[inline(always)]
fn fire_text(code: u32, numbers: u32, params: impl Fields) {
    record(&EventDecl::with_code(code_with_text(code & MAX_C_CODE, numbers)), params);
}

/// Records the event `code` without parameters.
#[unsafe(no_mangle)]
pub extern "C" fn fut_probe0(code: u32) {
    fire(code, ());
}

/// Records the event `code` with 1 parameter.
#[unsafe(no_mangle)]
pub extern "C" fn fut_probe1(code: u32, a: u64) {
    fire(code, (a,));
}

/// Records the event `code` with 2 parameters.
#[unsafe(no_mangle)]
pub extern "C" fn fut_probe2(code: u32, a: u64, b: u64) {
    fire(code, (a, b));
}

/// Records the event `code` with 3 parameters.
#[unsafe(no_mangle)]
pub extern "C" fn fut_probe3(code: u32, a: u64, b: u64, c: u64) {
    fire(code, (a, b, c));
}

/// Records the event `code` with 4 parameters.
#[unsafe(no_mangle)]
pub extern "C" fn fut_probe4(code: u32, a: u64, b: u64, c: u64, d: u64) {
    fire(code, (a, b, c, d));
}

/// Records the event `code` with 5 parameters.
#[unsafe(no_mangle)]
pub extern "C" fn fut_probe5(code: u32, a: u64, b: u64, c: u64, d: u64, e: u64) {
    fire(code, (a, b, c, d, e));
}

/// Records the event `code` with 6 parameters.
#[unsafe(no_mangle)]
pub extern "C" fn fut_probe6(code: u32, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) {
    fire(code, (a, b, c, d, e, f));
}

/// Records the event `code` with 7 parameters.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub extern "C" fn fut_probe7(code: u32, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64) {
    fire(code, (a, b, c, d, e, f, g));
}

/// Records the event `code` with 8 parameters.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub extern "C" fn fut_probe8(code: u32, a: u64, b: u64, c: u64, d: u64, e: u64, f: u64, g: u64, h: u64) {
    fire(code, (a, b, c, d, e, f, g, h));
}

/// Records the event `code` with 0 numbers and a text.
///
/// # Safety
/// `text` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fut_probe0str(code: u32, text: *const c_char) {
    // SAFETY: null or a C string, as the caller guarantees, which does not change during this call.
    fire_text(code, 0, (unsafe { Text::of(text) },));
}

/// Records the event `code` with 1 numbers and a text.
///
/// # Safety
/// `text` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fut_probe1str(code: u32, a: u64, text: *const c_char) {
    // SAFETY: null or a C string, as the caller guarantees, which does not change during this call.
    fire_text(code, 1, (a, unsafe { Text::of(text) }));
}

/// Records the event `code` with 2 numbers and a text.
///
/// # Safety
/// `text` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fut_probe2str(code: u32, a: u64, b: u64, text: *const c_char) {
    // SAFETY: null or a C string, as the caller guarantees, which does not change during this call.
    fire_text(code, 2, (a, b, unsafe { Text::of(text) }));
}

/// Records the event `code` with 3 numbers and a text.
///
/// # Safety
/// `text` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fut_probe3str(code: u32, a: u64, b: u64, c: u64, text: *const c_char) {
    // SAFETY: null or a C string, as the caller guarantees, which does not change during this call.
    fire_text(code, 3, (a, b, c, unsafe { Text::of(text) }));
}

/// Records the event `code` with 4 numbers and a text.
///
/// # Safety
/// `text` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fut_probe4str(code: u32, a: u64, b: u64, c: u64, d: u64, text: *const c_char) {
    // SAFETY: null or a C string, as the caller guarantees, which does not change during this call.
    fire_text(code, 4, (a, b, c, d, unsafe { Text::of(text) }));
}

/// Records the event `code` with 5 numbers and a text.
///
/// # Safety
/// `text` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fut_probe5str(
    code: u32,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
    text: *const c_char,
) {
    // SAFETY: null or a C string, as the caller guarantees, which does not change during this call.
    fire_text(code, 5, (a, b, c, d, e, unsafe { Text::of(text) }));
}

/// Records the event `code` with 6 numbers and a text.
///
/// # Safety
/// `text` is null or a C string.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn fut_probe6str(
    code: u32,
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    e: u64,
    f: u64,
    text: *const c_char,
) {
    // SAFETY: null or a C string, as the caller guarantees, which does not change during this call.
    fire_text(code, 6, (a, b, c, d, e, f, unsafe { Text::of(text) }));
}
