//! The codec beside one in Python that was written from `docs/protocol/core.md` alone. Both accept
//! the same bytes, read the same values from them, and write the same shortest form.
//!
//! `COMITY_CODEC_CASES` sets the number of inputs of each format, and `PROPTEST_RNG_SEED` selects
//! them.
#![allow(
    clippy::print_stdout,
    reason = "a test says what it has compared, or why it has not"
)]

use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use comity_transport::wire::header::{
    Accept, Answer, Confirm, ConnectionId, Data, Initial, Pattern, Reset, Retry,
    encode_version_negotiation,
};
use comity_transport::wire::limits::MAX_VERSIONS;
use proptest::collection;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use crate::wire::canonical::{self, hex};
use crate::wire::properties::{parameters, written};
use crate::wire::recipe::recipe;

const CODEC: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../program/tests/interoperability/codec.py"
);
/// The number of inputs of each format, which take some seconds.
const CASES: usize = 4_000;
/// The number of inputs between two comparisons.
const BATCH: usize = 500;

/// A process that answers line by line.
struct Python {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Python {
    /// Starts the process, or returns `None` if there is no Python.
    fn start(arguments: &[&str]) -> Option<Self> {
        let mut command = Command::new("python3");
        command.arg("-B").arg(CODEC).args(arguments);
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => panic!("python3 cannot be run: {error}"),
        };
        let input = child.stdin.take().expect("it is piped");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        Some(Self {
            child,
            input,
            output,
        })
    }

    /// Sends these lines and returns the answers.
    fn ask(&mut self, lines: &[String]) -> Vec<String> {
        let (input, output) = (&mut self.input, &mut self.output);
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for line in lines {
                    // If the process has ended, its answers are missing below.
                    let _ = writeln!(input, "{line}");
                }
                let _ = input.flush();
            });
            let answers = output.lines().take(lines.len());
            let answers: Vec<_> = answers.map(|line| line.expect("it prints text")).collect();
            assert_eq!(answers.len(), lines.len(), "the codec in Python has ended");
            answers
        })
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Bytes with some changes, mostly near their beginning, where the fields are.
fn changed(bytes: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<Index>(), any::<bool>(), 0..5_u8, any::<u8>());
    (bytes, collection::vec(change, 0..4)).prop_map(|(mut bytes, changes)| {
        for (at, is_near, what, byte) in changes {
            let most = if is_near { 64 } else { usize::MAX };
            let at = at.index(bytes.len().min(most) + 1);
            match what {
                0 => bytes.truncate(at),
                1 => bytes.insert(at, byte),
                // Before a varint of one byte: the same number in two.
                2 => bytes.insert(at, 0x40),
                _ => {
                    if let Some(old) = bytes.get_mut(at) {
                        *old = if what == 3 {
                            *old ^ 1 << (byte % 8)
                        } else {
                            byte
                        };
                    }
                }
            }
        }
        bytes
    })
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    let recipes = (any::<u32>(), collection::vec(recipe(), 1..5));
    let byte = prop_oneof![6 => 0..0x14_u8, 1 => 0x20..0x40_u8, 1 => any::<u8>()];
    prop_oneof![
        3 => recipes.prop_map(|(departure, recipes)| written(departure, &recipes).0),
        1 => collection::vec(byte, 0..120),
    ]
}

