//! Traces of a run in files for other tools.
//!
//! [`pcapng`] writes the packets of links as a capture, for Wireshark and tshark. [`qlog`]
//! writes the state and decisions of one sender, for qvis. Simulated packets have no addresses:
//! [`node_address`] and [`flow_ports`] assign the same ones in every run.

use std::net::Ipv4Addr;

use comity_tcp::codec::Ports;

mod capture;
mod error;
mod ip;
pub mod pcapng;
mod tracer;

pub use capture::CapturePoints;
pub use comity_qlog as qlog;
pub use error::TraceError;
pub use tracer::Tracer;

/// The address of a node: `10.0.0.1` for node 0, and so on upwards.
///
/// `None` beyond node 16,777,213, whose address is the last one of 10.0.0.0/8.
pub fn node_address(node: u32) -> Option<Ipv4Addr> {
    const FIRST: u32 = u32::from_be_bytes([10, 0, 0, 1]);
    const LAST: u32 = u32::from_be_bytes([10, 255, 255, 254]);
    let address = FIRST.checked_add(node)?;
    (address <= LAST).then(|| Ipv4Addr::from(address))
}

/// The ports of a flow, different for each flow. The source port counts up from 49152 for flow 0;
/// the destination port is 30000 and rises by one every 16,384 flows.
///
/// Both ranges avoid ports that Wireshark assigns to another protocol. `None` beyond flow
/// 313,786,367, when the two ranges would meet.
pub fn flow_ports(flow: u32) -> Option<Ports> {
    const SOURCE: u16 = 49_152;
    const SOURCES: u32 = 16_384;
    const DESTINATION: u16 = 30_000;
    let destination = u16::try_from(flow / SOURCES)
        .ok()?
        .checked_add(DESTINATION)?;
    let source = SOURCE + (flow % SOURCES) as u16;
    (destination < SOURCE).then_some(Ports {
        source,
        destination,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_count_up_to_the_end_of_the_network() {
        assert_eq!(node_address(0), Some(Ipv4Addr::new(10, 0, 0, 1)));
        assert_eq!(node_address(255), Some(Ipv4Addr::new(10, 0, 1, 0)));
        assert_eq!(
            node_address(16_777_213),
            Some(Ipv4Addr::new(10, 255, 255, 254))
        );
        assert_eq!(node_address(16_777_214), None);
        assert_eq!(node_address(u32::MAX), None);
    }

    #[test]
    fn ports_count_up_and_then_change_the_destination() {
        let ports = |source, destination| {
            Some(Ports {
                source,
                destination,
            })
        };
        assert_eq!(flow_ports(0), ports(49_152, 30_000));
        assert_eq!(flow_ports(16_383), ports(65_535, 30_000));
        assert_eq!(flow_ports(16_384), ports(49_152, 30_001));
        assert_eq!(flow_ports(313_786_367), ports(65_535, 49_151));
        assert_eq!(flow_ports(313_786_368), None);
        assert_eq!(flow_ports(u32::MAX), None);
    }
}
