//! Finds the file that has a damaged page although its footer is intact. Opening a file reads only the footer.
//!
//! An error of the Parquet reader does not name its file. So after such an error, the files of the query are read once
//! more until one fails. That takes as long as reading them, but happens only after an error. To [leave
//! out](crate::OpenOptions::keep_going) damaged files, all files are read when they are opened. Later would be too
//! late: some of their rows may already have been returned.

use std::{
    collections::BTreeSet,
    num::NonZero,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use arrow::error::ArrowError;
use datafusion::{
    datasource::{physical_plan::FileScanConfig, source::DataSourceExec},
    error::DataFusionError,
    parquet::arrow::arrow_reader::ArrowReaderMetadata,
    physical_plan::ExecutionPlan,
};
use sigmund_model::tables::{INFO, Table};
use url::Url;

use super::{Files, Part};
use crate::Error;

/// The open files that a session can read, by their URLs in plans.
#[derive(Clone, Debug)]
pub(crate) struct Sources(pub(crate) Vec<(Url, Arc<Files>)>);

impl Sources {
    /// The error of a plan. If it is about a file that the plan reads, the file's name is added.
    pub(crate) async fn named(
        &self,
        plan: &Arc<dyn ExecutionPlan>,
        error: DataFusionError,
    ) -> DataFusionError {
        if !is_of_a_file(&error) {
            return error;
        }
        let mut read = BTreeSet::new();
        add_files(plan, &mut read);
        let mut parts = Vec::new();
        for (url, files) in &self.0 {
            let is_read = |table: &str, part: &Part| {
                read.contains(&(url.to_string(), format!("{table}/{}", part.name())))
            };
            parts.extend(
                files.parts().filter(|(table, part)| is_read(table, part)).map(|(_, part)| part.clone()),
            );
        }
        let damage = move || parts.iter().find_map(|part| part.check().err());
        match tokio::task::spawn_blocking(damage).await {
            Ok(Some(damage)) => DataFusionError::External(Box::new(damage)),
            _ => error,
        }
    }
}

/// The first error of `check` in each of these files, with the index of the file, in the order of the files.
fn damaged(
    parts: &[&Part],
    check: impl Fn(&Part, &ArrowReaderMetadata, usize) -> Result<(), Error> + Sync,
) -> Vec<(usize, Error)> {
    let mut groups: Vec<(usize, ArrowReaderMetadata, usize)> = Vec::new();
    let mut damaged: Vec<(usize, Error)> = Vec::new();
    for (place, part) in parts.iter().enumerate() {
        match part.footer() {
            Ok(footer) => groups
                .extend((0..footer.metadata().num_row_groups()).map(|group| (place, footer.clone(), group))),
            Err(error) => damaged.push((place, error)),
        }
    }
    let (next, found) = (AtomicUsize::new(0), Mutex::new(damaged));
    let read = || {
        // Relaxed: the counter publishes no other memory.
        while let Some((place, footer, group)) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(error) = check(parts[*place], footer, *group) {
                found.lock().unwrap_or_else(PoisonError::into_inner).push((*place, error));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(read);
        }
    });
    let mut damaged = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    damaged.sort_by_key(|(place, _)| *place);
    damaged.dedup_by_key(|(place, _)| *place);
    damaged
}

/// Adds the files that a plan reads, by the URL of their root and their path below it.
fn add_files(plan: &Arc<dyn ExecutionPlan>, read: &mut BTreeSet<(String, String)>) {
    let scan = plan.downcast_ref::<DataSourceExec>().map(DataSourceExec::data_source);
    if let Some(scan) = scan.and_then(|scan| scan.downcast_ref::<FileScanConfig>()) {
        let files = scan.file_groups.iter().flat_map(|group| group.files());
        let root = scan.object_store_url.as_str();
        read.extend(files.map(|file| (root.to_string(), file.object_meta.location.to_string())));
    }
    plan.children().into_iter().for_each(|child| add_files(child, read));
}

/// Whether an error may come from reading a file. Filters are computed while a file is read, so the file may be intact.
pub(crate) fn is_of_a_file(error: &DataFusionError) -> bool {
    match error.find_root() {
        DataFusionError::ParquetError(_) | DataFusionError::ObjectStore(_) => true,
        DataFusionError::ArrowError(error, _) => {
            matches!(**error, ArrowError::ParquetError(_) | ArrowError::ExternalError(_))
        }
        _ => false,
    }
}

impl Files {
    /// All open files, with their tables.
    fn parts(&self) -> impl Iterator<Item = (&'static str, &Part)> {
        self.tables.iter().flat_map(|(table, parts)| parts.iter().map(|part| (*table, part)))
    }

    /// The error of the first damaged file of this table, or of all tables; `None` if all files can be read.
    pub(crate) fn damage(&self, table: Option<&Table>) -> Option<Error> {
        let is_asked = |name: &str| table.is_none_or(|table| table.name == name);
        self.parts().filter(|(name, _)| is_asked(name)).find_map(|(_, part)| part.check().err())
    }

    /// The error of the first file with a page that has a wrong checksum or is no page. It reads on all CPUs.
    pub(crate) fn first_damage(&self) -> Option<Error> {
        let parts: Vec<&Part> = self.parts().map(|(_, part)| part).collect();
        damaged(&parts, Part::check_pages).into_iter().next().map(|(_, error)| error)
    }

    /// Leaves out the files that cannot be read completely, except those of the table `info`. It reads on all CPUs.
    pub(super) fn leave_out_damaged(&mut self) {
        let parts: Vec<Part> =
            self.parts().filter(|(table, _)| *table != INFO.name).map(|(_, part)| part.clone()).collect();
        let damaged = damaged(&parts.iter().collect::<Vec<_>>(), Part::check_group);
        let is_damaged = |part: &Part| damaged.iter().any(|(place, _)| parts[*place].is(part));
        for (table, of_table) in &mut self.tables {
            of_table.retain(|part| *table == INFO.name || !is_damaged(part));
        }
        self.left_out.extend(damaged.into_iter().map(|(_, error)| error));
    }
}
