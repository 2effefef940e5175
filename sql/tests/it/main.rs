//! Super-traces as tables of SQL.

mod asked;
mod clocks;
mod intervals;
mod limits;
mod open;
mod sqlite;
mod support;
mod views;
