//! Super-traces as tables of SQL.

mod intervals;
mod open;
mod support;
mod views;
