//! The files of a super-trace that a plan names. The super-trace is opened when the files are first read.
//!
//! This matters because plans are also decoded where their files are not read: in the scheduler, and in the client that
//! checks them.

use std::{fmt, ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    path::{Path, PathPart},
};
use tokio::sync::OnceCell;

use crate::{place::Place, traces::Traces};

const NAME: &str = "super-trace";

/// The path of a file in a plan. It contains the identity of the super-trace, because executors cache footers by path.
pub(crate) fn location(identity: u64, file: &Path) -> Path {
    [PathPart::from(format!("{identity:016x}"))].into_iter().chain(file.parts()).collect()
}

/// The path of the file inside of its super-trace.
fn file(location: &Path) -> Path {
    location.parts().skip(1).collect()
}

/// The files of the super-trace at a place.
#[derive(Debug)]
pub(crate) struct Files {
    traces: Arc<Traces>,
    place: Place,
    opened: OnceCell<Arc<dyn ObjectStore>>,
}

impl Files {
    pub(crate) fn new(traces: Arc<Traces>, place: Place) -> Files {
        Files { traces, place, opened: OnceCell::new() }
    }

    async fn opened(&self) -> Result<&Arc<dyn ObjectStore>> {
        let failed = |source| Error::Generic { store: NAME, source };
        let open = || async {
            let (traces, place) = (Arc::clone(&self.traces), self.place.clone());
            let opened = tokio::task::spawn_blocking(move || traces.open(&place)).await;
            let opened = opened.map_err(|error| failed(Box::new(error)))?;
            Ok(opened.map_err(|error| failed(error.strip_backtrace().into()))?.files())
        };
        self.opened.get_or_try_init(open).await
    }
}

impl fmt::Display for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place.at)
    }
}

fn only_read<T>() -> Result<T> {
    Err(Error::NotSupported { source: "the files that a plan names are only read".into() })
}

#[async_trait]
impl ObjectStore for Files {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.opened().await?.get_opts(&file(location), options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.opened().await?.get_ranges(&file(location), ranges).await
    }

    fn list(&self, _: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        stream::once(async { only_read() }).boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> Result<ListResult> {
        only_read()
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        only_read()
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        only_read()
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        locations.then(|_| async { only_read() }).boxed()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        only_read()
    }
}
