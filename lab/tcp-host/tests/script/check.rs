//! The runner itself: scripts that are wrong are refused, and lines that do not hold are named.

use super::host::Comity;
use super::language::{Family, Script};
use super::parse::parse;
use super::run::run;

const BEGINNING: &str = "\
// A test.
// No RFC.
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 65535 <mss 1460>
";

fn with(lines: &str) -> Result<Script, String> {
    parse("test.pkt", &format!("{BEGINNING}{lines}\n"))
}

#[test]
fn wrong_lines_are_refused_with_their_position_and_the_expectation() {
    for (line, problem) in [
        ("+0 > S. 0:0(0)", "the flag `.` without `ack`"),
        ("+0 > S 0:0(0) ack 1", "`ack` without the flag"),
        (
            "+0 > . 1:11(9) ack 1",
            "1:11(9), expected the length of the range",
        ),
        ("+0 > X 1:1(0)", "no such flag: X"),
        ("+0 > . 1:1(0) ack 1 <mss>", "`>`, expected a number"),
        ("+0 > . 1:1(0) ack 1 <nop", "the line ends, expected `,`"),
        ("+0 > . 1:1(0) ack 1 win 70000", "a window above 65535"),
        ("+0 < . 1:1(0) ack 1", "a packet to send needs its window"),
        (
            "+0 < . 1:1(0) ack 1 win 9 <...>",
            "a packet to send needs its options",
        ),
        (
            "+0 read(4, ..., 10) = 10 bytes",
            "`bytes`, expected the end of the line",
        ),
        ("+0 open(4, ...) = 0", "no such call: open"),
        ("+0 read 4", "`4`, expected `(`"),
        (
            "now read(4, ..., 10) = 10",
            "`now read(4, ..., 10) = 10`, expected a time",
        ),
        (
            "+.2~+.1 > . 1:1(0) ack 1",
            "a range from 200ms to 100ms, expected the earlier time first",
        ),
        (
            "//comity = 5",
            "expected `//comity: LINE`, `//comity+: LINE` or `//comity-`",
        ),
        ("//because: so", "a reason without a difference before it"),
        (
            "`sysctl -w x=1`",
            "`sysctl -w x=1`, expected `./setup.sh [KEY=VALUE ...]`",
        ),
        ("`./setup.sh tcp_sack`", "tcp_sack, expected KEY=VALUE"),
    ] {
        let refused = with(line).unwrap_err();
        assert_eq!(refused, format!("test.pkt:7: {problem}"), "{line}");
    }
    let unexplained = with("//comity-\n+0 > R 0:0(0)").unwrap_err();
    assert_eq!(
        unexplained,
        "test.pkt: expected `//because:` for the difference in line 6"
    );
    let silent = parse("test.pkt", "// A test.\n+0 listen(3, 1) = 0\n").unwrap_err();
    assert_eq!(silent, "test.pkt: expected a comment with its source");
}

#[test]
fn lines_that_do_not_hold_are_named() {
    for (line, problem) in [
        ("+0 > S. 0:0(0) ack 1 <mss 1460>", None),
        ("+0 > S. 0:0(0) ack 1 <...>", None),
        (
            "+0 > S. 0:0(0) ack 1 <mss 1400>",
            Some("a packet at 0s: S. 0:0(0) ack 1 <mss 1460>"),
        ),
        (
            "+0 > S. 0:0(0) ack 2 <...>",
            Some("a packet at 0s: S. 0:0(0) ack 1 <...>"),
        ),
        (
            "+.1 > S. 0:0(0) ack 1 <...>",
            Some("the packet came at 0s, expected 100ms to 100ms"),
        ),
        (
            "+0 accept(3, ..., ...) = 4",
            Some("the call: Fails(\"EAGAIN\")"),
        ),
        ("+0 close(9) = 0", Some("no call returned the file 9")),
        (
            "+0 close(3) = 0",
            Some("at the end, a packet left at 0s: [noecn] S. 0:0(0) ack 1"),
        ),
    ] {
        let script = with(line).unwrap();
        let mut host = Comity::new(&script, Family::V4).unwrap();
        let result = run(&script, Family::V4, &mut host);
        match problem {
            None => assert_eq!(result, Ok(()), "{line}"),
            Some(problem) => {
                let failure = result.unwrap_err();
                assert!(failure.starts_with("test.pkt"), "{failure}");
                assert!(failure.contains(problem), "{line}: {failure}");
            }
        }
    }
}
