//! The ends of a child's standard streams.

use std::{
    io::{self, Read, Write},
    os::fd::{AsFd, BorrowedFd},
    process,
};

use crate::net::{Interest, Readiness};

macro_rules! end {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Debug)]
        pub struct $name(Readiness<process::$name>);

        impl $name {
            pub(super) fn new(end: process::$name) -> io::Result<$name> {
                let end = Readiness::new(end)?;
                end.set_nonblocking(true)?;
                Ok($name(end))
            }
        }

        impl AsFd for $name {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.0.as_fd()
            }
        }
    };
}

end! {
    /// Writes to a child's standard input.
    ChildStdin
}
end! {
    /// Reads a child's standard output.
    ChildStdout
}
end! {
    /// Reads a child's standard error.
    ChildStderr
}

impl Write for ChildStdin {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.0.io(Interest::Writable, |mut end| end.write(buf))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for ChildStdout {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.io(Interest::Readable, |end| Ok(rustix::io::read(end, &mut *buf)?))
    }
}

impl Read for ChildStderr {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.0.io(Interest::Readable, |end| Ok(rustix::io::read(end, &mut *buf)?))
    }
}
