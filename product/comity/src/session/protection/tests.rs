use super::*;

fn ends() -> (Protection, Protection) {
    let end = |role| {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, &[1; 32]);
        let cipher = Cipher::ChaCha20Poly1305;
        let secrets = Secrets::derive(cipher, &salt, &[2; 32], &[3; 32]);
        Protection::new(Some(secrets), role, KeyLimits::default())
    };
    (end(Role::Caller), end(Role::Listener))
}

fn sealed(end: &mut Protection, number: u64) -> Vec<u8> {
    let mut packet = [&[0; DATA_HEADER][..], b"deadline"].concat();
    let (to, number) = (ConnectionId::new(1), PacketNumber::new(number));
    end.seal(Time::ZERO, to, number, &mut packet, 0).unwrap();
    packet
}

fn opened(end: &mut Protection, mut packet: Vec<u8>) -> Result<u64, OpenError> {
    let opened = end.open(Time::ZERO, &mut packet);
    opened.map(|(number, _)| number.get())
}

/// Advances a dishonest end to the next phase, without waiting for a packet of its peer.
fn advance(end: &mut Protection) {
    let keys = end.state.keys().unwrap().unwrap();
    keys.advance_sealing();
    keys.opening.phase = keys.sealing.phase;
}

#[test]
fn a_second_key_update_before_the_first_is_answered_ends_the_connection() {
    for answers in [true, false] {
        let (mut hasty, mut honest) = ends();
        assert_eq!(opened(&mut honest, sealed(&mut hasty, 0)), Ok(0));
        sealed(&mut honest, 0);
        advance(&mut hasty);
        assert_eq!(opened(&mut honest, sealed(&mut hasty, 1)), Ok(1));
        assert_eq!(honest.phase(), 1, "it follows");
        if answers {
            sealed(&mut honest, 1);
        }
        advance(&mut hasty);
        let second = opened(&mut honest, sealed(&mut hasty, 2));
        let expected = match answers {
            true => Ok(2),
            false => Err(OpenError::UpdateTooEarly),
        };
        assert_eq!(second, expected);
    }
}

/// The old keys are erased even if no packet follows the update.
#[test]
fn the_keys_of_the_last_phase_are_erased_by_the_timer() {
    let (mut hasty, mut honest) = ends();
    assert_eq!(opened(&mut honest, sealed(&mut hasty, 0)), Ok(0));
    sealed(&mut honest, 0);
    let update = Time::ZERO + KeyLimits::default().update_after;
    assert_eq!(honest.next_timer(), update);
    advance(&mut hasty);
    assert_eq!(opened(&mut honest, sealed(&mut hasty, 1)), Ok(1));
    let due = Time::ZERO + KeyLimits::default().old_keys_for;
    assert_eq!(honest.next_timer(), due);
    honest.on_timer(Time::from_nanos(due.as_nanos() - 1));
    let previous = |end: &mut Protection| {
        let keys = end.state.keys().unwrap().unwrap();
        keys.opening.previous.is_some()
    };
    assert!(previous(&mut honest));
    honest.on_timer(due);
    assert!(!previous(&mut honest));
    assert_eq!(honest.next_timer(), Time::MAX);
}

/// An end that sends nothing for two minutes replaces its sealing key once, and goes on when
/// the peer does.
#[test]
fn a_sealing_key_is_replaced_by_the_timer() {
    let (mut one, mut other) = ends();
    assert_eq!(opened(&mut other, sealed(&mut one, 0)), Ok(0));
    assert_eq!(opened(&mut one, sealed(&mut other, 0)), Ok(0));
    let due = Time::ZERO + KeyLimits::default().update_after;
    for end in [&mut one, &mut other] {
        assert_eq!(end.next_timer(), due);
        end.on_timer(Time::from_nanos(due.as_nanos() - 1));
        assert_eq!(end.phase(), 0);
        end.on_timer(due);
        assert_eq!((end.phase(), end.next_timer()), (1, Time::MAX));
    }
    // Both follow.
    assert_eq!(opened(&mut other, sealed(&mut one, 1)), Ok(1));
    assert_eq!(opened(&mut one, sealed(&mut other, 1)), Ok(1));
    assert_eq!((one.phase(), other.phase()), (1, 1));
    assert_eq!((one.forged(), other.forged()), (0, 0));
}

/// An erased end opens and seals nothing, not even without protection, and keeps its counters.
#[test]
fn an_erased_end_has_no_keys() {
    let (mut one, mut other) = ends();
    assert_eq!(opened(&mut other, sealed(&mut one, 0)), Ok(0));
    let (known, next) = (sealed(&mut one, 1), sealed(&mut one, 2));
    assert_eq!(opened(&mut other, known.clone()), Ok(1));
    let facts = |end: &Protection| (end.cipher(), end.phase(), end.forged(), end.overhead());
    let before = facts(&other);
    other.erase();
    assert!(other.state.keys().is_err());
    assert_eq!(facts(&other), before);
    assert_eq!(other.next_timer(), Time::MAX);
    let plain = [
        &encode(false, ConnectionId::new(1), PacketNumber::new(9))[..],
        b"plain",
    ];
    for packet in [known.clone(), next, plain.concat()] {
        let expected = Err(OpenError::Stale(Stale::TooOld));
        assert_eq!(opened(&mut other, packet), expected);
    }
    let mut repeated = known;
    let refused = other.copied(&mut repeated);
    assert_eq!(refused, Err(OpenError::Stale(Stale::TooOld)));
    let mut out = [&[0; DATA_HEADER][..], b"deadline"].concat();
    let (to, number) = (ConnectionId::new(1), PacketNumber::new(9));
    let sealed = other.seal(Time::ZERO, to, number, &mut out, 0);
    assert_eq!((sealed, out), (Err(KeyUsedUp), Vec::new()));
}

/// RFC 9001, section 6.6.
#[test]
fn ciphers_have_the_limits_of_quic() {
    let (aes, chacha) = (Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305);
    assert_eq!(aes.confidentiality_limit(), 8_388_608);
    assert_eq!(chacha.confidentiality_limit(), u64::MAX);
    assert_eq!(aes.integrity_limit(), 4_503_599_627_370_496);
    assert_eq!(chacha.integrity_limit(), 68_719_476_736);
}
