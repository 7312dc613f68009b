//! The live state of the sockets with a half of TCP-Real, as printed by the kernel.

use comity_units::Span;

use crate::controller::Controller;
use crate::error::Error;
use crate::line::Line;
use crate::pins;
use crate::socket::Socket;

/// A socket with a half of TCP-Real, or one that fell back to Reno.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// Its ends and its window.
    pub socket: Socket,
    /// The sending half; `None` if another controller sends, including Reno after a fallback.
    pub sender: Option<Sender>,
    /// Whether the flow chose TCP-Real but fell back to Reno, because its peer did not answer.
    pub is_fallback: bool,
    /// The receiving half; `None` before its first measured wave.
    pub meter: Option<Meter>,
    /// The number of segments that arrived with malformed options. They counted as segments
    /// without.
    pub malformed: u64,
}

/// The sending half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    /// The level of the window; `None` before the first acknowledgement.
    pub level: Option<u64>,
    /// Whether the peer has reported a level since the last timeout.
    pub is_reported: bool,
    /// The number of the current wave.
    pub wave: u64,
}

/// The receiving half.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Meter {
    /// The last decision, with its fraction.
    pub level: f64,
    /// The level above which the weights of figure 1 differ.
    pub threshold: f64,
    /// The number of the last wave.
    pub wave: u64,
    /// The number of segments per second in the last wave with a rate.
    pub rate: Option<f64>,
}

/// Every socket of TCP-Real on this host, in any network namespace.
///
/// # Errors
/// If TCP-Real is not loaded, or the kernel's answer cannot be read.
pub fn flows() -> Result<Vec<Flow>, Error> {
    let text = pins::flows(Controller::Real)?;
    text.lines().map(Flow::from_line).collect()
}

const ONE_Q32: f64 = 4_294_967_296.0;

impl Flow {
    /// Reads a line of the program `real_status`.
    fn from_line(line: &str) -> Result<Self, Error> {
        let line = Line::new(line);
        let flag = |name| Ok::<_, Error>(line.number(name)? == 1);
        let fixed = |name| Ok::<_, Error>(line.number(name)? as f64 / ONE_Q32);
        let sender = Sender {
            level: Some(line.number("level")?).filter(|level| *level > 0),
            is_reported: flag("is_reported")?,
            wave: line.number("wave")?,
        };
        let segments = line.number("rate_segments")?;
        let took = Span::from_nanos(line.number("rate_ns")?).as_secs_f64();
        let meter = Meter {
            level: fixed("meter_level_q32")?,
            threshold: fixed("meter_threshold_q32")?,
            wave: line.number("meter_wave")?,
            rate: (segments > 0 && took > 0.0).then(|| segments as f64 / took),
        };
        Ok(Self {
            socket: Socket::from_line(&line)?,
            sender: flag("is_sender")?.then_some(sender),
            is_fallback: flag("is_fallback")?,
            meter: (meter.level > 0.0).then_some(meter),
            malformed: line.number("malformed")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "local=198.18.0.1 remote=198.18.0.2 local_port=40000 remote_port=5000 \
namespace=4026532 cwnd=24 ssthresh=2147483647 mss=1448 srtt_us=31000 is_sender=1 is_fallback=0 \
is_reported=1 level=12 wave=700 meter_level_q32=6442450944 meter_threshold_q32=51539607552 \
meter_wave=699 rate_segments=24 rate_ns=12000000 malformed=2";

    #[test]
    fn a_line_gives_both_halves() {
        let flow = Flow::from_line(LINE).unwrap();
        let sender = Sender {
            level: Some(12),
            is_reported: true,
            wave: 700,
        };
        let meter = Meter {
            level: 1.5,
            threshold: 12.0,
            wave: 699,
            rate: Some(2_000.0),
        };
        assert_eq!((flow.sender, flow.meter), (Some(sender), Some(meter)));
        assert_eq!((flow.is_fallback, flow.malformed), (false, 2));
        assert_eq!(flow.socket.window, 24);
    }

    #[test]
    fn a_half_that_does_nothing_is_none() {
        let line = LINE
            .replace("is_sender=1 is_fallback=0", "is_sender=0 is_fallback=1")
            .replace("meter_level_q32=6442450944", "meter_level_q32=0");
        let flow = Flow::from_line(&line).unwrap();
        assert_eq!((flow.sender, flow.meter), (None, None));
        assert!(flow.is_fallback);
    }
}
