//! The files of a super-trace: opened and checked before any query runs, and held open.
//!
//! 1. All files are opened through the descriptor of the folder. So they belong to one super-trace, even if its name
//!    changes in the meantime. A query reads only these files. If another super-trace takes the name, or this one is
//!    removed, answers are still those of the super-trace that was opened.
//! 2. If a file is no Parquet file, or lacks a column of the model, there is an error that names it. With
//!    [`OpenOptions::keep_going`](crate::OpenOptions::keep_going) the file is left out, and the error is kept.
//! 3. Opening reads only the parts after the pages, and compares them with their checksum if there is one
//!    (sigmund_model::tables::Checksums). Each page has its own checksum, so a damaged page is found when a query reads
//!    it. With `keep_going` all files are read completely, so that a file with a damaged page is left out of all
//!    answers.

mod arrow_schema;
mod damage;
mod pages;
mod part;
mod row_condition;
mod row_groups;
mod store;
mod stored;

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow::array::{AsArray, RecordBatch};
use sigmund_model::tables::{ALL, CHECKSUMS, Checksums, INFO, OPTIONAL, Table};

use self::part::CHANGED;
pub(crate) use self::{
    damage::{Sources, is_of_a_file},
    part::Part,
    store::OpenFiles,
};
pub use self::{
    pages::Useful,
    row_condition::RowCondition,
    row_groups::RowGroups,
    stored::{Store, StoredFile},
};
use crate::{Error, ErrorKind, Info};

/// The maximum number of bytes of `checksums` that are read: enough for a million files.
const MOST_CHECKSUMS: u64 = 100 << 20;

/// How often opening is tried if other super-traces take the name in the meantime.
const ATTEMPTS: usize = 4;

/// The open files of a super-trace, by table.
#[derive(Debug)]
pub(crate) struct Files {
    place: Place,
    path: PathBuf,
    /// Whether unreadable files are left out.
    keep_going: bool,
    /// The expected ends of files, where they are known.
    checksums: Checksums,
    tables: BTreeMap<&'static str, Vec<Part>>,
    left_out: Vec<Error>,
}

/// Where the files are.
#[derive(Debug)]
enum Place {
    Folder(sigmund_files::Folder),
    Store(Arc<dyn Store>),
}

impl Files {
    /// Opens the files of all tables in a folder, or in `store` if it is given, and reads the table `info`.
    ///
    /// # Errors
    /// When it is no super-trace or has another schema version; when a table is missing, or a file of it is not
    /// readable or lacks a column, unless such files are left out.
    pub(crate) fn open_all(
        path: &Path,
        store: Option<&Arc<dyn Store>>,
        keep_going: bool,
    ) -> Result<(Files, Info), Error> {
        let mut attempts = 1;
        loop {
            let mut files = match store {
                Some(store) => Files::at(Place::Store(Arc::clone(store)), path, keep_going),
                None => Files::open(path, keep_going)?,
            };
            let info = files.open_tables();
            let is_whole = info.is_ok() && files.left_out.is_empty();
            // The missing part may have been removed with the super-trace that had this name before.
            if is_whole || !files.was_replaced() {
                return Ok((files, info?));
            }
            attempts += 1;
            if attempts > ATTEMPTS {
                let message = "expected a super-trace, found one that is being replaced: open it again";
                return Err(Error::at(ErrorKind::Unreadable, path, message));
            }
        }
    }

    fn open_tables(&mut self) -> Result<Info, Error> {
        // The version is checked first, because another version may not have all tables.
        let keep_going = std::mem::take(&mut self.keep_going);
        self.open_table(&INFO)?;
        let info = Info::new(&self.path.join(INFO.name), facts(&self.read(&INFO, &["key", "value"])?))?;
        self.keep_going = keep_going;
        self.check_ends()?;
        let left_out: Vec<&str> = info.left_out_tables().collect();
        let is_left_out = |table: &Table| {
            left_out.contains(&table.name) && OPTIONAL.iter().any(|optional| optional.name == table.name)
        };
        for table in ALL.iter().filter(|t| t.name != INFO.name && !is_left_out(t)) {
            self.open_table(table)?;
        }
        if self.keep_going {
            self.leave_out_damaged();
        }
        Ok(info)
    }

