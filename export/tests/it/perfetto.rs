//! Perfetto traces: as Perfetto's message definitions read them, and as its trace processor understands them.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use serde_json::Value;
use sigmund_export::{
    perfetto::Perfetto,
    timeline::{Cast, Sink},
};

use crate::{story, story::Random, tally::Tally, viewer};

type Tell<'a> = &'a dyn Fn(&mut dyn Sink);

fn tell_small(sink: &mut dyn Sink) {
    story::small(sink).unwrap();
}

/// Writes a story to a file, and sums it up.
fn write(path: &Path, cast: &Cast, tell: Tell<'_>) -> Tally {
    let mut perfetto = Perfetto::new(fs::File::create(path).unwrap(), Arc::new(cast.clone())).unwrap();
    tell(&mut perfetto);
    let mut tally = Tally::default();
    tell(&mut tally);
    tally
}

#[test]
fn scratch() {
    let folder = Path::new("/tmp/pf/out");
    fs::create_dir_all(folder).unwrap();
    let cast = story::cast(11000);
    write(&folder.join("small.pftrace"), &cast, &tell_small);
    let random = Random::new(7, 20_000);
    write(&folder.join("random.pftrace"), &random.cast, &|sink| random.tell(sink).unwrap());
}
