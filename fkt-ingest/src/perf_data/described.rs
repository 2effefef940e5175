//! The content of a perf.data other than its records: attributes, declarations, and facts about the machine.
//!
//! A file has it in sections, a pipe in records; the bytes are the same.

use std::collections::HashMap;

use sigmund_model::{ClockDomain, ClockPair, Reading};

use super::attr::{Attr, clock_of_id};
use super::fields::{self, Fields};
use super::layout::feature;
use super::record::Record;
use super::tracing_data;
use crate::cut::ByteOrder;
use crate::trace_dat::TracingData;

/// perf's `PERF_EVENT_UPDATE__NAME`.
const UPDATE_NAME: u64 = 2;

/// perf reads the wall clock with `gettimeofday`: microseconds, rounded down.
const WALL_CLOCK_NS: u64 = 1000;

/// What a perf.data describes, in its header or in records.
#[derive(Debug, Default)]
pub(super) struct Described {
    pub(super) attrs: Vec<Attr>,
    /// Declarations of the tracepoints.
    pub(super) tracing: Option<TracingData>,
    pub(super) facts: Vec<(String, String)>,
    pub(super) arch: Option<String>,
    /// One instant of the records' clock and of the wall clock.
    pub(super) clock_pair: Option<ClockPair>,
    /// Names of attributes, by their first id.
    names: HashMap<u64, String>,
    /// Parts that could not be read: what, and why.
    pub(super) unreadable: Vec<(&'static str, String)>,
}

/// The kernel's conversion of the TSC to perf's clock: `ns = zero + ((tsc × mult) >> shift)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeConv {
    pub(super) shift: u32,
    pub(super) mult: u64,
    pub(super) zero: u64,
}

impl Described {
    /// The bytes of one feature, by its bit in the header.
    pub(super) fn feature(&mut self, bit: u32, bytes: &[u8], order: ByteOrder) {
        let mut fields = Fields::new(bytes, order);
        let read = match bit {
            feature::TRACING_DATA => {
                self.tracing_data(bytes);
                Some(())
            }
            feature::HOSTNAME => self.text_fact("host", &mut fields),
            feature::OSRELEASE => self.text_fact("kernel", &mut fields),
            feature::VERSION => fields.string().map(|version| self.fact("writer", format!("perf {version}"))),
            feature::CPUDESC => self.text_fact("cpu_model", &mut fields),
            feature::CPUID => self.text_fact("cpuid", &mut fields),
            feature::ARCH => fields.string().map(|arch| {
                self.fact("arch", arch.clone());
                self.arch = Some(arch);
            }),
            feature::TOTAL_MEM => fields.u64().map(|kib| self.fact("memory_kib", kib.to_string())),
            feature::CMDLINE => self.command(&mut fields),
            feature::NRCPUS => self.cpus(&mut fields),
            feature::EVENT_DESC => self.event_desc(&mut fields),
            feature::CLOCKID => fields.u64().map(|ns| self.fact("clock_resolution_ns", ns.to_string())),
            feature::CLOCK_DATA => self.clock_data(&mut fields),
            _ => Some(()),
        };
        if read.is_none() {
            self.unreadable.push(("feature", format!("feature {bit} of {} bytes ends early", bytes.len())));
        }
    }

    fn fact(&mut self, key: &str, value: String) {
        self.facts.push((key.to_owned(), value));
    }

    fn text_fact(&mut self, key: &str, fields: &mut Fields<'_>) -> Option<()> {
        let text = fields.string()?;
        self.fact(key, text);
        Some(())
    }

    /// `u32 n`, n strings.
    fn command(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let count = fields.u32()?;
        let words: Option<Vec<String>> = (0..count).map(|_| fields.string()).collect();
        self.fact("command", words?.join(" "));
        Some(())
    }

    /// `u32` CPUs of the machine, `u32` CPUs online.
    fn cpus(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let (available, online) = (fields.u32()?, fields.u32()?);
        self.fact("cpus", available.to_string());
        self.fact("cpus_online", online.to_string());
        Some(())
    }

    /// `u32` version, `u32` clock, `u64` ns of the wall clock, `u64` ns of that clock: the same instant, except that
    /// perf reads them one after the other.
    fn clock_data(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let (_, clock, wall, ns) = (fields.u32()?, fields.u32()?, fields.u64()?, fields.u64()?);
        let domain = clock_of_id(clock as i32);
        let name = match domain {
            ClockDomain::Ticks => format!("clock {clock}"),
            known => known.name().to_owned(),
        };
        self.fact("clock_anchor", format!("realtime {wall} ns = {name} {ns} ns"));
        if !matches!(domain, ClockDomain::Ticks | ClockDomain::Realtime) {
            let left = Reading { clock: domain, value: ns };
            let right = Reading { clock: ClockDomain::Realtime, value: wall };
            self.clock_pair = Some(ClockPair { left, right, within: WALL_CLOCK_NS });
        }
        Some(())
    }

    /// `u32 n, u32 size of an attribute`, n × {attribute, `u32` ids, name, ids}.
    fn event_desc(&mut self, fields: &mut Fields<'_>) -> Option<()> {
        let (count, attr_size) = (fields.u32()?, fields.u32()?);
        for index in 0..count {
            fields.bytes(u64::from(attr_size))?;
            let ids = fields.u32()?;
            let name = fields.string()?;
            match (ids > 0).then(|| fields.u64()).flatten() {
                Some(first) => {
                    self.names.insert(first, name);
                }
                None => {
                    if let Some(attr) = self.attrs.get_mut(index as usize) {
                        attr.name = name;
                    }
                }
            }
            fields.bytes(8 * u64::from(ids.saturating_sub(1)))?;
        }
        Some(())
    }

