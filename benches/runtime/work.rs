//! The work of a contender, given as one word on the command line: `yield:2:2000000`.

use std::{fmt, str::FromStr};

use crate::messages::Means;

/// A unit of work. The word contains its sizes, so that a contender in another language gets them as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// `threads` user threads yield to one another, `yields` times in all.
    Yield { threads: u64, yields: u64 },
    /// One user thread is spawned and joined, `times` times.
    SpawnJoin { times: u64 },
    /// `at_once` user threads are spawned, then joined; `rounds` times.
    SpawnMany { at_once: u64, rounds: u64 },
    /// A complete binary tree of user threads: each spawns two, joins both and returns the sum; a leaf returns 1.
    /// `trees` of them, one after the other.
    Sumtime { height: u32, trees: u64 },
    /// The LU factorisation of a sparse matrix of `blocks` × `blocks` blocks of `size` × `size` numbers.
    Factorise { blocks: usize, size: usize },
    /// An echo server of `connections`, until the client has received `requests` echoes.
    Echo { connections: u64, requests: u64 },
    /// `threads` user threads live at one time, each blocked in a join.
    Live { threads: u64 },
    /// `threads` user threads on `lwps` LWPs live at one time, and do the same things step by step, all together so often.
    Scale { threads: u64, lwps: usize, operations: u64 },
    /// `sockets` sockets in one process.
    Sockets { sockets: u64 },
    /// Threads wait for each other by these means, so often.
    Messages { means: Means, times: u64 },
    /// A thread computes for ever, with safe points or without; others yield. A quantum of 0 is none.
    Fair { quantum_us: u64, safe_points: bool },
}

impl Work {
    /// Sumtime of `height`; several small trees, so that a sample is long enough to be measured. `hurry` divides their
    /// number.
    pub(crate) fn sumtime(height: u32, hurry: u64) -> Work {
        Work::Sumtime { height, trees: ((1 << 15_u32.saturating_sub(height)) / hurry).max(1) }
    }

    /// The number of operations, by which the tables divide the time.
    pub(crate) fn operations(self) -> u64 {
        match self {
            Work::Yield { yields, .. } => yields,
            Work::SpawnJoin { times } => times,
            Work::SpawnMany { at_once, rounds } => at_once * rounds,
            Work::Sumtime { height, trees } => trees * ((2 << height) - 1),
            Work::Factorise { .. } => 1,
            Work::Echo { requests, .. } => requests,
            Work::Live { threads } => threads,
            Work::Messages { times, .. } => times,
            Work::Scale { .. } | Work::Sockets { .. } | Work::Fair { .. } => 1,
        }
    }

    /// Upper bound of the bytes of this work's events: a ring of this size loses none, drained or not.
    pub(crate) fn most_bytes(self) -> u64 {
        match self {
            Work::Yield { yields, .. } => 64 * yields,
            Work::SpawnJoin { .. } | Work::SpawnMany { .. } | Work::Sumtime { .. } => 400 * self.operations(),
            Work::Factorise { blocks, .. } => 400 * (blocks as u64).pow(3),
            // The requests before those that are measured, too, with a switch to and from the thread of each.
            Work::Echo { connections, requests } => 400 * (2 * requests + 20 * connections),
            Work::Messages { times, .. } => 400 * times,
            Work::Live { .. } | Work::Scale { .. } | Work::Sockets { .. } | Work::Fair { .. } => 0,
        }
    }

