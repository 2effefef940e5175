//! The conversion of a guest's clock to the host's: the option `TIME_SHIFT`, written by `trace-cmd agent`.
//!
//! ```text
//!   u64 trace id of the host's file | u32 flags | u32 CPUs | for each CPU:
//!     u32 n | n × u64 time | n × i64 offset | n × i64 scaling
//!   | for each CPU: n × u64 fraction bits            (not in older files)
//!
//!   host's time = (time × scaling >> fraction) + offset
//!   flags bit 0: the offset is interpolated between the samples before and after the time
//! ```

use sigmund_model::Cpu;

use crate::cut::Cut;
use crate::error::ParseError;

const INTERPOLATE: u32 = 1;

/// The corrections of all CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TimeShift {
    pub(super) peer_trace_id: u64,
    interpolate: bool,
    cpus: Vec<CpuShift>,
}

/// The corrections of one CPU, in time order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CpuShift {
    interpolate: bool,
    samples: Vec<Sample>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    time: u64,
    offset: i64,
    scaling: i64,
    fraction: u32,
}

impl TimeShift {
    pub(super) fn parse(cut: &mut Cut<'_>) -> Result<TimeShift, ParseError> {
        const PART: &str = "TIME_SHIFT";
        let peer_trace_id = cut.u64(PART)?;
        let interpolate = cut.u32(PART)? & INTERPOLATE != 0;
        let mut cpus = Vec::new();
        for _ in 0..cut.u32(PART)? {
            let count = u64::from(cut.u32(PART)?);
            let mut column = || cut.part(count.saturating_mul(8), PART);
            let (mut times, mut offsets, mut scalings) = (column()?, column()?, column()?);
            let mut samples = Vec::new();
            for _ in 0..count {
                let (time, offset) = (times.u64(PART)?, offsets.u64(PART)? as i64);
                samples.push(Sample { time, offset, scaling: scalings.u64(PART)? as i64, fraction: 0 });
            }
            cpus.push(CpuShift { interpolate, samples });
        }
        for sample in cpus.iter_mut().flat_map(|cpu| &mut cpu.samples) {
            let Ok(bits) = cut.u64(PART) else { break };
            sample.fraction = bits.min(63) as u32;
        }
        Ok(TimeShift { peer_trace_id, interpolate, cpus })
    }

    /// The corrections of this CPU, if there are any.
    pub(super) fn of_cpu(&self, cpu: Cpu) -> Option<&CpuShift> {
        self.cpus.get(cpu.0 as usize).filter(|shift| !shift.samples.is_empty())
    }
}

impl CpuShift {
    /// The host's time for this time of the guest's CPU, as trace-cmd computes it.
    pub(super) fn to_host(&self, time: u64) -> u64 {
        let [.., before_last, last] = self.samples.as_slice() else {
            let only = self.samples.first().map_or(0, |sample| sample.offset);
            return time.wrapping_add_signed(only);
        };
        let at = self.samples.partition_point(|sample| sample.time <= time).saturating_sub(1);
        match self.samples.get(at..at + 2) {
            Some([from, to]) => self.between(time, from, to),
            _ => self.between(time, before_last, last),
        }
    }

    fn between(&self, time: u64, from: &Sample, to: &Sample) -> u64 {
        let scaled = time.wrapping_mul(from.scaling as u64) >> from.fraction;
        let delta = i128::from(to.time) - i128::from(from.time);
        if !self.interpolate || delta <= 0 {
            return scaled.wrapping_add_signed(from.offset);
        }
        // Damaged samples could need 192 bits; their result does not matter.
        let drift = i128::from(to.offset) - i128::from(from.offset);
        let part = (i128::from(time) - i128::from(from.time)).saturating_mul(drift);
        let offset = i128::from(from.offset).saturating_add((part.saturating_add(delta / 2)) / delta);
        scaled.wrapping_add(offset as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn option(flags: u32, samples: &[(u64, i64, i64, u64)]) -> Vec<u8> {
        let mut bytes = 0xabcu64.to_le_bytes().to_vec();
        for word in [flags, 1, samples.len() as u32] {
            bytes.extend(word.to_le_bytes());
        }
        samples.iter().for_each(|s| bytes.extend(s.0.to_le_bytes()));
        samples.iter().for_each(|s| bytes.extend(s.1.to_le_bytes()));
        samples.iter().for_each(|s| bytes.extend(s.2.to_le_bytes()));
        samples.iter().for_each(|s| bytes.extend(s.3.to_le_bytes()));
        bytes
    }

    fn shift(flags: u32, samples: &[(u64, i64, i64, u64)]) -> TimeShift {
        let bytes = option(flags, samples);
        TimeShift::parse(&mut Cut::new(&bytes, 0)).unwrap()
    }

    // offset   100     200          100
    // time    1000    2000         3000
    #[test]
    fn an_offset_is_interpolated_between_its_neighbours_and_beyond_the_ends() {
        let shift = shift(1, &[(1000, 100, 1, 0), (2000, 200, 1, 0), (3000, 100, 1, 0)]);
        assert_eq!(shift.peer_trace_id, 0xabc);
        let cpu = shift.of_cpu(Cpu(0)).unwrap();
        let host = [0, 1000, 1500, 2000, 2500, 3000, 3500].map(|t| cpu.to_host(t));
        // Rounded towards zero, as C divides.
        assert_eq!(host, [1, 1100, 1650, 2200, 2651, 3101, 3551]);
        assert_eq!(shift.of_cpu(Cpu(1)), None);
    }

    #[test]
    fn without_interpolation_the_sample_before_counts_and_scales() {
        let shift = shift(0, &[(1000, -100, 3, 1), (2000, 200, 1, 0)]);
        let cpu = shift.of_cpu(Cpu(0)).unwrap();
        assert_eq!([1000, 1500, 2500].map(|t| cpu.to_host(t)), [1400, 2150, 3650]);
    }

    #[test]
    fn absurd_samples_and_counts_do_no_harm() {
        let shift = shift(1, &[(0, i64::MIN, i64::MIN, 99), (u64::MAX, i64::MAX, -1, 0)]);
        shift.of_cpu(Cpu(0)).unwrap().to_host(u64::MAX / 3);
        let mut bytes = option(1, &[(1, 1, 1, 0)]);
        bytes[16..20].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(TimeShift::parse(&mut Cut::new(&bytes, 0)).is_err());
        let older = option(1, &[(1000, 100, 1, 0)]);
        assert!(TimeShift::parse(&mut Cut::new(&older[..older.len() - 8], 0)).is_ok());
    }
}
