//! The two ends of a connection.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Caller,
    Listener,
}

impl Side {
    pub(crate) const BOTH: [Self; 2] = [Self::Caller, Self::Listener];

    pub(crate) const fn peer(self) -> Self {
        match self {
            Self::Caller => Self::Listener,
            Self::Listener => Self::Caller,
        }
    }
}
