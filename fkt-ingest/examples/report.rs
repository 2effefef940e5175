//! Prints the events of a trace.dat in the kernel's own format, like `trace-cmd report -N`: `report FILE [--host]`.
//! With `--host`, the times of a guest's recording are converted to its host's clock.

use std::error::Error;
use std::io::{BufWriter, ErrorKind, Write};

use fkt_ingest::TraceDat;
use sigmund_model::{Event, EventStream};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("report FILE [--host]")?;
    let mut trace = TraceDat::open(path.as_ref())?;
    if arguments.next().as_deref() == Some("--host") && !trace.shift_to_host() {
        return Err(format!("{path}: no correction to a host's clock").into());
    }
    match report(&trace) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

fn report(trace: &TraceDat) -> std::io::Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    if let (Some(own), peer) = trace.trace_ids() {
        let peer = peer.map_or(String::new(), |peer| format!(", of its host {peer:#x}"));
        writeln!(out, "trace id {own:#x}{peer}")?;
    }
    let (mut event, mut text) = (Event::default(), String::new());
    for mut stream in trace.streams() {
        let buffer = stream.buffer().to_owned();
        while stream.next_into(&mut event)? {
            text.clear();
            stream.print_last(&mut text);
            let name = &trace.event_types()[event.kind as usize].name;
            let lwp = event.lwp.map_or("?".to_owned(), |lwp| lwp.to_string());
            let cpu = event.cpu.map_or("?".to_owned(), |cpu| cpu.to_string());
            writeln!(out, "{buffer}\t{}\t[{cpu}]\t{lwp}\t{name}: {text}", event.tick.0)?;
        }
        for loss in stream.take_losses() {
            writeln!(out, "lost: {}", loss.detail)?;
        }
    }
    out.flush()
}
