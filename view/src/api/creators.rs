//! The tree of user threads: each is below its creator. Also the number of living threads of a subtree over time.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{
    Query, Refusal,
    query::Window,
    rows::{MOST, row},
};
use crate::{
    View,
    index::pixels::Grid,
    key::{Key, Kind},
};

const MOST_PIXELS: u16 = 2048;

/// The tree of user threads: each is below its creator.
pub(super) fn tree(view: &View, query: &Query) -> Result<Value, Refusal> {
    let children = children(view);
    let parent = parent(query)?;
    let (offset, limit) = (query.count("offset", 0, usize::MAX)?, query.count("limit", 100, MOST)?);
    let of = children.get(&parent.map_or(0, |key| key.number)).map(Vec::as_slice).unwrap_or_default();
    let rows = of.iter().skip(offset).take(limit).map(|at| {
        let mut row = row(view, Kind::Thread, *at as usize);
        let number = view.actors.threads.numbers[*at as usize];
        row["children"] = json!(children.get(&number).map_or(0, Vec::len));
        row
    });
    Ok(json!({ "total": of.len(), "threads": rows.collect::<Vec<_>>() }))
}

/// The mean number of living threads of a subtree in each pixel, and the largest number at any time. Both are exact,
/// computed from the threads' lifetimes.
pub(super) fn living(view: &View, query: &Query) -> Result<Value, Refusal> {
    let Window { from, to } = query.window(view)?;
    let grid = Grid { from, to, pixels: query.parsed::<u16>("pixels")?.unwrap_or(512).clamp(1, MOST_PIXELS) };
    let threads = &view.actors.threads;
    let rows = match parent(query)? {
        None => (0..threads.numbers.len() as u32).collect(),
        Some(root) => subtree(view, root)?,
    };
    let life = |row: &u32| (threads.from[*row as usize].max(from), threads.to[*row as usize].min(to));
    let lives: Vec<(i64, i64)> = rows.iter().map(life).filter(|(begin, end)| begin < end).collect();
    Ok(json!({ "threads": rows.len(), "most": most_at_once(&lives), "mean": means(grid, &lives) }))
}

fn children(view: &View) -> &HashMap<u64, Vec<u32>> {
    view.orders.children.get_or_init(|| {
        let threads = &view.actors.threads;
        let mut children: HashMap<u64, Vec<u32>> = HashMap::new();
        for (row, by) in threads.created_by.iter().enumerate() {
            // A thread whose creator is not in the trace is a root.
            let by = if view.actors.thread(*by).is_some() { *by } else { 0 };
            children.entry(by).or_default().push(row as u32);
        }
        children
    })
}

fn parent(query: &Query) -> Result<Option<Key>, Refusal> {
    match query.get("parent") {
        None | Some("none") => Ok(None),
        Some(key) => Ok(Some(key.parse().map_err(Refusal::wrong)?)),
    }
}

/// The rows of a thread, of the threads that it created, of the threads that these created, and so on.
fn subtree(view: &View, root: Key) -> Result<Vec<u32>, Refusal> {
    let threads = &view.actors.threads;
    let row = (root.kind == Kind::Thread).then(|| view.actors.thread(root.number)).flatten();
    let row = row.ok_or_else(|| Refusal::missing(format!("{root}: there is no such user thread")))?;
    let children = children(view);
    let mut rows = vec![row as u32];
    let mut next = 0;
    // Each thread has one creator, so it occurs once. A damaged trace may have a cycle: then there are no more rows
    // than threads.
    while next < rows.len() && rows.len() <= threads.numbers.len() {
        let number = threads.numbers[rows[next] as usize];
        rows.extend(children.get(&number).map(Vec::as_slice).unwrap_or_default());
        next += 1;
    }
    rows.truncate(threads.numbers.len());
    Ok(rows)
}

/// The mean number of intervals that cover each pixel, over the ticks of the pixel.
fn means(grid: Grid, lives: &[(i64, i64)]) -> Vec<f64> {
    let pixels = usize::from(grid.pixels);
    let edges: Vec<i64> = (0..=grid.pixels).map(|pixel| grid.edge(pixel)).collect();
    // Ticks in the pixels in which lives begin and end; and changes of the number of lives that cover whole pixels.
    let (mut partial, mut changes) = (vec![0_i64; pixels], vec![0_i64; pixels + 1]);
    for (begin, end) in lives {
        let first = edges.partition_point(|edge| edge <= begin) - 1;
        let last = edges.partition_point(|edge| edge < end) - 1;
        if first == last {
            partial[first] += end - begin;
            continue;
        }
        partial[first] += edges[first + 1] - begin;
        partial[last] += end - edges[last];
        changes[first + 1] += 1;
        changes[last] -= 1;
    }
    let mut covering = 0;
    let mean = |pixel: usize| {
        covering += changes[pixel];
        let length = edges[pixel + 1] - edges[pixel];
        if length == 0 { 0.0 } else { (covering * length + partial[pixel]) as f64 / length as f64 }
    };
    (0..pixels).map(mean).collect()
}

fn most_at_once(lives: &[(i64, i64)]) -> usize {
    let (mut begins, mut ends): (Vec<i64>, Vec<i64>) = lives.iter().copied().unzip();
    begins.sort_unstable();
    ends.sort_unstable();
    let (mut ended, mut most) = (0, 0);
    for (begun, begin) in begins.iter().enumerate() {
        // Lives are half-open.
        while ends[ended] <= *begin {
            ended += 1;
        }
        most = most.max(begun + 1 - ended);
    }
    most
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_living_are_those_whose_lives_cover_the_ticks(
            lives in prop::collection::vec((0_i64..200, 1_i64..200), 0..40),
            pixels in 1_u16..300,
        ) {
            let grid = Grid { from: 0, to: 200, pixels };
            let lives: Vec<(i64, i64)> =
                lives.into_iter().map(|(begin, length)| (begin, (begin + length).min(200))).collect();
            let at = |tick: i64| lives.iter().filter(|(begin, end)| (*begin..*end).contains(&tick)).count();
            prop_assert_eq!(most_at_once(&lives), (0..200).map(at).max().unwrap());
            for (pixel, mean) in (0..pixels).zip(means(grid, &lives)) {
                let ticks = grid.edge(pixel)..grid.edge(pixel + 1);
                let length = (ticks.end - ticks.start).max(1) as f64;
                let sum: usize = ticks.map(at).sum();
                prop_assert!((mean - sum as f64 / length).abs() < 1e-9);
            }
        }
    }
}
