//! What a script needs of a stack.

use comity_units::{Span, Time};

use super::language::{Call, Target};

/// A stack between applications and a network.
pub(super) trait Stack {
    fn target(&self) -> Target;

    fn now(&self) -> Time;

    /// Lets time pass.
    fn wait_until(&mut self, at: Time);

    /// The next packet that the stack sends until `limit`, and when it did.
    fn next_packet(&mut self, limit: Time) -> Option<(Time, Vec<u8>)>;

    /// A packet arrives.
    fn inject(&mut self, packet: &[u8]);

    /// An application calls. Files are numbered by the stack: `socket` and `accept` return numbers,
    /// and `file` in a call is one of them.
    ///
    /// # Errors
    /// The name of an error of the system.
    fn call(&mut self, call: Call) -> Result<i64, String>;

    /// Writes to a file.
    fn write(&mut self, file: i64, bytes: &[u8]) -> Result<i64, String>;

    /// Reads from a file.
    fn read(&mut self, file: i64, length: usize) -> Result<Vec<u8>, String>;

    /// How far an event may be from its time, `delay` after the event before.
    fn tolerance(&self, delay: Span) -> Span;
}
