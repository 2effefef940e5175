//! The contenders: fut, recorded or not, and its peers. Each sample is a separate process that runs one contender.

mod async_executor;
mod corosensei;
mod epoll;
mod fut;
mod go;
mod may;
mod messages;
mod tasks;
mod threads;
mod tokio;

use std::{path::Path, time::Duration};

use clap::ValueEnum;

use crate::{echo, fair, live, machine, recorded::Events, sample::Sample, scale, work::Work};

/// A contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Contender {
    /// User threads that move between LWPs, as those of the peers do. Not recorded.
    Fut,
    /// User threads that stay on the LWP that began them: what safe calls build. Not recorded.
    FutPinned,
    /// Timers may be late by a millisecond, as tokio's are. Not recorded.
    FutSlack,
    /// Not recorded either: differences between these two are noise.
    FutAgain,
    /// Scheduling events are recorded.
    FutScheduling,
    /// All events are recorded, including those of the program.
    FutAll,
    Go,
    May,
    TokioCurrentThread,
    TokioMultiThread,
    AsyncExecutor,
    Corosensei,
    /// A loop without threads.
    Epoll,
}

/// The purpose of a contender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Ours,
    Peer,
    /// A lower bound.
    Floor,
}

impl Contender {
    /// All contenders except the peers.
    pub(crate) const ALL: [Contender; 10] = [
        Contender::Fut,
        Contender::FutPinned,
        Contender::Go,
        Contender::May,
        Contender::TokioCurrentThread,
        Contender::TokioMultiThread,
        Contender::AsyncExecutor,
        Contender::FutScheduling,
        Contender::FutAll,
        Contender::Corosensei,
    ];

    pub(crate) fn role(self) -> Role {
        match self {
            Contender::Fut
            | Contender::FutPinned
            | Contender::FutSlack
            | Contender::FutAgain
            | Contender::FutScheduling
            | Contender::FutAll => Role::Ours,
            Contender::Corosensei | Contender::Epoll => Role::Floor,
            _ => Role::Peer,
        }
    }

    /// The name in a table; for a peer, with its version.
    pub(crate) fn label(self) -> String {
        match self {
            Contender::Fut => "fut".into(),
            Contender::FutPinned => "fut, pinned".into(),
            Contender::FutSlack => "fut, timers late by up to 1 ms".into(),
            Contender::FutAgain => "fut, once more".into(),
            Contender::FutScheduling => "fut, scheduling events recorded".into(),
            Contender::FutAll => "fut, all events recorded".into(),
            Contender::Go => format!("Go {}", go::version().unwrap_or_default()).trim_end().into(),
            Contender::May => format!("may {}", locked_version("may")),
            Contender::TokioCurrentThread => format!("tokio {} current_thread", locked_version("tokio")),
            Contender::TokioMultiThread => format!("tokio {} multi_thread", locked_version("tokio")),
            Contender::AsyncExecutor => format!("async-executor {}", locked_version("async-executor")),
            Contender::Corosensei => format!("corosensei {}, bare", locked_version("corosensei")),
            Contender::Epoll => "epoll, bare".into(),
        }
    }

    /// The work that it does for `work` on this number of CPUs; `None` if it cannot.
    pub(crate) fn instead_of(self, work: Work, cpus: usize) -> Option<Work> {
        match (self, work) {
            (Contender::TokioCurrentThread, _) if cpus > 1 => None,
            (Contender::Epoll, work) if cpus > 1 || !matches!(work, Work::Echo { .. }) => None,
            (Contender::Corosensei, Work::Sumtime { .. }) => None,
            (Contender::TokioCurrentThread, Work::Scale { lwps, .. }) if lwps > 1 => None,
            (Contender::May | Contender::AsyncExecutor | Contender::Corosensei, Work::Echo { .. }) => None,
            (Contender::May, Work::Sumtime { height, .. }) if height > may::MAX_HEIGHT => {
                Some(Work::Sumtime { height: may::MAX_HEIGHT, trees: 4 })
            }
            _ => Some(work),
        }
    }

    /// Prepares for its first sample.
    pub(crate) fn prepare(self, scratch: &Path) -> Result<(), String> {
        if self == Contender::Go { go::build(scratch) } else { Ok(()) }
    }

