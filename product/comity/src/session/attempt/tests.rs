use comity_units::Seed;
use curve25519_dalek::RistrettoPoint;

use super::super::{CallerCredentials, PassphraseKey};
use super::*;

/// A message 2 that every exchange can read.
fn message(at: u64) -> Vec<u8> {
    let mut bytes = [7; 64];
    bytes[..8].copy_from_slice(&at.to_be_bytes());
    let share = RistrettoPoint::from_uniform_bytes(&bytes).compress();
    [share.as_bytes(), &[2][..]].concat()
}

/// A call with this number of cookies, which it has tried.
fn tried(cookies: u8, randomness: &mut Randomness) -> (Attempt, Time) {
    let credentials = CallerCredentials::Passphrase(PassphraseKey::new([7; 32]));
    let config = CallerConfig {
        timeout: Span::from_secs(60),
        ..CallerConfig::new(credentials, Vec::new())
    };
    let (mut now, id) = (Time::from_secs(1), ConnectionId::new(1));
    let mut attempt = Attempt::new(now, &config);
    assert!(attempt.poll(now, id, &config, randomness, &mut Vec::new()));
    for cookie in 0..cookies {
        attempt.on_retry(now, &[cookie]);
    }
    for _ in 0..cookies {
        now += TRY_INTERVAL;
        while attempt.poll(now, id, &config, randomness, &mut Vec::new()) {}
    }
    assert!(!attempt.has_untried());
    (attempt, now)
}

#[test]
fn answers_are_read_with_a_limited_number_of_exchanges() {
    let mut randomness = Randomness::seeded(Seed::new(1));
    let (mut attempt, mut now) = tried(40, &mut randomness);
    let mut reads = |attempt: &mut Attempt, now, at| {
        let read = attempt.read_answer(now, &message(at), &mut randomness);
        read.len()
    };
    // 1,000 at once, and the first Answer beyond it.
    for at in 0..100 {
        let expected = if at < 26 { 40 } else { MIN_READS };
        assert_eq!(reads(&mut attempt, now, at), expected, "{at}");
    }
    let mut all = 0;
    for at in 0..500 {
        now += Span::from_millis(4);
        all += reads(&mut attempt, now, at) - MIN_READS;
    }
    assert!((3_300..=3_700).contains(&all), "{all}: 36 of 40 in 2 s");
    // Those with few exchanges are all read.
    let (mut attempt, now) = tried(4, &mut Randomness::seeded(Seed::new(2)));
    for at in 0..1_000 {
        assert_eq!(reads(&mut attempt, now, at), 4);
    }
}

/// Each forged Accept is tried with a limited number of keys. The genuine one is read, also if
/// its keys are old.
#[test]
fn accepts_are_read_with_a_limited_number_of_keys() {
    let mut randomness = Randomness::seeded(Seed::new(1));
    let (mut attempt, mut now) = tried(1, &mut randomness);
    let id = ConnectionId::new(1);
    let credentials = CallerCredentials::Passphrase(PassphraseKey::new([7; 32]));
    let config = CallerConfig::new(credentials, Vec::new());
    for at in 0..400 {
        attempt.on_answer(now, MIN_RESEND, b"ticket", &message(at), &mut randomness);
        now += GUESS_INTERVAL;
        while attempt.poll(now, id, &config, &mut randomness, &mut Vec::new()) {}
    }
    assert!((395..=400).contains(&attempt.confirmed.len()));
    let refused = Verdict::Refused(super::super::refusal::Refused::Parameters);
    let genuine = |at: usize, nonce: u8| {
        let known = attempt.confirmed.get(at).expect("one of 400");
        known.agreed.accept(&refused, [nonce; 12])
    };
    let (oldest, newest) = (genuine(0, 1), genuine(394, 2));
    let mut is_read = |attempt: &mut Attempt, now, accept: &[u8]| {
        attempt.read_accept(now, accept, &mut randomness).is_some()
    };
    assert!(is_read(&mut attempt, now, &oldest));
    // A flood leaves no allowance for old keys. They are tried at random.
    let forged = [7; 60];
    let before = attempt.key_tries.used_until;
    for _ in 0..200 {
        assert!(!is_read(&mut attempt, now, &forged));
    }
    let tries = attempt.key_tries.used_until.saturating_since(before);
    // 20,000 at once, and those of one Accept.
    assert!(tries <= BURST + KEY_INTERVAL * 400, "{tries}");
    assert!(is_read(&mut attempt, now, &newest));
    let reads = (0..400).filter(|_| is_read(&mut attempt, now, &oldest));
    let reads = reads.count();
    // 32 of some 365.
    assert!((20..=50).contains(&reads), "{reads}");
    assert!(is_read(&mut attempt, now + BURST, &oldest));
}

/// A cookie counts once for each Initial packet with another one, however often it comes.
#[test]
fn a_cookie_counts_no_more_often_than_a_listener_repeats_it() {
    let (mut attempt, now) = tried(3, &mut Randomness::seeded(Seed::new(1)));
    for _ in 0..1_000 {
        attempt.on_retry(now, &[0]);
    }
    let exchange = attempt.exchanges.first().expect("the first cookie");
    let with_others = attempt.initials - exchange.initials;
    assert!((3..=20).contains(&with_others), "{with_others}");
    assert_eq!(exchange.seen, with_others);
}
