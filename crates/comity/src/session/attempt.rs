//! A call before the listener has proved itself: whatever comes may be forged.
//!
//! Nothing that comes pushes out what came before. Each cookie has a key exchange of its own, each
//! Answer a Confirm packet, and the first Accept that proves the keys of one of them ends it all.
//! Where somebody on the path makes up so many that not all are kept, genuine ones have the
//! advantage: the listener repeats its cookie after each Initial packet with a forged one, and the
//! cookies that came most often are tried first.

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

/// A refusal, which anybody on the path can forge, is believed if it comes again after this time,
/// or at the time limit of the call. Handshakes on paths with round trips of a second are over by
/// then.
const DOUBT: Span = Span::from_secs(3);
/// The number of cookies to answer at once. Further ones wait for [`TRY_INTERVAL`] each.
const PROMPT_TRIES: u32 = 8;
/// The time between two Initial packets with cookies that were not tried yet.
const TRY_INTERVAL: Span = Span::from_millis(20);
/// The longest wait for the answer to a message for the first time: a path with longer round trips
/// has some packets twice.
const LONGEST_FIRST_WAIT: Span = Span::from_secs(1);
/// Cookies that are kept.
const MAX_COOKIES: usize = 256;
/// Key exchanges that an Answer may belong to: with a passphrase, each of them makes a key of it.
const MAX_EXCHANGES: usize = 4;
/// Answers that are taken for genuine until one of them proves to be. With a passphrase, message 2
/// proves nothing yet: whoever made another one up must not keep the genuine one out.
const MAX_ANSWERS: usize = 1_024;
/// Answers beyond these are confirmed at once: somebody makes them up, and more follow before the
/// next round.
const MAX_PATIENT: usize = 4;
/// Shares of message 2 that a call with a passphrase tests at once. Each lets whoever made it test
/// one guess of the passphrase.
const PROMPT_GUESSES: u32 = 16;
/// The time between two further ones: as many in a second as a listener grants to a network.
const GUESS_INTERVAL: Span = Span::from_micros(15_625);
/// With more Answers that wait for their turn, the caller asks again every [`TRY_INTERVAL`]: one of
/// those that it tests has to be genuine.
const FLOOD: usize = 16;
/// Confirm packets that are retransmitted in one round.
const MAX_ROUND: usize = 8;

/// The departures of one message.
#[derive(Clone, Copy, Debug)]
enum Departures {
    None,
    One(Time),
    /// The answer may be to any of them. The last one left then.
    Several(Time),
}

impl Departures {
    fn on_sent(&mut self, now: Time) {
        *self = match self {
            Self::None => Self::One(now),
            _ => Self::Several(now),
        };
    }

    /// The round trip that the answer ends, if it is certain which packet began it (Karn's rule).
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
    /// How many Retries brought it.
    seen: u32,
    /// When the cookie, and the tickets for it, are too old.
    stale_at: Time,
    /// None before it is sent for the first time.
    calling: Option<Calling>,
    sent: Departures,
    /// Whether its Initial packet has to leave again.
    is_due: bool,
}

/// An Answer that may be genuine, as one of the key exchanges reads it.
struct Candidate {
    ticket: Vec<u8>,
    /// Message 2.
    message: Vec<u8>,
    agreed: Agreed,
    stale_at: Time,
    sent: Departures,
    /// Whether its Confirm packet has to leave.
    is_due: bool,
}

