//! Writes a file on a separate thread, so that formatting continues at the same time.

use std::{
    io::{self, Write},
    mem,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread::JoinHandle,
};

/// The number of bytes that are passed to the thread together.
const CHUNK: usize = 256 << 10;
/// The largest number of chunks that wait to be written.
const AHEAD: usize = 4;

/// A writer whose bytes another thread writes. An error of that thread is returned by a later call. How much was
/// written before the error is unknown.
pub(super) struct Background {
    buffer: Vec<u8>,
    /// `None` after an error.
    writing: Option<Writing>,
}

struct Writing {
    todo: SyncSender<Todo>,
    /// Written chunks, whose memory is used again.
    written: Receiver<Vec<u8>>,
    thread: JoinHandle<io::Result<()>>,
}

enum Todo {
    Write(Vec<u8>),
    /// Flush, and answer.
    Flush(SyncSender<()>),
}

impl Background {
    /// # Errors
    /// If no thread can be started.
    pub(super) fn new(out: impl Write + Send + 'static) -> io::Result<Background> {
        let (todo, received) = sync_channel(AHEAD);
        let (give_back, written) = sync_channel(AHEAD);
        let run = move || run(out, &received, &give_back);
        let thread = std::thread::Builder::new().name("export-writer".into()).spawn(run)?;
        Ok(Background { buffer: Vec::with_capacity(CHUNK), writing: Some(Writing { todo, written, thread }) })
    }

    /// Passes a command to the thread. If it fails, the thread has ended; the error is the thread's.
    fn send(&mut self, todo: Todo) -> io::Result<()> {
        let Some(writing) = &self.writing else { return Err(failed_before()) };
        if writing.todo.send(todo).is_ok() { Ok(()) } else { Err(self.error()) }
    }

    fn send_buffer(&mut self) -> io::Result<()> {
        let next = self.writing.as_ref().and_then(|writing| writing.written.try_recv().ok());
        let full = mem::replace(&mut self.buffer, next.unwrap_or_else(|| Vec::with_capacity(CHUNK)));
        self.send(Todo::Write(full))
    }

    /// The error that ended the thread.
    fn error(&mut self) -> io::Error {
        let Some(Writing { todo, thread, .. }) = self.writing.take() else { return failed_before() };
        drop(todo);
        match thread.join() {
            Ok(Err(error)) => error,
            Ok(Ok(())) | Err(_) => failed_before(),
        }
    }
}

fn failed_before() -> io::Error {
    io::Error::other("what was written before has failed")
}

fn run(mut out: impl Write, todo: &Receiver<Todo>, give_back: &SyncSender<Vec<u8>>) -> io::Result<()> {
    for todo in todo {
        match todo {
            Todo::Write(mut chunk) => {
                out.write_all(&chunk)?;
                chunk.clear();
                // If the channel is full, the chunk is dropped.
                let _ = give_back.try_send(chunk);
            }
            Todo::Flush(done) => {
                out.flush()?;
                let _ = done.send(());
            }
        }
    }
    Ok(())
}

impl Write for Background {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= CHUNK {
            self.send_buffer()?;
        }
        Ok(bytes.len())
    }

    /// Waits until everything is written.
    fn flush(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            self.send_buffer()?;
        }
        let (tell, done) = sync_channel(1);
        self.send(Todo::Flush(tell))?;
        done.recv().map_err(|_| self.error())
    }
}

impl Drop for Background {
    /// Bytes that were not flushed may not be written. The thread ends.
    fn drop(&mut self) {
        if let Some(Writing { todo, thread, .. }) = self.writing.take() {
            drop(todo);
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Fails after this number of bytes.
    struct Shared(Arc<Mutex<Vec<u8>>>, usize);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut written = self.0.lock().unwrap();
            if written.len() + bytes.len() > self.1 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            written.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn all_is_written_in_order_when_it_is_flushed() {
        let written = Arc::new(Mutex::new(Vec::new()));
        let mut out = Background::new(Shared(Arc::clone(&written), usize::MAX)).unwrap();
        let mut expected = Vec::new();
        for number in 0..300_000_u32 {
            out.write_all(&number.to_le_bytes()).unwrap();
            expected.extend(number.to_le_bytes());
        }
        out.flush().unwrap();
        assert!(*written.lock().unwrap() == expected);
        out.write_all(b"end").unwrap();
        out.flush().unwrap();
        drop(out);
        assert!(written.lock().unwrap().ends_with(b"end"));
    }

    #[test]
    fn an_error_of_the_thread_is_told_once_it_is_known_and_nothing_succeeds_after_it() {
        let mut out = Background::new(Shared(Arc::default(), 1000)).unwrap();
        let first = (0..1000).find_map(|_| out.write_all(&[0; CHUNK]).err()).unwrap();
        assert_eq!(first.kind(), io::ErrorKind::StorageFull);
        assert!(out.flush().is_err());
        let mut out = Background::new(Shared(Arc::default(), 1000)).unwrap();
        out.write_all(&[0; 1001]).unwrap();
        assert_eq!(out.flush().unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(out.write_all(&[0; CHUNK]).is_err());
    }
}
