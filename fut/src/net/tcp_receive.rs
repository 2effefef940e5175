//! Reading a TCP socket, with the number of bytes that are left.
//!
//! A read that fills its buffer does not reveal whether more data is there. So the next read would have to try, which
//! is in vain if each message is read by its length. Such a call took 830 to 1230 ns after a read. With TCP_INQ (Linux
//! 4.18) a read also returns how much is left. That took 230 to 640 ns more, and makes the other call unnecessary.
//! (`recvmsg` of 64 bytes compared with `recvfrom` on loopback, a busy guest of an AMD EPYC, Linux 6.18. What an echo
//! server gains was not measured.) So the reads of a socket ask for this once a read has filled its buffer, until a
//! read does not fill its buffer.

use std::{
    io,
    mem::MaybeUninit,
    net::TcpStream,
    os::fd::{AsRawFd, RawFd},
    ptr,
    sync::atomic::{AtomicU8, Ordering},
};

/// include/uapi/linux/tcp.h
const TCP_INQ: i32 = 36;
const TCP_CM_INQ: i32 = TCP_INQ;

/// Whether the reads of a socket ask how much is left.
#[derive(Debug, Default)]
pub(super) struct AsksWhatIsLeft(AtomicU8);

/// No read has filled its buffer so far.
const NO: u8 = 0;
/// The option is set, and reads ask.
const YES: u8 = 1;
/// The option is set, and reads do not ask.
const PAUSES: u8 = 2;
/// The kernel does not know the option.
const NEVER: u8 = 3;

/// Number of bytes that were read, and whether nothing was left afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) len: usize,
    pub(super) is_drained: bool,
}

impl AsksWhatIsLeft {
    /// Reads once, by one system call.
    pub(super) fn read(&self, stream: &TcpStream, buffer: &mut [u8]) -> io::Result<Received> {
        let asks = self.0.load(Ordering::Relaxed);
        let room = buffer.len();
        let received = if asks == YES { receive_and_ask(stream, buffer)? } else { receive(stream, buffer)? };
        let fills = received.len == room && room > 0;
        if fills != (asks == YES) && asks != NEVER {
            self.changes(stream, asks, fills);
        }
        Ok(received)
    }

    #[cold]
    fn changes(&self, stream: &TcpStream, asks: u8, fills: bool) {
        let now = match (asks, fills) {
            (NO, true) if set_option(stream) => YES,
            (NO, true) => NEVER,
            (PAUSES, true) => YES,
            (YES, false) => PAUSES,
            _ => return,
        };
        self.0.store(now, Ordering::Relaxed);
    }
}

fn set_option(stream: &TcpStream) -> bool {
    let on: libc::c_int = 1;
    let (value, len) = (ptr::from_ref(&on).cast(), size_of_val(&on) as libc::socklen_t);
    // SAFETY: the value is valid during the call.
    unsafe { libc::setsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, TCP_INQ, value, len) == 0 }
}

fn receive(mut stream: &TcpStream, buffer: &mut [u8]) -> io::Result<Received> {
    let len = io::Read::read(&mut stream, buffer)?;
    Ok(Received { len, is_drained: len > 0 && len < buffer.len() })
}

/// Room for one control message with a number.
#[repr(C, align(8))]
struct Control([MaybeUninit<u8>; 64]);

fn receive_and_ask(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<Received> {
    let fd: RawFd = stream.as_raw_fd();
    let mut control = Control([const { MaybeUninit::uninit() }; 64]);
    let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: all zeros is a valid `msghdr`: no name, no pieces, no control.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = size_of::<Control>();
    // SAFETY: the buffer, the piece and the control are valid for writing during the call.
    let len = unsafe { libc::recvmsg(fd, &raw mut message, 0) };
    let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
    let is_drained = len > 0 && (len < buffer.len() || left(&message) == Some(0));
    Ok(Received { len, is_drained })
}

/// Number of bytes that were left, if the kernel has written it.
fn left(message: &libc::msghdr) -> Option<libc::c_int> {
    // SAFETY: the kernel has filled in the message, and its control buffer is still valid.
    let header = unsafe { libc::CMSG_FIRSTHDR(message) };
    // SAFETY: the pointer is null, or within the control buffer.
    let of = unsafe { header.as_ref() }?;
    if (of.cmsg_level, of.cmsg_type) != (libc::IPPROTO_TCP, TCP_CM_INQ) {
        return None;
    }
    // SAFETY: this is a header in the control buffer.
    let data = unsafe { libc::CMSG_DATA(header) };
    // SAFETY: a message of this kind holds one number.
    Some(unsafe { data.cast::<libc::c_int>().read_unaligned() })
}

#[cfg(test)]
mod tests {
    use std::{io::Write, net::TcpListener, time::Duration};

    use super::*;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    fn received(len: usize, is_drained: bool) -> Received {
        Received { len, is_drained }
    }

    /// Compares each read with the kernel's own count (FIONREAD), for messages and buffers of all sizes.
    #[test]
    fn a_read_is_drained_only_if_the_kernel_has_nothing_left() {
        let (mut client, server) = pair();
        let asks = AsksWhatIsLeft::default();
        let mut buffer = [0; 9];
        let mut claims = 0;
        for round in 0..2000_usize {
            let (sent, room) = (1 + round * 7 % 23, 1 + round * 5 % 9);
            client.write_all(&vec![1; sent]).unwrap();
            let mut read = 0;
            while read < sent {
                let one = asks.read(&server, &mut buffer[..room]).unwrap();
                read += one.len;
                let kernel_has = rustix::io::ioctl_fionread(&server).unwrap();
                if one.is_drained {
                    claims += 1;
                    assert_eq!(kernel_has, 0, "round {round}");
                }
            }
        }
        // At the latest from the second message on that ends with a full buffer, the end of the message is detected.
        assert!(claims > 1000, "{claims}");
    }

    #[test]
    fn a_read_that_fills_its_buffer_is_known_to_be_the_last_from_the_second_on() {
        let (mut client, server) = pair();
        let asks = AsksWhatIsLeft::default();
        let mut message = [0; 8];
        let mut read = |client: &mut TcpStream, sent: &[u8]| {
            client.write_all(sent).unwrap();
            std::thread::sleep(Duration::from_millis(1));
            asks.read(&server, &mut message).unwrap()
        };
        assert_eq!(read(&mut client, &[1; 8]), received(8, false));
        assert_eq!(read(&mut client, &[2; 8]), received(8, true));
        assert_eq!(read(&mut client, &[3; 11]), received(8, false));
        assert_eq!(read(&mut client, &[]), received(3, true));
        // The socket is not asked any more, until a read fills its buffer again.
        assert_eq!(read(&mut client, &[4; 8]), received(8, false));
        assert_eq!(read(&mut client, &[5; 8]), received(8, true));
        // Before the end of the stream, a read is not reported as drained: nothing else would report the end.
        client.write_all(&[6; 8]).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(asks.read(&server, &mut message).unwrap(), received(8, false));
        assert_eq!(asks.read(&server, &mut message).unwrap(), received(0, false));
    }
}
