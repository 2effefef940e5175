//! Pictures of answers: a timeline of threads, as text and SVG, and distributions as SVG. Pure functions of their inputs.

mod cdf;
mod gantt;
mod svg;

pub use cdf::{MOST_CURVES, cdf_svg};
pub use gantt::{Canvas, GANTT, Timeline};
