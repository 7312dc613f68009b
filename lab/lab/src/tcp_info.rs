//! The kernel's information about a TCP connection (`TCP_INFO`, Linux 4.6 and later).

use std::os::fd::AsRawFd;

/// The part of the kernel's `struct tcp_info` that the lab uses, in its layout.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Raw {
    state: u8,
    ca_state: u8,
    retransmits: u8,
    probes: u8,
    backoff: u8,
    options: u8,
    scales: u8,
    flags: u8,
    words: [u32; 24],
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt_us: u32,
}

/// The state of a TCP sender.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TcpInfo {
    pub(crate) cwnd_bytes: u64,
    /// `None` before the first loss.
    pub(crate) ssthresh_bytes: Option<u64>,
    pub(crate) srtt_us: u32,
    pub(crate) min_rtt_us: u32,
    pub(crate) retransmitted: u64,
    /// Expiries of the retransmission timer, and fast retransmits, if they are known for the
    /// connection.
    pub(crate) recoveries: Option<(u64, u64)>,
}

/// A larger value means that the kernel has no threshold yet.
const NO_THRESHOLD: u32 = 0x7fff_ffff;

/// Queries the kernel. Returns `None` for a socket without a connection.
pub(crate) fn read(socket: &impl AsRawFd) -> Option<TcpInfo> {
    let mut raw = Raw::default();
    let mut length = size_of::<Raw>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes to `raw`, which is plain integers and so
    // long; the descriptor is open while the socket is borrowed.
    #[allow(unsafe_code, reason = "no crate in the graph reads TCP_INFO")]
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut raw).cast(),
            &raw mut length,
        )
    };
    if result != 0 || (length as usize) < size_of::<Raw>() {
        return None;
    }
    // The words from `tcpi_rto` on: the sender's segment size is the third, the smoothed round-trip
    // time the 16th, the threshold the 18th, the window the 19th, and all retransmissions the 24th.
    let [_, _, segment, rest @ ..] = raw.words;
    let [.., srtt_us, _, ssthresh, window, _, _, _, _, retransmitted] = rest;
    let bytes = |segments: u32| u64::from(segments) * u64::from(segment);
    Some(TcpInfo {
        cwnd_bytes: bytes(window),
        ssthresh_bytes: (ssthresh < NO_THRESHOLD).then(|| bytes(ssthresh)),
        srtt_us,
        min_rtt_us: if raw.min_rtt_us == u32::MAX {
            0
        } else {
            raw.min_rtt_us
        },
        retransmitted: retransmitted.into(),
        recoveries: None,
    })
}
