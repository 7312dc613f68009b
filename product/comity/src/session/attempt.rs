//! A call before the listener has proved itself: every incoming message may be forged.
//!
//! While there is room, a new message evicts no earlier one. Each cookie has its own key exchange,
//! and each Answer its own Confirm packet. The first Accept that proves the keys of one of them
//! ends the attempt. An attacker on the path may send more forgeries than the caller can keep.
//! Genuine messages still have the advantage:
//!
//! * The listener repeats its cookie after each Initial packet with a forged one. The caller tries
//!   the most frequent cookies first. Beyond [`MAX_COOKIES`] it evicts the least frequent one.
//! * Beyond [`MAX_ANSWERS`] it evicts a random Answer, so nobody can choose which one.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use comity_transport::wire::header::{Confirm, Initial};
use comity_units::{Span, Time};
use zeroize::Zeroizing;

use super::call::{CallError, CallerConfig, MIN_RESEND};
use super::cookie::SLOT;
use super::exchange::Channel;
use super::handshake::{Agreed, Calling, Verdict};
use super::{ConnectionId, Pattern, Randomness};

/// How long the caller doubts a refusal, since anybody on the path can forge one. It believes a
/// refusal that comes again after this time, and the last one at the time limit of the call. By
/// then, handshakes on paths with round trips of a second are over.
const DOUBT: Span = Span::from_secs(3);
/// The number of cookies to try at once. Each further one waits for [`TRY_INTERVAL`].
const PROMPT_TRIES: u32 = 8;
/// The interval between Initial packets with untried cookies.
const TRY_INTERVAL: Span = Span::from_millis(20);
/// The maximum first wait for the answer to a message. On a path with longer round trips, some
/// packets are sent twice.
const LONGEST_FIRST_WAIT: Span = Span::from_secs(1);
/// The maximum number of cookies that the caller keeps.
const MAX_COOKIES: usize = 256;
/// The maximum number of key exchanges that the caller tries with one Answer. With a passphrase,
/// each of them derives a key.
const MAX_EXCHANGES: usize = 4;
/// Candidate Answers that the caller keeps until one proves to be genuine. With a passphrase,
/// message 2 proves nothing yet, and a forged one must not exclude the genuine one.
const MAX_ANSWERS: usize = 1_024;
/// With more Answers than this, the caller confirms each at once: somebody is forging them, and
/// more will arrive before the next round.
const MAX_PATIENT: usize = 4;
/// Shares of message 2 that a call with a passphrase tests at once. Each lets its author test one
/// guess of the passphrase.
const PROMPT_GUESSES: u32 = 16;
/// The interval between further tests: as many per second as a listener grants to a network.
const GUESS_INTERVAL: Span = Span::from_micros(15_625);
/// With more untested Answers than this, the caller sends Initial packets every [`TRY_INTERVAL`],
/// so that genuine Answers are among those that it tests.
const FLOOD: usize = 16;
/// Confirm packets to retransmit in one round.
const MAX_ROUND: usize = 8;

/// The departure times of one message.
#[derive(Clone, Copy, Debug)]
enum Departures {
    None,
    One(Time),
    /// The answer may belong to any of several packets. The time is that of the last one.
    Several(Time),
}

impl Departures {
    fn on_sent(&mut self, now: Time) {
        *self = match self {
            Self::None => Self::One(now),
            _ => Self::Several(now),
        };
    }

    /// The round-trip time that an answer at `now` measures, if only one packet can have caused it
    /// (Karn's rule).
    fn round_trip(self, now: Time) -> Option<Span> {
        match self {
            Self::One(sent_at) => Some(now.saturating_since(sent_at)),
            _ => None,
        }
    }

    fn last(self) -> Time {
        match self {
            Self::None => Time::ZERO,
            Self::One(sent_at) | Self::Several(sent_at) => sent_at,
        }
    }
}

/// A cookie, and the key exchange for it.
struct Exchange {
    cookie: Vec<u8>,
    /// The number of Retries with this cookie.
    seen: u32,
    /// When the cookie and its tickets expire.
    stale_at: Time,
    /// `None` until it is first sent.
    calling: Option<Calling>,
    sent: Departures,
    /// Whether its Initial packet must be retransmitted.
    is_due: bool,
}

