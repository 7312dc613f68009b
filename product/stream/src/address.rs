//! Addresses of peers.

use std::io;
use std::net::{SocketAddr, SocketAddrV6, ToSocketAddrs};

use comity::uri::Host;

use crate::error::Error;

/// Converts an IPv4-mapped IPv6 address, which a dual-stack socket reports, to IPv4. Other
/// addresses are unchanged.
pub fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip if ip == address.ip() => address,
        ip => SocketAddr::new(ip, address.port()),
    }
}

/// All addresses of a host, at least one.
///
/// # Errors
///
/// [`Error::LookUp`] and [`Error::NoAddress`].
pub fn resolve(host: &Host, port: u16) -> Result<Vec<SocketAddr>, Error> {
    let found = match host {
        Host::Ip(ip) => return Ok(vec![(*ip, port).into()]),
        Host::Zoned(ip, zone) => match zone.as_str().parse() {
            Ok(number) => return Ok(vec![SocketAddrV6::new(*ip, port, 0, number).into()]),
            Err(_) => {
                let text = format!("{ip}%{}", zone.as_str());
                let found = (text.as_str(), port).to_socket_addrs();
                found.map_err(|_| io::Error::other("there is no interface of that name"))
            }
        },
        Host::Name(name) => (name.as_str(), port).to_socket_addrs(),
    };
    let host = host.clone();
    match found.map(Iterator::collect::<Vec<_>>) {
        Ok(addresses) if !addresses.is_empty() => Ok(addresses),
        Ok(_) => Err(Error::NoAddress { host }),
        Err(reason) => Err(Error::LookUp { host, reason }),
    }
}
