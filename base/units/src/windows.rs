//! Values of recent time that expire by themselves.

use crate::{Span, Time};

/// A value for the current window of time and one for the previous window. Both together cover one
/// to two windows, at the cost of two values.
///
/// A window without values, and one that ended more than a window ago, have the default value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TwoWindows<T> {
    /// The value of the current window.
    pub current: T,
    /// The value of the window before.
    pub before: T,
    began_at: Time,
}

impl<T: Copy + Default> TwoWindows<T> {
    /// Begins a new window at `now` if the current one has lasted longer than `length`.
    pub fn turn(&mut self, now: Time, length: Span) {
        let age = now.saturating_since(self.began_at);
        if age > length {
            self.before = if age > length * 2 {
                T::default()
            } else {
                self.current
            };
            self.current = T::default();
            self.began_at = now;
        }
    }
}

impl<T: Copy + Default + Ord> TwoWindows<T> {
    /// Adds a value; afterwards [`most`](Self::most) is at least this value.
    pub fn raise(&mut self, now: Time, length: Span, value: T) {
        self.turn(now, length);
        self.current = self.current.max(value);
    }

    /// The maximum of both windows.
    pub fn most(&self) -> T {
        self.current.max(self.before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_remembered_for_one_to_two_windows() {
        let length = Span::from_secs(10);
        let at = Time::from_secs;
        let mut windows = TwoWindows::default();
        windows.raise(at(3), length, 7);
        windows.raise(at(9), length, 5);
        assert_eq!(windows.most(), 7);
        windows.raise(at(10), length, 1);
        assert_eq!(
            (windows.current, windows.before),
            (7, 0),
            "not longer than it"
        );
        windows.raise(at(11), length, 2);
        assert_eq!((windows.current, windows.before), (2, 7));
        windows.turn(at(21), length);
        assert_eq!(windows.most(), 7);
        windows.turn(at(22), length);
        assert_eq!((windows.current, windows.before), (0, 2));
        windows.raise(at(43), length, 1);
        assert_eq!((windows.current, windows.before), (1, 0), "too long ago");
    }
}