/// An Answer that may be genuine, as read by one of the key exchanges.
struct Candidate {
    ticket: Vec<u8>,
    /// Message 2.
    message: Vec<u8>,
    agreed: Agreed,
    stale_at: Time,
    sent: Departures,
    /// Whether its Confirm packet must be sent.
    is_due: bool,
}

pub(super) struct Attempt {
    /// In order of arrival.
    exchanges: Vec<Exchange>,
    answers: Vec<Candidate>,
    /// Whether message 2 proves nothing, so that message 3 lets its author test a guess.
    is_guess: bool,
    /// Whether the listener has proved itself and was busy, so that the caller must repeat its
    /// request.
    is_proven: bool,
    /// How many more cookies the caller may try at once.
    prompt: u32,
    /// When the next cookie may be tried.
    next_try: Time,
    /// The hashes of the exchanges whose keys the caller has tested.
    tested: BTreeSet<[u8; 32]>,
    /// How many more keys the caller may test at once, and when it may test the next one.
    guesses: u32,
    next_guess: Time,
    /// Index of the exchange to repeat next while Answers are being forged.
    turn: usize,
    /// When the first Initial without a cookie left.
    begun_at: Time,
    hello: Departures,
    next_send: Time,
    /// Retransmissions since the first Answer.
    rounds: u32,
    /// The first wait for an answer.
    first_wait: Span,
    wait: Span,
    longest_wait: Span,
    /// The first wait if the Retry answered the first Initial; `None` once that is decided.
    longer_wait: Option<Span>,
    deadline: Time,
    /// The last reported refusal, and when it first came.
    doubt: Option<(CallError, Time)>,
}

/// The wait for an answer on a path with this round-trip time. A retransmission before the answer
/// can arrive costs the listener another key exchange.
fn wait_for(round_trip: Span) -> Span {
    (round_trip * 5 / 4).min(LONGEST_FIRST_WAIT)
}

impl Attempt {
    pub(super) fn new(now: Time, config: &CallerConfig) -> Self {
        Self {
            exchanges: Vec::new(),
            answers: Vec::new(),
            is_guess: config.credentials.pattern() == Pattern::CPace,
            is_proven: false,
            prompt: PROMPT_TRIES,
            next_try: now,
            tested: BTreeSet::new(),
            guesses: PROMPT_GUESSES,
            next_guess: now,
            turn: 0,
            begun_at: now,
            hello: Departures::None,
            next_send: now,
            rounds: 0,
            first_wait: config.first_resend,
            wait: config.first_resend,
            longest_wait: config.longest_resend,
            longer_wait: None,
            deadline: now + config.timeout,
            doubt: None,
        }
    }

    // ---------------------------------------------------------------- input

    pub(super) fn on_retry(&mut self, now: Time, cookie: &[u8]) {
        if self.is_proven {
            return;
        }
        if let Some(known) = { self.exchanges.iter_mut() }.find(|known| known.cookie == cookie) {
            known.seen = known.seen.saturating_add(1);
            return self.on_same_retry(now);
        }
        if self.exchanges.is_empty() {
            let known = self.hello.round_trip(now).map(wait_for);
            let longest = wait_for(now.saturating_since(self.begun_at));
            self.longer_wait = known.is_none().then_some(longest);
            // If the Retry answers the second Initial, the round trip is shorter than the interval
            // between the two.
            self.first_wait = self
                .first_wait
                .max(known.unwrap_or(wait_for(self.first_wait)));
        }
        if self.exchanges.len() >= MAX_COOKIES {
            // Evicts the oldest of the least frequent cookies, untried ones first: a tried cookie
            // awaits its Answer.
            let last = { self.exchanges.iter().enumerate() }
                .min_by_key(|(_, exchange)| (exchange.seen, exchange.calling.is_some()));
            if let Some((at, _)) = last {
                self.exchanges.remove(at);
            }
        }
        self.exchanges.push(Exchange {
            cookie: cookie.to_vec(),
            seen: 1,
            stale_at: now + SLOT,
            calling: None,
            sent: Departures::None,
            is_due: false,
        });
        if self.prompt > 0 {
            self.next_try = now;
        }
    }

