//! The events of libfut itself. They have codes of C, so that they are recorded like a program's own events. Where FxT
//! has the same event, the code is FxT's.

use fut::{
    DeclareError, declare, keys,
    model::{EventType, Field, FieldType, Level},
    trace::Declaration,
};

/// A function built with `-finstrument-functions` is entered (`FUT_GCC_INSTRUMENT_ENTRY_CODE`).
pub(crate) const FUNC_ENTER: u32 = 0x320;
/// A function built with `-finstrument-functions` is left (`FUT_GCC_INSTRUMENT_EXIT_CODE`).
pub(crate) const FUNC_EXIT: u32 = 0x420;
/// `PROF_IN()`: an address in the function.
pub(crate) const PROF_IN: u32 = 0x321;
/// `PROF_OUT()`.
pub(crate) const PROF_OUT: u32 = 0x421;
/// `fut_setup` began to record (`FUT_SETUP_CODE`). Parameters: the keys, and the number of probes dropped before.
pub(crate) const SETUP: u32 = 0xffff;

/// Whether this is the name of one of them, with another code.
pub(crate) fn is_reserved(name: &str, code: u32) -> bool {
    let own = [
        (FUNC_ENTER, "FUNC_ENTER"),
        (FUNC_EXIT, "FUNC_EXIT"),
        (PROF_IN, "PROF_IN"),
        (PROF_OUT, "PROF_OUT"),
        (SETUP, "FUT_SETUP"),
    ];
    own.into_iter().any(|(own_code, own_name)| own_name == name && own_code != code)
}

/// Declares all of them, before recording begins.
pub(crate) fn declare_own_events() -> Result<(), DeclareError> {
    let function = [("function", FieldType::Pointer)];
    let call = [("function", FieldType::Pointer), ("call_site", FieldType::Pointer)];
    let setup = [("keymask", FieldType::U32), ("dropped_before", FieldType::U64)];
    let own = [
        (FUNC_ENTER, "FUNC_ENTER", &call[..], keys::FUNCTIONS, "into {function}, called at {call_site}"),
        (FUNC_EXIT, "FUNC_EXIT", &call, keys::FUNCTIONS, "out of {function}, called at {call_site}"),
        (PROF_IN, "PROF_IN", &function, keys::C_PROGRAM, "into {function}"),
        (PROF_OUT, "PROF_OUT", &function, keys::C_PROGRAM, "out of {function}"),
        (
            SETUP,
            "FUT_SETUP",
            &setup,
            keys::C_PROGRAM,
            "keys {keymask}, {dropped_before} probes came too early",
        ),
    ];
    own.into_iter().try_for_each(|(code, name, fields, key, format)| {
        let fields = fields.iter().map(|(name, ty)| Field { name: (*name).into(), ty: *ty }).collect();
        let (name, format) = (name.into(), format.into());
        let event = EventType { level: Level::User, code: Some(code), name, key, fields, format };
        declare(Declaration { event, file: file!().into(), line: line!() })
    })
}
