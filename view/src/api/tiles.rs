//! Rows as pictures: a header in JSON, then arrays of numbers.
//!
//! ```text
//! | length of the header: u32 | header: JSON, spaces up to a multiple of 8 | arrays, each at a multiple of 8 |
//! ```

use std::{collections::HashMap, sync::Arc};

use rayon::prelude::*;
use serde::Serialize;
use serde_json::Value;

use super::{Query, Refusal};
use crate::{
    View,
    index::{
        Track,
        pixels::{Grid, Picture, picture},
    },
    key::{Key, Kind},
};

const MOST_PIXELS: u64 = 8192;
const MOST_KEYS: usize = 512;

#[derive(Serialize)]
struct Header {
    from: i64,
    to: i64,
    pixels: u16,
    /// The actors that identity tracks name, and their labels.
    ids: Vec<Key>,
    names: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    key: String,
    tracks: Vec<Drawn>,
}

#[derive(Serialize)]
struct Drawn {
    track: &'static str,
    form: &'static str,
    at: usize,
    n: usize,
}

/// The tracks of a kind of row: the name, the track, and the kind of the actors that it names, if it is an identity
/// track.
pub(super) fn tracks(kind: Kind) -> &'static [(&'static str, Track, Option<Kind>)] {
    match kind {
        Kind::Cpu => {
            &[("lwp", Track::CpuLwp, Some(Kind::Lwp)), ("thread", Track::CpuThread, Some(Kind::Thread))]
        }
        Kind::Lwp => &[("state", Track::LwpState, None), ("thread", Track::LwpThread, Some(Kind::Thread))],
        Kind::Thread => &[("state", Track::ThreadState, None)],
    }
}

pub(super) async fn tiles(view: &Arc<View>, query: &Query) -> Result<Vec<u8>, Refusal> {
    let window = query.window(view)?;
    let pixels = query.body.get("pixels").and_then(Value::as_u64).unwrap_or_default();
    if !(1..=MOST_PIXELS).contains(&pixels) {
        return Err(Refusal::wrong(format!("expected 1 to {MOST_PIXELS} pixels, found {pixels}")));
    }
    let keys = query.body.get("keys").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if keys.len() > MOST_KEYS {
        return Err(Refusal::wrong(format!("expected at most {MOST_KEYS} rows, found {}", keys.len())));
    }
    let keys: Vec<String> = keys.iter().filter_map(|key| key.as_str().map(str::to_string)).collect();
    let grid = Grid { from: window.from, to: window.to, pixels: pixels as u16 };
    let view = Arc::clone(view);
    let drawing = tokio::task::spawn_blocking(move || draw(&view, &keys, grid));
    drawing.await.map_err(|_| Refusal::failed("the picture could not be drawn: this is a defect of sigmund"))
}

fn draw(view: &View, keys: &[String], grid: Grid) -> Vec<u8> {
    let pictures: Vec<Vec<(usize, Picture)>> =
        keys.par_iter().map(|key| pictures_of(view, key, grid)).collect();
    let mut ids = Ids { view, places: HashMap::new(), keys: Vec::new() };
    let (mut rows, mut body) = (Vec::new(), Vec::new());
    for (key, pictures) in keys.iter().zip(pictures) {
        let kind = key.parse::<Key>().map(|key| key.kind);
        let mut drawn = Vec::new();
        for (place, picture) in pictures {
            let Ok(kind) = kind else { continue };
            let (track, _, named) = tracks(kind)[place];
            body.resize(body.len().next_multiple_of(8), 0);
            let at = body.len();
            let (form, n) = encode(&mut body, view, &picture, named, &mut ids);
            drawn.push(Drawn { track, form, at, n });
        }
        rows.push(Row { key: key.clone(), tracks: drawn });
    }
    let names = ids.keys.iter().map(|key| view.actors.label(&view.trace, *key)).collect();
    let (from, to) = (view.offset(grid.from), view.offset(grid.to));
    let header = Header { from, to, pixels: grid.pixels, ids: ids.keys, names, rows };
    // The header's content can always be written as JSON.
    let mut header = serde_json::to_vec(&header).unwrap_or_default();
    header.resize((header.len() + 4).next_multiple_of(8) - 4, b' ');
    let mut answer = Vec::with_capacity(4 + header.len() + body.len());
    answer.extend((header.len() as u32).to_le_bytes());
    answer.extend(header);
    answer.extend(body);
    answer
}

fn pictures_of(view: &View, key: &str, grid: Grid) -> Vec<(usize, Picture)> {
    let Ok(key) = key.parse::<Key>() else { return Vec::new() };
    let Some(row) = view.actors.row(key) else { return Vec::new() };
    let tracks = tracks(key.kind).iter().enumerate();
    let pictures = tracks.map(|(place, (_, track, _))| (place, picture(&view.index.row(*track, row), grid)));
    pictures.collect()
}

/// The actors that are named in a picture.
struct Ids<'v> {
    view: &'v View,
    places: HashMap<(Kind, u32), u32>,
    keys: Vec<Key>,
}

impl Ids<'_> {
    /// The index of a row in the list.
    fn place(&mut self, kind: Kind, row: u32) -> u32 {
        let (keys, view) = (&mut self.keys, self.view);
        *self.places.entry((kind, row)).or_insert_with(|| {
            keys.push(view.actors.key(kind, row as usize));
            (keys.len() - 1) as u32
        })
    }
}

/// Several actors, of which none was there for half of the time.
const MIXED: u32 = u32::MAX;

fn encode(
    body: &mut Vec<u8>,
    view: &View,
    picture: &Picture,
    named: Option<Kind>,
    ids: &mut Ids<'_>,
) -> (&'static str, usize) {
    match picture {
        Picture::Intervals(stays) => {
            for stay in stays {
                let value = named.map_or(stay.value, |kind| ids.place(kind, stay.value));
                for number in [view.offset(stay.from) as f64, view.offset(stay.to) as f64, f64::from(value)] {
                    body.extend(number.to_le_bytes());
                }
            }
            ("intervals", stays.len())
        }
        Picture::States(runs) => {
            runs.iter().for_each(|number| body.extend(number.to_le_bytes()));
            ("pixels", runs.len())
        }
        Picture::Identities(runs) => {
            for [first, pixels, share, who] in runs {
                let who = match named {
                    Some(kind) if *who != MIXED => ids.place(kind, *who),
                    _ => MIXED,
                };
                [*first, *pixels, *share, who].iter().for_each(|number| body.extend(number.to_le_bytes()));
            }
            ("pixels", runs.len())
        }
    }
}
