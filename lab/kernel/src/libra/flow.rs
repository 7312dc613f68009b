//! The live state of the flows, as printed by the kernel.

use comity_units::{Rate, Span};

use crate::controller::Controller;
use crate::error::Error;
use crate::line::Line;
use crate::pins;
use crate::socket::Socket;

/// A flow of Libra.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Its ends and its window.
    pub socket: Socket,
    /// The last round-trip time; `None` before the first.
    pub rtt: Option<Span>,
    /// The minimum and maximum round-trip time within the memory.
    pub rtt_range: Option<[Span; 2]>,
    /// β of equation 2: the utilisation of the buffer, from 0 to 1.
    pub beta: f64,
    /// α of equation 1, in segments per second.
    pub alpha: f64,
    /// The capacity; `None` before the first delivery sample.
    pub capacity: Option<Rate>,
    /// Whether the capacity is configured or estimated from pairs. Otherwise it is the flow's own
    /// rate.
    pub capacity_is_exact: bool,
    /// The pacing rate after the last group.
    pub pacing: Rate,
}

/// Every flow of Libra on this host, in any network namespace.
///
/// # Errors
/// If Libra is not loaded, or the kernel's answer cannot be read.
pub fn flows() -> Result<Vec<Flow>, Error> {
    let text = pins::flows(Controller::Libra)?;
    text.lines().map(Flow::from_line).collect()
}

impl Flow {
    /// Reads a line of the program `libra_status`.
    fn from_line(line: &str) -> Result<Self, Error> {
        let line = Line::new(line);
        let micros = |name| Ok::<_, Error>(Span::from_micros(line.number(name)?));
        let known = line.number("rtt_us")? > 0;
        let capacity = line.number("capacity_kbps")?;
        Ok(Self {
            socket: Socket::from_line(&line)?,
            rtt: known.then_some(micros("rtt_us")?),
            rtt_range: known.then_some([micros("rtt_min_us")?, micros("rtt_max_us")?]),
            beta: line.number("beta_q16")? as f64 / 65_536.0,
            alpha: line.number("alpha_milli")? as f64 / 1e3,
            capacity: (capacity > 0).then(|| Rate::from_kbps(capacity)),
            capacity_is_exact: line.number("capacity_is_exact")? == 1,
            pacing: Rate::from_bps(line.number("pacing_bytes_per_s")?.saturating_mul(8)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "local=198.18.0.1 remote=198.18.0.2 local_port=40000 remote_port=5000 \
namespace=4026532 cwnd=84 ssthresh=2147483647 mss=1448 srtt_us=31000 rtt_us=30500 rtt_min_us=30000 \
rtt_max_us=32000 beta_q16=16384 alpha_milli=121306 capacity_kbps=100000 capacity_is_exact=1 \
pacing_bytes_per_s=1250000";

    #[test]
    fn a_line_gives_the_flow() {
        let flow = Flow::from_line(LINE).unwrap();
        assert_eq!(flow.socket.window, 84);
        assert_eq!(flow.rtt_range, Some([30, 32].map(Span::from_millis)));
        assert_eq!((flow.beta, flow.alpha), (0.25, 121.306));
        assert_eq!(flow.capacity, Some(Rate::from_mbps(100)));
        assert_eq!(flow.pacing, Rate::from_mbps(10));
    }

    #[test]
    fn what_is_not_known_yet_is_none() {
        let line = LINE
            .replace("rtt_us=30500", "rtt_us=0")
            .replace("capacity_kbps=100000", "capacity_kbps=0");
        let flow = Flow::from_line(&line).unwrap();
        assert_eq!(
            (flow.rtt, flow.rtt_range, flow.capacity),
            (None, None, None)
        );
    }

    #[test]
    fn a_line_of_another_version_is_refused_by_name() {
        let error = Flow::from_line("cwnd=7").unwrap_err().to_string();
        assert!(error.contains("\"rtt_us\""), "{error}");
    }
}
