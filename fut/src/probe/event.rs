//! Declarations of events. Each declaration is one line, which becomes a function that records the event.

use std::{
    fmt,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

use sigmund_model::{EventType, Field, FieldType, Level};

use crate::trace::{DECLARED_BIT, Declaration};

/// Every event that the program declares, collected by the linker.
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
    /// `DECLARED_BIT` and the position of the event's name in the sorted names, from 1; 0 until the session starts.
    code: AtomicU32,
    /// Whether the event was switched off by name. This applies regardless of the key mask.
    switched_off: AtomicBool,
    sample: fn(),
}

impl EventDecl {
    #[doc(hidden)]
    pub const fn new(
        name: &'static str,
        fields: &'static [(&'static str, FieldType)],
        key: u64,
        format: &'static str,
        (file, line): (&'static str, u32),
        sample: fn(),
    ) -> EventDecl {
        let (code, switched_off) = (AtomicU32::new(0), AtomicBool::new(false));
        EventDecl { name, fields, key, format, file, line, code, switched_off, sample }
    }

    /// An event whose code was chosen by a program in another language. [`declare`](crate::declare) declares the fields
    /// of such an event.
    #[doc(hidden)]
    #[inline(always)]
    pub const fn with_code(code: u32) -> EventDecl {
        let (code, switched_off) = (AtomicU32::new(code), AtomicBool::new(false));
        EventDecl {
            name: "",
            fields: &[],
            key: 0,
            format: "",
            file: "",
            line: 0,
            code,
            switched_off,
            sample: || (),
        }
    }

    /// The code of the event in its records.
    #[inline(always)]
    pub fn code(&self) -> u32 {
        self.code.load(Ordering::Relaxed)
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn fields(&self) -> &'static [(&'static str, FieldType)] {
        self.fields
    }

    pub(super) fn key(&self) -> u64 {
        self.key
    }

    /// File and line of the declaration.
    pub(super) fn place(&self) -> (&'static str, u32) {
        (self.file, self.line)
    }

    pub(super) fn is_switched_off(&self) -> bool {
        self.switched_off.load(Ordering::Relaxed)
    }

    pub(super) fn switch_off(&self, off: bool) {
        self.switched_off.store(off, Ordering::Relaxed);
    }

    pub(super) fn record_sample(&self) {
        (self.sample)();
    }

    /// The parts that must be equal in all declarations of the same name.
    fn meaning(&self) -> (&[(&str, FieldType)], u64, &str) {
        (self.fields, self.key, self.format)
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

/// `round(number: u64) in 0x100 => "{number}", declared at src/main.rs:7`
impl fmt::Display for EventDecl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields: Vec<String> =
            self.fields.iter().map(|(name, ty)| format!("{name}: {}", ty.name())).collect();
        write!(f, "{}({}) in {:#x}", self.name, fields.join(", "), self.key)?;
        if !self.format.is_empty() {
            write!(f, " => {:?}", self.format)?;
        }
        write!(f, ", declared at {}:{}", self.file, self.line)
    }
}

/// Two different declarations of the same name. A reader of the trace could not know the fields of such an event.
#[derive(Debug)]
pub struct DeclaredTwice {
    first: &'static EventDecl,
    second: &'static EventDecl,
}

impl fmt::Display for DeclaredTwice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one event has two different declarations: {}; and {}", self.first, self.second)
    }
}

impl std::error::Error for DeclaredTwice {}

/// All declarations, ordered by name. Declarations of the same name are ordered by file and line.
pub(super) fn in_order_of_names() -> Vec<&'static EventDecl> {
    let mut events: Vec<_> = DECLARED.iter().collect();
    events.sort_by_key(|event| (event.name, event.place()));
    events
}

/// Assigns codes to the declared events, and returns their declarations. Several declarations of the same name (in two
/// crates, for example) share a code, and must be identical.
pub(crate) fn declared() -> Result<Vec<Declaration>, DeclaredTwice> {
    let events = in_order_of_names();
    let mut declarations = Vec::new();
    for same_name in events.chunk_by(|a, b| a.name == b.name) {
        let first = same_name[0];
        if let Some(second) = same_name.iter().find(|event| event.meaning() != first.meaning()) {
            return Err(DeclaredTwice { first, second });
        }
        let code = DECLARED_BIT | (declarations.len() as u32 + 1);
        same_name.iter().for_each(|event| event.code.store(code, Ordering::Relaxed));
        declarations.push(first.declaration());
    }
    Ok(declarations)
}

/// Declares events. Each line becomes a function with the event's name, which records the event when it is on.
///
/// Fields are integers of up to 64 bits, `f64`, `bool`, `*const T`, `*mut T`, `&str` or
/// [`Thread`](sigmund_model::Thread). A key may follow after `in` (default: [`keys::PROGRAM`](crate::keys::PROGRAM)),
/// and a display format after `=>`. The declaration is stored in the trace; listings and SQL columns take their names
/// from it. An event may be declared in several places if all declarations are equal; otherwise the recording does not
/// start, and the error names both places.
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
            $crate::__event!(__Event, stringify!($name), ( $($field : $ty),* ) $(in $key)? $(=> $format)?, || {
                $name($(<$ty as $crate::Param>::SAMPLE),*)
            });
            // Out of line, so that a disabled probe costs its caller only five bytes and no register.
            #[cold]
            #[inline(never)]
            fn __record( $($field : $ty),* ) {
                $crate::record(<__Event as $crate::__Declared>::event(), ($($field,)*));
            }
            if $crate::__is_on::<__Event>() {
                __record($($field),*);
            }
        }
    )* };
}

/// Defines a type for an event and its declaration, without a function that records it.
#[doc(hidden)]
#[macro_export]
macro_rules! __event {
    ($type:ident, $name:expr, ( $($field:ident : $ty:ty),* ) $(in $key:expr)? $(=> $format:literal)?, $sample:expr) => {
        struct $type;

        impl $crate::__Declared for $type {
            const KEY: u64 = $crate::__first!($($key,)? $crate::keys::PROGRAM);

            // Inlined, so that every crate with a site has its own copy: the site's entry holds a 32-bit offset to it.
            #[inline]
            fn event() -> &'static $crate::EventDecl {
                #[$crate::__linkme::distributed_slice($crate::__DECLARED)]
                #[linkme(crate = $crate::__linkme)]
                static EVENT: $crate::EventDecl = $crate::EventDecl::new(
                    $name,
                    &[$((stringify!($field), <$ty as $crate::Param>::TYPE)),*],
                    <$type as $crate::__Declared>::KEY,
                    $crate::__first!($($format,)? ""),
                    (file!(), line!()),
                    $sample,
                );
                &EVENT
            }
        }
    };
}

/// The first of its arguments.
#[doc(hidden)]
#[macro_export]
macro_rules! __first {
    ($first:expr $(, $rest:expr)* $(,)?) => {
        $first
    };
}
