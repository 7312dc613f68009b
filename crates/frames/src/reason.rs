//! Why a section is not sent.

/// Why a sender drops a section, or leaves it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Its deadline passed.
    Expired,
    /// It could not have arrived in time.
    Infeasible,
    /// A section that it depends on was dropped.
    Dependency,
    /// It was shed as the least important, because the rate was too low.
    Shed,
    /// The application withdrew it.
    Cancelled,
}

impl Reason {
    /// All of them, in the order of their numbers on the wire: 0, 1, 2, …
    pub const ALL: [Self; 5] = [
        Self::Expired,
        Self::Infeasible,
        Self::Dependency,
        Self::Shed,
        Self::Cancelled,
    ];
}
