//! The first byte of each type of frame.

pub(super) const PADDING: u8 = 0x00;
pub(super) const PING: u8 = 0x01;
pub(super) const ACK: u8 = 0x02;
pub(super) const ACK_ECN: u8 = 0x03;
pub(super) const FLOOR: u8 = 0x08;
pub(super) const DROP: u8 = 0x09;
pub(super) const CREDIT: u8 = 0x0a;
pub(super) const TAG: u8 = 0x0b;
pub(super) const FEEDBACK: u8 = 0x0c;
pub(super) const RECEIVER_REPORT: u8 = 0x0d;
pub(super) const PATH_CHALLENGE: u8 = 0x0e;
pub(super) const PATH_RESPONSE: u8 = 0x0f;
pub(super) const CLOSE: u8 = 0x10;
pub(super) const END: u8 = 0x11;
pub(super) const BLOCKED: u8 = 0x12;
pub(super) const SECTION: u8 = 0x20;
pub(super) const SECTION_LAST: u8 = 0x2f;
pub(super) const PROVED_ACK: u8 = 0x30;
pub(super) const PROVED_ACK_LAST: u8 = 0x3f;
