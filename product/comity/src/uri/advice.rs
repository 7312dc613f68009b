//! Keys of other tools that Comity refuses, with advice. Those that it accepts are aliases in the
//! table of settings.

/// The advice for a key of SRT, RIST or their tools in a `comity://` URI; `None` for other names.
pub(super) fn hint(name: &str) -> Option<&'static str> {
    Some(match name {
        "pbkeylen" | "enforcedencryption" | "aes-type" | "cryptomode" | "kmrefreshrate"
        | "kmpreannounce" => {
            "every connection is encrypted with \"passphrase\" or \"key\", always in the same way; leave it out"
        }
        "secret" | "password" => "set the shared secret of both ends with \"passphrase\"",
        "transtype" | "messageapi" | "profile" => {
            "every connection carries media with deadlines; leave it out, or see \"reliability\" for files"
        }
        "timeout" | "rw_timeout" | "rcvtimeo" | "sndtimeo" | "peeridletimeout"
        | "session-timeout" => {
            "set the idle timeout with \"peeridletimeo\", and the timeout of a call with \"conntimeo\""
        }
        "connect_timeout" | "connect-timeout" | "conntimeout" => {
            "set the timeout of a call with \"conntimeo\""
        }
        "packetfilter" | "fec" | "filter" => {
            "lost packets are retransmitted within \"latency\", without FEC; leave it out"
        }
        "rcvlatency" | "peerlatency" | "tsbpddelay" | "buffer" | "buffer-min" | "buffer-max" => {
            "set the time from source to player with \"latency\"; the larger value of both ends applies"
        }
        "tsbpdmode" | "tsbpd" => {
            "set the delivery of the receiver with \"deliver\": paced, as with TSBPD, or early"
        }
        "inputbw" | "mininputbw" | "oheadbw" | "bandwidth" | "return-bandwidth" => {
            "the congestion controller, \"cc\", sets the rate; \"maxbw\" bounds it"
        }
        "congestion" | "smoother" => "choose the congestion controller with \"cc\"",
        "nakreport" | "lossmaxttl" | "retransmitalgo" | "snddropdelay" | "drifttracer"
        | "reorder-buffer" | "weight" => "it needs no setting here; leave it out",
        "cname" | "srp_user" | "user" | "username" => {
            "a caller names its stream with \"streamid\"; a listener names the accepted callers with \"allow\""
        }
        "groupconnect" | "grouptype" | "groupminstabletimeo" => {
            "a connection has one path; there are no groups"
        }
        "fc" | "rcvsyn" | "sndsyn" => {
            "set the buffer sizes of the two ends with \"sndbuf\" and \"rcvbuf\""
        }
        "miface" | "localaddr" | "localport" => "set the local address and port with \"bind\"",
        "pkt_size" => {
            "SRT and UDP put seven packets of a transport stream, 1316 bytes, into a datagram. Here, datagrams are as \
             large as the path carries, up to \"payload\", and the receiver packs the stream again; leave it out"
        }
        "buffer_size" | "fifo_size" | "send_buffer_size" | "recv_buffer_size" => {
            "set the buffer sizes of the two ends with \"sndbuf\" and \"rcvbuf\""
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
