//! Super-traces as tables of SQL.

mod cancelling;
mod intervals;
mod open;
mod support;
mod views;
