//! The names of user threads.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use arrow::{
    array::{Array, AsArray, DictionaryArray, RecordBatch, StringArray},
    datatypes::{Int32Type, Int64Type},
};
use sigmund_model::{Thread, tables::THREADS};

use crate::{Error, files::Files};

/// The maximum number of threads that read names concurrently.
const MOST_READERS: usize = 4;

/// User threads, with their names if they have any.
#[derive(Clone, Debug, Default)]
pub struct ThreadNames {
    /// The batches of the column `name`, as they were read. So two million names are not copied.
    names: Vec<NameColumn>,
    /// Sorted by thread; each thread occurs once.
    rows: Vec<Row>,
}

/// The column `name` of a batch. From a row group it is a dictionary, from a query it is plain texts.
#[derive(Clone, Debug)]
pub(crate) enum NameColumn {
    Words(DictionaryArray<Int32Type>),
    Plain(StringArray),
}

impl NameColumn {
    pub(crate) fn of(column: &dyn Array) -> NameColumn {
        match column.as_dictionary_opt::<Int32Type>() {
            Some(words) => NameColumn::Words(words.clone()),
            None => NameColumn::Plain(column.as_string::<i32>().clone()),
        }
    }

    pub(crate) fn get(&self, row: usize) -> Option<&str> {
        match self {
            NameColumn::Words(words) => Some(words.values().as_string::<i32>().value(words.key(row)?)),
            NameColumn::Plain(texts) => texts.is_valid(row).then(|| texts.value(row)),
        }
    }
}

/// Where the name of a thread is.
#[derive(Clone, Copy, Debug)]
struct Row {
    thread: Thread,
    batch: u32,
    row: u32,
}

impl ThreadNames {
    /// All threads of a super-trace.
    fn read(files: &Files) -> Result<ThreadNames, Error> {
        let groups = files.row_groups(&THREADS, &["thread", "name"])?;
        let readers = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_READERS);
        let share = groups.len().div_ceil(readers).max(1);
        let read =
            |first: usize| (first..groups.len().min(first + share)).map(|group| groups.read(group)).collect();
        let batches: Result<Vec<Vec<RecordBatch>>, Error> = std::thread::scope(|scope| {
            let shares = (0..groups.len()).step_by(share);
            let reading: Vec<_> = shares.map(|first| scope.spawn(move || read(first))).collect();
            let done = |share: std::thread::ScopedJoinHandle<'_, _>| {
                share.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            reading.into_iter().map(done).collect()
        });
        Ok(ThreadNames::of(&batches?.concat()))
    }

    /// The threads in this list that the trace has.
    pub(crate) fn among(files: &Files, threads: &[Thread]) -> Result<ThreadNames, Error> {
        Ok(ThreadNames::of(&rows_of(files, threads, &["thread", "name"])?))
    }

    /// Columns: thread, name.
    fn of(batches: &[RecordBatch]) -> ThreadNames {
        let (mut names, mut rows) = (Vec::new(), Vec::new());
        for batch in batches {
            let numbers = batch.column(0).as_primitive::<Int64Type>().values();
            let place = names.len() as u32;
            let row = |(row, number): (usize, &i64)| Row {
                thread: Thread(*number as u64),
                batch: place,
                row: row as u32,
            };
            rows.extend(numbers.iter().enumerate().map(row));
            names.push(NameColumn::of(batch.column(1)));
        }
        rows.sort_by_key(|row| row.thread);
        // If a number occurs several times, the last row counts.
        rows.reverse();
        rows.dedup_by_key(|row| row.thread);
        rows.reverse();
        ThreadNames { names, rows }
    }

    fn name_in(&self, row: &Row) -> Option<&str> {
        self.names.get(row.batch as usize)?.get(row.row as usize)
    }

    fn row(&self, thread: Thread) -> Option<&Row> {
        // Numbers usually have no holes, so the distance from the first is a good guess.
        let first = self.rows.first()?.thread.0;
        let guessed =
            usize::try_from(thread.0.checked_sub(first)?).ok().and_then(|place| self.rows.get(place));
        if let Some(row) = guessed.filter(|row| row.thread == thread) {
            return Some(row);
        }
        let place = self.rows.binary_search_by_key(&thread, |row| row.thread).ok()?;
        self.rows.get(place)
    }

    /// The name of a thread, if it has one.
    pub fn name(&self, thread: Thread) -> Option<&str> {
        self.name_in(self.row(thread)?)
    }

    /// The threads of exactly this name, in the order of their numbers. Names need not be unique.
    pub fn named(&self, name: &str) -> Vec<Thread> {
        self.iter().filter(|(_, n)| *n == Some(name)).map(|(thread, _)| thread).collect()
    }

    /// Whether it has a thread of this number.
    pub fn contains(&self, thread: Thread) -> bool {
        self.row(thread).is_some()
    }

    /// All threads, in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (Thread, Option<&str>)> + Clone {
        self.rows.iter().map(|row| (row.thread, self.name_in(row)))
    }
}

/// The threads in this list that the trace has, without their names: a reader decodes all names of a row group to find one.
pub(crate) fn existing(files: &Files, threads: &[Thread]) -> Result<BTreeSet<Thread>, Error> {
    let batches = rows_of(files, threads, &["thread"])?;
    let numbers = batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values());
    Ok(numbers.map(|number| Thread(*number as u64)).collect())
}

fn rows_of(files: &Files, threads: &[Thread], columns: &[&str]) -> Result<Vec<RecordBatch>, Error> {
    let numbers = Arc::new(threads.iter().map(|thread| thread.0 as i64).collect());
    files.row_groups(&THREADS, columns)?.rows_with("thread", &numbers)
}

/// All threads of a super-trace, read when they are first needed.
#[derive(Debug, Default)]
pub(crate) struct AllThreads {
    names: OnceLock<ThreadNames>,
    /// Held by the thread that reads them; others wait.
    reading: Mutex<()>,
}

impl AllThreads {
    pub(crate) fn get(&self, files: &Files) -> Result<&ThreadNames, Error> {
        if let Some(names) = self.names.get() {
            return Ok(names);
        }
        let _reading = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(names) = self.names.get() {
            return Ok(names);
        }
        let names = ThreadNames::read(files)?;
        Ok(self.names.get_or_init(|| names))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array};

    use super::*;

    #[test]
    fn threads_are_found_by_number_and_by_name_in_any_order_of_the_files() {
        let batch = |rows: &[(i64, Option<&str>)]| {
            let numbers: Int64Array = rows.iter().map(|row| Some(row.0)).collect();
            let names: StringArray = rows.iter().map(|row| row.1).collect();
            RecordBatch::try_from_iter([
                ("thread", Arc::new(numbers) as ArrayRef),
                ("name", Arc::new(names) as ArrayRef),
            ])
            .unwrap()
        };
        let threads = ThreadNames::of(&[
            batch(&[(7, Some("work")), (2, None), (-1, Some("far"))]),
            batch(&[(3, Some("work")), (7, Some("late"))]),
        ]);
        let all: Vec<_> = threads.iter().collect();
        let far = Thread(u64::MAX);
        assert_eq!(
            all,
            [(Thread(2), None), (Thread(3), Some("work")), (Thread(7), Some("late")), (far, Some("far"))]
        );
        assert_eq!(threads.named("work"), [Thread(3)]);
        assert_eq!(
            (threads.name(far), threads.name(Thread(2)), threads.name(Thread(4))),
            (Some("far"), None, None)
        );
        assert!(threads.contains(Thread(2)) && !threads.contains(Thread(4)));
    }
}
