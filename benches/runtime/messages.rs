//! What threads wait for each other by: the sizes of the work.

/// A means by which threads wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    /// Two threads send to each other in turns, by two channels without a limit.
    Channel,
    /// By channels with room for one message.
    Bounded,
    /// As `Channel`, each receive with a time limit of a second.
    Timeout,
    /// One sends to two channels in turns, the other waits for both, and answers.
    Select,
    /// One sends the sender of a channel for one message, the other answers by it.
    Oneshot,
    /// Two threads set values in turns.
    Watch,
    /// Two threads send to all receivers, of which there is one, in turns.
    Broadcast,
    /// Two threads notify each other in turns.
    Notify,
    /// Two threads give each other a permit in turns.
    Semaphore,
    /// A hundred threads are spawned, and joined as they end.
    JoinSet,
    /// A hundred threads wait for a token, each for a child of its own; it is cancelled.
    Cancel,
    /// Two threads unpark each other in turns; tokio's tasks are parked by a `Notify`.
    Park,
    /// Two threads lock a mutex in turns: each holds it until the other has asked for it.
    Mutex,
    /// Two threads meet at a barrier.
    Barrier,
    /// As `Channel`, each receive a select of the channel and of a timer of a second.
    Timer,
    /// A thread reads a file of 4 kB that is in memory.
    File,
    /// A thread sends a signal to its process, and receives it.
    Signal,
    /// A thread starts `true`, and waits until it has ended.
    Child,
}

/// What [`Means::File`] reads.
pub(crate) const FILE_BYTES: usize = 4096;

/// Threads of [`Means::JoinSet`] and [`Means::Cancel`].
pub(crate) const THREADS: u64 = 100;

impl Means {
    pub(crate) const ALL: [Means; 18] = [
        Means::Channel,
        Means::Bounded,
        Means::Timeout,
        Means::Select,
        Means::Oneshot,
        Means::Watch,
        Means::Broadcast,
        Means::Notify,
        Means::Semaphore,
        Means::JoinSet,
        Means::Cancel,
        Means::Park,
        Means::Mutex,
        Means::Barrier,
        Means::Timer,
        Means::File,
        Means::Signal,
        Means::Child,
    ];

    /// How often in a sample: what the kernel takes part in takes longer.
    pub(crate) fn times(self) -> u64 {
        match self {
            Means::File | Means::Signal => 10_000,
            Means::Child => 300,
            _ => 200_000,
        }
    }

    /// What the tables divide the time by: there and back, or one thread.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Means::Channel => "channel, there and back",
            Means::Bounded => "channel of one message, there and back",
            Means::Timeout => "receive with a time limit, there and back",
            Means::Select => "select of two channels, there and back",
            Means::Oneshot => "oneshot, asked for and answered",
            Means::Watch => "watch, there and back",
            Means::Broadcast => "broadcast, there and back",
            Means::Notify => "notify, there and back",
            Means::Semaphore => "permit, there and back",
            Means::JoinSet => "join set of 100, a thread",
            Means::Cancel => "cancelled token, a thread of 100",
            Means::Park => "park and unpark, there and back",
            Means::Mutex => "contended mutex, there and back",
            Means::Barrier => "barrier of two",
            Means::Timer => "select of a channel and a timer, there and back",
            Means::File => "file of 4 kB, read",
            Means::Signal => "signal, raised and received",
            Means::Child => "child process, started and waited for",
        }
    }
}
