//! Sockets with the names and semantics of `std::net` and `std::os::unix::net`. They block the user thread, but not its
//! LWP. Also [`Readiness`], which waits for any other descriptor.
//!
//! ```
//! use std::io::{Read, Write};
//!
//! use fut::net::{TcpListener, TcpStream};
//!
//! let runtime = fut::Runtime::builder().lwps(1).build()?;
//! let echoed = runtime.run(|| -> std::io::Result<String> {
//!     let listener = TcpListener::bind("127.0.0.1:0")?;
//!     let mut client = TcpStream::connect(listener.local_addr()?)?;
//!     fut::spawn(move || -> std::io::Result<()> {
//!         let (mut stream, _) = listener.accept()?;
//!         let mut request = [0; 5];
//!         stream.read_exact(&mut request)?;
//!         stream.write_all(&request)
//!     });
//!     client.write_all(b"hello")?;
//!     let mut answer = String::new();
//!     client.read_to_string(&mut answer)?;
//!     Ok(answer)
//! })?;
//! assert_eq!(echoed, "hello");
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Differences from the standard library:
//!
//! - A socket is made by a user thread, and belongs to the reactor of that thread's runtime. Making one elsewhere
//!   panics. Other runtimes may use the socket as long as its own runtime exists. Afterwards, a call that would block
//!   fails.
//! - A call that takes longer than its time limit fails with [`TimedOut`](std::io::ErrorKind::TimedOut), and not with
//!   `WouldBlock`. The socket stays usable.
//! - The descriptor is in non-blocking mode. `from_std` switches this mode on, `into_std` switches it off. `as_std`
//!   returns the socket for calls that do not block, such as options that have no method here.
//! - A call that succeeds at once does not yield. A thread whose socket is never empty keeps its LWP until its quantum
//!   ends, if there is a quantum.
//! - In a child process made by `fork`, no descriptor can be registered with the runtime of the parent. Dropping a
//!   socket there leaves the socket of the parent registered.

mod address;
mod connect;
mod readiness;
mod socket;
mod tcp;
mod tcp_receive;
mod udp;
mod unix;

pub use address::ToSocketAddrs;
pub use readiness::{Interest, Readiness};
pub use tcp::{Incoming, TcpListener, TcpStream};
pub use udp::UdpSocket;
pub use unix::{UnixDatagram, UnixIncoming, UnixListener, UnixStream};
