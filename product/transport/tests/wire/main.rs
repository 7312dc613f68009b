//! Packets of the datagram transport as bytes.
//!
//! The oracles: bytes worked out by hand from `docs/protocol/core.md` (`vectors`, `malformed`), the
//! page itself (`page`, `meters`), a codec in Python that was written from the page alone
//! (`differential`), and round trips and truncation (`properties`).

mod canonical;
mod differential;
mod every_ack;
mod malformed;
mod meters;
mod page;
mod properties;
mod recipe;
mod vectors;

/// Bytes from hexadecimal digits, ignoring white space and comments after `#`.
fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<u8> = hexadecimal
        .lines()
        .flat_map(|line| line.split('#').next().unwrap_or_default().chars())
        .filter(|character| !character.is_whitespace())
        .map(|character| character.to_digit(16).expect("a hexadecimal digit") as u8)
        .collect();
    assert_eq!(digits.len() % 2, 0, "half a byte in {hexadecimal}");
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}
