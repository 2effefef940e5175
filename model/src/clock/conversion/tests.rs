use super::*;

fn knot(from: u64, to: u64) -> Knot {
    Knot { from, to, within: 10.0 }
}

// ticks
//  2600 |                   ●
//  2500 |          ●                  the clock slows down between the second and the third
//     0 | ●
//       + 0       1000     1100  ns
#[test]
fn between_knots_it_goes_straight_and_beyond_them_on() {
    let knots = [knot(0, 0), knot(1000, 2500), knot(1100, 2600)];
    let clock = Conversion::through(&knots).unwrap();
    assert_eq!(
        [0, 500, 1000, 1050, 1100, 1200].map(|ns| clock.convert(ns)),
        [0, 1250, 2500, 2550, 2600, 2700]
    );
}

#[test]
fn ticks_beyond_53_bits_lose_nothing() {
    let base = (1 << 60) + 1;
    let knots = [knot(base, base + 7), knot(base + 1_000_000_000, base + 7 + 2_596_147_841)];
    let clock = Conversion::through(&knots).unwrap();
    assert_eq!(clock.convert(base + 1), base + 7 + 3);
    assert_eq!(clock.convert(base + 1_000_000_000), base + 7 + 2_596_147_841);
    assert_eq!(clock.convert(base + 999_999_999), base + 7 + 2_596_147_841 - 3);
}

#[test]
fn it_never_goes_back_and_never_below_0() {
    let clock = Conversion::through(&[knot(100, 10), knot(110, 1000), knot(5000, 1001)]).unwrap();
    let all: Vec<u64> = (0..6000).map(|ns| clock.convert(ns)).collect();
    assert!(all.windows(2).all(|w| w[0] <= w[1]));
    assert_eq!(all[0], 0);
}

#[test]
fn instants_in_order_are_found_from_the_last_one_as_from_nowhere() {
    let knots: Vec<Knot> = (0..20).map(|i| knot(i * 100, i * 260 + i % 3)).collect();
    let clock = Conversion::through(&knots).unwrap();
    let mut near = 0;
    for ns in (0..2500).chain([3, 1999, 0]) {
        assert_eq!(clock.convert_near(ns, &mut near), clock.convert(ns), "{ns}");
    }
}

#[test]
fn a_residual_is_the_distance_from_the_line_of_the_neighbours() {
    let clock = Conversion::through(&[knot(0, 0), knot(1000, 2030), knot(2000, 4000)]).unwrap();
    assert_eq!(clock.residuals(), [None, Some(30.0), None]);
}

// A knot off the line means that the clock bends or jumps beside it: the bound includes that.
#[test]
fn where_the_clock_bends_the_bound_is_wide() {
    let at = |second: u64, ticks: u64| knot(second * 1_000_000_000, second * 2_600_000_000 + ticks);
    let knots = [at(0, 0), at(1, 0), at(2, 0), at(3, 5000), at(4, 5000), at(5, 5000)];
    let clock = Conversion::through(&knots).unwrap();
    let bound = |tenths: u64| clock.bound(tenths * 100_000_000);
    assert!(bound(5) < 100.0 && bound(45) < 100.0, "{} {}", bound(5), bound(45));
    assert!(bound(25) > 5000.0, "{}", bound(25));
}

#[test]
fn beyond_the_ends_the_bound_grows() {
    let clock = Conversion::through(&[knot(0, 0), knot(1_000_000, 2_600_000)]).unwrap();
    assert!(clock.bound(3_000_000) > clock.bound(2_000_000));
    let clock = Conversion::with_rate(knot(1000, 0), 2.6, 1e-5).unwrap();
    assert_eq!(clock.convert(2000), 2600);
    assert!(clock.bound(1_000_001_000) >= 26_000.0);
}

#[test]
fn clocks_that_stand_still_or_go_back_convert_nothing() {
    assert!(Conversion::through(&[]).is_none());
    assert!(Conversion::through(&[knot(1, 1)]).is_none());
    assert!(Conversion::through(&[knot(1, 1), knot(1, 2)]).is_none());
    assert!(Conversion::through(&[knot(1, 2), knot(2, 2)]).is_none());
    assert!(Conversion::through(&[knot(1, 2), knot(2, 1)]).is_none());
    assert!(Conversion::with_rate(knot(1, 1), f64::NAN, 0.0).is_none());
}
