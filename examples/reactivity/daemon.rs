//! The daemon, with four ways of waiting.

use std::{
    io::{self, ErrorKind},
    net,
    time::{Duration, Instant},
};

use fut::{net::UdpSocket, yield_now};

use crate::table::Latencies;

fut::events! {
    /// The client is about to send a datagram to the daemon that polls.
    fn sent_msg(number: u32) => "datagram {number}";
    /// That daemon has received it.
    fn received_msg(number: u32) => "datagram {number}";
    /// The client is about to send a datagram to the daemon that blocks.
    fn sent_msg_integrated(number: u32) => "datagram {number}";
    /// That daemon has received it.
    fn received_msg_integrated(number: u32) => "datagram {number}";
    /// The client is about to send a datagram to the daemon that blocks and is urgent.
    fn sent_msg_urgent(number: u32) => "datagram {number}";
    /// That daemon has received it.
    fn received_msg_urgent(number: u32) => "datagram {number}";
    /// The client is about to send a datagram to the daemon that is urgent, in a runtime with a real-time reactor.
    fn sent_msg_realtime(number: u32) => "datagram {number}";
    /// That daemon has received it.
    fn received_msg_realtime(number: u32) => "datagram {number}";
}

/// How the daemon waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Polling,
    Integrated,
    Urgent,
    Realtime,
}

impl Way {
    pub(crate) const ALL: [Way; 4] = [Way::Polling, Way::Integrated, Way::Urgent, Way::Realtime];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::Polling => "polling",
            Way::Integrated => "integrated",
            Way::Urgent => "integrated, urgent",
            Way::Realtime => "... real-time",
        }
    }

    pub(crate) fn is_urgent(self) -> bool {
        matches!(self, Way::Urgent | Way::Realtime)
    }

    pub(crate) fn thread_name(self) -> &'static str {
        match self {
            Way::Polling => "daemon",
            Way::Integrated => "daemon/integrated",
            Way::Urgent => "daemon/urgent",
            Way::Realtime => "daemon/realtime",
        }
    }

    pub(crate) fn record_sent(self, number: u32) {
        match self {
            Way::Polling => sent_msg(number),
            Way::Integrated => sent_msg_integrated(number),
            Way::Urgent => sent_msg_urgent(number),
            Way::Realtime => sent_msg_realtime(number),
        }
    }

    fn record_received(self, number: u32) {
        match self {
            Way::Polling => received_msg(number),
            Way::Integrated => received_msg_integrated(number),
            Way::Urgent => received_msg_urgent(number),
            Way::Realtime => received_msg_realtime(number),
        }
    }
}

/// A datagram: its number, and when it was sent, in ns since the start.
pub(crate) fn message(number: u32, stamp: u64) -> [u8; 12] {
    let mut message = [0; 12];
    message[..4].copy_from_slice(&number.to_le_bytes());
    message[4..].copy_from_slice(&stamp.to_le_bytes());
    message
}

/// The daemon's main function.
pub(crate) fn receive(
    way: Way,
    socket: net::UdpSocket,
    messages: u32,
    started: Instant,
) -> io::Result<Latencies> {
    let mut latencies = Latencies::default();
    let mut datagram = [0; 12];
    let mut handle = |datagram: &[u8; 12]| {
        let now = started.elapsed();
        let (number, stamp) = datagram.split_at(4);
        way.record_received(u32::from_le_bytes(number.try_into().expect("4 bytes")));
        let sent = Duration::from_nanos(u64::from_le_bytes(stamp.try_into().expect("8 bytes")));
        latencies.add(now.saturating_sub(sent));
    };
    if way == Way::Polling {
        socket.set_nonblocking(true)?;
        let mut received = 0;
        while received < messages {
            match socket.recv(&mut datagram) {
                Ok(_) => {
                    handle(&datagram);
                    received += 1;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => yield_now(),
                Err(error) => return Err(error),
            }
        }
    } else {
        let socket = UdpSocket::from_std(socket)?;
        for _ in 0..messages {
            socket.recv(&mut datagram)?;
            handle(&datagram);
        }
    }
    Ok(latencies)
}
