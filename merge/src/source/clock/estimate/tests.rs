use std::sync::Arc;

use proptest::prelude::*;
use sigmund_model::{Cpu, Effect, Event, EventStream, Level, Loss, LossKind, Lwp, Ticks};

use super::*;
use crate::source::clock::graph::Path;

/// A stream of given events. Before some of them, something was lost.
struct Drawn(std::vec::IntoIter<(Event, bool)>, Vec<Loss>);

impl EventStream for Drawn {
    fn next_into(&mut self, event: &mut Event) -> std::io::Result<bool> {
        let Some((next, lost)) = self.0.next() else { return Ok(false) };
        *event = next;
        if lost {
            self.1.push(Loss::new(LossKind::Dropped, Level::Kern, "drawn"));
        }
        Ok(true)
    }

    fn take_losses(&mut self) -> Vec<Loss> {
        std::mem::take(&mut self.1)
    }
}

fn witness(level: Level, events: Vec<(Event, bool)>) -> Witness {
    let events = Box::new(Drawn(events.into_iter(), Vec::new()));
    Witness { events, levels: Arc::new([level]), path: Path::default() }
}

/// One machine, recorded by the kernel in nanoseconds and by the program in ticks.
#[derive(Default)]
struct Recording {
    /// The events of each CPU.
    kernel: Vec<Vec<(Event, bool)>>,
    user: Vec<(Event, bool)>,
}

/// The relation of the kernel's clock to the program's: `ns = ticks / 2.5 × (1 + drift) + ahead`.
#[derive(Clone, Copy, Debug)]
struct Clocks {
    ahead: u64,
    drift: f64,
}

const RATE: f64 = 2.5;
const HERTZ: f64 = 2.5e9;

impl Clocks {
    fn ns(self, tick: u64) -> u64 {
        (tick as f64 / RATE * (1.0 + self.drift)) as u64 + self.ahead
    }
}

impl Recording {
    /// LWPs on CPUs for pseudo-random times; each records user events while it is on a CPU.
    fn simulated(seed: u64, clocks: Clocks, births: bool, loss: bool) -> Recording {
        let mut state = seed;
        let mut below = |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % end
        };
        let mut recording = Recording { kernel: vec![Vec::new(), Vec::new()], user: Vec::new() };
        let mut on = [0_u32; 2];
        let mut tick = 1_000_000_000;
        let event = |tick, cpu, lwp, effect| Event {
            tick: Ticks(tick),
            cpu: Some(Cpu(cpu)),
            lwp: Some(Lwp(lwp)),
            effect,
            ..Event::default()
        };
        if births {
            for lwp in 70..74 {
                let born = event(clocks.ns(tick), 0, 1, Effect::LwpNew(Lwp(lwp)));
                recording.kernel[0].push((born, false));
            }
        }
        for _ in 0..3000 {
            tick += 100 + below(100_000);
            let cpu = below(2) as usize;
            let lwp = on[cpu];
            if lwp != 0 && below(3) > 0 {
                recording.user.push((event(tick, cpu as u32, lwp, Effect::None), false));
                continue;
            }
            let next = if lwp == 0 { 70 + below(4) as u32 } else { 0 };
            if on.contains(&next) && next != 0 {
                continue;
            }
            let switch = Effect::KernelSwitch { prev: Some(Lwp(lwp)), prev_state: None, next: Lwp(next) };
            on[cpu] = next;
            // A lost page: its switches are not seen, and the next event reports the loss.
            let lost = loss && below(40) == 0;
            recording.kernel[cpu].push((event(clocks.ns(tick), cpu as u32, lwp, switch), lost));
        }
        recording.mark_gaps();
        recording
    }

    /// Turns the places of lost switches into marks on the following events.
    fn mark_gaps(&mut self) {
        for of_cpu in &mut self.kernel {
            let mut lost = false;
            let kept = of_cpu.drain(..).filter_map(|(event, gone)| {
                let before = std::mem::replace(&mut lost, gone);
                (!gone).then_some((event, before))
            });
            *of_cpu = kept.collect();
        }
    }

    fn estimate(self) -> Result<Estimate, NoEstimate> {
        let kernel = self.kernel.into_iter().map(|events| witness(Level::Kern, events)).collect();
        estimate(vec![witness(Level::User, self.user)], kernel, RATE, HERTZ).unwrap()
    }
}

/// How far the estimate is from the truth, in ticks, and its bound.
fn distance(found: &Estimate, clocks: Clocks) -> (u64, u64) {
    let tick = ((found.at - clocks.ahead) as f64 / (1.0 + clocks.drift) * RATE) as u64;
    (tick.abs_diff(found.on), found.within)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_bound_holds_the_truth(
        seed in any::<u64>(),
        ahead in 0..1_u64 << 50,
        ppm in -9.0..9.0,
        births in any::<bool>(),
        loss in any::<bool>(),
    ) {
        let clocks = Clocks { ahead, drift: ppm * 1e-6 };
        let found = Recording::simulated(seed, clocks, births, loss).estimate();
        let found = found.map_err(|why| TestCaseError::fail(format!("{why:?}")))?;
        let (off, within) = distance(&found, clocks);
        prop_assert!(off <= within, "{off} ticks off, bound {within}");
        // Stretches are 40 µs long on average. Without loss, the bound is much less than one stretch.
        prop_assert!(loss || within < 25_000, "{within}");
    }
}

// user   LWP 70      ·   ·                 recorded while LWP 70 was off: whatever the offset, it lies in the hole
// kernel CPU 0    in ┐out┌── off ──┐in
#[test]
fn events_of_another_recording_are_a_contradiction() {
    let clocks = Clocks { ahead: 12_345, drift: 0.0 };
    let one = Recording::simulated(1, clocks, true, false);
    let other = Recording::simulated(2, clocks, true, false);
    let mixed = Recording { kernel: one.kernel, user: other.user };
    assert_eq!(mixed.estimate(), Err(NoEstimate::Contradiction));
}

#[test]
fn other_lwps_are_no_evidence() {
    let mut recording = Recording::simulated(3, Clocks { ahead: 0, drift: 0.0 }, false, false);
    recording.user.iter_mut().for_each(|(event, _)| event.lwp = Some(Lwp(9)));
    assert_eq!(recording.estimate(), Err(NoEstimate::NoEvidence));
}

// The same switches, recorded by two tracers on two clocks.
#[test]
fn two_kernel_traces_of_the_same_switches_meet() {
    let (nanos, ticks) = (Clocks { ahead: 77_000_000, drift: 3e-6 }, Clocks { ahead: 0, drift: 1.5 });
    let kernel = |clocks| {
        let events = Recording::simulated(4, clocks, false, false).kernel.into_iter();
        events.map(|events| witness(Level::Kern, events)).collect::<Vec<_>>()
    };
    // `ticks` is a clock that counts 1 per tick: 2.5 / 2.5.
    let found = estimate(kernel(ticks), kernel(nanos), RATE, HERTZ).unwrap().unwrap();
    let (off, within) = distance(&found, nanos);
    assert!(off <= within && within < 25_000, "{off} {within}");
}
