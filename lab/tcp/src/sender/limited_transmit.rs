//! New segments in response to the first duplicate acknowledgements.

/// Limited transmit (RFC 3042): each duplicate acknowledgement before a recovery releases one new
/// segment beyond the window.
#[derive(Debug, Default)]
pub(super) struct LimitedTransmit {
    /// How many segments it released since the last advance.
    released: u32,
    is_pending: bool,
}

impl LimitedTransmit {
    pub(super) const fn release(&mut self) {
        self.released += 1;
        self.is_pending = true;
    }

    /// Ends the release of a segment: it leaves, or a reduction or a timeout decides what leaves.
    pub(super) const fn end(&mut self) {
        self.is_pending = false;
    }

    /// Handles an advance of the cumulative acknowledgement.
    #[inline]
    pub(super) const fn on_advance(&mut self) {
        self.released = 0;
        self.is_pending = false;
    }

    /// Whether a released segment has not left.
    #[inline]
    pub(super) const fn is_pending(&self) -> bool {
        self.is_pending
    }

    /// How many bytes beyond the window the released segments may use.
    pub(super) fn allowance(&self, mss: u32) -> u64 {
        u64::from(self.released) * u64::from(mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allowance_grows_until_the_next_advance() {
        let mut limited = LimitedTransmit::default();
        limited.release();
        limited.end();
        limited.release();
        assert!(limited.is_pending());
        assert_eq!(limited.allowance(1_000), 2_000);
        limited.end();
        assert!(!limited.is_pending());
        assert_eq!(
            limited.allowance(1_000),
            2_000,
            "earlier segments are in flight"
        );
        limited.on_advance();
        assert_eq!(limited.allowance(1_000), 0);
    }
}
