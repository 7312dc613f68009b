//! A call before the listener has proved itself: every incoming message may be forged.
//!
//! While there is room, a new message evicts no earlier one. Each cookie has its own key exchange,
//! and each Answer its own Confirm packet. The first Accept that proves the keys of one of them
//! ends the attempt. An attacker on the path may send more forgeries than the caller can keep.
//! Genuine messages still have the advantage:
//!
//! * The listener repeats its cookie after each Initial packet with a forged one. The caller tries
//!   the most frequent cookies first. Beyond [`MAX_COOKIES`] it evicts the least frequent one.
//! * An attacker can repeat some forged cookies as often, and none more often: a cookie counts at
//!   most once for each Initial packet with another one. The caller reads Answers with the
//!   exchanges of all frequent cookies ([`Attempt::plausible`]).
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
/// A cookie may be genuine if it came at least this fraction as often as the most frequent one.
/// Retries of the listener are later than forged ones, and the path loses some.
const PLAUSIBLE: u32 = 3;
/// The number of plausible key exchanges that the caller tries with each Answer.
const MIN_READS: usize = 4;
/// The interval between further tries, those of [`BURST`] at once. A try takes up to 100 µs.
const READ_INTERVAL: Span = Span::from_micros(500);
/// The number of keys that the caller tries with each Accept, those that it confirmed last. The
/// Accept packet arrives a round trip after its Confirm packet.
const NEWEST_KEYS: usize = 32;
/// The interval between tries of older keys, those of [`BURST`] at once. A try takes up to 5 µs.
const KEY_INTERVAL: Span = Span::from_micros(25);
/// Unused time for tries remains usable for this long.
const BURST: Span = Span::from_millis(500);
/// The numbers of key exchanges to repeat in one round: of the most frequent cookies, and of those
/// that wait longest.
const FREQUENT: usize = 2;
const OLDEST: usize = 2;
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
    /// The number of Retries with this cookie, at most that of the Initial packets with others: a
    /// listener answers each of them once.
    seen: u32,
    /// The number of Initial packets with this cookie.
    initials: u32,
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

/// Keys for which a Confirm packet has left.
struct Confirmed {
    agreed: Agreed,
    stale_at: Time,
    sent: Departures,
}

/// Work that forged packets cause, at a limited rate.
struct Allowance {
    interval: Span,
    used_until: Time,
}

impl Allowance {
    const fn new(interval: Span, now: Time) -> Self {
        Self {
            interval,
            used_until: now,
        }
    }

    /// Takes this much work; `false` if the work of the last [`BURST`] is too much already.
    fn take(&mut self, now: Time, count: usize) -> bool {
        let is_granted = self.used_until <= now + BURST;
        if is_granted {
            self.used_until = self.used_until.max(now) + self.interval * count as u64;
        }
        is_granted
    }
}

