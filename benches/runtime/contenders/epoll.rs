//! An echo server without threads or tasks: one loop around the kernel's epoll, which reads what is ready and writes it back.
//! It schedules nothing, so it is the lower bound for all that wait by epoll.

use std::{
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
};

use rustix::{
    buffer::spare_capacity,
    event::epoll::{self, CreateFlags, EventData, EventFlags},
};

use crate::echo::{MESSAGE, Meter};

/// Maximum number of events that one wait fetches, as in tokio.
const MOST_EVENTS: usize = 1024;

pub(super) fn echo(listener: &TcpListener, connections: u64, meter: &Meter) {
    serve(listener, connections, meter).expect("the server");
}

/// Level-triggered: a descriptor from which not all was read is reported again, and no read finds nothing.
fn serve(listener: &TcpListener, connections: u64, meter: &Meter) -> io::Result<()> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut streams = Vec::new();
    for number in 0..connections {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        epoll::add(&epoll, &stream, EventData::new_u64(number), EventFlags::IN)?;
        streams.push(Some(stream));
    }
    let mut open = streams.len();
    let mut events = Vec::with_capacity(MOST_EVENTS);
    while open > 0 {
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), None)?;
        for event in &events {
            let place = &mut streams[event.data.u64() as usize];
            if place.as_ref().is_some_and(|stream| !answer(stream, meter)) {
                // It is closed, and thereby removed from the epoll.
                *place = None;
                open -= 1;
            }
        }
    }
    Ok(())
}

/// Answers one message; `false` if the client has closed the connection.
fn answer(mut stream: &TcpStream, meter: &Meter) -> bool {
    let mut message = [0; MESSAGE];
    match stream.read(&mut message) {
        Ok(0) | Err(_) => false,
        Ok(len) => {
            meter.request();
            stream.write_all(&message[..len]).expect("the client reads");
            true
        }
    }
}
