//! Properties of the units for arbitrary values.

use core::time::Duration;

use comity_units::{DataSize, PacketNumber, ParseErrorKind, Rate, Seed, SeqNo, Span, Time};
use proptest::prelude::*;

/// Values of every magnitude: a uniform distribution would rarely produce small ones.
fn magnitudes() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..64).prop_map(|(bits, shift)| bits >> shift)
}

/// The smaller of `value` and the maximum: the definition of saturation in wider arithmetic.
fn saturated(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

/// `value / 10^decimals` in full, so that parsing it needs no rounding.
fn decimal(value: u64, decimals: u32) -> String {
    let unit = 10u64.pow(decimals);
    if decimals == 0 {
        value.to_string()
    } else {
        format!(
            "{}.{:0width$}",
            value / unit,
            value % unit,
            width = decimals as usize
        )
    }
}

/// A unit's name and its number of decimals.
type DecimalUnit = (&'static str, u32);

const SPANS: [DecimalUnit; 5] = [("ns", 0), ("us", 3), ("µs", 3), ("ms", 6), ("s", 9)];
const AMOUNTS: [DecimalUnit; 5] = [("B", 0), ("kB", 3), ("KB", 3), ("MB", 6), ("GB", 9)];
const RATES: [DecimalUnit; 12] = [
    ("bps", 0),
    ("bit/s", 0),
    ("b/s", 0),
    ("kbps", 3),
    ("kbit/s", 3),
    ("kb/s", 3),
    ("Mbps", 6),
    ("Mbit/s", 6),
    ("Mb/s", 6),
    ("Gbps", 9),
    ("Gbit/s", 9),
    ("Gb/s", 9),
];

proptest! {
    #[test]
    fn printed_quantities_read_back(value in magnitudes()) {
        let span = Span::from_nanos(value);
        prop_assert_eq!(span.to_string().parse(), Ok(span));
        let amount = DataSize::new(value);
        prop_assert_eq!(amount.to_string().parse(), Ok(amount));
        let rate = Rate::from_bps(value);
        prop_assert_eq!(rate.to_string().parse(), Ok(rate));
    }

    #[test]
    fn decimals_are_read_exactly_in_every_unit(
        value in magnitudes(),
        span in prop::sample::select(&SPANS[..]),
        amount in prop::sample::select(&AMOUNTS[..]),
        rate in prop::sample::select(&RATES[..]),
        lead in "0{0,50}",
        gap in " {0,2}",
    ) {
        let write = |(name, decimals)| format!("{gap}{lead}{}{gap}{name}{gap}", decimal(value, decimals));
        prop_assert_eq!(write(span).parse(), Ok(Span::from_nanos(value)));
        prop_assert_eq!(write(amount).parse(), Ok(DataSize::new(value)));
        prop_assert_eq!(write(rate).parse(), Ok(Rate::from_bps(value)));
    }

    #[test]
    fn zeros_at_the_end_change_nothing(value in magnitudes(), zeros in "0{1,60}") {
        let text = format!("{}{zeros}s", decimal(value, 9));
        prop_assert_eq!(text.parse(), Ok(Span::from_nanos(value)));
    }

    #[test]
    fn one_more_decimal_is_too_fine(value in magnitudes(), more in "[0-9]{0,60}[1-9]") {
        let text = format!("{}{more}s", decimal(value, 9));
        let kind = text.parse::<Span>().map_err(|error| error.kind());
        prop_assert_eq!(kind, Err(ParseErrorKind::TooFine));
    }

    #[test]
    fn one_more_than_the_largest_is_too_large(beyond in 1u128.., decimals in 0usize..3) {
        let unit = 1_000u128.pow(decimals as u32);
        let Some(value) = (u128::from(u64::MAX) / unit).checked_add(beyond) else {
            return Ok(());
        };
        let name = ["ns", "us", "ms"][decimals];
        let kind = format!("{value}{name}").parse::<Span>().map_err(|error| error.kind());
        prop_assert_eq!(kind, Err(ParseErrorKind::TooLarge));
    }

    #[test]
    fn no_text_makes_reading_panic(text in "\\PC{0,40}", number in "[0-9._]{0,45}") {
        for text in [text.clone(), format!("{number}{text}"), format!("{number}GiB"), format!("{number}h")] {
            let _ = text.parse::<Span>();
            let _ = text.parse::<DataSize>();
            let _ = text.parse::<Rate>();
        }
    }

    #[test]
    fn times_and_spans_add_up(time in magnitudes(), span in magnitudes()) {
        let (start, step) = (Time::from_nanos(time), Span::from_nanos(span));
        let end = start + step;
        let sum = u128::from(time) + u128::from(span);
        prop_assert_eq!(end.as_nanos(), saturated(sum));
        prop_assert_eq!(start.checked_add(step).is_some(), sum <= u128::from(u64::MAX));
        if let Some(end) = start.checked_add(step) {
            prop_assert_eq!(end.since(start), Some(step));
            prop_assert_eq!(start.since(end).is_some(), span == 0);
            prop_assert_eq!(end.saturating_sub(step), start);
        }
        prop_assert_eq!(start.saturating_since(end), Span::ZERO);
    }

    #[test]
    fn spans_behave_as_whole_numbers_with_ends(a in magnitudes(), b in magnitudes()) {
        let (left, right) = (Span::from_nanos(a), Span::from_nanos(b));
        let (wide_a, wide_b) = (u128::from(a), u128::from(b));
        prop_assert_eq!((left + right).as_nanos(), saturated(wide_a + wide_b));
        prop_assert_eq!([left, right, left].into_iter().sum::<Span>(), left + right + left);
        prop_assert_eq!((left * b).as_nanos(), saturated(wide_a * wide_b));
        prop_assert_eq!((left / b).as_nanos(), a.checked_div(b).unwrap_or(u64::MAX));
        prop_assert_eq!(left.checked_sub(right).map(Span::as_nanos), a.checked_sub(b));
        prop_assert_eq!(left.saturating_sub(right) + right, left.max(right));
        prop_assert_eq!(left.abs_diff(right), left.max(right).saturating_sub(left.min(right)));
    }

    #[test]
    fn spans_and_durations_convert_without_loss(nanos in magnitudes(), secs in any::<u64>()) {
        let span = Span::from_nanos(nanos);
        prop_assert_eq!(Duration::from(span), Duration::from_nanos(nanos));
        prop_assert_eq!(Span::from(Duration::from(span)), span);
        let wide = u128::from(secs) * 1_000_000_000;
        prop_assert_eq!(Span::from(Duration::from_secs(secs)).as_nanos(), saturated(wide));
        prop_assert_eq!(Span::from_secs(secs).as_nanos(), saturated(wide));
        prop_assert_eq!(Time::from_secs(secs).as_nanos(), saturated(wide));
    }

    #[test]
    fn spans_in_seconds_come_back(nanos in 0u64..1 << 51) {
        // A double has 53 bits, and the round trip rounds twice: exact for 26 days.
        prop_assert_eq!(Span::from_secs_f64(Span::from_nanos(nanos).as_secs_f64()), Span::from_nanos(nanos));
    }

    #[test]
    fn whole_numbers_survive_a_factor_of_one(value in 0u64..=1 << 53) {
        prop_assert_eq!(Span::from_nanos(value).mul_f64(1.0), Span::from_nanos(value));
        prop_assert_eq!(Rate::from_bps(value).mul_f64(1.0), Rate::from_bps(value));
        prop_assert_eq!(Rate::from_bps_f64(value as f64), Rate::from_bps(value));
    }

    #[test]
    fn factors_round_to_the_nearest(value in 0u64..1 << 40, eighths in 0u64..1 << 10) {
        // Eighths are exact in a double, and so is the product.
        let nearest = (value * eighths + 4) / 8;
        let factor = eighths as f64 / 8.0;
        prop_assert_eq!(Span::from_nanos(value).mul_f64(factor).as_nanos(), nearest);
        prop_assert_eq!(Rate::from_bps(value).mul_f64(factor).as_bps(), nearest);
    }

    #[test]
    fn the_wire_is_busy_just_long_enough(bits in 1u64.., amount in magnitudes()) {
        let (rate, amount) = (Rate::from_bps(bits), DataSize::new(amount));
        let span = rate.transmission_time(amount);
        // τ is the least whole number of nanoseconds with rate · τ ≥ 8 · amount (10^9 from the
        // unit).
        let needed = u128::from(amount.get()) * 8_000_000_000;
        let moved = |nanos: u64| u128::from(bits) * u128::from(nanos);
        if span < Span::MAX {
            prop_assert!(moved(span.as_nanos()) >= needed);
        }
        if let Some(less) = span.as_nanos().checked_sub(1) {
            prop_assert!(moved(less) < needed);
        }
    }

    #[test]
    fn amounts_and_transmission_times_invert(bits in 1u64.., amount in magnitudes()) {
        let (rate, amount) = (Rate::from_bps(bits), DataSize::new(amount));
        let span = rate.transmission_time(amount);
        prop_assume!(span < Span::MAX);
        // Rounding the time up adds at most one nanosecond's worth.
        let back = rate.amount_in(span);
        prop_assert!(amount <= back, "{amount} became {back}");
        prop_assert!(back.get() - amount.get() <= bits / 8_000_000_000 + 1, "{amount} became {back}");
        if !span.is_zero() {
            // The same rounding reduces the measured rate by at most one nanosecond's share.
            let measured = Rate::of(amount, span).as_bps();
            let (nanos, less) = (span.as_nanos(), span.as_nanos() - 1);
            prop_assert!(measured <= bits);
            prop_assert!((u128::from(measured) + 1) * u128::from(nanos) > u128::from(bits) * u128::from(less));
        }
    }

    #[test]
    fn amounts_add_and_subtract(a in magnitudes(), b in magnitudes()) {
        let (left, right) = (DataSize::new(a), DataSize::new(b));
        prop_assert_eq!((left + right).get(), saturated(u128::from(a) + u128::from(b)));
        prop_assert_eq!((left * b).get(), saturated(u128::from(a) * u128::from(b)));
        prop_assert_eq!(left.bits(), saturated(u128::from(a) * 8));
        prop_assert_eq!(left.checked_sub(right).map(DataSize::get), a.checked_sub(b));
        prop_assert_eq!(left.saturating_sub(right) + right, left.max(right));
        if a >= b {
            prop_assert_eq!(left - right, DataSize::new(a - b));
        }
    }

    #[test]
    fn sequence_numbers_have_an_order_within_half_the_circle(
        start in any::<u32>(),
        step in 1u32..1 << 31,
        turn in any::<u32>(),
    ) {
        let early = SeqNo::new(start);
        let late = early + step;
        prop_assert_eq!(late.distance_from(early), step as i32);
        prop_assert_eq!(early.distance_from(late), -(step as i32));
        prop_assert_eq!(late.back(step), early);
        prop_assert!(early.precedes(late) && late.follows(early));
        prop_assert!(!late.precedes(early) && !early.follows(late));
        for (a, b) in [(early, late), (late, early)] {
            prop_assert_eq!(a.latest(b), late);
            prop_assert_eq!(a.earliest(b), early);
        }
        // The order does not depend on the position of the wrap.
        prop_assert!((early + turn).precedes(late + turn));
    }

    #[test]
    fn packet_numbers_count_up(value in 0..u64::MAX) {
        let number = PacketNumber::new(value);
        prop_assert!(number < number.next());
        prop_assert_eq!(number.next().get() - value, 1);
    }

    #[test]
    fn seeds_differ_by_name_and_index(
        seed in any::<u64>(),
        names in prop::collection::btree_set("[a-z/0-9]{0,12}", 2..20),
        index in any::<u64>(),
    ) {
        let run = Seed::new(seed);
        let mut seeds: Vec<u64> = names.iter().map(|name| run.derive(name).get()).collect();
        seeds.extend((0..20).map(|step| run.index(index.wrapping_add(step)).get()));
        let count = seeds.len();
        seeds.sort_unstable();
        seeds.dedup();
        prop_assert_eq!(seeds.len(), count);
    }
}

#[test]
fn every_kind_of_error_is_distinguished() {
    use ParseErrorKind::*;
    let cases = [
        ("", NoNumber),
        ("   ", NoNumber),
        ("ms", NoNumber),
        (".5s", NoNumber),
        ("5.s", NoNumber),
        ("1..5s", NoNumber),
        ("1.2.3s", NoNumber),
        ("_1s", NoNumber),
        ("1_s", NoNumber),
        ("1__0s", NoNumber),
        ("1_.5s", NoNumber),
        ("+5ms", NoNumber),
        ("\u{663}s", NoNumber),
        ("-5ms", Negative),
        (" -0s", Negative),
        ("40", NoUnit),
        ("40.5  ", NoUnit),
        ("40 parsecs", UnknownUnit),
        ("40 MS", UnknownUnit),
        ("1e3ms", UnknownUnit),
        ("1 000ms", UnknownUnit),
        ("1.5ns", TooFine),
        ("0.0000000001s", TooFine),
        ("0.999999999999999999999999999h", TooFine),
        ("18446744073709551616ns", TooLarge),
        ("5124096h", TooLarge),
        ("999999999999999999999999999999999999999999999s", TooLarge),
    ];
    for (text, kind) in cases {
        assert_eq!(
            text.parse::<Span>().map_err(|error| error.kind()),
            Err(kind),
            "{text:?}"
        );
    }
}

#[test]
fn quantities_that_need_more_than_a_decimal_point() {
    let spans = [
        ("1_500ms", 1_500_000_000),
        ("0.000_1s", 100_000),
        ("0.5min", 30_000_000_000),
        ("0.1h", 360_000_000_000),
        ("7\u{3bc}s", 7_000),
        ("18446744073709551615ns", u64::MAX),
        ("18446744073.709551615s", u64::MAX),
    ];
    for (text, nanos) in spans {
        assert_eq!(text.parse(), Ok(Span::from_nanos(nanos)), "{text}");
    }
    // 1 B is 2^-30 GiB, which has thirty decimals.
    let amounts = [
        ("0.5KiB", 512),
        ("0.000000000931322574615478515625GiB", 1),
        ("0.999999999068677425384521484375GiB", (1 << 30) - 1),
        ("17179869183GiB", u64::MAX - ((1 << 30) - 1)),
    ];
    for (text, bytes) in amounts {
        assert_eq!(text.parse(), Ok(DataSize::new(bytes)), "{text}");
    }
}

#[test]
fn an_error_states_the_expected_form() {
    for (text, message) in [
        ("40", "its unit is missing"),
        ("x", "it does not begin with a number"),
        ("-1s", "it is negative"),
        ("4 x", "its unit is not known"),
        ("4 MS", "its unit is not known; did you mean ms?"),
        ("0.1ns", "it is finer than the smallest unit"),
        ("9999999999999s", "it is too large"),
    ] {
        let error = text.parse::<Span>().unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("expected a duration such as \"40ms\", \"1.5s\" or \"250us\", but {message}")
        );
        assert!(error.expected().contains("\"40ms\""));
    }
    for (text, nearest) in [
        ("8Mbit", "Mbit/s"),
        ("8mbit", "Mbit/s"),
        ("8M", "Mbps"),
        ("8 kb", "kbps"),
    ] {
        let error = text.parse::<Rate>().unwrap_err().to_string();
        let expected = format!("its unit is not known; did you mean {nearest}?");
        assert!(error.ends_with(&expected), "{text}: {error}");
    }
    let error = "8parsecs".parse::<Rate>().unwrap_err().to_string();
    assert!(error.ends_with("its unit is not known"), "{error}");
}

#[test]
fn doubles_round_to_the_nearest_at_every_end() {
    for (secs, nanos) in [
        (0.0, 0),
        (-0.0, 0),
        (-1.0, 0),
        (f64::NAN, 0),
        (f64::NEG_INFINITY, 0),
        (f64::INFINITY, u64::MAX),
        (1e300, u64::MAX),
        (1.5e-9, 2),
        (1e-9, 1),
        (0.29, 290_000_000),
    ] {
        assert_eq!(Span::from_secs_f64(secs).as_nanos(), nanos, "{secs}");
    }
    // Just under one half, and an odd number above 2^52: adding one half and truncating gets both
    // wrong.
    assert_eq!(Rate::from_bps_f64(0.499_999_999_999_999_94), Rate::ZERO);
    let odd = (1u64 << 52) + 1;
    assert_eq!(Rate::from_bps_f64(odd as f64), Rate::from_bps(odd));
    assert_eq!(Rate::from_bps_f64(-3.0), Rate::ZERO);
    assert_eq!(Rate::from_bps_f64(1e30), Rate::MAX);
    // The double nearest to 0.009 gives a product just under 27,000, which must not be truncated.
    assert_eq!(Span::from_millis(3).mul_f64(0.009), Span::from_micros(27));
    assert_eq!(Span::MAX.mul_f64(2.0), Span::MAX);
    assert_eq!(Span::from_secs(1).mul_f64(-2.0), Span::ZERO);
}

#[test]
fn quantities_align_in_columns() {
    let cells = format!(
        "{:>10}|{:<8}|{:^9}|{:7}|{:>20}|{:>8}",
        Span::from_micros(1_500),
        DataSize::new(1_500),
        Rate::from_kbps(1_500),
        Span::ZERO,
        Time::from_millis(1_250),
        Time::MAX,
    );
    assert_eq!(
        cells,
        "     1.5ms|1500B   | 1.5Mbps |     0s|        1.250000000s|   never"
    );
    // A precision, which a caller may apply to a whole row, truncates nothing.
    assert_eq!(format!("{:.1}", Time::from_millis(1_250)), "1.250000000s");
    assert_eq!(
        format!("{:?}", Span::from_nanos(u64::MAX)),
        "18446744073709551.615us"
    );
    assert_eq!(Time::MAX.to_string(), "never");
}

#[test]
#[should_panic(expected = "subtracted 2B from 1B")]
fn a_negative_amount_is_a_bug() {
    let _ = DataSize::new(1) - DataSize::new(2);
}

#[test]
fn a_time_is_one_word_and_an_event_key_two() {
    // Half the size of `Duration`, which justifies a separate type; an `Option` costs extra.
    assert_eq!((size_of::<Time>(), size_of::<Duration>()), (8, 16));
    assert_eq!(
        (size_of::<(Time, u64)>(), size_of::<(Duration, u64)>()),
        (16, 24)
    );
    assert_eq!(
        (size_of::<Option<Span>>(), size_of::<Option<Duration>>()),
        (16, 16)
    );
}

#[test]
fn the_last_packet_number_stays() {
    assert_eq!(
        PacketNumber::new(u64::MAX).next(),
        PacketNumber::new(u64::MAX)
    );
}

#[test]
fn seeds_are_the_same_in_every_release() {
    // Computed by an independent implementation of FNV-1a and SplitMix64: a change here changes
    // every run.
    assert_eq!(
        Seed::new(7).derive("link/loss").get(),
        0x0ebb_2cfc_5200_12e7
    );
    assert_eq!(Seed::new(0).derive("").get(), 0x5b21_f68f_fa77_f14c);
    assert_eq!(Seed::new(7).index(0).get(), 0x7716_da39_cba2_75b2);
    assert_eq!(
        Seed::new(1).derive("flow").index(29).get(),
        0x8529_7be2_9214_2cdc
    );
}
