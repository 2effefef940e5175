//! A second witness: our own reader of CTF, which was tested with LTTng's recordings.

use fkt_ingest::{CtfTrace, TraceFile};
use sigmund_model::{Event, Lwp};

use super::write;
use crate::story::Random;

#[test]
fn our_own_reader_reads_the_same_events() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("trace");
    let random = Random::new(11, 20_000);
    let (told, _) = write(&folder, &random.cast, |sink| random.tell(sink).unwrap());
    let trace = CtfTrace::open(&folder).unwrap();
    assert_eq!(trace.tick_hz().map(|hertz| hertz.per_second()), Some(2.5e9));
    assert!(TraceFile::losses(&trace).is_empty());
    let mut event = Event::default();
    let mut read = 0;
    for mut stream in TraceFile::streams(&trace) {
        while stream.events.next_into(&mut event).unwrap() {
            let (told, ty) = (&told[read], &trace.event_types()[event.kind as usize]);
            assert_eq!((event.tick.0, &ty.name, event.lwp), (told.tick, &told.name, Some(Lwp(70))));
            for (name, _, number, text) in &told.fields {
                let param = ty.field(name).and_then(|at| event.params.get(at)).unwrap();
                assert_eq!((param.number, param.text), (*number, text.as_deref()), "{name}");
            }
            read += 1;
        }
        assert_eq!(stream.events.take_losses(), []);
    }
    assert_eq!(read, told.len());
}
