//! Measures the speed of reading an FxT trace: `fxt_speed FILE`. If the file does not exist, it is created: three
//! million records of three arguments, as from a program with FUT probes on x86-64. The second run counts; compare it
//! with `fxt_print -f FILE`.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use fkt_ingest::EventNames;
use sigmund_model::Event;

const RECORDS: u64 = 3_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).unwrap_or("made.fxt".to_owned());
    let path = Path::new(&path);
    if !path.exists() {
        make(path)?;
    }
    let options = fkt_ingest::OpenOptions { event_names: EventNames::default() };
    let mut event = Event::default();
    for _ in 0..3 {
        let started = Instant::now();
        let (mut events, mut params, mut losses) = (0u64, 0, 0);
        for trace in fkt_ingest::open_with(path, &options)? {
            for mut stream in trace.streams() {
                while stream.events.next_into(&mut event)? {
                    events += 1;
                    params += event.params.len();
                }
                losses += stream.events.take_losses().len();
            }
        }
        let rate = events as f64 / started.elapsed().as_secs_f64() / 1e6;
        println!("{events} events, {params} parameters, {losses} losses: {rate:.1} M events/s");
    }
    Ok(())
}

/// The blocks that `fxt_print` requires, and records of forty codes.
fn make(path: &Path) -> std::io::Result<()> {
    let block = |block_type: u32, content: &[u8]| {
        let size = (16 + content.len() as u64).to_le_bytes();
        [&size[..], &block_type.to_le_bytes(), &[0; 4], content].concat()
    };
    let mut time: Vec<u8> = [1u32, 2, 2600, 2600, 777, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
    time.extend([0u64, 0, 0, 0].iter().flat_map(|n| n.to_le_bytes()));
    time.extend(4096u32.to_le_bytes());
    let infos = [
        block(0x10, &time),
        block(0x12, &[0; 8]),
        block(0x11, &[0; 4]),
        block(0x13, &[0; 8]),
        block(0x14, &[0; 8]),
    ];
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    file.write_all(&2u32.to_be_bytes())?;
    file.write_all(&block(1, &infos.concat()))?;
    file.write_all(&(16 + RECORDS * 48).to_le_bytes())?;
    file.write_all(&[1, 2, 0, 0, 0, 0, 0, 0])?;
    for i in 0..RECORDS {
        let code = ((0x5100 + i % 40) << 8) | 4;
        for word in [1_000_000_000_000 + i * 300, 0, code, i, i * 7, 4711] {
            file.write_all(&word.to_le_bytes())?;
        }
    }
    file.flush()
}
