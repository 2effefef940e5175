//! Super-traces as tables of SQL.

mod asked;
mod clocks;
mod intervals;
mod limits;
mod open;
mod support;
mod views;
