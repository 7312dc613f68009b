//! Keys that other tools have, and what does here what they do there.

/// What to do for someone who gives a `comity://` URI a key of SRT, RIST or their tools; `None` for
/// a name that none of these has.
pub(super) fn hint(name: &str) -> Option<&'static str> {
    Some(match name {
        "pbkeylen" | "enforcedencryption" | "aes-type" | "cryptomode" | "kmrefreshrate"
        | "kmpreannounce" => {
            "everything is encrypted, always and in one way, by \"passphrase\" or \"key\"; leave it out"
        }
        "secret" | "password" => "the secret that both ends share is \"passphrase\"",
        "transtype" | "messageapi" | "profile" => {
            "media with deadlines is all that there is; leave it out, or see \"reliability\" for files"
        }
        "timeout" | "rw_timeout" | "rcvtimeo" | "sndtimeo" | "peeridletimeout"
        | "session-timeout" => {
            "how long nothing may arrive is \"peeridletimeo\", and how long a call may take \"conntimeo\""
        }
        "connect_timeout" | "connect-timeout" | "conntimeout" => {
            "how long a call may take is \"conntimeo\""
        }
        "packetfilter" | "fec" | "filter" => {
            "lost packets are sent again, within \"latency\", and not coded against; leave it out"
        }
        "rcvlatency" | "peerlatency" | "tsbpddelay" | "buffer" | "buffer-min" | "buffer-max" => {
            "how long everything may take is \"latency\", the larger one of both ends"
        }
        "tsbpdmode" | "tsbpd" => {
            "when the receiver hands over is \"deliver\": paced, as with TSBPD, or early"
        }
        "inputbw" | "mininputbw" | "oheadbw" | "bandwidth" | "return-bandwidth" => {
            "the rate is the congestion controller's, \"cc\"; \"maxbw\" bounds it"
        }
        "congestion" | "smoother" => "the congestion controller is \"cc\"",
        "nakreport" | "lossmaxttl" | "retransmitalgo" | "snddropdelay" | "drifttracer"
        | "reorder-buffer" | "weight" => "it needs no setting here; leave it out",
        "cname" | "srp_user" | "user" | "username" => {
            "what the caller says of itself is \"streamid\"; who may call is \"allow\""
        }
        "groupconnect" | "grouptype" | "groupminstabletimeo" => {
            "a connection has one path; there are no groups"
        }
        "fc" | "rcvsyn" | "sndsyn" => {
            "what waits at each end is bounded by \"sndbuf\" and \"rcvbuf\""
        }
        "miface" | "localaddr" | "localport" => "the local address and port are \"bind\"",
        "pkt_size" => {
            "it says how SRT and UDP cut a transport stream, 1316 bytes being seven of its packets; here packets are as \
             large as the path carries, up to \"payload\", and media is cut again behind the receiver; leave it out"
        }
        "buffer_size" | "fifo_size" | "send_buffer_size" | "recv_buffer_size" => {
            "what waits at each end is bounded by \"sndbuf\" and \"rcvbuf\""
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_for_names_that_are_none_here_and_name_what_is() {
        let own = || crate::uri::keys().iter();
        for key in own() {
            assert_eq!(hint(key.name), None, "{}", key.name);
            for alias in key.aliases {
                assert_eq!(hint(alias), None, "{alias}");
            }
        }
        for name in [
            "pbkeylen",
            "transtype",
            "timeout",
            "packetfilter",
            "oheadbw",
            "pkt_size",
            "fifo_size",
            "localaddr",
        ] {
            let hint = hint(name).expect(name);
            for word in hint.split('"').skip(1).step_by(2) {
                assert!(own().any(|key| key.name == word), "{name}: {word}");
            }
        }
    }
}
