//! Pajé files read with ViTE, from its command line and without a display.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use sigmund_export::timeline::{Actors, Sink};

use crate::{
    known_timelines::{self, HOSTILE_NAMES},
    paje::{self, written},
    random_changes::RandomChanges,
};

/// ViTE's picture of a file; `None` if ViTE is not installed.
fn picture(folder: &Path, file: &[u8]) -> Option<String> {
    let vite = || {
        let mut vite = Command::new("vite");
        vite.env("QT_QPA_PLATFORM", "offscreen").env("XDG_RUNTIME_DIR", folder).env("HOME", folder);
        vite.current_dir(folder).stdin(Stdio::null());
        vite
    };
    // A tool for web pages has the same name.
    let help = vite().arg("-h").output().map(|said| said.stdout).unwrap_or_default();
    if !String::from_utf8_lossy(&help).contains("export the trace file") {
        crate::skipped::skipped("needs ViTE (Debian: vite)");
        return None;
    }
    std::fs::write(folder.join("timeline.trace"), file).unwrap();
    let said = vite().args(["-f", "timeline.trace", "-e"]).arg(folder.join("timeline.svg")).output().unwrap();
    let emitted = String::from_utf8_lossy(&said.stdout) + String::from_utf8_lossy(&said.stderr);
    assert!(said.status.success(), "{emitted}");
    let log = std::fs::read_to_string(folder.join("log.txt")).unwrap_or_default();
    assert!(emitted.contains("0 errors and 0 warnings were found"), "{emitted}\n{log}");
    Some(std::fs::read_to_string(folder.join("timeline.svg")).unwrap())
}

/// The rectangles of states in ViTE's picture of a timeline: their lines, with position and colour.
fn states(actors: &Actors, emit: impl FnOnce(&mut dyn Sink) -> std::io::Result<()>) -> Option<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let picture = picture(folder.path(), &written(actors, emit))?;
    let rectangles = picture.lines().filter(|line| line.contains("<rect"));
    Some(rectangles.filter(|line| !line.contains("rgb(0,0,153)")).map(String::from).collect())
}

/// The colour of a rectangle, such as `fill="rgb(0,179,0)"`, and its width in ns: the picture has 640 pixels for 4 µs.
fn color_and_ns(rectangle: &str) -> (&str, u64) {
    let value = |key: &str| rectangle.split_once(key).unwrap().1.split('"').next().unwrap();
    let width: f64 = value("width=\"").parse().unwrap();
    (value("fill=\""), (width * 4000.0 / 640.0).round() as u64)
}

/// ViTE has one stack of states per container: two types of states in one container would end each other.
#[test]
fn states_are_drawn_as_long_as_they_last() {
    let Some(states) = states(&known_timelines::actors(11_000), known_timelines::small) else { return };
    let drawn: Vec<(&str, u64)> = states.iter().map(|state| color_and_ns(state)).collect();
    let (green, red, orange, grey) = ("rgb(0,179,0)", "rgb(230,0,0)", "rgb(256,153,0)", "rgb(153,153,153)");
    let for_mutex = "rgb(72,72,111)";
    let total = |color| drawn.iter().filter(|(c, _)| *c == color).map(|(_, ns)| ns).sum::<u64>();
    // Running: LWP 70 for 1000 ns, LWP 71 for 2000; active: thread 1 for 1000, thread 2 for 2000.
    assert_eq!(total(green), 1000 + 2000 + 1000 + 2000, "{drawn:?}");
    // Thread 1 is stalled.
    assert_eq!(total(red), 1000, "{drawn:?}");
    // Runnable: LWP 70 for 3000 ns, LWP 71 for 1520; ready: thread 2 for 1000.
    assert_eq!(total(orange), 3000 + 1520 + 1000, "{drawn:?}");
    // LWP 71 sleeps, thread 1 is blocked by a mutex.
    assert_eq!((total(grey), total(for_mutex)), (480, 2000), "{drawn:?}");
}

#[test]
fn any_timeline_is_read_without_a_warning() {
    for seed in 1..4 {
        let everything = RandomChanges::new(seed, 3000);
        let Some(states) = states(&everything.actors, |sink| everything.emit(sink)) else { return };
        assert!(states.len() > 1000);
    }
}

#[test]
fn an_empty_timeline_is_read_without_a_warning() {
    states(&known_timelines::actors(11_000), |sink| sink.finish());
}

/// ViTE 1.2 stops at a line of more than 4096 bytes.
#[test]
fn long_and_hostile_names_are_read_to_the_end() {
    let mut names = paje::long_names();
    names.extend(HOSTILE_NAMES.map(String::from));
    let (actors, emit) = paje::named(&names);
    let Some(states) = states(&actors, emit) else { return };
    // One more is the background.
    assert_eq!(states.len(), names.len() + 1);
}
