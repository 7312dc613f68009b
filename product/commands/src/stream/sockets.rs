//! UDP sockets for media without a connection.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use comity::uri::Host;
use comity_stream::resolve;
use nix::errno::Errno;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::net::if_::if_nametoindex;
use socket2::{Domain, Protocol, Socket, Type};

use super::error::Error;
use super::uri::{Direction, MediaUri};

/// Opens the input socket: on the address of the URI, or on all addresses of IPv6 and IPv4, or of
/// IPv4 if the host has no IPv6.
pub(crate) fn receiver(uri: &MediaUri, text: &str) -> Result<UdpSocket, Error> {
    let Some((address, port)) = uri.source() else {
        let scheme = text.split(':').next().unwrap_or_default();
        return Err(Error::usage(format!(
            "{text}: names a host to send to; as an input, expected a port as in {scheme}://:5000, an \
             address of this host as in {scheme}://127.0.0.1:5000, or a group as in \
             {scheme}://239.1.1.1:5000"
        )));
    };
    let interface = uri.bind.and_then(|bind| bind.address);
    let all = [Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()];
    let host = address.or(uri.bind.and_then(|bind| bind.host()));
    let is_any = host.is_none();
    let (local, interface_number) = match host {
        Some(host) => within(first(&host, port)?, interface, text)?,
        None => (SocketAddr::new(all[0], port), ANY_INTERFACE),
    };
    let open = |local: SocketAddr| -> io::Result<UdpSocket> {
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
        if local.ip().is_multicast() {
            // Several programs on a host may join one group.
            socket.set_reuse_address(true)?;
        }
        // The system may grant a smaller buffer.
        let _ = socket.set_recv_buffer_size(clamped(uri.receive_buffer.get()));
        if local.is_ipv6() && !local.ip().is_multicast() {
            socket.set_only_v6(!is_any)?;
        }
        socket.bind(&local.into())?;
        match local.ip() {
            IpAddr::V4(group) if group.is_multicast() => {
                let interface = match interface {
                    Some(IpAddr::V4(address)) => address,
                    _ => Ipv4Addr::UNSPECIFIED,
                };
                socket.join_multicast_v4(&group, &interface)?;
            }
            IpAddr::V6(group) if group.is_multicast() => {
                socket.join_multicast_v6(&group, interface_number)?;
            }
            _ => {}
        }
        Ok(socket.into())
    };
    let opened = open(local).or_else(|error| match is_any && lacks_ipv6(&error) {
        true => open(SocketAddr::new(all[1], port)),
        false => Err(error),
    });
    opened.map_err(|error| refused(text, local, &error))
}

/// Whether an error means that the host has no IPv6.
fn lacks_ipv6(error: &io::Error) -> bool {
    let number = error.raw_os_error().map(Errno::from_raw);
    matches!(
        number,
        Some(Errno::EAFNOSUPPORT | Errno::EADDRNOTAVAIL | Errno::EPROTONOSUPPORT)
    )
}

