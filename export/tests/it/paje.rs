//! Pajé files as text.

use std::sync::Arc;

use sigmund_export::{
    paje::Paje,
    timeline::{Cast, Sink},
};

use crate::story;

/// The file that a story makes.
pub(crate) fn written(cast: &Cast, tell: impl FnOnce(&mut dyn Sink) -> std::io::Result<()>) -> Vec<u8> {
    let mut file = Vec::new();
    let mut paje = Paje::new(&mut file, Arc::new(cast.clone())).unwrap();
    tell(&mut paje).unwrap();
    drop(paje);
    file
}

#[test]
fn dump_for_now() {
    std::fs::write("/tmp/paje-src/small.trace", written(&story::cast(11000), story::small)).unwrap();
    let random = story::Random::new(1, 2000);
    std::fs::write("/tmp/paje-src/random.trace", written(&random.cast, |sink| random.tell(sink))).unwrap();
    std::fs::write("/tmp/paje-src/empty.trace", written(&random.cast, |sink| sink.finish())).unwrap();
}
