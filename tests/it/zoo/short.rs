//! A program that is over in a millisecond: all that it recorded is there.

use super::program::{self, TRACE, is_whole, recorded};
use crate::kernel;

const NAME: &str = "short";
const EVENTS: u64 = 50;

fut::events! {
    fn zoo_short(number: u64);
}

#[test]
#[ignore = "a program for another test"]
fn is_over_at_once() {
    if !program::is(NAME) {
        return;
    }
    let _ = fut::init();
    println!("account events={EVENTS}");
    (0..EVENTS).for_each(zoo_short);
    // Not by way of the harness, which would take longer than the program.
    std::process::exit(0);
}

#[test]
fn a_program_that_ends_at_once_is_recorded_to_its_last_event() {
    let Some(_alone) = kernel::as_root() else { return };
    let (sigmund, account) = recorded("zoo::short::is_over_at_once", NAME);
    assert_eq!(account.number("events"), EVENTS as i64);
    let rows = sigmund.sql(TRACE, "SELECT count(*), min(number), max(number) FROM zoo_short");
    assert_eq!(rows, [["50", "0", "49"]]);
    is_whole(&sigmund);
}