    /// Handles the same Retry again: the listener answered another Initial, too. So the first
    /// Initial was probably not lost, and the first Retry answered it: the path is long.
    fn on_same_retry(&mut self, now: Time) {
        if let [exchange] = self.exchanges.as_slice()
            && let Departures::One(sent_at) = exchange.sent
            && self.answers.is_empty()
            // The network may have duplicated the first Retry.
            && now.saturating_since(sent_at) >= MIN_RESEND / 2
            && let Some(wait) = self.longer_wait.take()
        {
            self.first_wait = self.first_wait.max(wait);
            self.wait = self.wait.max(self.first_wait);
            self.next_send = self.next_send.max(sent_at + self.first_wait);
        }
    }

    pub(super) fn on_answer(
        &mut self,
        now: Time,
        min_wait: Span,
        ticket: &[u8],
        message: &[u8],
        randomness: &mut Randomness,
    ) {
        let is_known = |known: &Candidate| known.message == message && known.ticket == ticket;
        if self.is_proven || self.answers.iter().any(is_known) {
            return;
        }
        for (agreed, stale_at) in self.read_answer(message) {
            let is_first = self.answers.is_empty();
            if !is_first && agreed.shared.is_none() {
                // Without keys, an Accept could not be attributed to one of several Answers.
                return;
            }
            if is_first {
                // The round-trip time is certain only if there was one exchange.
                if let [exchange] = self.exchanges.as_slice()
                    && let Some(round_trip) = exchange.sent.round_trip(now)
                {
                    self.first_wait = wait_for(round_trip).max(min_wait);
                }
                self.restart_timer(now);
            }
            let candidate = Candidate {
                ticket: ticket.to_vec(),
                message: message.to_vec(),
                agreed,
                stale_at,
                sent: Departures::None,
                is_due: is_first || self.answers.len() >= MAX_PATIENT,
            };
            if self.answers.len() < MAX_ANSWERS {
                self.answers.push(candidate);
                continue;
            }
            // Nobody on the path can predict which one is evicted.
            let any = u64::from_be_bytes(randomness.bytes()) % MAX_ANSWERS as u64;
            if let Some(last) = self.answers.get_mut(any as usize) {
                *last = candidate;
            }
        }
    }

    /// Reads message 2 with each exchange. Tickets are unprotected: the genuine one may follow a
    /// changed one with the same message.
    fn read_answer(&mut self, message: &[u8]) -> Vec<(Agreed, Time)> {
        let hash = |agreed: &Agreed| agreed.shared.as_ref().map(|shared| shared.hash);
        let mut known = Vec::<(Agreed, Time)>::new();
        for candidate in { self.answers.iter() }.filter(|known| known.message == message) {
            let own = hash(&candidate.agreed);
            if !known.iter().any(|(agreed, _)| hash(agreed) == own) {
                known.push((candidate.agreed.clone(), candidate.stale_at));
            }
        }
        if !known.is_empty() {
            return known;
        }
        let mut tried: Vec<_> = { self.exchanges.iter_mut() }
            .filter(|exchange| exchange.calling.is_some())
            .collect();
        tried.sort_by_key(|exchange| Reverse(exchange.seen));
        let read = tried
            .into_iter()
            .take(MAX_EXCHANGES)
            .filter_map(|exchange| {
                // Anybody could have sent an invalid Answer, and the genuine one may still arrive.
                let agreed = exchange.calling.as_mut()?.on_answer(message).ok()?;
                Some((agreed, exchange.stale_at))
            });
        read.collect()
    }

    /// Reads a message 4. Returns its keys, its contents and the round-trip time that it measures;
    /// `None` if it proves no keys.
    pub(super) fn read_accept(
        &self,
        now: Time,
        message: &[u8],
    ) -> Option<(Agreed, Verdict, Option<Span>)> {
        self.answers.iter().find_map(|answer| {
            let verdict = answer.agreed.read_accept(message)?;
            let round_trip = answer.sent.round_trip(now);
            Some((answer.agreed.clone(), verdict, round_trip))
        })
    }

    /// Handles a busy listener that has proved itself: the caller repeats its request until there
    /// is room.
    pub(super) fn on_busy(&mut self) {
        self.is_proven = true;
    }

    /// Records a refusal. Returns whether to believe it: its reason first came at least [`DOUBT`]
    /// ago. The caller waits for a busy listener until its time limit.
    pub(super) fn is_believed(&mut self, now: Time, error: &CallError) -> bool {
        let is_busy = |error: &CallError| matches!(error, CallError::Busy { .. });
        match &self.doubt {
            Some((known, since)) if known == error => !is_busy(error) && *since + DOUBT <= now,
            Some((known, _)) if is_busy(error) && !is_busy(known) => false,
            _ => {
                self.doubt = Some((error.clone(), now));
                false
            }
        }
    }

