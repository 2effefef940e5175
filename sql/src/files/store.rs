//! The open files of a super-trace as an object store, from which sessions read. It is read-only.

use std::{collections::BTreeMap, fmt, ops::Range};

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::{
    common::runtime::SpawnedTask,
    object_store::{
        Attributes, CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
        MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult,
        Result, path::Path,
    },
};
use futures::{
    StreamExt,
    stream::{self, BoxStream},
};

use super::Part;

const NAME: &str = "super-trace";

/// If a file is read as a whole: the number of bytes in a piece.
const PIECE: u64 = 1 << 20;

/// Open files, by `TABLE/NAME`.
#[derive(Debug)]
pub(crate) struct OpenFiles(BTreeMap<Path, Part>);

impl OpenFiles {
    /// Files with the names of their tables.
    pub(super) fn new<'p>(parts: impl Iterator<Item = (&'static str, &'p Part)>) -> OpenFiles {
        OpenFiles(parts.map(|(table, part)| (Path::from_iter([table, part.name()]), part.clone())).collect())
    }

    fn part(&self, location: &Path) -> Result<&Part> {
        let missing = || Error::NotFound { path: location.to_string(), source: "no such file".into() };
        self.0.get(location).ok_or_else(missing)
    }
}

impl fmt::Display for OpenFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

fn meta(location: &Path, part: &Part) -> ObjectMeta {
    ObjectMeta {
        location: location.clone(),
        last_modified: part.modified().into(),
        size: part.size(),
        e_tag: None,
        version: None,
    }
}

fn generic(source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Generic { store: NAME, source: Box::new(source) }
}

/// Reads on a thread that may block, because the file may have to be read from disk.
async fn read(part: Part, ranges: Vec<Range<u64>>) -> Result<Vec<Bytes>> {
    let read = move || {
        let bytes = ranges.into_iter().map(|range| part.bytes(range));
        bytes.collect::<std::io::Result<_>>().map_err(|error| part.unreadable(&error))
    };
    SpawnedTask::spawn_blocking(read).await.map_err(generic)?.map_err(generic)
}

fn read_only<T>() -> Result<T> {
    Err(Error::NotSupported { source: "a super-trace is only read".into() })
}

#[async_trait]
impl ObjectStore for OpenFiles {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let part = self.part(location)?.clone();
        let meta = meta(location, &part);
        options.check_preconditions(&meta)?;
        let range = options.range.as_ref().map(|range: &GetRange| range.as_range(part.size()));
        let range = range.transpose().map_err(generic)?.unwrap_or(0..part.size());
        let pieces = if options.head { 0..0 } else { range.clone() };
        let starts = pieces.clone().step_by(PIECE as usize);
        let pieces = stream::iter(starts.map(move |start| start..pieces.end.min(start + PIECE)));
        let payload = pieces.then(move |piece| {
            let part = part.clone();
            async move { Ok(read(part, vec![piece]).await?.pop().unwrap_or_default()) }
        });
        let payload = GetResultPayload::Stream(payload.boxed());
        Ok(GetResult { payload, meta, range, attributes: Attributes::new() })
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        read(self.part(location)?.clone(), ranges.to_vec()).await
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let is_below = |location: &Path| prefix.is_none_or(|prefix| location.prefix_matches(prefix));
        let found: Vec<_> = self
            .0
            .iter()
            .filter(|(path, _)| is_below(path))
            .map(|(path, part)| Ok(meta(path, part)))
            .collect();
        stream::iter(found).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let root = Path::default();
        let prefix = prefix.unwrap_or(&root);
        let mut listed = ListResult { common_prefixes: Vec::new(), objects: Vec::new() };
        for (path, part) in &self.0 {
            let Some(mut below) = path.prefix_match(prefix) else { continue };
            match (below.next(), below.next()) {
                (Some(_), None) => listed.objects.push(meta(path, part)),
                (Some(folder), Some(_)) => listed.common_prefixes.push(prefix.clone().join(folder)),
                (None, _) => {}
            }
        }
        listed.common_prefixes.dedup();
        Ok(listed)
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> Result<PutResult> {
        read_only()
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> Result<Box<dyn MultipartUpload>> {
        read_only()
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        locations.then(|_| async { read_only() }).boxed()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> Result<()> {
        read_only()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use datafusion::object_store::ObjectStoreExt;
    use futures::TryStreamExt;
    use sigmund_model::tables::CPUS;

    use super::*;
    use crate::files::Files;

    /// A store with the table `cpus` in two files; and the bytes of each.
    fn store(folder: &std::path::Path) -> (OpenFiles, Vec<u8>) {
        use datafusion::parquet::arrow::ArrowWriter;

        fs::create_dir(folder.join(CPUS.name)).unwrap();
        let mut bytes = Vec::new();
        ArrowWriter::try_new(&mut bytes, CPUS.schema(), None).unwrap().close().unwrap();
        for name in ["part-00000.parquet", "part-00001.parquet", "notes"] {
            fs::write(folder.join(CPUS.name).join(name), &bytes).unwrap();
        }
        let mut files = Files::open(folder, false).unwrap();
        files.open_table(&CPUS).unwrap();
        (files.store(), bytes)
    }

    #[tokio::test]
    async fn ranges_and_wholes_are_those_of_the_file_even_when_it_is_gone() {
        let temporary = tempfile::tempdir().unwrap();
        let (store, bytes) = store(temporary.path());
        fs::remove_dir_all(temporary.path().join(CPUS.name)).unwrap();
        let path = Path::from("cpus/part-00001.parquet");
        assert_eq!(store.get(&path).await.unwrap().bytes().await.unwrap(), bytes);
        assert_eq!(store.get_range(&path, 3..9).await.unwrap(), bytes[3..9]);
        assert_eq!(store.get_ranges(&path, &[0..4, 6..7]).await.unwrap(), [&bytes[..4], &bytes[6..7]]);
        assert_eq!(store.head(&path).await.unwrap().size, bytes.len() as u64);
        let beyond = bytes.len() as u64 + 1;
        assert!(store.get_ranges(&path, &[0..beyond, 0..u64::MAX]).await.is_err());
        assert!(store.get(&Path::from("cpus/notes")).await.is_err());
    }

    #[tokio::test]
    async fn lists_are_in_the_order_of_names_and_nothing_is_written() {
        let temporary = tempfile::tempdir().unwrap();
        let (store, _) = store(temporary.path());
        let listed = |prefix: Option<&str>| {
            let prefix = prefix.map(Path::from);
            let found = store.list(prefix.as_ref()).map_ok(|meta| meta.location.to_string());
            async move { found.try_collect::<Vec<_>>().await.unwrap() }
        };
        let both = ["cpus/part-00000.parquet", "cpus/part-00001.parquet"];
        assert_eq!(listed(None).await, both);
        assert_eq!(listed(Some("cpus")).await, both);
        assert!(listed(Some("cpu")).await.is_empty());
        let root = store.list_with_delimiter(None).await.unwrap();
        assert_eq!((root.common_prefixes, root.objects.len()), (vec![Path::from("cpus")], 0));
        let path = Path::from(both[0]);
        assert_eq!(store.list_with_delimiter(Some(&Path::from("cpus"))).await.unwrap().objects.len(), 2);
        assert!(store.put(&path, "x".into()).await.is_err() && store.delete(&path).await.is_err());
        assert!(store.copy(&path, &Path::from("other")).await.is_err());
    }
}
