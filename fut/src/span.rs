//! Spans and traced functions: guards that record a begin and an end.
//!
//! Each span in the source has a [`SpanSite`]: a static with its name, file and line. The linker collects these, and
//! the session writes them to the trace once. A record holds only the address of the site, one word; readers look up
//! the name. A guard may be dropped on another LWP than the one that created it, because user threads migrate.
//!
//! The two records together cost as much as two probes: a span takes 54.6 ticks, a traced function 55.1, a bare `rdtsc`
//! 26.4 (AMD EPYC, TSC 2.6 GHz, `taskset -c 1 cargo bench -p sigmund-fut --bench span`).

use std::marker::PhantomData;

use sigmund_model::Pid;

use crate::{keys, trace::NamedPlace};

/// Every span site of the program, collected by the linker.
#[doc(hidden)]
#[linkme::distributed_slice]
pub static SPAN_SITES: [SpanSite];

crate::events! {
    /// A span begins.
    fn SPAN_BEGIN(span: *const SpanSite) in keys::SPANS => "{span} begins";
    /// A span ends.
    fn SPAN_END(span: *const SpanSite) in keys::SPANS => "{span} ends";
    /// A traced function is entered.
    fn PROF_IN(function: *const SpanSite) in keys::FUNCTIONS => "into {function}";
    /// A traced function is left, by `return` or by unwinding.
    fn PROF_OUT(function: *const SpanSite) in keys::FUNCTIONS => "out of {function}";
}

/// The name and source location of a span or traced function, made by [`span!`](crate::span) and [`trace`](macro@crate::trace).
#[derive(Debug)]
pub struct SpanSite {
    name: &'static str,
    file: &'static str,
    line: u32,
}

impl SpanSite {
    #[doc(hidden)]
    pub const fn new(name: &'static str, file: &'static str, line: u32) -> SpanSite {
        SpanSite { name, file, line }
    }
}

/// All span sites, for the trace.
pub(crate) fn places(pid: Pid) -> Vec<NamedPlace> {
    let named = |site: &SpanSite| NamedPlace {
        pid,
        address: std::ptr::from_ref(site).addr() as u64,
        name: site.name.into(),
        file: site.file.into(),
        line: site.line,
    };
    SPAN_SITES.iter().map(named).collect()
}

/// An open span: dropping it records its end, also during unwinding. Created by [`span!`](crate::span).
#[derive(Debug)]
#[must_use = "a span ends where its guard is dropped: give it a name, `let _span = …`"]
pub struct Span {
    site: &'static SpanSite,
    /// A span belongs to the thread that opened it.
    _of_its_thread: PhantomData<*const ()>,
}

impl Span {
    /// Opens a span.
    #[doc(hidden)]
    #[inline(always)]
    pub fn begin(site: &'static SpanSite) -> Span {
        SPAN_BEGIN(site);
        Span { site, _of_its_thread: PhantomData }
    }
}

impl Drop for Span {
    #[inline(always)]
    fn drop(&mut self) {
        SPAN_END(self.site);
    }
}

/// The guard of an entered traced function. Created by [`trace`](macro@crate::trace).
#[doc(hidden)]
#[derive(Debug)]
pub struct InFunction {
    site: &'static SpanSite,
}

impl InFunction {
    #[doc(hidden)]
    #[inline(always)]
    pub fn enter(site: &'static SpanSite) -> InFunction {
        PROF_IN(site);
        InFunction { site }
    }
}

impl Drop for InFunction {
    #[inline(always)]
    fn drop(&mut self) {
        PROF_OUT(self.site);
    }
}

/// Opens a span; it ends where the guard is dropped.
///
/// The spans of a thread are nested in each other: one that ends also ends those that began after it and are still open, and these have
/// the end reason `enclosing` in the table `spans`. So drop the guard of a phase before the span of the next phase begins.
///
/// Records `SPAN_BEGIN(span)` and `SPAN_END(span)` under [`keys::SPANS`](crate::keys::SPANS). A name may be any text.
///
/// The name of a span with fields must be an identifier. Such a span also records, after its begin, an event of that
/// name, which is declared as by [`events!`](crate::events). So spans with the same name must have the same fields, and
/// no other event may have that name.
///
/// A span that is switched off costs its disabled probes. If it is switched while it is open, only one of its two ends
/// is recorded.
///
/// ```
/// fn answer(id: u64, path: &str) {
///     let _span = fut::span!(answering, id: u64 = id, path: &str = path);
///     // …
/// }
/// let _whole = fut::span!("the whole program");
/// answer(7, "/index.html");
/// ```
#[macro_export]
macro_rules! span {
    ($name:literal $(,)?) => {{
        $crate::__span_site!(__FUT_SPAN_SITE, $name, line!());
        $crate::Span::begin(&__FUT_SPAN_SITE)
    }};
    ($name:ident $(, $field:ident : $ty:ty = $value:expr)+ $(,)?) => {
        // The value expressions must not see the names declared inside.
        match ($($value,)+) {
            ($($field,)+) => {
                $crate::__span_site!(__FUT_SPAN_SITE, stringify!($name), line!());
                $crate::events! {
                    fn $name($($field : $ty),+) in $crate::keys::SPANS;
                }
                let span = $crate::Span::begin(&__FUT_SPAN_SITE);
                $name($($field),+);
                span
            }
        }
    };
}

/// Defines a static [`SpanSite`], which the linker collects with the others.
#[doc(hidden)]
#[macro_export]
macro_rules! __span_site {
    ($site:ident, $name:expr, $line:expr) => {
        #[$crate::__linkme::distributed_slice($crate::__SPAN_SITES)]
        #[linkme(crate = $crate::__linkme)]
        static $site: $crate::SpanSite = $crate::SpanSite::new($name, file!(), $line);
    };
}

/// The code that [`trace`](macro@crate::trace) inserts at the beginning of a function.
#[doc(hidden)]
#[macro_export]
macro_rules! __traced {
    ($name:literal, $line:literal) => {
        $crate::__span_site!(__FUT_SPAN_SITE, concat!(module_path!(), "::", $name), $line);
        let __fut_in_function = $crate::__InFunction::enter(&__FUT_SPAN_SITE);
    };
}
