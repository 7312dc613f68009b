//! The kernel's own part of a flow's document.

use comity_kernel::Socket;
use serde_json::{Map, Value, json};

pub(super) fn socket_document(socket: &Socket) -> Map<String, Value> {
    let mut document = Map::new();
    for (key, value) in [
        ("local", json!(socket.local.to_string())),
        ("remote", json!(socket.remote.to_string())),
        ("namespace", json!(socket.namespace)),
        ("cwnd_packets", json!(socket.window)),
        ("ssthresh_packets", json!(socket.ssthresh)),
        ("mss_bytes", json!(socket.mss.get())),
        ("srtt_s", json!(socket.srtt.as_secs_f64())),
    ] {
        document.insert(key.into(), value);
    }
    document
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A socket for the tests of the controllers.
    pub(in super::super) fn socket() -> Socket {
        Socket {
            local: "198.18.0.1:40000".parse().unwrap(),
            remote: "198.18.0.2:5000".parse().unwrap(),
            namespace: 4_026_532,
            window: 84,
            ssthresh: None,
            mss: comity_units::DataSize::new(1_448),
            srtt: comity_units::Span::from_millis(31),
        }
    }

    #[test]
    fn a_socket_has_units_in_its_keys() {
        let document = socket_document(&socket());
        assert_eq!(document["ssthresh_packets"], Value::Null);
        assert_eq!(document["srtt_s"], 0.031);
    }
}
