//! Why a section is not sent.

/// Why a sender drops a section, or leaves it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Its deadline passed.
    Expired = 0,
    /// It could not have arrived in time.
    Infeasible = 1,
    /// A section that it depends on was dropped.
    Dependency = 2,
    /// It was shed as the least important, because the rate was too low.
    Shed = 3,
    /// The application withdrew it.
    Cancelled = 4,
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

    /// Its word in traces and lists.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Infeasible => "infeasible",
            Self::Dependency => "dependency",
            Self::Shed => "shed",
            Self::Cancelled => "cancelled",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_in_the_order_of_the_numbers_on_the_wire() {
        assert_eq!(Reason::ALL.map(|reason| reason as u8), [0, 1, 2, 3, 4]);
    }
}