    fn tracing_data(&mut self, bytes: &[u8]) {
        match tracing_data::parse(bytes, "tracing data") {
            Ok(data) => self.tracing = Some(data),
            Err(parse_error) => self.unreadable.push(("tracing data", parse_error.to_string())),
        }
    }

    /// HEADER_ATTR: an attribute, followed by its ids.
    pub(super) fn attr_record(&mut self, record: &Record<'_>) -> Option<()> {
        let size = record.u32_at(4).filter(|size| *size >= 64)? as usize;
        let (attr, ids) = record.body.split_at_checked(size)?;
        let mut attr = Attr::parse(attr, record.order)?;
        let mut ids = Fields::new(ids, record.order);
        attr.ids = std::iter::from_fn(|| ids.u64()).collect();
        self.attrs.push(attr);
        Some(())
    }

    /// EVENT_UPDATE: `u64 what | u64 id | name`.
    pub(super) fn event_update(&mut self, record: &Record<'_>) {
        let (what, id) = (record.u64_at(0), record.u64_at(8));
        if let (Some(UPDATE_NAME), Some(id), Some(name)) = (what, id, record.body.get(16..)) {
            self.names.insert(id, fields::text(name));
        }
    }

    /// Gives the attributes their names, when everything has been read.
    pub(super) fn name_attrs(&mut self) {
        for attr in &mut self.attrs {
            if let Some(name) = attr.ids.first().and_then(|id| self.names.remove(id)) {
                attr.name = name;
            }
        }
    }

    /// Whether the tracepoint with this id is among the events that were recorded.
    pub(super) fn records_tracepoint(&self, id: u32) -> bool {
        self.attrs.iter().any(|attr| attr.is_tracepoint() && attr.config == u64::from(id))
    }
}

impl TimeConv {
    /// TIME_CONV: `u64 shift | u64 mult | u64 zero | …`; zeros if the kernel does not have them.
    pub(super) fn parse(record: &Record<'_>) -> Option<TimeConv> {
        let mut fields = Fields::new(record.body, record.order);
        let (shift, mult, zero) = (fields.u64()?, fields.u64()?, fields.u64()?);
        (shift <= 63 && mult > 0).then_some(TimeConv { shift: shift as u32, mult, zero })
    }

    /// Ticks of the TSC per second.
    pub(super) fn tick_hz(&self) -> f64 {
        2f64.powi(self.shift as i32) * 1e9 / self.mult as f64
    }

    /// The TSC at an instant of perf's clock; `None` if the TSC would be negative.
    pub(super) fn tsc(&self, ns: u64) -> Option<u64> {
        let tsc = (u128::from(ns.checked_sub(self.zero)?) << self.shift) / u128::from(self.mult);
        u64::try_from(tsc).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // 2.5 GHz: 0.4 ns a tick, 0.4 × 2^31 = 858993459.2.
    #[test]
    fn a_stated_conversion_gives_the_rate_and_the_tsc_of_an_instant() {
        let conv = TimeConv { shift: 31, mult: 858_993_459, zero: 1_000 };
        assert!((conv.tick_hz() - 2.5e9).abs() < 1.0);
        assert_eq!(conv.tsc(1_000_001_000).map(|tsc| tsc / 10), Some(250_000_000));
        assert_eq!(conv.tsc(999), None);
        assert_eq!(TimeConv { shift: 63, mult: 1, zero: 0 }.tsc(u64::MAX), None);
    }

    // version 1 | clock 4 | wall 1795271964.714145 s | clock 24210.365530866 s, as `perf report --header-only` prints it
    #[test]
    fn the_anchor_to_the_wall_clock_is_a_pair_of_readings() {
        let anchor = |clock: u32| {
            let mut bytes = [1u32, clock].map(u32::to_le_bytes).concat();
            bytes.extend([1_795_271_964_714_145_000u64, 24_210_365_530_866].map(u64::to_le_bytes).concat());
            let mut described = Described::default();
            described.feature(feature::CLOCK_DATA, &bytes, ByteOrder::Little);
            described
        };
        let raw = Reading { clock: ClockDomain::MonotonicRaw, value: 24_210_365_530_866 };
        let wall = Reading { clock: ClockDomain::Realtime, value: 1_795_271_964_714_145_000 };
        assert_eq!(anchor(4).clock_pair, Some(ClockPair { left: raw, right: wall, within: 1000 }));
        // The wall clock itself, and the atomic time, which the merge does not know.
        for clock in [0, 11] {
            assert_eq!((anchor(clock).clock_pair, anchor(clock).facts.len()), (None, 1));
        }
    }

    #[test]
    fn a_feature_that_ends_early_is_noted_and_others_are_kept() {
        let mut described = Described::default();
        described.feature(feature::HOSTNAME, b"\x04\0\0\0box\0", ByteOrder::Little);
        described.feature(feature::CMDLINE, b"\xff\xff\xff\xff\x02\0\0\0a\0", ByteOrder::Little);
        assert_eq!(described.facts, [("host".to_owned(), "box".to_owned())]);
        assert_eq!(described.unreadable.len(), 1);
    }
}
