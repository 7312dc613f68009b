//! Peers that obey only the format, against one end of a connection.
//!
//! The keys give no protection, because these peers have them. Each test describes the peer's
//! behaviour, and checks that the end survives it or closes with the right code, and that its
//! memory stays within its configuration.

use comity_testkit::memory::Counting;

mod peer;

mod acknowledgements;
mod room;
mod sections;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
