//! The kernel's own state of a flow, independent of its controller.

use std::net::SocketAddr;

use comity_units::{DataSize, Span};

use crate::error::Error;
use crate::line::Line;

/// The ends and the window of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Socket {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// The inode of the network namespace, as in `ls -i /run/netns`.
    pub namespace: u64,
    /// The congestion window in segments.
    pub window: u64,
    /// The slow-start threshold in segments; `None` before the first loss.
    pub ssthresh: Option<u64>,
    /// The payload length of a full segment.
    pub mss: DataSize,
    /// The smoothed round-trip time.
    pub srtt: Span,
}

/// From this value on, the kernel has no threshold yet.
const NO_THRESHOLD: u64 = 0x7fff_ffff;

impl Socket {
    /// Reads the output of `print_socket`.
    pub(crate) fn from_line(line: &Line<'_>) -> Result<Self, Error> {
        let ssthresh = line.number("ssthresh")?;
        Ok(Self {
            local: SocketAddr::new(line.address("local")?, line.port("local_port")?),
            remote: SocketAddr::new(line.address("remote")?, line.port("remote_port")?),
            namespace: line.number("namespace")?,
            window: line.number("cwnd")?,
            ssthresh: (ssthresh < NO_THRESHOLD).then_some(ssthresh),
            mss: DataSize::new(line.number("mss")?),
            srtt: Span::from_micros(line.number("srtt_us")?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "local=198.18.0.1 remote=2001:db8::2 local_port=40000 remote_port=5000 \
namespace=4026532 cwnd=84 ssthresh=2147483647 mss=1448 srtt_us=31000";

    #[test]
    fn a_line_gives_the_ends_and_the_window() {
        let socket = Socket::from_line(&Line::new(LINE)).unwrap();
        assert_eq!(socket.local, "198.18.0.1:40000".parse().unwrap());
        assert_eq!(socket.remote, "[2001:db8::2]:5000".parse().unwrap());
        assert_eq!((socket.window, socket.ssthresh), (84, None));
        assert_eq!(socket.srtt, Span::from_millis(31));
        let lost = LINE.replace("2147483647", "20");
        let socket = Socket::from_line(&Line::new(&lost)).unwrap();
        assert_eq!(socket.ssthresh, Some(20));
    }
}