fn datagram() -> impl Strategy<Value = Vec<u8>> {
    let patterns = vec![
        Pattern::Insecure,
        Pattern::NNpsk0,
        Pattern::IK,
        Pattern::CPace,
    ];
    (
        0..8_u8,
        any::<(u64, u32, bool, [u8; 16])>(),
        select(patterns),
        (
            collection::vec(any::<u8>(), 1..100),
            collection::vec(any::<u8>(), 1..300),
        ),
        collection::vec(any::<u32>(), 1..=MAX_VERSIONS),
    )
        .prop_map(
            |(kind, (id, number, key_phase, token), pattern, (short, long), versions)| {
                let (destination, source) = (ConnectionId::new(id), ConnectionId::new(id));
                let (cookie, ticket, message) = (&short[..], &short[..], &long[..]);
                let mut out = Vec::new();
                let encoded = match kind {
                    0 => Initial {
                        source,
                        pattern,
                        cookie,
                        message,
                    }
                    .encode(&mut out),
                    1 => Retry {
                        destination,
                        cookie,
                    }
                    .encode(&mut out),
                    2 => Answer {
                        destination,
                        ticket,
                        message,
                    }
                    .encode(&mut out),
                    3 => {
                        let header = Data {
                            key_phase,
                            destination,
                            number,
                        };
                        out.extend(header.encode());
                        out.extend(message);
                        Ok(())
                    }
                    4 => encode_version_negotiation(destination, &versions, &mut out),
                    5 => Confirm { ticket, message }.encode(&mut out),
                    6 => Accept {
                        destination,
                        message,
                    }
                    .encode(&mut out),
                    _ => {
                        out.extend(Reset { source, token }.encode());
                        Ok(())
                    }
                };
                encoded.expect("within the limits");
                out
            },
        )
}

fn parameter_list() -> impl Strategy<Value = Vec<u8>> {
    let list = parameters().prop_map(|parameters| {
        let mut list = Vec::new();
        // Together, the texts may be too long.
        let _ = parameters.encode(&mut list);
        list
    });
    prop_oneof![3 => list, 1 => collection::vec(0..0x20_u8, 0..60)]
}

/// Compares both codecs, and fails with the first differences. Without Python it returns at once.
fn agree(
    format: &str,
    inputs: impl Strategy<Value = Vec<u8>>,
    answer: fn(&[u8]) -> canonical::Answer,
) {
    let codecs = (
        Python::start(&[format]),
        Python::start(&[format, "--encode"]),
    );
    let (Some(mut reading), Some(mut writing)) = codecs else {
        println!("skipped: no python3, which the other codec needs");
        return;
    };
    let cases = std::env::var("COMITY_CODEC_CASES").map_or(CASES, |cases| {
        cases.parse().expect("COMITY_CODEC_CASES is a number")
    });
    let inputs = changed(inputs);
    let mut runner = TestRunner::default();
    let (mut differences, mut read, mut done) = (Vec::new(), 0, 0);
    while done < cases && differences.is_empty() {
        let count = BATCH.min(cases - done);
        done += count;
        let inputs = (0..count).map(|_| inputs.new_tree(&mut runner).expect("one is drawn"));
        let inputs: Vec<Vec<u8>> = inputs.map(|input| input.current()).collect();
        let digits: Vec<String> = inputs.iter().map(|input| hex(input)).collect();
        let answers: Vec<_> = inputs.iter().map(|input| answer(input)).collect();
        let others = reading.ask(&digits);
        for ((digits, answer), other) in digits.iter().zip(&answers).zip(&others) {
            if answer.json != *other {
                let here = &answer.json;
                differences.push(format!("{digits}\n  here:   {here}\n  Python: {other}"));
            }
        }
        read += others.iter().filter(|other| other.starts_with('{')).count();
        let accepted = answers.into_iter().zip(others);
        let (jsons, shortest): (Vec<_>, Vec<_>) = accepted
            .filter(|(answer, other)| answer.json == *other)
            .filter_map(|(answer, other)| Some((other, hex(&answer.shortest?))))
            .unzip();
        for ((json, here), other) in jsons.iter().zip(&shortest).zip(writing.ask(&jsons)) {
            if *here != other {
                differences.push(format!("{json}\n  here:   {here}\n  Python: {other}"));
            }
        }
    }
    println!("{format}: {read} of {done} inputs can be read");
    differences.truncate(5);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn payloads_match_another_codec() {
    agree("payload", payload(), canonical::payload);
}

#[test]
fn datagrams_match_another_codec() {
    agree("datagram", datagram(), canonical::datagram);
}

#[test]
fn transport_parameters_match_another_codec() {
    agree("parameters", parameter_list(), canonical::parameters);
}
