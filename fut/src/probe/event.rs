//! Declaring events: one readable line each, which becomes a function that records it.

use std::sync::atomic::{AtomicU32, Ordering};

use sigmund_model::{EventType, Field, FieldType, Level};

use crate::trace::{DECLARED_BIT, Declaration};

/// Every event that the program declares, gathered by the linker.
#[doc(hidden)]
#[linkme::distributed_slice]
pub static DECLARED: [EventDecl];

/// The declaration of one event, made by [`events!`](crate::events).
#[derive(Debug)]
pub struct EventDecl {
    name: &'static str,
    fields: &'static [(&'static str, FieldType)],
    key: u64,
    format: &'static str,
    file: &'static str,
    line: u32,
    /// `DECLARED_BIT`, and its place among the declarations, from 1: given when the session starts; 0 until then.
    code: AtomicU32,
}

impl EventDecl {
    #[doc(hidden)]
    pub const fn new(
        name: &'static str,
        fields: &'static [(&'static str, FieldType)],
        key: u64,
        format: &'static str,
        file: &'static str,
        line: u32,
    ) -> EventDecl {
        EventDecl { name, fields, key, format, file, line, code: AtomicU32::new(0) }
    }

    /// An event whose code a program in another language chose; [`declare`](crate::declare) tells of its fields.
    #[doc(hidden)]
    #[inline(always)]
    pub const fn with_code(code: u32) -> EventDecl {
        let code = AtomicU32::new(code);
        EventDecl { name: "", fields: &[], key: 0, format: "", file: "", line: 0, code }
    }

    /// The code its records carry.
    #[inline(always)]
    pub fn code(&self) -> u32 {
        self.code.load(Ordering::Relaxed)
    }

    fn declaration(&self) -> Declaration {
        let fields = self.fields.iter().map(|(name, ty)| Field { name: (*name).into(), ty: *ty }).collect();
        let event = EventType {
            level: Level::User,
            code: Some(self.code()),
            name: self.name.into(),
            key: self.key,
            fields,
            format: self.format.into(),
        };
        Declaration { event, file: self.file.into(), line: self.line }
    }
}

/// Numbers the declared events, and gives their declarations.
pub(crate) fn declared() -> Vec<Declaration> {
    for (index, event) in DECLARED.iter().enumerate() {
        event.code.store(DECLARED_BIT | (index as u32 + 1), Ordering::Relaxed);
    }
    DECLARED.iter().map(EventDecl::declaration).collect()
}

/// Declares events. Each line becomes a function of its name that records the event when its key is on.
///
/// Fields are integers of any width, `f64`, `bool`, `*const T`, `&str` or [`Thread`](sigmund_model::Thread). A key
/// may follow after `in` ([`keys::PROGRAM`](crate::keys::PROGRAM) if not), and a format for people after `=>`.
/// The declaration travels in the trace, and gives names to listings and SQL columns.
///
/// ```
/// fut::events! {
///     /// A message arrived.
///     pub fn received_msg(len: u64, from: &str) => "{len} bytes from {from}";
///     /// A round of the event loop begins.
///     fn round(number: u64) in fut::keys::SYNC;
/// }
///
/// round(1);
/// received_msg(512, "10.0.0.1");
/// ```
#[macro_export]
macro_rules! events {
    ($(
        $(#[$meta:meta])*
        $vis:vis fn $name:ident( $($field:ident : $ty:ty),* $(,)? ) $(in $key:expr)? $(=> $format:literal)? ;
    )*) => { $(
        $(#[$meta])*
        #[inline(always)]
        #[allow(non_snake_case, clippy::too_many_arguments, dead_code)]
        $vis fn $name( $($field : $ty),* ) {
            const KEY: u64 = $crate::__first!($($key,)? $crate::keys::PROGRAM);
            #[$crate::__linkme::distributed_slice($crate::__DECLARED)]
            #[linkme(crate = $crate::__linkme)]
            static EVENT: $crate::EventDecl = $crate::EventDecl::new(
                stringify!($name),
                &[$((stringify!($field), <$ty as $crate::Param>::TYPE)),*],
                KEY,
                $crate::__first!($($format,)? ""),
                file!(),
                line!(),
            );
            if $crate::keys::enabled(KEY) {
                $crate::record(&EVENT, ($($field,)*));
            }
        }
    )* };
}

/// The first of its arguments.
#[doc(hidden)]
#[macro_export]
macro_rules! __first {
    ($first:expr $(, $rest:expr)* $(,)?) => {
        $first
    };
}
