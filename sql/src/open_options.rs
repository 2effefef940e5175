//! How a super-trace is opened.

use std::path::Path;

use crate::{Error, SuperTrace};
use futures::future::BoxFuture;

/// How a super-trace is opened.
///
/// ```no_run
/// # async fn open() -> Result<(), sigmund_sql::Error> {
/// let options = sigmund_sql::OpenOptions { memory: Some(1 << 30), ..Default::default() };
/// let trace = options.open("demo.supertrace").await?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenOptions {
    /// A limit on the memory of queries, in bytes. Sorts, groupings and joins that need more spill to temporary files,
    /// and fail if they cannot. Batches that are passed on are not counted. A measure fails if the process has grown by
    /// more than this since the measure began.
    pub memory: Option<usize>,
    /// Leaves out files and tables that cannot be read, except the table `info`. [`SuperTrace::left_out`] has the
    /// reasons. Answers then lack the rows of these files. All files are read once when they are opened, which takes as
    /// long as a query on all of them.
    pub keep_going: bool,
}

impl OpenOptions {
    /// Opens the directory `NAME.supertrace`.
    ///
    /// Reads the footer of every file, and the tables `info` and `event_types`. The files stay open. Whatever happens
    /// to the directory later, answers are those of the super-trace that was opened.
    ///
    /// # Errors
    /// When it is no super-trace or has another schema version; when a table is missing, unreadable or has other
    /// columns, unless such tables are left out. The message names the file.
    pub fn open(self, path: impl AsRef<Path>) -> BoxFuture<'static, Result<SuperTrace, Error>> {
        let path = path.as_ref().to_path_buf();
        Box::pin(async move { self.open_files(path, None)?.super_trace().await })
    }
}
