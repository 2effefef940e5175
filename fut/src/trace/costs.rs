//! The costs of recording, measured when a process begins to record, encoded as bytes.
//!
//! ```text
//! 0            8        16         24
//! | clock read | record | per word | …          each in 1/256 ticks; a reader ignores later words
//! ```

use super::wire::{Cut, TraceError};

const PER_TICK: f64 = 256.0;

/// The costs of recording in ticks, measured when the process began to record, with the data in the cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeCosts {
    /// Reading the clock: the lower bound of the cost of a probe.
    pub clock_read: f64,
    /// A record without parameters, including reading the clock.
    pub record: f64,
    /// Each word of parameters beyond that.
    pub per_word: f64,
}

impl ProbeCosts {
    /// The cost of a record with `words` words of parameters, in ticks.
    pub fn of_record(&self, words: usize) -> f64 {
        self.record + self.per_word * words as f64
    }
}

/// Costs as the payload of a packet of kind `COSTS`.
pub fn encode_costs(costs: &ProbeCosts) -> Vec<u8> {
    let words = [costs.clock_read, costs.record, costs.per_word];
    words.iter().flat_map(|ticks| ((ticks * PER_TICK).round() as u64).to_le_bytes()).collect()
}

/// Reads what [`encode_costs`] writes.
///
/// # Errors
/// If there are fewer than three words.
pub fn decode_costs(payload: &[u8], at: u64) -> Result<ProbeCosts, TraceError> {
    let mut cut = Cut::new(payload, at);
    let mut ticks = |what| Ok(cut.u64(what)? as f64 / PER_TICK);
    Ok(ProbeCosts {
        clock_read: ticks("costs: reading the clock")?,
        record: ticks("costs: a record")?,
        per_word: ticks("costs: a word")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: ProbeCosts = ProbeCosts { clock_read: 24.75, record: 26.5, per_word: 0.125 };

    #[test]
    fn costs_come_back_as_they_were() {
        assert_eq!(decode_costs(&encode_costs(&COSTS), 0).unwrap(), COSTS);
        assert_eq!(COSTS.of_record(0), 26.5);
        assert_eq!(COSTS.of_record(6), 27.25);
    }

    #[test]
    fn additional_words_are_ignored_and_a_cut_packet_is_an_error_with_its_place() {
        let whole = encode_costs(&COSTS);
        let longer = [whole.as_slice(), &[0xff; 16]].concat();
        assert_eq!(decode_costs(&longer, 0).unwrap(), COSTS);
        for len in 0..whole.len() {
            assert!(decode_costs(&whole[..len], 0).is_err(), "{len}");
        }
        let error = decode_costs(&whole[..20], 1000).unwrap_err().to_string();
        assert!(error.contains("byte 1016") && error.contains("a word"), "{error}");
    }
}
