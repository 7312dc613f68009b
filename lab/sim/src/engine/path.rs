//! The path of a flow through the links, as the engine keeps it.

/// The bit of a path entry whose link may be computed ahead from the link before it.
pub(super) const AHEAD: u32 = 1 << 31;

/// The bit of a path entry at which a waiting packet makes the source emit the flow's next one.
pub(super) const DRAW: u32 = 1 << 30;

/// The bit of the entry that ends a path.
pub(super) const END: u32 = 1 << 29;

/// The bit of a path's end that allows its endpoint to act ahead of its turn.
pub(super) const ACTS_AHEAD: u32 = 1;

/// The bits of a path entry that hold the link.
pub(super) const LINK: u32 = END - 1;

/// A path in the engine's list of path entries: the index of its first link; an end follows the
/// last link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) start: u32,
}

/// The links of a path in the engine's list of path entries, in their order.
pub(super) fn links(path: Path, entries: &[u32]) -> impl Iterator<Item = u32> {
    entries[path.start as usize..]
        .iter()
        .take_while(|&&entry| entry & END == 0)
        .map(|&entry| entry & LINK)
}
