//! The whole trace as curves: the number of threads in each state, and the number of events.

use super::{Query, Refusal, query::Window};
use crate::{
    View,
    index::{Track, pixels::Grid},
};

const MOST_PIXELS: u16 = 2048;

/// Up to this number of rows, the population is computed exactly in each pixel.
const MOST_ROWS: usize = 2000;

fn grid(window: Window, query: &Query) -> Result<Grid, Refusal> {
    let pixels = query.parsed::<u16>("pixels")?.unwrap_or(512).clamp(1, MOST_PIXELS);
    Ok(Grid { from: window.from, to: window.to, pixels })
}

/// The mean number of user threads in each state in each pixel, as f32. If there are no user threads, the number of
/// LWPs.
pub(super) fn population(view: &View, query: &Query) -> Result<Vec<u8>, Refusal> {
    let grid = grid(query.window(view)?, query)?;
    let means: Vec<Vec<f32>> = match query.parsed::<u32>("pid")? {
        None => {
            let population = view.index.population();
            edges(grid).map(|(from, to)| population.mean(from, to)).collect()
        }
        Some(pid) => of_process(view, pid, grid)?,
    };
    Ok(means.iter().flatten().flat_map(|mean| mean.to_le_bytes()).collect())
}

fn of_process(view: &View, pid: u32, grid: Grid) -> Result<Vec<Vec<f32>>, Refusal> {
    let threads = &view.actors.threads;
    let (track, rows): (Track, Vec<usize>) = if threads.numbers.is_empty() {
        let lwps = view.actors.lwps.iter().enumerate();
        (Track::LwpState, lwps.filter(|(_, lwp)| lwp.pid == Some(pid)).map(|(row, _)| row).collect())
    } else {
        let pids = threads.pids.iter().enumerate();
        (Track::ThreadState, pids.filter(|(_, of)| **of == pid).map(|(row, _)| row).collect())
    };
    if rows.len() > MOST_ROWS {
        return Err(Refusal::wrong(format!(
            "expected a process with at most {MOST_ROWS} rows, found {}: ask without pid",
            rows.len()
        )));
    }
    let states = track.values().sums();
    let mut sums = vec![vec![0_u64; states]; usize::from(grid.pixels)];
    for row in rows {
        let row = view.index.row(track, row);
        let mut cursor = row.cursor();
        let mut before = cursor.sums_at(grid.edge(0));
        for (pixel, sums) in sums.iter_mut().enumerate() {
            let after = cursor.sums_at(grid.edge(pixel as u16 + 1));
            sums.iter_mut()
                .zip(after.iter().zip(before))
                .for_each(|(sum, (to, from))| *sum = sum.saturating_add(to - from));
            before = after;
        }
    }
    let mean = |(sums, (from, to)): (Vec<u64>, (i64, i64))| {
        let length = to.abs_diff(from).max(1) as f64;
        sums.into_iter().map(|sum| (sum as f64 / length) as f32).collect()
    };
    Ok(sums.into_iter().zip(edges(grid)).map(mean).collect())
}

/// The number of events in each pixel, as f32.
pub(super) fn density(view: &View, query: &Query) -> Result<Vec<u8>, Refusal> {
    let grid = grid(query.window(view)?, query)?;
    let events = edges(grid).map(|(from, to)| view.index.events(from, to) as f32);
    Ok(events.flat_map(f32::to_le_bytes).collect())
}

fn edges(grid: Grid) -> impl Iterator<Item = (i64, i64)> {
    (0..grid.pixels).map(move |pixel| (grid.edge(pixel), grid.edge(pixel + 1)))
}
