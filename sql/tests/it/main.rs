//! Super-traces as tables of SQL.

mod clocks;
mod intervals;
mod open;
mod support;
mod views;