    /// The reason of the last refusal, at the time limit of the call.
    pub(super) fn take_doubt(&mut self) -> Option<CallError> {
        self.doubt.take().map(|(error, _)| error)
    }

    // ---------------------------------------------------------------- timers

    /// Restarts the retransmission timer for another message.
    fn restart_timer(&mut self, now: Time) {
        self.rounds = 0;
        self.wait = self.first_wait;
        self.arm(now);
    }

    fn arm(&mut self, now: Time) {
        self.next_send = now + self.wait;
        let longest = self.longest_wait.max(self.wait);
        self.wait = (self.wait * 3 / 2).min(longest);
    }

    fn has_untried(&self) -> bool {
        !self.is_proven && { self.exchanges.iter() }.any(|exchange| exchange.calling.is_none())
    }

    fn stale_at(&self) -> Time {
        let exchanges = self.exchanges.iter().map(|exchange| exchange.stale_at);
        let answers = self.answers.iter().map(|answer| answer.stale_at);
        exchanges.chain(answers).min().unwrap_or(Time::MAX)
    }

    /// Answers whose keys wait to be tested.
    fn waiting(&self) -> usize {
        { self.answers.iter() }
            .filter(|answer| answer.is_due && !self.is_tested(answer))
            .count()
    }

    /// Whether a Confirm packet for this Answer tests no new keys. With keys instead of a
    /// passphrase, an Answer that can be read is genuine.
    fn is_tested(&self, answer: &Candidate) -> bool {
        let shared = answer.agreed.shared.as_ref();
        shared.is_none_or(|shared| !self.is_guess || self.tested.contains(&shared.hash))
    }

    pub(super) fn next_timer(&self) -> Time {
        let waiting = self.waiting();
        let next_try = match self.has_untried() || waiting > FLOOD {
            true => self.next_try,
            false => Time::MAX,
        };
        let next_guess = match waiting {
            0 => Time::MAX,
            _ => self.next_guess,
        };
        { self.next_send.min(next_try).min(next_guess) }
            .min(self.stale_at())
            .min(self.deadline)
    }

    /// Forgets expired exchanges. Returns whether the time limit of the call has passed.
    pub(super) fn on_timer(&mut self, now: Time) -> bool {
        if self.stale_at() <= now {
            self.exchanges.retain(|exchange| now < exchange.stale_at);
            self.answers.retain(|answer| now < answer.stale_at);
            if self.is_blank() {
                self.is_proven = false;
                self.begun_at = now;
                self.hello = Departures::None;
                self.wait = self.first_wait;
                self.next_send = now;
            }
        }
        self.deadline <= now
    }

    /// Whether no received message allows the handshake to continue.
    fn is_blank(&self) -> bool {
        self.exchanges.is_empty() && self.answers.is_empty()
    }

    // ---------------------------------------------------------------- output

    /// Appends the next packet that may leave now; `false` if there is none.
    pub(super) fn poll(
        &mut self,
        now: Time,
        own: ConnectionId,
        config: &CallerConfig,
        randomness: &mut Randomness,
        out: &mut Vec<u8>,
    ) -> bool {
        if now >= self.deadline {
            return false;
        }
        if self.next_send <= now {
            self.arm(now);
            if self.is_blank() {
                self.hello.on_sent(now);
                write_initial(own, config, &[], &[], out);
                return true;
            }
            self.begin_round();
        }
        if let Some(at) = self.next_confirm(now, randomness)
            && let Some(answer) = self.answers.get_mut(at)
        {
            answer.is_due = false;
            answer.sent.on_sent(now);
            write_confirm(answer, config, out);
            return true;
        }
        if let Some(due) = self.exchanges.iter_mut().find(|exchange| exchange.is_due) {
            due.write(now, own, config, randomness, out);
            return true;
        }
        if now < self.next_try || self.is_proven {
            return false;
        }
        let is_first = { self.exchanges.iter() }.all(|exchange| exchange.calling.is_none());
        let is_flooded = self.waiting() > FLOOD;
        let untried = { self.exchanges.iter_mut() }.filter(|exchange| exchange.calling.is_none());
        // Of equally frequent cookies, the last: a burst of forged ones may precede the genuine
        // one.
        let next = match untried.max_by_key(|exchange| exchange.seen) {
            None if is_flooded => {
                self.turn += 1;
                let turn = self.turn % MAX_EXCHANGES;
                let mut tried: Vec<_> = self.exchanges.iter_mut().collect();
                tried.sort_by_key(|exchange| Reverse(exchange.seen));
                let at = turn % tried.len().max(1);
                tried.into_iter().nth(at)
            }
            next => next,
        };
        let Some(exchange) = next else {
            return false;
        };
        exchange.write(now, own, config, randomness, out);
        self.prompt = self.prompt.saturating_sub(1);
        if self.prompt == 0 {
            self.next_try = now + TRY_INTERVAL;
        }
        if is_first && self.answers.is_empty() {
            self.restart_timer(now);
        }
        true
    }