    /// Opens the folder, without any of its files.
    fn open(path: &Path, keep_going: bool) -> Result<Files, Error> {
        let not_one = |found: String| {
            let message = format!("not a super-trace: expected a directory NAME.supertrace, found {found}");
            Error::at(ErrorKind::NotASuperTrace, path, message)
        };
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Err(not_one("a file".to_string())),
            Err(error) => return Err(not_one(error.to_string())),
        }
        let folder = sigmund_files::Folder::open(path).map_err(|error| not_one(error.to_string()))?;
        Ok(Files::at(Place::Folder(folder), path, keep_going))
    }

    fn at(place: Place, path: &Path, keep_going: bool) -> Files {
        let path = path.to_path_buf();
        let (checksums, tables) = Default::default();
        Files { place, path, keep_going, checksums, tables, left_out: Vec::new() }
    }

    /// Reads the expected ends of files. A later version may write them differently, so the version has been checked
    /// before.
    fn check_ends(&mut self) -> Result<(), Error> {
        match self.read_checksums() {
            Ok(checksums) => self.checksums = checksums,
            Err(error) => self.leave_out(error)?,
        }
        for part in self.tables.get(INFO.name).into_iter().flatten() {
            if let Some(end) = self.checksums.get(&format!("{}/{}", INFO.name, part.name())) {
                part.check_end(end)?;
            }
        }
        Ok(())
    }

    /// Not read from a store: checking the ends would read much over the network, where otherwise only footers are
    /// read.
    fn read_checksums(&self) -> Result<Checksums, Error> {
        let Place::Folder(folder) = &self.place else { return Ok(Checksums::default()) };
        let path = self.path.join(CHECKSUMS);
        let unreadable = |found: String| Error::at(ErrorKind::Unreadable, &path, found + CHANGED);
        let mut text = Vec::new();
        match folder.open_file(CHECKSUMS).and_then(|file| file.take(MOST_CHECKSUMS).read_to_end(&mut text)) {
            Ok(_) => Checksums::parse(&text).map_err(unreadable),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Checksums::default()),
            Err(error) => Err(unreadable(error.to_string())),
        }
    }

    /// Opens the files of a table.
    fn open_table(&mut self, table: &'static Table) -> Result<(), Error> {
        let mut parts = Vec::new();
        match self.found(table) {
            Ok(found) => {
                for part in found {
                    match part {
                        Ok(part) => parts.push(part),
                        Err(error) => self.leave_out(error)?,
                    }
                }
            }
            Err(error) => self.leave_out(error)?,
        }
        self.tables.insert(table.name, parts);
        Ok(())
    }

    /// The files of a table in the order of their names, which is the order of time. Each may be damaged.
    fn found(&self, table: &'static Table) -> Result<Vec<Result<Part, Error>>, Error> {
        let path = |name: &str| self.path.join(table.name).join(name);
        match &self.place {
            Place::Folder(folder) => {
                let (folder, names) = self.names(folder, table)?;
                let end = |name: &str| self.checksums.get(&format!("{}/{name}", table.name));
                let are_known = self.checksums.names(table.name).next().is_some();
                let open = |name: &String| match end(name) {
                    None if are_known => Err(Error::at(
                        ErrorKind::Unreadable,
                        &path(name),
                        format!("expected files that the merge wrote, found one more{CHANGED}"),
                    )),
                    end => Part::open(&folder, &path(name), name, (table, end)),
                };
                // A file that was written and is missing now is an error: its rows would be missing from answers.
                let is_gone = |name: &&str| !names.iter().any(|found| found == name);
                let gone = self.checksums.names(table.name).filter(is_gone).map(|name| {
                    Err(Error::at(
                        ErrorKind::Unreadable,
                        &path(name),
                        format!("expected this file, found none{CHANGED}"),
                    ))
                });
                Ok(names.iter().map(open).chain(gone).collect())
            }
            Place::Store(store) => {
                let names =
                    store.names(table.name).map_err(|error| self.missing(table, &error.to_string()))?;
                let is_one = |name: &String| Path::new(name).extension().is_some_and(|e| e == "parquet");
                let mut names: Vec<String> = names.into_iter().filter(is_one).collect();
                names.sort();
                if names.is_empty() {
                    return Err(self.missing(table, "no Parquet file"));
                }
                let open = |name: &String| Part::open_stored(store.as_ref(), &path(name), name, table);
                Ok(names.iter().map(open).collect())
            }
        }
    }

    fn missing(&self, table: &Table, found: &str) -> Error {
        let message =
            format!("the table `{}` is missing: expected part-00000.parquet, ..., found {found}", table.name);
        Error::at(ErrorKind::MissingTable, &self.path.join(table.name), message)
    }

    /// The tables that are open, in the order of the model. Tables that the merge left out are not among them.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &'static Table> {
        ALL.iter().filter(|table| self.tables.contains_key(table.name))
    }

    /// The number of rows of a table.
    pub(crate) fn rows(&self, table: &Table) -> u64 {
        self.tables.get(table.name).into_iter().flatten().map(Part::rows).sum()
    }

    fn leave_out(&mut self, error: Error) -> Result<(), Error> {
        if !self.keep_going {
            return Err(error);
        }
        self.left_out.push(error);
        Ok(())
    }

    /// The folder of a table, and its Parquet files in the order of their names.
    fn names(
        &self,
        folder: &sigmund_files::Folder,
        table: &Table,
    ) -> Result<(sigmund_files::Folder, Vec<String>), Error> {
        let missing = |found: String| self.missing(table, &found);
        let folder = folder.open_folder(table.name).map_err(|error| missing(error.to_string()))?;
        let names = folder.names().map_err(|error| missing(error.to_string()))?;
        let mut parquet = Vec::new();
        for name in names.iter().filter(|name| Path::new(name).extension().is_some_and(|e| e == "parquet")) {
            let name = name.to_str().ok_or_else(|| missing(format!("a name that is not UTF-8: {name:?}")))?;
            parquet.push(name.to_string());
        }
        if parquet.is_empty() {
            return Err(missing("no Parquet file".into()));
        }
        Ok((folder, parquet))
    }

    /// The given columns of all rows of an open table, in the order of the files.
    ///
    /// # Errors
    /// When a file is damaged.
    pub(crate) fn read(&self, table: &Table, columns: &[&str]) -> Result<Vec<RecordBatch>, Error> {
        let mut batches = Vec::new();
        for part in self.tables.get(table.name).into_iter().flatten() {
            part.read(columns, &mut batches)?;
        }
        Ok(batches)
    }

    /// The row groups of an open table, with the given columns.
    ///
    /// # Errors
    /// When a footer cannot be read.
    pub(crate) fn row_groups(&self, table: &Table, columns: &[&str]) -> Result<RowGroups, Error> {
        RowGroups::open(self.tables.get(table.name).map_or(&[][..], Vec::as_slice), table, columns)
    }

    /// The open files with their tables, as an object store for sessions.
    pub(crate) fn store(&self) -> OpenFiles {
        OpenFiles::new(
            self.tables.iter().flat_map(|(table, parts)| parts.iter().map(move |part| (*table, part))),
        )
    }

    /// Why files and tables were left out.
    pub(crate) fn left_out(&self) -> &[Error] {
        &self.left_out
    }

    /// Whether its path now leads to another super-trace, or to none.
    fn was_replaced(&self) -> bool {
        match &self.place {
            Place::Folder(folder) => !folder.has_its_path(),
            Place::Store(_) => false,
        }
    }

    /// A digest (FNV-1a) of the names, sizes and versions of the files. It distinguishes this super-trace from others
    /// at the same path.
    pub(crate) fn identity(&self) -> u64 {
        let mut digest = 0xcbf2_9ce4_8422_2325_u64;
        for (table, part) in
            self.tables.iter().flat_map(|(table, parts)| parts.iter().map(move |part| (table, part)))
        {
            for byte in format!("{table}/{} {} {}\n", part.name(), part.size(), part.version()).bytes() {
                digest = (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
        digest
    }
}

/// Columns: key, value.
fn facts(batches: &[RecordBatch]) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    for batch in batches {
        let (keys, values) = (batch.column(0).as_string::<i32>(), batch.column(1).as_string::<i32>());
        let text = |text: Option<&str>| text.unwrap_or_default().to_string();
        facts.extend(keys.iter().zip(values).map(|(key, value)| (text(key), text(value))));
    }
    facts
}
