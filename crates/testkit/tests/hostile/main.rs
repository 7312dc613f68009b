//! Peers that keep to the format and to nothing else, against one end of a connection.
//!
//! The keys do not help against them: they have them. Each test says what the peer does, that the
//! end survives it or closes with the right code, and that its memory stays within what its
//! configuration stands for.

use comity_testkit::memory::Counting;

mod peer;

mod acknowledgements;
mod room;
mod sections;

#[global_allocator]
static ALLOCATOR: Counting = Counting;