    /// The Answer whose Confirm packet may leave now.
    fn next_confirm(&mut self, now: Time, randomness: &mut Randomness) -> Option<usize> {
        let free =
            { self.answers.iter() }.position(|answer| answer.is_due && self.is_tested(answer));
        if free.is_some() || now < self.next_guess {
            return free;
        }
        let mut waiting = Vec::new();
        for (at, answer) in self.answers.iter().enumerate() {
            if answer.is_due {
                waiting.push(at);
            }
        }
        // Nobody on the path can predict which Answer is next.
        let any = u64::from_be_bytes(randomness.bytes()) % (waiting.len().max(1) as u64);
        let at = *waiting.get(any as usize)?;
        if let Some(shared) = self.answers.get(at).and_then(|a| a.agreed.shared.as_ref()) {
            self.tested.insert(shared.hash);
        }
        self.guesses = self.guesses.saturating_sub(1);
        if self.guesses == 0 {
            self.next_guess = now + GUESS_INTERVAL;
        }
        Some(at)
    }

    /// Chooses the retransmissions of the next round.
    fn begin_round(&mut self) {
        let count = self.answers.len();
        let mut answers: Vec<_> = self.answers.iter_mut().collect();
        answers.sort_by_key(|answer| answer.sent.last());
        for answer in answers.into_iter().take(MAX_ROUND) {
            answer.is_due = true;
        }
        self.rounds += u32::from(count > 0);
        // An Answer may be forged, so the caller must send Initials again. With one or two Answers,
        // it first waits for two rounds: another Initial costs the listener another key exchange.
        let asks_again = count == 0 || count > 2 || self.rounds > 2;
        if !asks_again || self.is_proven {
            return;
        }
        let mut tried: Vec<_> = { self.exchanges.iter_mut() }
            .filter(|exchange| exchange.calling.is_some())
            .collect();
        // Exchanges with the most frequent cookies, and the others in turn.
        if let Some(last) = tried.iter_mut().min_by_key(|exchange| exchange.sent.last()) {
            last.is_due = true;
        }
        tried.sort_by_key(|exchange| Reverse(exchange.seen));
        for exchange in tried.into_iter().take(MAX_EXCHANGES) {
            exchange.is_due = true;
        }
    }
}

impl Exchange {
    /// Appends its Initial packet.
    fn write(
        &mut self,
        now: Time,
        own: ConnectionId,
        config: &CallerConfig,
        randomness: &mut Randomness,
        out: &mut Vec<u8>,
    ) {
        let channel = Channel {
            caller: own,
            cookie: &self.cookie,
        };
        let calling = self.calling.get_or_insert_with(|| {
            let random = Zeroizing::new(randomness.bytes());
            Calling::new(&config.credentials, channel, config.cipher, random)
        });
        write_initial(own, config, &self.cookie, calling.message(), out);
        self.sent.on_sent(now);
        self.is_due = false;
    }
}

const FITS: &str = "cookies, tickets and messages are within the limits of the format";

fn write_initial(
    own: ConnectionId,
    config: &CallerConfig,
    cookie: &[u8],
    message: &[u8],
    out: &mut Vec<u8>,
) {
    let initial = Initial {
        source: own,
        pattern: config.credentials.pattern(),
        cookie,
        message,
    };
    initial.encode(out).expect(FITS);
}

fn write_confirm(answer: &Candidate, config: &CallerConfig, out: &mut Vec<u8>) {
    let confirm = Confirm {
        ticket: &answer.ticket,
        message: &answer.agreed.confirm(&config.parameters),
    };
    confirm.encode(out).expect(FITS);
}