/// Opens the output socket.
pub(crate) fn sender(uri: &MediaUri, text: &str) -> Result<UdpSocket, Error> {
    let Direction::To { host, port } = &uri.direction else {
        return Err(Error::usage(format!(
            "{text}: has no host to send to; as an output, expected one as in udp://host:5000"
        )));
    };
    let target = first(host, *port)?;
    let bind = uri.bind.unwrap_or_default();
    let (target, interface_number) = within(target, bind.address, text)?;
    let any = match target {
        SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let local = match bind.host() {
        Some(host) => first(&host, bind.port)?,
        None => SocketAddr::new(any, bind.port),
    };
    let open = || -> io::Result<UdpSocket> {
        let socket = Socket::new(
            Domain::for_address(target),
            Type::DGRAM,
            Some(Protocol::UDP),
        )?;
        // The system may grant a smaller buffer.
        let _ = socket.set_send_buffer_size(clamped(uri.send_buffer.get()));
        socket.bind(&local.into())?;
        let hops = uri.time_to_live.map(u32::from);
        if target.is_ipv4() {
            if uri.type_of_service != 0 {
                socket.set_tos_v4(uri.type_of_service.into())?;
            }
            if let Some(hops) = hops {
                socket.set_ttl_v4(hops)?;
                socket.set_multicast_ttl_v4(hops)?;
            }
        } else {
            if uri.type_of_service != 0 {
                socket.set_tclass_v6(uri.type_of_service.into())?;
            }
            if let Some(hops) = hops {
                socket.set_unicast_hops_v6(hops)?;
                socket.set_multicast_hops_v6(hops)?;
            }
            // For IPv4 the system uses the interface with the socket's local address.
            if target.ip().is_multicast() {
                socket.set_multicast_if_v6(interface_number)?;
            }
        }
        socket.connect(&target.into())?;
        Ok(socket.into())
    };
    open().map_err(|error| refused(text, local, &error))
}

/// The first address of a host.
fn first(host: &Host, port: u16) -> Result<SocketAddr, Error> {
    let found = resolve(host, port)?.into_iter().next();
    Ok(found.ok_or_else(|| comity_stream::Error::NoAddress { host: host.clone() })?)
}

/// With this index, the system chooses the interface.
const ANY_INTERFACE: u32 = 0;

/// Sets the scope of an IPv6 group to the interface with the address `interface`, because `ff02::1`
/// is a different group on each interface. Returns other addresses unchanged.
fn within(
    group: SocketAddr,
    interface: Option<IpAddr>,
    text: &str,
) -> Result<(SocketAddr, u32), Error> {
    if let SocketAddr::V6(zoned) = group
        && zoned.scope_id() != 0
    {
        return Ok((group, zoned.scope_id()));
    }
    let interface = interface.filter(|address| !address.is_unspecified());
    let (SocketAddr::V6(mut group), Some(interface)) = (group, interface) else {
        return Ok((group, ANY_INTERFACE));
    };
    if !group.ip().is_multicast() {
        return Ok((group.into(), ANY_INTERFACE));
    }
    let has_it = |found: &InterfaceAddress| {
        let found = found.address.as_ref();
        let found = found.and_then(|address| address.as_sockaddr_in6());
        found.is_some_and(|found| IpAddr::V6(found.ip()) == interface)
    };
    let found = || -> io::Result<u32> {
        let found = getifaddrs()?.find(has_it);
        let found = found.ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(if_nametoindex(found.interface_name.as_str())?)
    };
    let number =
        found().map_err(|error| refused(text, SocketAddr::new(interface, group.port()), &error))?;
    group.set_scope_id(number);
    Ok((group.into(), number))
}

fn clamped(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn refused(text: &str, local: SocketAddr, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::AddrInUse => Error::taken(format!(
            "{text}: {local} is in use; choose another port, or find its owner with: ss -lunp 'sport = :{}'",
            local.port()
        )),
        io::ErrorKind::AddrNotAvailable => {
            Error::taken(format!("{text}: {local} is not an address of this host"))
        }
        io::ErrorKind::PermissionDenied => Error::taken(format!(
            "{text}: this user may not open {local}; expected port 1024 or above"
        )),
        _ => Error::failed(format!("{text}: cannot open a socket: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::uri::Uri;
    use super::*;

    fn media(text: &str) -> MediaUri {
        match text.parse() {
            Ok(Uri::Udp(uri)) => uri,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn an_input_listens_on_the_address_that_it_names() {
        let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr();
        let free = free.unwrap();
        let text = format!("udp://{free}");
        let opened = receiver(&media(&text), &text).unwrap();
        assert_eq!(opened.local_addr().unwrap(), free);
        let text = "udp://192.0.2.1:5000";
        let error = receiver(&media(text), text).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("is not an address of this host"),
            "{error}"
        );
    }
}
