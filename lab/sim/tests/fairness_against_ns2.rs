//! The fairness measures against those of the ns-2 scripts for the same flows.

use comity_sim::metrics::{baseline, friendliness, jain, max_min_ratio};

const VECTORS: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../vectors/ns2_fairness.csv"
));

fn numbers(cell: &str) -> Vec<f64> {
    cell.split_whitespace()
        .map(|number| number.parse().unwrap())
        .collect()
}

#[test]
fn measures_agree_with_ns2_to_the_last_digit_that_it_prints() {
    let mut rows = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .from_reader(VECTORS.as_bytes());
    let mut cases = 0;
    for row in rows.records() {
        let row = row.unwrap();
        let (tcp, other) = (numbers(&row[1]), numbers(&row[2]));
        let halves = baseline(&tcp).unwrap();
        let mut got = vec![
            ("F_best", halves.best, &row[3]),
            ("F_worst", halves.worst, &row[4]),
            ("S", max_min_ratio(&tcp).unwrap(), &row[5]),
            ("J", jain(&tcp).unwrap(), &row[6]),
        ];
        if !other.is_empty() {
            got.push(("F", friendliness(&other, &tcp).unwrap(), &row[7]));
        }
        for (measure, value, printed) in got {
            assert_eq!(format!("{value:.5}"), *printed, "{measure} of {}", &row[0]);
        }
        cases += 1;
    }
    assert_eq!(cases, 5);
}