    /// For the heading of a table.
    pub(crate) fn title(self) -> String {
        match self {
            Work::Yield { threads, .. } => format!("Yield between {threads} user threads, ns a yield"),
            Work::SpawnJoin { .. } => "Spawn and join, one at a time, ns a thread".into(),
            Work::SpawnMany { at_once, .. } => format!("Spawn {at_once}, then join them, ns a thread"),
            Work::Sumtime { height, .. } => format!("Sumtime of height {height}, ns a thread"),
            Work::Factorise { blocks, size } => {
                format!("Sparse LU, {blocks} × {blocks} blocks of {size} × {size}")
            }
            Work::Echo { connections, .. } => {
                format!("Echo server of {connections} connections, 64 bytes a message")
            }
            Work::Live { threads } => format!("{threads} live user threads"),
            Work::Scale { threads, lwps, .. } => format!("{threads} user threads on {lwps} LWPs"),
            Work::Sockets { sockets } => format!("{sockets} sockets"),
            Work::Messages { means, .. } => means.title().into(),
            Work::Fair { .. } => "Waits beside a thread that never yields".into(),
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Work::Yield { threads, yields } => write!(f, "yield:{threads}:{yields}"),
            Work::SpawnJoin { times } => write!(f, "spawn-join:{times}"),
            Work::SpawnMany { at_once, rounds } => write!(f, "spawn-many:{at_once}:{rounds}"),
            Work::Sumtime { height, trees } => write!(f, "sumtime:{height}:{trees}"),
            Work::Factorise { blocks, size } => write!(f, "factorise:{blocks}:{size}"),
            Work::Echo { connections, requests } => write!(f, "echo:{connections}:{requests}"),
            Work::Live { threads } => write!(f, "live:{threads}"),
            Work::Scale { threads, lwps, operations } => write!(f, "scale:{threads}:{lwps}:{operations}"),
            Work::Sockets { sockets } => write!(f, "sockets:{sockets}"),
            Work::Messages { means, times } => write!(f, "messages:{}:{times}", *means as u64),
            Work::Fair { quantum_us, safe_points } => {
                write!(f, "fair:{quantum_us}:{}", u8::from(*safe_points))
            }
        }
    }
}

impl FromStr for Work {
    type Err = String;

    fn from_str(word: &str) -> Result<Work, String> {
        let mut parts = word.split(':');
        let name = parts.next().unwrap_or_default();
        let sizes: Result<Vec<u64>, _> = parts.map(str::parse).collect();
        let sizes = sizes.map_err(|error| format!("{word}: expected numbers after the name: {error}"))?;
        match (name, sizes.as_slice()) {
            ("yield", &[threads, yields]) if threads > 0 => Ok(Work::Yield { threads, yields }),
            ("spawn-join", &[times]) => Ok(Work::SpawnJoin { times }),
            ("spawn-many", &[at_once, rounds]) => Ok(Work::SpawnMany { at_once, rounds }),
            ("sumtime", &[height @ 0..32, trees]) => Ok(Work::Sumtime { height: height as u32, trees }),
            ("factorise", &[blocks @ 1..1000, size @ 1..1000]) => {
                Ok(Work::Factorise { blocks: blocks as usize, size: size as usize })
            }
            ("echo", &[connections, requests]) if connections > 0 => Ok(Work::Echo { connections, requests }),
            ("live", &[threads]) => Ok(Work::Live { threads }),
            ("scale", &[threads, lwps @ 1..=1024, operations]) if threads > 0 => {
                Ok(Work::Scale { threads, lwps: lwps as usize, operations })
            }
            ("sockets", &[sockets]) if sockets > 1 => Ok(Work::Sockets { sockets }),
            ("messages", &[means, times]) => {
                let means =
                    Means::ALL.get(means as usize).ok_or(format!("{word}: there are no such means"))?;
                Ok(Work::Messages { means: *means, times })
            }
            ("fair", &[quantum_us, safe @ 0..=1]) => Ok(Work::Fair { quantum_us, safe_points: safe == 1 }),
            _ => Err(format!("expected a piece of work such as yield:2:1000, found {word}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formatted_word_is_parsed_to_the_same_work() {
        let all = [
            Work::Yield { threads: 2, yields: 10 },
            Work::SpawnJoin { times: 3 },
            Work::SpawnMany { at_once: 1000, rounds: 4 },
            Work::sumtime(19, 1),
            Work::sumtime(13, 1),
            Work::Factorise { blocks: 50, size: 32 },
            Work::Echo { connections: 3, requests: 30 },
            Work::Live { threads: 7 },
            Work::Scale { threads: 9, lwps: 64, operations: 5 },
            Work::Sockets { sockets: 2 },
            Work::Fair { quantum_us: 5, safe_points: true },
            Work::Messages { means: Means::Channel, times: 5 },
            Work::Messages { means: Means::Child, times: 6 },
        ];
        for work in all {
            assert_eq!(work.to_string().parse(), Ok(work));
        }
    }

    #[test]
    fn an_invalid_word_is_rejected() {
        for word in
            ["", "yield", "yield:2", "yield:0:5", "yield:a:5", "sumtime:60:1", "sing:1", "messages:99:1"]
        {
            assert!(word.parse::<Work>().is_err(), "{word}");
        }
    }

    #[test]
    fn a_tree_of_height_1_has_3_threads() {
        assert_eq!(Work::Sumtime { height: 1, trees: 1 }.operations(), 3);
        assert_eq!(Work::sumtime(19, 1).operations(), (1 << 20) - 1);
    }
}
