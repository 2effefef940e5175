//! CPUs, LWPs, processes, user threads.
//!
//! Each has its own type, so that one cannot be passed for another.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A logical processor, numbered as the kernel numbers it.
    Cpu(u32)
}
id! {
    /// A kernel thread, by its `tid` in the root pid namespace of the recording. 0 is the idle task.
    Lwp(u32)
}
id! {
    /// A process, by its `tgid`.
    Pid(u32)
}
id! {
    /// A user thread, by the number its runtime gave it. 0 means "no user thread".
    Thread(u64)
}

impl Lwp {
    /// The idle task of every CPU.
    pub const IDLE: Lwp = Lwp(0);
}

impl Thread {
    /// The thread that a switch event names, where 0 means none.
    pub fn from_switch(id: u64) -> Option<Thread> {
        (id != 0).then_some(Thread(id))
    }
}
