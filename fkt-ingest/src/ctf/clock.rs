//! Conversion of the clocks that a trace declares to clocks that the merge knows.
//!
//! LTTng's default clock is `monotonic`, in nanoseconds: CLOCK_MONOTONIC. Its offset to the epoch was read once, when
//! the session began. It is not added to ticks; instead, both clocks at the first packet are a [`ClockPair`]. A clock
//! is identified by its name or its description:
//!
//! | name | ticks are |
//! |---|---|
//! | `monotonic`, `monotonic_raw`, `boottime`, `realtime`, `local`, as in [`ClockDomain::from_name`] | nanoseconds of that clock; if its unit is another, scaled to nanoseconds, rounded down |
//! | `tsc`, `rdtsc`, or such a description | those of the TSC, `tick_hz` its frequency |
//! | anything else, with `absolute = true` | nanoseconds since the epoch |
//! | anything else | ticks of the clock, `tick_hz` its frequency; if there are several such clocks, all are scaled to nanoseconds |

use sigmund_model::{ClockDomain, ClockPair, Hertz, Nanos, Reading, Snapshot, Ticks};

use super::metadata::{Clock, Integer, Metadata, Stream, Type};

/// The conversion of the values of one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockScale {
    pub(super) domain: ClockDomain,
    /// Ticks per second of the clock, if they must be converted to nanoseconds.
    freq: Option<u64>,
    /// Nanoseconds to add.
    offset_ns: i128,
}

/// The scale of a clock of which nothing is known, if there is only one.
pub(super) const UNKNOWN: ClockScale = ClockScale { domain: ClockDomain::Ticks, freq: None, offset_ns: 0 };

const NANOS: u64 = 1_000_000_000;

impl Clock {
    fn known_domain(&self) -> Option<ClockDomain> {
        let name = self.name.to_ascii_lowercase();
        let description = self.description.to_ascii_lowercase();
        let is_tsc =
            |text: &str| text.split(|c: char| !c.is_alphanumeric()).any(|w| matches!(w, "tsc" | "rdtsc"));
        match ClockDomain::from_name(&name) {
            Some(ClockDomain::Ticks) => None,
            None if is_tsc(&name) || is_tsc(&description) => Some(ClockDomain::Tsc),
            None if description == "monotonic clock" => Some(ClockDomain::Monotonic),
            domain => domain,
        }
    }

    /// The clock's zero in nanoseconds since the epoch.
    pub(super) fn offset_ns(&self) -> i128 {
        i128::from(self.offset_s) * i128::from(NANOS)
            + i128::from(self.offset) * i128::from(NANOS) / i128::from(self.freq)
    }

    /// The conversion of its values to ticks; `only` if no other clock is unknown.
    pub(super) fn scale(&self, only: bool) -> ClockScale {
        let to_nanos = Some(self.freq).filter(|freq| *freq != NANOS);
        match self.known_domain() {
            Some(ClockDomain::Tsc) => ClockScale { domain: ClockDomain::Tsc, freq: None, offset_ns: 0 },
            Some(domain) => ClockScale { domain, freq: to_nanos, offset_ns: 0 },
            None if self.absolute => {
                ClockScale { domain: ClockDomain::Realtime, freq: to_nanos, offset_ns: self.offset_ns() }
            }
            None if only => UNKNOWN,
            None => ClockScale { domain: ClockDomain::Ticks, freq: to_nanos, offset_ns: 0 },
        }
    }

    /// The instant `value` of this clock together with the time of day, if the trace relates them and the clock itself
    /// is not the time of day. How accurately the tracer read the two is unknown.
    pub(super) fn pair(&self, value: u64) -> Option<ClockPair> {
        let domain = self.known_domain()?;
        if matches!(domain, ClockDomain::Tsc | ClockDomain::Realtime) || self.offset_ns() <= 0 {
            return None;
        }
        let ns = self.scale(false).tick(value).0;
        let wall = u64::try_from(i128::from(ns) + self.offset_ns()).ok()?;
        let left = Reading { clock: domain, value: ns };
        Some(ClockPair { left, right: Reading { clock: ClockDomain::Realtime, value: wall }, within: 0 })
    }

    /// Two instants of the TSC and the time of day, if the trace relates them.
    pub(super) fn snapshots(&self) -> Vec<(ClockDomain, Snapshot)> {
        let known = self.known_domain() == Some(ClockDomain::Tsc) && self.offset_ns() > 0;
        let at = |seconds: u64| {
            let tick = Ticks(self.freq.saturating_mul(seconds));
            let ns = u64::try_from(self.offset_ns() + i128::from(seconds * NANOS)).ok()?;
            Some((ClockDomain::Realtime, Snapshot { before: tick, after: tick, ns: Nanos(ns) }))
        };
        if known { [at(0), at(1000)].into_iter().flatten().collect() } else { Vec::new() }
    }
}

impl ClockScale {
    #[inline]
    pub(super) fn tick(self, value: u64) -> Ticks {
        match self {
            ClockScale { freq: None, offset_ns: 0, .. } => Ticks(value),
            ClockScale { freq, offset_ns, .. } => {
                let ns =
                    i128::from(value) * i128::from(NANOS) / i128::from(freq.unwrap_or(NANOS)) + offset_ns;
                Ticks(u64::try_from(ns.max(0)).unwrap_or(u64::MAX))
            }
        }
    }
}