pub(super) struct Attempt {
    /// In the order in which they came first.
    exchanges: Vec<Exchange>,
    answers: Vec<Candidate>,
    /// Whether message 2 proves nothing, so that message 3 is a guess for whoever made it.
    is_guess: bool,
    /// Whether one of the answers has proved to be genuine, and the caller has to ask again.
    is_proven: bool,
    /// How many more cookies are tried at once.
    prompt: u32,
    /// When the next cookie may be tried.
    next_try: Time,
    /// The hashes of the exchanges whose keys were tested.
    tested: BTreeSet<[u8; 32]>,
    /// How many more keys are tested at once, and when the next one may be.
    guesses: u32,
    next_guess: Time,
    /// Which exchange is repeated next, while Answers are made up.
    turn: usize,
    /// When the first Initial without a cookie left.
    begun_at: Time,
    hello: Departures,
    next_send: Time,
    /// Retransmissions since the first Answer.
    rounds: u32,
    /// The first wait for the answer to a message.
    first_wait: Span,
    wait: Span,
    longest_wait: Span,
    /// The first wait if the Retry answered the first Initial; `None` once that is decided.
    longer_wait: Option<Span>,
    deadline: Time,
    /// What an unauthenticated packet says is wrong, and since when.
    doubt: Option<(CallError, Time)>,
}

/// The wait for an answer on a path of this round trip: a message that is retransmitted before its
/// answer can arrive costs the listener another key exchange.
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
            // The Retry to the second Initial would follow within the time between the two.
            self.first_wait = self
                .first_wait
                .max(known.unwrap_or(wait_for(self.first_wait)));
        }
        if self.exchanges.len() >= MAX_COOKIES {
            // The oldest of those that came least often; one that was tried awaits its Answer.
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

    /// Another Initial was answered too. So the first one was probably not lost, and the Retry
    /// answered it: the path is long.
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
                // Nothing could tell which one an Accept is for.
                return;
            }
            if is_first {
                // A round trip is certain only if there was one exchange.
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
            // Nobody on the path can foresee which one has to go.
            let any = u64::from_be_bytes(randomness.bytes()) % MAX_ANSWERS as u64;
            if let Some(last) = self.answers.get_mut(any as usize) {
                *last = candidate;
            }
        }
    }

    /// What the exchanges make of message 2. Nothing protects a ticket: the genuine one may come
    /// behind a changed one with the same message.
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
                // Anybody could have sent an answer that proves nothing: the genuine one may be
                // under way.
                let agreed = exchange.calling.as_mut()?.on_answer(message).ok()?;
                Some((agreed, exchange.stale_at))
            });
        read.collect()
    }

    /// What a message 4 says, under which keys, and the round trip that it ends; `None` if it
    /// proves none of them.
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

    /// The listener has proved itself, and has no room: the caller repeats its request until it
    /// has.
    pub(super) fn on_busy(&mut self) {
        self.is_proven = true;
    }

    /// Remembers why somebody refused the call, and whether that is to be believed: the same reason
    /// came before the last [`DOUBT`]. Being busy passes, so that is waited for to the end.
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

    /// Another message awaits its answer from now on.
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

    /// Whether a Confirm packet for this Answer tests nothing that was not tested before. With
    /// keys, an Answer that can be read is genuine.
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

    /// Forgets what is too old; returns whether the time limit of the call is over.
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

    /// Whether nothing has come that could go on.
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
        // Of those that came as often, the last one: a burst of forged ones lies before it.
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
        // Nobody on the path can foresee which one has its turn.
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

    /// Nothing that was sent has brought an end: chooses what is retransmitted.
    fn begin_round(&mut self) {
        let count = self.answers.len();
        let mut answers: Vec<_> = self.answers.iter_mut().collect();
        answers.sort_by_key(|answer| answer.sent.last());
        for answer in answers.into_iter().take(MAX_ROUND) {
            answer.is_due = true;
        }
        self.rounds += u32::from(count > 0);
        // A forged Answer must not be the end of the exchange. A genuine one that is not accepted
        // at once deserves some patience: asking again costs the listener another exchange.
        let asks_again = count == 0 || count > 2 || self.rounds > 2;
        if !asks_again || self.is_proven {
            return;
        }
        let mut tried: Vec<_> = { self.exchanges.iter_mut() }
            .filter(|exchange| exchange.calling.is_some())
            .collect();
        // Those whose cookies came most often, and each of the others in turn.
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