    /// Does `work` in this process, on its first `cpus` CPUs. A contender that is another program replaces
    /// this process (`exec`), and prints the result.
    pub(crate) fn run(self, work: Work, cpus: usize, scratch: &Path) -> Result<Sample, String> {
        let in_our_words = |error: std::io::Error| error.to_string();
        let all = machine::cpus().map_err(in_our_words)?;
        let (ours, spare) = all.split_at_checked(cpus).ok_or(format!("there are no {cpus} CPUs"))?;
        // The drain uses the remaining CPUs, so it is started first. The last one is the client's.
        let events = self.events();
        let spare = if matches!(work, Work::Echo { .. }) { &[] } else { spare };
        let recording = events.start(work.most_bytes(), cpus, spare, scratch).map_err(in_our_words)?;
        machine::keep_to(ours).map_err(in_our_words)?;
        if let Work::Echo { connections, requests } = work {
            let serve = |listener, connections, meter: std::sync::Arc<echo::Meter>| match self {
                Contender::Epoll => epoll::echo(&listener, connections, &meter),
                Contender::TokioCurrentThread => tokio::echo_current_thread(listener, connections, meter),
                Contender::TokioMultiThread => tokio::echo_multi_thread(listener, connections, meter, cpus),
                Contender::FutPinned => {
                    fut::echo(::fut::Runtime::builder(), listener, connections, meter, cpus, events);
                }
                _ => fut::echo(fut::migrating(), listener, connections, meter, cpus, events),
            };
            if self == Contender::Go {
                return Err(go::exec(scratch, work, cpus));
            }
            let mut sample = echo::run(connections, requests, serve)?;
            sample.recorded =
                recording.map(|recording| recording.finish()).transpose().map_err(in_our_words)?;
            return Ok(sample);
        }
        let elapsed = match (self, work) {
            (_, Work::Echo { .. }) => unreachable!("done above"),
            (_, Work::Live { threads }) => return live::run(threads, cpus),
            (_, Work::Scale { threads, lwps, operations }) => {
                return self.scale((threads, operations), lwps);
            }
            (_, Work::Sockets { sockets }) => return self.sockets(sockets, cpus),
            (Contender::FutPinned, Work::Fair { quantum_us, safe_points }) => {
                return fair::run(::fut::Runtime::builder(), cpus, quantum_us, safe_points)
                    .map_err(in_our_words);
            }
            (_, Work::Fair { quantum_us, safe_points }) => {
                return fair::run(fut::migrating(), cpus, quantum_us, safe_points).map_err(in_our_words);
            }
            (Contender::Go, _) => return Err(go::exec(scratch, work, cpus)),
            (Contender::May, _) => may::run(work, cpus),
            (Contender::TokioCurrentThread, _) => tokio::run_current_thread(work),
            (Contender::TokioMultiThread, _) => tokio::run_multi_thread(work, cpus),
            (Contender::AsyncExecutor, _) => async_executor::run(work, cpus),
            (Contender::Corosensei, _) => corosensei::run(work),
            (Contender::Epoll, _) => return Err("epoll alone only echoes".into()),
            (Contender::FutPinned, _) => {
                fut::run(::fut::Runtime::builder(), work, cpus, events).map_err(in_our_words)?
            }
            _ => fut::run(fut::migrating(), work, cpus, events).map_err(in_our_words)?,
        };
        let recorded = recording.map(|recording| recording.finish()).transpose().map_err(in_our_words)?;
        Ok(Sample { recorded, ..Sample::of(elapsed) })
    }

    fn scale(self, (threads, operations): (u64, u64), lwps: usize) -> Result<Sample, String> {
        let ours =
            |builder| scale::run(builder, (threads, operations), lwps).map_err(|error| error.to_string());
        match self {
            Contender::TokioCurrentThread => Ok(scale::run_current_thread(threads, operations)),
            Contender::TokioMultiThread => Ok(scale::run_multi_thread(threads, operations, lwps)),
            Contender::FutPinned => ours(::fut::Runtime::builder()),
            Contender::FutSlack => ours(fut::migrating().timer_slack(Duration::from_millis(1))),
            _ => ours(fut::migrating()),
        }
    }

    fn sockets(self, sockets: u64, cpus: usize) -> Result<Sample, String> {
        match self {
            Contender::TokioCurrentThread => scale::run_tokio_sockets(sockets, None),
            Contender::TokioMultiThread => scale::run_tokio_sockets(sockets, Some(cpus)),
            Contender::FutPinned => scale::run_sockets(::fut::Runtime::builder(), sockets, cpus),
            _ => scale::run_sockets(fut::migrating(), sockets, cpus),
        }
    }

    fn events(self) -> Events {
        match self {
            Contender::FutScheduling => Events::Scheduling,
            Contender::FutAll => Events::All,
            _ => Events::None,
        }
    }
}

/// The version of a crate that this program was built with.
fn locked_version(name: &str) -> &'static str {
    let lock = include_str!("../../Cargo.lock");
    let package = lock.split("[[package]]").find(|p| p.contains(&format!("\nname = \"{name}\"\n")));
    let version = package.and_then(|p| p.split_once("\nversion = \"")?.1.split_once('"'));
    version.map_or("", |(version, _)| version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_file_has_versions_of_the_peers() {
        assert!(locked_version("tokio").starts_with("1."));
        assert_eq!(locked_version("no such crate"), "");
    }

    #[test]
    fn may_gets_a_tree_that_its_stacks_allow() {
        let tree = Contender::May.instead_of(Work::sumtime(19, 1), 1);
        assert_eq!(tree, Some(Work::Sumtime { height: 13, trees: 4 }));
        assert_eq!(Contender::TokioCurrentThread.instead_of(Work::sumtime(19, 1), 2), None);
    }
}