/// Each clock's scale, and the rate of ticks that are not nanoseconds.
pub(super) fn scales(clocks: &[Clock]) -> (Vec<ClockScale>, Option<Hertz>) {
    let unknown = clocks.iter().filter(|clock| clock.known_domain().is_none() && !clock.absolute).count();
    let scales: Vec<ClockScale> = clocks.iter().map(|clock| clock.scale(unknown == 1)).collect();
    let in_ticks = |domain| matches!(domain, ClockDomain::Tsc | ClockDomain::Ticks);
    let first = clocks.iter().zip(&scales).find(|(_, scale)| in_ticks(scale.domain));
    let hertz = first.and_then(|(clock, scale)| {
        Hertz::new(if scale.freq.is_some() { NANOS as f64 } else { clock.freq as f64 })
    });
    (scales, hertz)
}

/// Index of the clock that timestamps a stream's events: that of its event header, or of its packets, or the only one.
pub(super) fn of_stream(metadata: &Metadata, stream: &Stream) -> Option<usize> {
    let context = stream.packet_context.as_ref();
    let mapped = stream.event_header.as_ref().and_then(mapped_clock);
    let name = mapped.or_else(|| integer(context, "timestamp_begin")?.clock.clone());
    match name {
        Some(name) => metadata.clocks.iter().position(|clock| clock.name == name),
        None => (metadata.clocks.len() == 1).then_some(0),
    }
}

/// The first clock that a number within this type is mapped to.
fn mapped_clock(ty: &Type) -> Option<std::sync::Arc<str>> {
    match ty {
        Type::Integer(integer) => integer.clock.clone(),
        Type::Enum(ty) => ty.container.clock.clone(),
        Type::Struct(ty) => ty.fields.iter().find_map(|(_, ty)| mapped_clock(ty)),
        Type::Variant(ty) => ty.options.iter().find_map(|(_, ty)| mapped_clock(ty)),
        Type::Array(ty) => mapped_clock(&ty.element),
        Type::Float(_) | Type::Text => None,
    }
}

/// The integer field `name` of a structure, not of structures in it.
pub(super) fn integer<'t>(ty: Option<&'t Type>, name: &str) -> Option<&'t Integer> {
    let Type::Struct(ty) = ty? else { return None };
    ty.fields.iter().find(|(field, _)| &**field == name).and_then(|(_, ty)| match ty {
        Type::Integer(integer) => Some(integer),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(name: &str, freq: u64, offset_s: i64) -> Clock {
        let (description, uuid) = (String::new(), String::new());
        Clock { name: name.into(), description, uuid, freq, offset_s, offset: 0, absolute: false }
    }

    #[test]
    fn a_clock_is_known_by_its_name_and_its_values_become_nanoseconds() {
        let (scales, hertz) = scales(&[clock("monotonic", NANOS, 7), clock("boottime", 1_000_000, 7)]);
        assert_eq!(scales[0].domain, ClockDomain::Monotonic);
        assert_eq!((scales[0].tick(5), scales[1].tick(5)), (Ticks(5), Ticks(5000)));
        assert_eq!(hertz, None);
    }

    #[test]
    fn the_tsc_keeps_its_ticks_and_gives_its_rate_and_the_time_of_day() {
        let tsc =
            Clock { description: "raw tsc".to_owned(), ..clock("plugin", 2_596_148_000, 1_700_000_000) };
        let (scales, hertz) = scales(std::slice::from_ref(&tsc));
        assert_eq!((scales[0].domain, scales[0].tick(5)), (ClockDomain::Tsc, Ticks(5)));
        assert_eq!(hertz, Hertz::new(2_596_148_000.0));
        let snapshots = tsc.snapshots();
        assert_eq!(snapshots[1].1.ns, Nanos(1_700_001_000_000_000_000));
        assert_eq!(snapshots[1].1.before, Ticks(2_596_148_000_000));
    }

    // monotonic in microseconds, zero at 7 s after the epoch
    #[test]
    fn an_offset_to_the_epoch_is_a_pair_with_the_time_of_day() {
        let pair = clock("monotonic", 1_000_000, 7).pair(3_000_000).unwrap();
        assert_eq!(pair.left, Reading { clock: ClockDomain::Monotonic, value: 3 * NANOS });
        assert_eq!(pair.right, Reading { clock: ClockDomain::Realtime, value: 10 * NANOS });
        // No offset; the time of day itself; an unknown clock; the TSC, which has snapshots.
        for (name, offset) in [("monotonic", 0), ("realtime", 7), ("cycles", 7), ("tsc", 7)] {
            assert_eq!(clock(name, 1_000_000, offset).pair(5), None, "{name}");
        }
        assert_eq!(clock("monotonic", 1, i64::MAX).pair(u64::MAX), None);
    }

    #[test]
    fn one_unknown_clock_keeps_its_ticks_and_two_become_nanoseconds() {
        let cycles = clock("cycles", 500, 0);
        let (one, hertz) = scales(std::slice::from_ref(&cycles));
        assert_eq!((one[0].tick(5), hertz), (Ticks(5), Hertz::new(500.0)));
        let (two, hertz) = scales(&[cycles, clock("other", 1000, 0)]);
        assert_eq!((two[0].tick(5), two[1].tick(5)), (Ticks(10_000_000), Ticks(5_000_000)));
        assert_eq!(hertz, Hertz::new(1e9));
    }
}
