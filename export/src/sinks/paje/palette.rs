//! The colours of values.
//!
//! States have the colours that scheduler viewers commonly use: green for executing, orange for ready or runnable, red
//! for stalled, grey for waiting.

use sigmund_model::{LwpState, ThreadState, WaitKind};

use crate::timeline::SliceKind;

/// Red, green, blue, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Color(u16, u16, u16);

impl Color {
    /// Appends Pajé's form: `0.000 0.700 0.000`.
    pub(super) fn append_to(self, out: &mut Vec<u8>) {
        let digit = |part: u16, unit: u16| b'0' + (part / unit % 10) as u8;
        for (before, part) in [("", self.0), (" ", self.1), (" ", self.2)] {
            out.extend_from_slice(before.as_bytes());
            out.extend_from_slice(&[
                digit(part, 1000),
                b'.',
                digit(part, 100),
                digit(part, 10),
                digit(part, 1),
            ]);
        }
    }
}

const GREEN: Color = Color(0, 700, 0);
const PALE_GREEN: Color = Color(600, 850, 500);
const RED: Color = Color(900, 0, 0);
const PALE_RED: Color = Color(900, 550, 500);
const ORANGE: Color = Color(1000, 600, 0);
const GREY: Color = Color(600, 600, 600);
const DARK_GREY: Color = Color(350, 350, 350);
const PALE_GREY: Color = Color(800, 800, 800);
const VIOLET: Color = Color(500, 300, 750);
const BROWN: Color = Color(550, 350, 150);
const BLUE: Color = Color(200, 400, 900);
const PALE_BLUE: Color = Color(600, 800, 1000);
const WHITE: Color = Color(1000, 1000, 1000);
const BLACK: Color = Color(0, 0, 0);

pub(super) const WAKEUP: Color = WHITE;
pub(super) const KERNEL_EVENT: Color = PALE_BLUE;
pub(super) const USER_EVENT: Color = ORANGE;
pub(super) const READY_QUEUE: Color = ORANGE;
pub(super) const RUN_QUEUE: Color = BLUE;
/// The colour of values that are never drawn.
pub(super) const NOT_DRAWN: Color = BLACK;
/// The colour of slices whose names are not declared because there are too many.
pub(super) const OTHER_NAMES: Color = PALE_GREY;

pub(super) fn of_thread_state(state: ThreadState) -> Color {
    match state {
        ThreadState::New => PALE_BLUE,
        ThreadState::Ready => ORANGE,
        ThreadState::Active => GREEN,
        ThreadState::Stalled => RED,
        ThreadState::InKernel => VIOLET,
        ThreadState::Stopped => BROWN,
        ThreadState::OffCpu => PALE_RED,
        ThreadState::Mounted => PALE_GREEN,
        ThreadState::Blocked => GREY,
        ThreadState::Unmounted => PALE_GREY,
        ThreadState::Exited => BLACK,
        ThreadState::Unknown => WHITE,
    }
}

/// Bluish greys, from dark to pale.
pub(super) fn of_blocked(blocked_for: WaitKind) -> Color {
    let grey = 250 + 35 * u16::from(blocked_for.number());
    Color(grey, grey, grey + 150)
}

pub(super) fn of_lwp_state(state: LwpState) -> Color {
    match state {
        LwpState::Running => GREEN,
        LwpState::Runnable => ORANGE,
        LwpState::Sleeping | LwpState::Idle => GREY,
        LwpState::DiskSleep => DARK_GREY,
        LwpState::Stopped => BROWN,
        LwpState::Exited => BLACK,
        LwpState::OffCpu => PALE_RED,
        LwpState::Unknown => WHITE,
    }
}

/// Interrupts are red to violet, system calls blue; the others have any colour of medium brightness. A name has the
/// same colour in all traces.
pub(super) fn of_slice(kind: SliceKind, name: &str) -> Color {
    let hash = fnv(name);
    match kind {
        SliceKind::Irq => hue(1450 + hash % 100),
        SliceKind::Softirq => hue(1250 + hash % 100),
        SliceKind::Syscall => hue(950 + hash % 150),
        SliceKind::Span | SliceKind::Function => hue(hash % HUES),
    }
}

/// The colour of an LWP or user thread as the occupant of a CPU or an LWP. Consecutive numbers have very different
/// colours.
pub(super) fn of_actor(number: u32) -> Color {
    // Starts at blue, in steps of the golden ratio, so that the first few colours are dissimilar.
    hue(1200 + u64::from(number) * 1112)
}

const HUES: u64 = 1800;

/// A colour of the colour circle, of medium brightness: 0 red, 300 yellow, 600 green, 900 cyan, 1200 blue, 1500
/// magenta.
fn hue(at: u64) -> Color {
    let (low, high) = (250, 900);
    let along = low + ((at % 300) * (high - low) / 300) as u16 as u64;
    let (low, high, up, down) = (low as u16, high as u16, along as u16, (low + high - along) as u16);
    match at % HUES / 300 {
        0 => Color(high, up, low),
        1 => Color(down, high, low),
        2 => Color(low, high, up),
        3 => Color(low, down, high),
        4 => Color(up, low, high),
        _ => Color(high, low, down),
    }
}

/// FNV-1a (draft-eastlake-fnv), over at most the first 256 bytes.
fn fnv(name: &str) -> u64 {
    name.bytes().take(256).fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(color: Color) -> String {
        let mut out = Vec::new();
        color.append_to(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn colours_print_as_paje_has_them() {
        assert_eq!(written(of_thread_state(ThreadState::Active)), "0.000 0.700 0.000");
        assert_eq!(written(Color(1000, 45, 6)), "1.000 0.045 0.006");
        assert_eq!(
            [0, 300, 600, 1200].map(hue).map(written),
            ["0.900 0.250 0.250", "0.900 0.900 0.250", "0.250 0.900 0.250", "0.250 0.250 0.900",]
        );
    }

    #[test]
    fn no_two_states_of_a_thread_have_one_colour() {
        let states = ThreadState::ALL.iter().map(|state| (state.name(), of_thread_state(*state)));
        let blocked = WaitKind::ALL.iter().map(|kind| (kind.name(), of_blocked(*kind)));
        let all: Vec<_> = states.chain(blocked).collect();
        for (index, (state, color)) in all.iter().enumerate() {
            for (other, its) in &all[..index] {
                assert_ne!(color, its, "{state} and {other}");
            }
            assert!(color.2 <= 1000);
        }
    }
}
