//! Super-traces in S3-compatible stores: `s3://BUCKET/PATH/NAME.supertrace`.
//!
//! The keys, the region and the address come from the environment, as in other programs (`AWS_ACCESS_KEY_ID`,
//! `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT`, `AWS_ALLOW_HTTP`). A request that fails is repeated for a limited time.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    ops::Range,
    path::Path,
    sync::{Arc, Mutex, OnceLock, PoisonError, mpsc},
    time::{Duration, SystemTime},
};

use datafusion::common::DataFusionError;
use futures::TryStreamExt;
use object_store::{
    BackoffConfig, GetOptions, GetRange, ObjectMeta, ObjectStore, RetryConfig,
    aws::{AmazonS3, AmazonS3Builder},
    path::Path as Key,
};
use sigmund_sql::{Error, Fleet, OpenOptions, Opened, Store, StoredFile};
use tokio::runtime::Runtime;

/// The beginning of the URL of a super-trace in a store.
const SCHEME: &str = "s3://";

/// How long a failed request is repeated, for example while a store restarts.
const PATIENCE: Duration = Duration::from_secs(20);

/// The minimum number of bytes that are read at once.
const BLOCK: u64 = 1 << 20;

/// The number of blocks of a file that are kept in memory.
const KEPT_BLOCKS: usize = 4;

/// Whether a path is the URL of something in a store.
pub fn is_url(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.starts_with(SCHEME))
}

/// Opens the files of a super-trace in a folder, or in a store if the path is a URL. It may block.
///
/// # Errors
/// As [`OpenOptions::open_files`]; when the store does not answer. The message names the URL.
pub fn open_files(path: &Path, how: OpenOptions) -> Result<Opened, Error> {
    match path.to_str().filter(|_| is_url(path)) {
        Some(url) => how.open_files(path, Some(Arc::new(Bucket::list(url)?))),
        None => how.open_files(path, None),
    }
}

/// Opens a fleet: each `HOST.supertrace` below a URL.
///
/// # Errors
/// As [`OpenOptions::open_fleet`]; when the store does not answer.
pub async fn open_fleet(url: &str, how: OpenOptions) -> Result<Fleet, Error> {
    let (mut hosts, mut left_out) = (Vec::new(), Vec::new());
    for name in fleet_names(url)? {
        let at = format!("{}/{name}", url.trim_end_matches('/'));
        let trace = match open_files(Path::new(&at), how) {
            Ok(opened) => opened.super_trace().await,
            Err(error) => Err(error),
        };
        match trace {
            Ok(trace) => hosts.push((name.trim_end_matches(".supertrace").to_string(), trace)),
            Err(error) if how.keep_going => left_out.push(error),
            Err(error) => return Err(error),
        }
    }
    if hosts.is_empty()
        && let Some(error) = left_out.pop()
    {
        return Err(error);
    }
    Ok(Fleet { left_out, ..Fleet::of(Path::new(url), hosts)? })
}

/// The names of the super-traces below a URL.
fn fleet_names(url: &str) -> Result<Vec<String>, Error> {
    let (client, key) = client(url)?;
    let listed = wait(async move { client.list_with_delimiter(Some(&key)).await });
    let listed = listed.map_err(|error| unreadable(url, &error))?;
    let names = listed.common_prefixes.iter().filter_map(|prefix| prefix.filename());
    let mut names: Vec<String> =
        names.filter(|name| name.ends_with(".supertrace")).map(String::from).collect();
    names.sort();
    Ok(names)
}

fn unreadable(url: &str, error: &dyn std::fmt::Display) -> Error {
    let message = format!(
        "expected a store that answers with the files, found: {error}; check the URL, AWS_ENDPOINT, AWS_REGION and the keys \
         AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    );
    Error::from_datafusion(url, DataFusionError::External(message.into()))
}

/// The client for a bucket, and the key that the URL names in it.
fn client(url: &str) -> Result<(Arc<AmazonS3>, Key), Error> {
    let (bucket, key) = url.strip_prefix(SCHEME).unwrap_or(url).split_once('/').unwrap_or((url, ""));
    let retry = RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 2.0,
        },
        max_retries: 30,
        retry_timeout: PATIENCE,
    };
    let client = AmazonS3Builder::from_env().with_bucket_name(bucket).with_retry(retry).build();
    let client = client.map_err(|error| unreadable(url, &error))?;
    let key = Key::parse(key.trim_end_matches('/')).map_err(|error| unreadable(url, &error))?;
    Ok((Arc::new(client), key))
}

