//! Spans and traced functions: the records of their guards, with names and order.

use std::{collections::HashMap, path::Path};

use fut::{
    Recording, Runtime, keys,
    model::{Event, EventStream, FieldType, Params},
    shm::Geometry,
    trace::UserTrace,
    yield_now,
};

struct Matrix(u64);

/// Has the name of a span.
fn divide(by: u64) -> u64 {
    by
}

impl Matrix {
    #[fut::trace]
    fn factor<T>(&mut self, by: T) -> Result<u64, String>
    where
        T: Copy + Into<u64>,
    {
        let _span = fut::span!(divide, by: u64 = divide(by.into()), what: &str = "a matrix");
        if by.into() == 0 {
            return Err("by nothing".into());
        }
        self.0 /= by.into();
        Ok(self.0)
    }
}

#[fut::trace]
pub(crate) unsafe extern "C" fn panics_when(on: bool) {
    assert!(!on, "on purpose");
}

macro_rules! function {
    ($name:ident $body:block) => {
        #[fut::trace]
        fn $name() $body
    };
}

function!(outer {
    // SAFETY: it does nothing.
    unsafe { panics_when(false) };
});

#[fut::trace]
fn unwinds() {
    let _span = fut::span!("hopeless");
    std::panic::panic_any(7);
}

fn migrates() {
    let _span = fut::span!("on any LWP");
    (0..20).for_each(|_| yield_now());
}

/// Events of spans and functions as `NAME place parameters`, by LWP in their order.
fn told(trace: &Path) -> Vec<String> {
    let trace = UserTrace::open(trace).unwrap();
    assert!(trace.losses().is_empty());
    let names: HashMap<u64, String> =
        trace.places().iter().map(|p| (p.address, format!("{}:{}", p.name, p.line))).collect();
    let types = trace.event_types();
    let mut events = Vec::new();
    let mut event = Event::default();
    for mut stream in trace.streams() {
        while stream.next_into(&mut event).unwrap() {
            let ty = &types[event.kind as usize];
            if ty.name == "divide" {
                events.push((event.tick, format!("divide{}", rest(&event.params, 0))));
            } else if ty.name.starts_with("SPAN_") || ty.name.starts_with("PROF_") {
                assert_eq!(ty.fields[0].ty, FieldType::Pointer);
                let place = event.params.get(0).unwrap().number.unwrap() as u64;
                events.push((event.tick, format!("{} {}{}", ty.name, names[&place], rest(&event.params, 1))));
            }
        }
    }
    events.sort();
    events.into_iter().map(|(_, line)| line).collect()
}

fn rest(params: &Params, from: usize) -> String {
    params.iter().skip(from).map(|p| format!(" {p}")).collect()
}

/// The line of this file that begins like this, and so many behind it.
fn line(beginning: &str) -> usize {
    let text = include_str!("spans.rs");
    1 + text.lines().position(|line| line.starts_with(beginning)).unwrap()
}

/// One recording in a process's life, so one test.
#[test]
fn guards_record_both_ends_with_name_and_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("user.fut");
    outer();
    let recording = Recording::start(&path, Geometry::default()).unwrap();
    assert_eq!(Matrix(12).factor(3_u32), Ok(4));
    assert!(Matrix(12).factor(0_u8).is_err());
    outer();
    std::panic::catch_unwind(unwinds).unwrap_err();
    keys::set(keys::ALL & !keys::SPANS & !keys::FUNCTIONS).unwrap();
    assert_eq!(Matrix(12).factor(3_u32), Ok(4));
    keys::set(keys::ALL).unwrap();
    Runtime::builder().lwps(2).build().unwrap().run(|| {
        let threads: Vec<_> = (0..4).map(|_| fut::spawn(migrates)).collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
    });
    recording.finish().unwrap();

    let factor = format!("spans::factor:{}", line("    fn factor"));
    let divide = format!("divide:{}", line("        let _span = fut::span!(divide,"));
    let (outer, inner) = (line("function!(outer"), line("pub(crate) unsafe extern"));
    let (unwinds, hopeless) = (line("fn unwinds"), line("    let _span = fut::span!(\"hopeless\")"));
    let call = |by: u64| {
        [
            format!("PROF_IN {factor}"),
            format!("SPAN_BEGIN {divide}"),
            format!("divide {by} a matrix"),
            format!("SPAN_END {divide}"),
            format!("PROF_OUT {factor}"),
        ]
    };
    let others = [
        format!("PROF_IN spans::outer:{outer}"),
        format!("PROF_IN spans::panics_when:{inner}"),
        format!("PROF_OUT spans::panics_when:{inner}"),
        format!("PROF_OUT spans::outer:{outer}"),
        format!("PROF_IN spans::unwinds:{unwinds}"),
        format!("SPAN_BEGIN hopeless:{hopeless}"),
        format!("SPAN_END hopeless:{hopeless}"),
        format!("PROF_OUT spans::unwinds:{unwinds}"),
    ];
    let expected: Vec<String> = call(3).into_iter().chain(call(0)).chain(others).collect();
    let told = told(&path);
    assert_eq!(told[..expected.len()], expected);
    let migrating = &told[expected.len()..];
    let begun = migrating.iter().filter(|line| line.starts_with("SPAN_BEGIN on any LWP")).count();
    let ended = migrating.iter().filter(|line| line.starts_with("SPAN_END on any LWP")).count();
    assert_eq!((begun, ended, migrating.len()), (4, 4, 8));
}
