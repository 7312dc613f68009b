//! The identity of a listener among others with the same credentials.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;

/// Identifies a listener by the boot of the host, the network namespace, and its address and port.
/// A restarted listener has the same identity, and no other listener has it. Returns `None` if the
/// system does not provide these values.
///
/// A later listener can have the identity of one that has ended: a new namespace may get the number
/// of a deleted one, as a listener may get the address of another.
pub(super) fn of(local: SocketAddr) -> Option<Vec<u8>> {
    let boot = fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/thread-self/ns/net").ok()?;
    let namespace = namespace.as_os_str().as_bytes();
    let local = local.to_string();
    Some([boot.trim_ascii(), namespace, local.as_bytes()].join(&b'|'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restarted_listener_has_the_same_instance() {
        let at = |text: &str| of(text.parse().unwrap()).expect("Linux has both files");
        let instance = at("127.0.0.1:5000");
        assert_eq!(instance, at("127.0.0.1:5000"));
        for other in ["127.0.0.1:5001", "127.0.0.2:5000", "[::]:5000"] {
            assert_ne!(instance, at(other));
        }
        // 36 characters of a random UUID.
        let boot = instance.split(|&byte| byte == b'|').next().unwrap();
        assert_eq!(boot.len(), 36);
    }
}