/// Waits for the result of a request to a store. It blocks; the request runs on separate threads.
fn wait<T: Send + 'static>(
    future: impl Future<Output = object_store::Result<T>> + Send + 'static,
) -> io::Result<T> {
    static TALKING: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let start = || {
        let mut threads = tokio::runtime::Builder::new_multi_thread();
        threads.worker_threads(2).thread_name("object-store").enable_all().build()
    };
    let runtime = TALKING.get_or_init(start).as_ref().map_err(|error| io::Error::from(error.kind()))?;
    let (sender, receiver) = mpsc::sync_channel(1);
    runtime.spawn(async move { sender.send(future.await) });
    let result = receiver.recv().map_err(io::Error::other)?;
    result.map_err(|error| match error {
        object_store::Error::Precondition { path, .. } => io::Error::other(format!(
            "{path}: expected the object that was opened, found another: it was replaced; ask again"
        )),
        error => io::Error::other(error),
    })
}

/// A super-trace in a bucket, with its objects as they were listed when it was opened.
#[derive(Debug)]
struct Bucket {
    client: Arc<AmazonS3>,
    /// By table and name.
    objects: BTreeMap<(String, String), ObjectMeta>,
}

impl Bucket {
    fn list(url: &str) -> Result<Bucket, Error> {
        let (client, key) = client(url)?;
        let (listing, prefix) = (Arc::clone(&client), key.clone());
        let listed = wait(async move { listing.list(Some(&prefix)).try_collect::<Vec<_>>().await });
        let mut objects = BTreeMap::new();
        for object in listed.map_err(|error| unreadable(url, &error))? {
            let parts: Vec<String> = match object.location.prefix_match(&key) {
                Some(parts) => parts.map(|part| part.as_ref().to_string()).collect(),
                None => continue,
            };
            if let [table, name] = parts.as_slice() {
                objects.insert((table.clone(), name.clone()), object);
            }
        }
        Ok(Bucket { client, objects })
    }
}

impl Store for Bucket {
    fn names(&self, table: &str) -> io::Result<Vec<String>> {
        Ok(self.objects.keys().filter(|(of, _)| of == table).map(|(_, name)| name.clone()).collect())
    }

    fn open(&self, table: &str, name: &str) -> io::Result<Arc<dyn StoredFile>> {
        let meta = self.objects.get(&(table.to_string(), name.to_string()));
        let meta = meta.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?.clone();
        let version = meta.e_tag.clone().unwrap_or_else(|| meta.last_modified.to_rfc3339());
        Ok(Arc::new(Object { client: Arc::clone(&self.client), meta, version, blocks: Mutex::default() }))
    }
}

/// An object.
#[derive(Debug)]
struct Object {
    client: Arc<AmazonS3>,
    meta: ObjectMeta,
    /// Its ETag; in a store without ETags, when it was written.
    version: String,
    /// The blocks that were read last, by number. Parquet readers request few bytes at a time.
    blocks: Mutex<VecDeque<(u64, bytes::Bytes)>>,
}

impl Object {
    fn get(&self, range: Range<u64>) -> io::Result<bytes::Bytes> {
        let (client, at) = (Arc::clone(&self.client), self.meta.location.clone());
        let length = range.end - range.start;
        let options = GetOptions {
            if_match: self.meta.e_tag.clone(),
            if_unmodified_since: self.meta.e_tag.is_none().then_some(self.meta.last_modified),
            range: Some(GetRange::Bounded(range)),
            ..GetOptions::default()
        };
        let bytes = wait(async move { client.get_opts(&at, options).await?.bytes().await })?;
        match bytes.len() as u64 == length {
            true => Ok(bytes),
            false => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("{}: expected {length} bytes, found {}", self.meta.location, bytes.len()),
            )),
        }
    }

    fn block(&self, number: u64) -> io::Result<bytes::Bytes> {
        let kept = || self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, block)) = kept().iter().find(|(kept, _)| *kept == number) {
            return Ok(block.clone());
        }
        let start = number * BLOCK;
        let block = self.get(start..self.meta.size.min(start + BLOCK))?;
        let mut blocks = kept();
        blocks.push_front((number, block.clone()));
        blocks.truncate(KEPT_BLOCKS);
        Ok(block)
    }
}

impl StoredFile for Object {
    fn size(&self) -> u64 {
        self.meta.size
    }

    fn modified(&self) -> SystemTime {
        self.meta.last_modified.into()
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn read(&self, range: Range<u64>) -> io::Result<bytes::Bytes> {
        let (first, last) = (range.start / BLOCK, range.end.saturating_sub(1) / BLOCK);
        if range.is_empty() {
            return Ok(bytes::Bytes::new());
        }
        if first != last {
            return self.get(range);
        }
        let block = self.block(first)?;
        let start = (range.start - first * BLOCK) as usize;
        let end = start + (range.end - range.start) as usize;
        match end <= block.len() {
            true => Ok(block.slice(start..end)),
            // The range is beyond the end of the object.
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
