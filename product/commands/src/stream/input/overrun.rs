//! Detects datagrams that this host dropped because the socket was not read in time.

use std::io::{self, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};

/// How long drops are only counted after a report.
const SILENCE: Duration = Duration::from_secs(1);

/// Counts the drops of a socket with the counter that the system attaches to datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Overrun {
    /// The system's counter, which wraps around.
    counter: u32,
    unreported: u64,
    reported_at: Option<Instant>,
}

impl Overrun {
    /// Enables the system's counter. On systems without it, no drops are reported.
    pub(super) fn of(socket: &UdpSocket) -> Self {
        let _ = setsockopt(socket, sockopt::RxqOvfl, &1);
        Self::default()
    }

    /// Like [`UdpSocket::recv`], and counts the drops before the datagram.
    pub(super) fn receive(&mut self, socket: &UdpSocket, datagram: &mut [u8]) -> io::Result<usize> {
        let mut control = nix::cmsg_space!(u32);
        let mut buffers = [IoSliceMut::new(datagram)];
        let received = recvmsg::<SockaddrStorage>(
            socket.as_raw_fd(),
            &mut buffers,
            Some(&mut control),
            MsgFlags::empty(),
        )?;
        for message in received.cmsgs()? {
            if let ControlMessageOwned::RxqOvfl(counter) = message {
                self.on_counter(counter);
            }
        }
        Ok(received.bytes)
    }

    fn on_counter(&mut self, counter: u32) {
        let drops = counter.wrapping_sub(core::mem::replace(&mut self.counter, counter));
        self.unreported += u64::from(drops);
    }

    /// The drops to report now.
    pub(super) fn report(&mut self, now: Instant) -> Option<u64> {
        let is_quiet = |at: Instant| now.saturating_duration_since(at) < SILENCE;
        if self.unreported == 0 || self.reported_at.is_some_and(is_quiet) {
            return None;
        }
        self.reported_at = Some(now);
        self.rest()
    }

    /// The drops to report at the end.
    pub(super) fn rest(&mut self) -> Option<u64> {
        let drops = core::mem::take(&mut self.unreported);
        (drops > 0).then_some(drops)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now;

    #[test]
    fn all_drops_are_reported_once_per_second() {
        let start = now();
        let mut overrun = Overrun::default();
        let mut look = |millis, counter| {
            overrun.on_counter(counter);
            overrun.report(start + Duration::from_millis(millis))
        };
        assert_eq!(look(0, 0), None);
        assert_eq!(look(10, 3), Some(3));
        assert_eq!(look(20, 3), None);
        assert_eq!(look(30, 5), None);
        assert_eq!(look(1_009, 6), None);
        assert_eq!(look(1_010, 6), Some(3));
        assert_eq!(look(5_000, u32::MAX), Some(u64::from(u32::MAX - 6)));
        assert_eq!(look(6_000, 1), Some(2), "the counter wraps");
        assert_eq!(look(6_500, 2), None);
        assert_eq!((overrun.rest(), overrun.rest()), (Some(1), None));
    }
}