pub(super) struct Attempt {
    /// In order of arrival.
    exchanges: Vec<Exchange>,
    /// The number of Initial packets.
    initials: u32,
    /// Tries of exchanges beyond [`MIN_READS`].
    reads: Allowance,
    answers: Vec<Candidate>,
    /// In order of their first Confirm packets. Without a passphrase, one for each genuine Answer.
    confirmed: Vec<Confirmed>,
    /// Tries of keys beyond [`NEWEST_KEYS`].
    key_tries: Allowance,
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
    /// The message 2 whose keys the caller tests.
    testing: Option<Vec<u8>>,
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
    /// The reason that the listener has proved.
    busy: Option<CallError>,
    /// The last refusal that anybody could have sent, and when it first came.
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
            initials: 0,
            reads: Allowance::new(READ_INTERVAL, now),
            answers: Vec::new(),
            confirmed: Vec::new(),
            key_tries: Allowance::new(KEY_INTERVAL, now),
            is_guess: config.credentials.pattern() == Pattern::CPace,
            is_proven: false,
            prompt: PROMPT_TRIES,
            next_try: now,
            tested: BTreeSet::new(),
            guesses: PROMPT_GUESSES,
            next_guess: now,
            testing: None,
            begun_at: now,
            hello: Departures::None,
            next_send: now,
            rounds: 0,
            first_wait: config.first_resend,
            wait: config.first_resend,
            longest_wait: config.longest_resend,
            longer_wait: None,
            deadline: now + config.timeout,
            busy: None,
            doubt: None,
        }
    }

    // ---------------------------------------------------------------- input

    pub(super) fn on_retry(&mut self, now: Time, cookie: &[u8]) {
        if self.is_proven {
            return;
        }
        if let Some(known) = { self.exchanges.iter_mut() }.find(|known| known.cookie == cookie) {
            let with_others = self.initials.saturating_sub(known.initials);
            known.seen = known.seen.saturating_add(1).min(with_others.max(1));
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
            initials: 0,
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
        let read = self.read_answer(now, message, randomness);
        let is_crowded = self.answers.len() + read.len() > MAX_PATIENT;
        for (agreed, stale_at) in read {
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
                is_due: is_first || is_crowded,
            };
            if self.answers.len() < MAX_ANSWERS {
                self.answers.push(candidate);
                continue;
            }
            // Nobody on the path can predict which one is evicted.
            let any = randomness.index(MAX_ANSWERS);
            if let Some(last) = self.answers.get_mut(any) {
                *last = candidate;
            }
        }
    }

    /// The tried exchanges whose cookies may be genuine, the most frequent ones first: at least
    /// [`MIN_READS`] if there are as many.
    fn plausible(&self) -> Vec<usize> {
        let mut tried = Vec::new();
        for (at, exchange) in self.exchanges.iter().enumerate() {
            if exchange.calling.is_some() {
                tried.push((Reverse(exchange.seen), at));
            }
        }
        tried.sort_unstable();
        let most = tried.first().map_or(0, |(Reverse(seen), _)| *seen);
        let frequent =
            tried.partition_point(|(Reverse(seen), _)| *seen >= most.div_ceil(PLAUSIBLE));
        tried.truncate(frequent.max(MIN_READS));
        tried.into_iter().map(|(_, at)| at).collect()
    }

    /// When this exchange was last sent.
    fn last_sent(&self, at: usize) -> Time {
        let exchange = self.exchanges.get(at);
        exchange.map_or(Time::ZERO, |exchange| exchange.sent.last())
    }

    /// Reads message 2 with each plausible exchange, or with some of them if many Answers arrive.
    /// Tickets are unprotected: the genuine one may follow a changed one with the same message.
    fn read_answer(
        &mut self,
        now: Time,
        message: &[u8],
        randomness: &mut Randomness,
    ) -> Vec<(Agreed, Time)> {
        let mut known = Vec::<(Agreed, Time)>::new();
        for candidate in { self.answers.iter() }.filter(|known| known.message == message) {
            let own = candidate.agreed.hash();
            if !known.iter().any(|(agreed, _)| agreed.hash() == own) {
                known.push((candidate.agreed.clone(), candidate.stale_at));
            }
        }
        if !known.is_empty() {
            return known;
        }
        let mut order = self.plausible();
        if order.len() > MIN_READS && !self.reads.take(now, order.len()) {
            // The most frequent ones, and others that nobody on the path can predict.
            for at in MIN_READS / 2..MIN_READS {
                let any = randomness.index(order.len() - at);
                order.swap(at, at + any);
            }
            order.truncate(MIN_READS);
        }
        let read = order.into_iter().filter_map(|at| {
            let exchange = self.exchanges.get_mut(at)?;
            // Anybody could have sent an invalid Answer, and the genuine one may still arrive.
            let agreed = exchange.calling.as_mut()?.on_answer(message).ok()?;
            Some((agreed, exchange.stale_at))
        });
        read.collect()
    }

    /// Reads a message 4 with the keys of all Confirm packets, or with some of them if many Accepts
    /// arrive. Returns its keys, its contents and the round-trip time that it measures; `None` if
    /// it proves no keys.
    pub(super) fn read_accept(
        &mut self,
        now: Time,
        message: &[u8],
        randomness: &mut Randomness,
    ) -> Option<(Agreed, Verdict, Option<Span>)> {
        let older = self.confirmed.len().saturating_sub(NEWEST_KEYS);
        let (mut first, mut count) = (0, older);
        if older > 0 && !self.key_tries.take(now, older) {
            // Nobody on the path can predict which ones.
            first = randomness.index(older);
            count = NEWEST_KEYS;
        }
        let newest = self.confirmed.iter().skip(older).rev();
        let others = { self.confirmed.iter() }.take(older).cycle();
        let others = others.skip(first).take(count);
        newest.chain(others).find_map(|known| {
            let verdict = known.agreed.read_accept(message)?;
            Some((known.agreed.clone(), verdict, known.sent.round_trip(now)))
        })
    }

    /// Notes the departure of the Confirm packet of this Answer.
    fn on_confirm_sent(&mut self, now: Time, at: usize) {
        let Some(answer) = self.answers.get_mut(at) else {
            return;
        };
        answer.is_due = false;
        answer.sent.on_sent(now);
        let hash = answer.agreed.hash();
        if let Some(known) = { self.confirmed.iter_mut() }.find(|k| k.agreed.hash() == hash) {
            return known.sent.on_sent(now);
        }
        if self.confirmed.len() >= MAX_ANSWERS {
            self.confirmed.remove(0);
        }
        self.confirmed.push(Confirmed {
            agreed: answer.agreed.clone(),
            stale_at: answer.stale_at,
            sent: Departures::One(now),
        });
    }

    /// Handles a busy listener that has proved itself with these keys: the caller repeats its
    /// request until there is room.
    pub(super) fn on_busy(&mut self, agreed: &Agreed, error: CallError) {
        self.is_proven = true;
        self.answers
            .retain(|answer| answer.agreed.hash() == agreed.hash());
        self.busy = Some(error);
        self.doubt = None;
    }

    /// Records a refusal that anybody could have sent. Returns whether to believe it: its reason
    /// first came at least [`DOUBT`] ago. A listener that has proved itself can prove its refusals.
    pub(super) fn is_believed(&mut self, now: Time, error: &CallError) -> bool {
        match &self.doubt {
            _ if self.is_proven => false,
            Some((known, since)) if known == error => *since + DOUBT <= now,
            _ => {
                self.doubt = Some((error.clone(), now));
                false
            }
        }
    }

    /// The reason of the last refusal, at the time limit of the call.
    pub(super) fn take_doubt(&mut self) -> Option<CallError> {
        let doubt = self.doubt.take().map(|(error, _)| error);
        self.busy.take().or(doubt)
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
            self.confirmed.retain(|known| now < known.stale_at);
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
                self.initials += 1;
                write_initial(own, config, &[], &[], out);
                return true;
            }
            self.begin_round();
        }
        if let Some(at) = self.next_confirm(now, randomness)
            && let Some(answer) = self.answers.get(at)
        {
            write_confirm(answer, config, out);
            self.on_confirm_sent(now, at);
            return true;
        }
        if let Some(due) = self.exchanges.iter_mut().find(|exchange| exchange.is_due) {
            self.initials += 1;
            due.write(now, own, config, randomness, out);
            return true;
        }
        if now < self.next_try || self.is_proven {
            return false;
        }
        let is_first = { self.exchanges.iter() }.all(|exchange| exchange.calling.is_none());
        let is_flooded = self.waiting() > FLOOD;
        let untried = { self.exchanges.iter().enumerate() }
            .filter(|(_, exchange)| exchange.calling.is_none());
        // Of equally frequent cookies, the last: a burst of forged ones may precede the genuine
        // one.
        let untried = untried.max_by_key(|(_, exchange)| exchange.seen);
        let plausible = self.plausible();
        let most = plausible.first().and_then(|&at| self.exchanges.get(at));
        let least = most.map_or(0, |most| most.seen.div_ceil(PLAUSIBLE));
        let next = match untried {
            // Rare cookies take a quarter of the packets from those whose Answers are awaited.
            Some((at, exchange))
                if !is_flooded || exchange.seen >= least || self.initials.is_multiple_of(4) =>
            {
                Some(at)
            }
            _ if is_flooded => { plausible.into_iter() }.min_by_key(|&at| self.last_sent(at)),
            _ => None,
        };
        let Some(exchange) = next.and_then(|at| self.exchanges.get_mut(at)) else {
            return false;
        };
        self.initials += 1;
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
        // A wrong key uses up the ticket of a genuine Answer, and few of them bring the caller into
        // debt. So all keys of one message 2 come before those of another one.
        let is_next = |at: &usize| {
            let answer = self.answers.get(*at);
            answer.is_some_and(|answer| Some(&answer.message) == self.testing.as_ref())
        };
        let at = match waiting.iter().copied().find(is_next) {
            Some(at) => at,
            None => {
                // Nobody on the path can predict which Answer is next.
                *waiting.get(randomness.index(waiting.len()))?
            }
        };
        self.testing = self.answers.get(at).map(|answer| answer.message.clone());
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
        let mut due = self.plausible();
        if let Some(others) = due.get_mut(FREQUENT..) {
            others.sort_by_key(|&at| self.last_sent(at));
        }
        due.truncate(FREQUENT + OLDEST);
        // Others may be genuine, too.
        let tried = { self.exchanges.iter().enumerate() }
            .filter(|(_, exchange)| exchange.calling.is_some());
        due.extend(
            tried
                .min_by_key(|(_, other)| other.sent.last())
                .map(|(at, _)| at),
        );
        for at in due {
            if let Some(exchange) = self.exchanges.get_mut(at) {
                exchange.is_due = true;
            }
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
        self.initials += 1;
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

#[cfg(test)]
mod tests;
