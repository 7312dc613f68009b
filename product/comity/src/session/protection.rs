//! Sealing and opening of Data packets, and key updates.
//!
//! Each direction has a secret of its own. The secret of a key phase determines its key, its
//! initialisation vector and the secret of the next phase:
//!
//! ```text
//! secret(0)   = HKDF-Expand(HKDF-Extract(salt = h, k), "comity 2 data", 32)
//! key(n)      = HKDF-Expand(secret(n), "comity 2 key", 16 or 32)
//! iv(n)       = HKDF-Expand(secret(n), "comity 2 iv", 12)
//! secret(n+1) = HKDF-Expand(secret(n), "comity 2 update", 32)
//! nonce       = iv(n) XOR packet number (64 bits, right-aligned)
//! mask key    = HKDF-Expand(secret(0), "comity 2 mask", 16 or 32)
//! identifiers = HKDF-Expand(secret(0), "comity 2 ids", 32)
//! ```
//!
//! with SHA-256, where h is the hash of the key exchange and k its key for the direction. The
//! header is the associated data.
//!
//! ```text
//!          seals at phase   opens at phase
//!  settled        n                n         --- enough sent ------------------> requested
//!  requested     n+1               n         --- peer's first at n+1 opened ---> settled at n+1
//!  settled        n                n         --- peer's first at n+1 opened ---> settled at n+1
//! ```
//!
//! The four low bits of the first byte and the packet number of a sealed packet are masked. An
//! observer learns neither, and cannot use them to link two addresses to one peer.
//!
//! Source: RFC 9001, sections 5.3, 5.4, 6 and 6.6. Differs from the source in:
//! 1. Labels are bare strings.
//! 2. The sample is the first 16 bytes after the header, since the packet number has a fixed
//!    length.
//! 3. "Confirmed" means that the peer has sent in the new phase, not that it has acknowledged a
//!    packet of it.

use core::fmt;

use comity_transport::wire::header::{self, Data, Packet};
use comity_transport::wire::limits::{DATA_HEADER, TAG};
use comity_transport::wire::number;
use comity_units::{PacketNumber, Span, Time};
use ring::aead::quic::{self, HeaderProtectionKey};
use ring::aead::{AES_128_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf;
use zeroize::Zeroizing;

use super::ConnectionId;
use super::replay::{ReplayWindow, Stale};
use crate::key_log::KeyLog;

/// The number of words of the replay window: it covers the highest packet number and 4,032 numbers
/// below.
const WINDOW: usize = 64;

/// The cipher of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cipher {
    /// Fast with AES instructions of the processor; slow and with timing side channels elsewhere.
    Aes128Gcm = 1,
    /// Fast enough on every machine.
    ChaCha20Poly1305 = 2,
}

impl Cipher {
    /// The cipher with this number on the wire.
    pub const fn from_wire(number: u8) -> Option<Self> {
        match number {
            1 => Some(Self::Aes128Gcm),
            2 => Some(Self::ChaCha20Poly1305),
            _ => None,
        }
    }

    /// The faster cipher on this machine.
    pub fn of_this_machine() -> Self {
        #[cfg(target_arch = "x86_64")]
        let has_aes = std::arch::is_x86_feature_detected!("aes")
            && std::arch::is_x86_feature_detected!("pclmulqdq");
        #[cfg(target_arch = "aarch64")]
        let has_aes = std::arch::is_aarch64_feature_detected!("aes")
            && std::arch::is_aarch64_feature_detected!("pmull");
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let has_aes = false;
        if has_aes {
            Self::Aes128Gcm
        } else {
            Self::ChaCha20Poly1305
        }
    }

    /// The maximum number of packets that one key may seal (RFC 9001, section 6.6).
    pub const fn confidentiality_limit(self) -> u64 {
        match self {
            Self::Aes128Gcm => 1 << 23,
            // More than the number of packet numbers.
            Self::ChaCha20Poly1305 => u64::MAX,
        }
    }

    /// The maximum number of packets of a connection that may fail to open, under all keys (RFC
    /// 9001, section 6.6).
    pub const fn integrity_limit(self) -> u64 {
        match self {
            Self::Aes128Gcm => 1 << 52,
            Self::ChaCha20Poly1305 => 1 << 36,
        }
    }

    fn key(self, secret: &[u8; 32]) -> LessSafeKey {
        let (algorithm, key) = match self {
            Self::Aes128Gcm => (
                &AES_128_GCM,
                Zeroizing::new(expand::<16>(secret, "comity 2 key").to_vec()),
            ),
            Self::ChaCha20Poly1305 => (
                &CHACHA20_POLY1305,
                Zeroizing::new(expand::<32>(secret, "comity 2 key").to_vec()),
            ),
        };
        LessSafeKey::new(UnboundKey::new(algorithm, &key).expect("the key has the cipher's length"))
    }

    fn mask_key(self, secret: &[u8; 32]) -> HeaderProtectionKey {
        const LABEL: &str = "comity 2 mask";
        let key = match self {
            Self::Aes128Gcm => {
                HeaderProtectionKey::new(&quic::AES_128, &*expand::<16>(secret, LABEL))
            }
            Self::ChaCha20Poly1305 => {
                HeaderProtectionKey::new(&quic::CHACHA20, &*expand::<32>(secret, LABEL))
            }
        };
        key.expect("the key has the cipher's length")
    }
}

/// The number of bytes after the header that determine its mask.
const SAMPLE: usize = 16;

/// The low bits of a first byte that no packet uses.
const UNUSED_FLAGS: u8 = 0x0e;

/// Masks the header of a sealed packet, or unmasks it; `false` if the packet is too short.
fn mask(key: &HeaderProtectionKey, packet: &mut [u8]) -> bool {
    let Some((header, sealed)) = packet.split_first_chunk_mut::<DATA_HEADER>() else {
        return false;
    };
    let Some(Ok([flags, number @ ..])) = sealed.get(..SAMPLE).map(|sample| key.new_mask(sample))
    else {
        return false;
    };
    header[0] ^= flags & 0x0f;
    for (byte, mask) in header[DATA_HEADER - 4..].iter_mut().zip(number) {
        *byte ^= mask;
    }
    true
}

/// Limits at which keys change and connections end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLimits {
    /// The number of packets after which this end requests the next key.
    pub update_after_packets: u64,
    /// The bytes of payload after which this end requests the next key.
    pub update_after_bytes: u64,
    /// The time after which this end requests the next key, from the first packet under the present
    /// one. An attacker who reads the memory of an end can open everything sent under the present
    /// key.
    pub update_after: Span,
    /// The time for which the previous key still opens packets. Until then, neither end requests
    /// another update.
    pub old_keys_for: Span,
    /// The maximum number of packets under one key, within the cipher's own limit.
    pub max_packets_per_key: u64,
    /// The maximum number of forged packets of a connection, within the cipher's own limit.
    pub max_forged: u64,
}

impl Default for KeyLimits {
    fn default() -> Self {
        Self {
            update_after_packets: 1 << 22,
            update_after_bytes: 1 << 36,
            update_after: Span::from_secs(120),
            old_keys_for: Span::from_secs(2),
            max_packets_per_key: u64::MAX,
            max_forged: u64::MAX,
        }
    }
}

/// Why a packet could not be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// It is not from the peer, or was changed on the path. Drop it.
    Forged,
    /// It was accepted before, or its number is below the window. Drop it.
    Stale(Stale),
    /// With so many forged packets, the next forgery might succeed. The connection must end now.
    TooManyForged,
    /// The peer requested a key update before this end had sent a packet under the last one. The
    /// connection must end now.
    UpdateTooEarly,
}

/// No further packet may be sealed: the key is used up, and the peer has not followed the key
/// update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUsedUp;

/// The first secrets of both directions.
pub(super) struct Secrets {
    cipher: Cipher,
    to_listener: Zeroizing<[u8; 32]>,
    to_caller: Zeroizing<[u8; 32]>,
}

impl Secrets {
    pub(super) fn derive(
        cipher: Cipher,
        salt: &hkdf::Salt,
        to_listener: &[u8; 32],
        to_caller: &[u8; 32],
    ) -> Self {
        let secret = |key: &[u8; 32]| {
            let mut secret = Zeroizing::new([0; 32]);
            fill(&salt.extract(key), "comity 2 data", &mut *secret);
            secret
        };
        Self {
            cipher,
            to_listener: secret(to_listener),
            to_caller: secret(to_caller),
        }
    }

    /// Writes them to the key log, as those of a connection with these identifiers.
    pub(super) fn log(&self, log: &KeyLog, caller: ConnectionId, listener: ConnectionId) {
        let secrets = [&*self.to_listener, &*self.to_caller];
        log.write(self.cipher as u8, [caller, listener], secrets);
    }
}

#[cfg(test)]
impl Secrets {
    /// The secrets to the listener and to the caller.
    pub(super) fn both(&self) -> (&[u8; 32], &[u8; 32]) {
        (&self.to_listener, &self.to_caller)
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({:?}, ..)", self.cipher)
    }
}

/// Which end of a connection this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It sent the Initial.
    Caller,
    /// It answered.
    Listener,
}

struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-Expand with a bare label, as many bytes as `out` has.
pub(super) fn fill(secret: &hkdf::Prk, label: &str, out: &mut [u8]) {
    const SHORT: &str = "HKDF gives 255 times 32 bytes";
    secret
        .expand(&[label.as_bytes()], Length(out.len()))
        .expect(SHORT)
        .fill(out)
        .expect(SHORT);
}

fn expand<const N: usize>(secret: &[u8; 32], label: &str) -> Zeroizing<[u8; N]> {
    let mut out = Zeroizing::new([0; N]);
    fill(
        &hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, secret),
        label,
        &mut *out,
    );
    out
}

/// The keys of one direction in one phase.
struct Phase {
    secret: Zeroizing<[u8; 32]>,
    key: LessSafeKey,
    iv: Zeroizing<[u8; 12]>,
}

impl Phase {
    fn new(cipher: Cipher, secret: Zeroizing<[u8; 32]>) -> Self {
        Self {
            key: cipher.key(&secret),
            iv: expand(&secret, "comity 2 iv"),
            secret,
        }
    }

    fn next(&self, cipher: Cipher) -> Self {
        Self::new(cipher, expand(&self.secret, "comity 2 update"))
    }

    fn nonce(&self, number: u64) -> Nonce {
        let mut nonce = *self.iv;
        for (byte, mask) in nonce[4..].iter_mut().zip(number.to_be_bytes()) {
            *byte ^= mask;
        }
        Nonce::assume_unique_for_key(nonce)
    }
}

struct Sealing {
    mask: HeaderProtectionKey,
    phase: u64,
    current: Phase,
    /// When the first packet of this phase was sealed.
    since: Option<Time>,
    packets: u64,
    bytes: u64,
}

struct Opening {
    mask: HeaderProtectionKey,
    phase: u64,
    current: Phase,
    /// Derived beforehand, so that a packet of either phase takes the same time.
    next: Phase,
    previous: Option<(Phase, Time)>,
    /// The lowest packet number accepted in the current phase.
    lowest: u64,
    forged: u64,
}

struct Keys {
    cipher: Cipher,
    limits: KeyLimits,
    sealing: Sealing,
    opening: Opening,
}

/// What remains of the keys of a connection that is over.
struct Erased {
    cipher: Cipher,
    phase: u64,
    forged: u64,
}

/// The secrets from which the later connection identifiers of both ends follow.
pub(super) struct IdSecrets {
    pub(super) own: Zeroizing<[u8; 32]>,
    pub(super) peer: Zeroizing<[u8; 32]>,
}

/// What packets are protected with.
enum State {
    /// Nothing: `--insecure`.
    Unprotected,
    Keys(Box<Keys>),
    /// Packets are neither sealed nor opened any more.
    Erased(Erased),
}

impl State {
    /// The keys for a packet; `None` without protection.
    ///
    /// # Errors
    ///
    /// [`OpenError::Stale`] if they are erased.
    fn keys(&mut self) -> Result<Option<&mut Keys>, OpenError> {
        match self {
            Self::Unprotected => Ok(None),
            Self::Keys(keys) => Ok(Some(keys)),
            Self::Erased(_) => Err(OpenError::Stale(Stale::TooOld)),
        }
    }
}

/// Seals the packets of a connection, opens those of its peer, and refuses duplicates.
pub struct Protection {
    state: State,
    ids: Option<IdSecrets>,
    window: ReplayWindow<WINDOW>,
}

impl fmt::Debug for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Protection")
            .field("cipher", &self.cipher())
            .field("phase", &self.phase())
            .field("highest", &self.window.highest())
            .finish_non_exhaustive()
    }
}

impl Protection {
    /// The protection of `role`'s end; no protection without secrets.
    pub(super) fn new(secrets: Option<Secrets>, role: Role, limits: KeyLimits) -> Self {
        let mut ids = None;
        let state = secrets.map_or(State::Unprotected, |secrets| {
            let Secrets {
                cipher,
                to_listener,
                to_caller,
            } = secrets;
            let (send, receive) = match role {
                Role::Caller => (to_listener, to_caller),
                Role::Listener => (to_caller, to_listener),
            };
            ids = Some(IdSecrets {
                own: expand(&receive, "comity 2 ids"),
                peer: expand(&send, "comity 2 ids"),
            });
            let (mask_sent, mask_received) = (cipher.mask_key(&send), cipher.mask_key(&receive));
            let current = Phase::new(cipher, receive);
            State::Keys(Box::new(Keys {
                cipher,
                limits,
                sealing: Sealing {
                    mask: mask_sent,
                    phase: 0,
                    current: Phase::new(cipher, send),
                    since: None,
                    packets: 0,
                    bytes: 0,
                },
                opening: Opening {
                    mask: mask_received,
                    phase: 0,
                    next: current.next(cipher),
                    current,
                    previous: None,
                    lowest: u64::MAX,
                    forged: 0,
                },
            }))
        });
        Self {
            state,
            ids,
            window: ReplayWindow::new(),
        }
    }

    /// The secrets of the connection identifiers, once; `None` without protection.
    pub(super) fn take_ids(&mut self) -> Option<IdSecrets> {
        self.ids.take()
    }

    /// Erases all keys: the connection is over.
    pub(super) fn erase(&mut self) {
        if let State::Keys(keys) = &self.state {
            self.state = State::Erased(Erased {
                cipher: keys.cipher,
                phase: keys.sealing.phase,
                forged: keys.opening.forged,
            });
        }
    }

    /// Whether no packet can be sealed or opened any more.
    pub(super) const fn is_erased(&self) -> bool {
        matches!(self.state, State::Erased(_))
    }

    /// The cipher; `None` without protection.
    pub fn cipher(&self) -> Option<Cipher> {
        match &self.state {
            State::Unprotected => None,
            State::Keys(keys) => Some(keys.cipher),
            State::Erased(erased) => Some(erased.cipher),
        }
    }

    /// The bytes that sealing adds to a payload: header and tag.
    pub fn overhead(&self) -> usize {
        DATA_HEADER + if self.cipher().is_some() { TAG } else { 0 }
    }

    /// When [`Self::on_timer`] has keys to erase; `Time::MAX` for never.
    pub fn next_timer(&self) -> Time {
        let State::Keys(keys) = &self.state else {
            return Time::MAX;
        };
        let previous = { keys.opening.previous.as_ref() }.map_or(Time::MAX, |&(_, until)| until);
        match self.window.highest() {
            Some(_) => previous.min(keys.update_at()),
            None => previous,
        }
    }

    /// Erases the keys of the previous phase when their time is over, and replaces the sealing key
    /// of the present one, even if no packets leave or arrive.
    pub fn on_timer(&mut self, now: Time) {
        let has_received = self.window.highest().is_some();
        if let State::Keys(keys) = &mut self.state {
            keys.forget_previous(now);
            if has_received && keys.update_at() <= now {
                keys.advance_sealing();
            }
        }
    }

    /// The highest packet number that was opened.
    pub fn highest(&self) -> Option<PacketNumber> {
        self.window.highest()
    }

    /// The key phase that packets are sealed in, counted from 0.
    pub fn phase(&self) -> u64 {
        match &self.state {
            State::Unprotected => 0,
            State::Keys(keys) => keys.sealing.phase,
            State::Erased(erased) => erased.phase,
        }
    }

    /// The number of packets that failed to open.
    pub fn forged(&self) -> u64 {
        match &self.state {
            State::Unprotected => 0,
            State::Keys(keys) => keys.opening.forged,
            State::Erased(erased) => erased.forged,
        }
    }

    /// Seals the packet that begins at `start`: room for the header, then the payload.
    ///
    /// Writes the header, encrypts the payload in place and adds the tag. `number` is higher than
    /// in every call before.
    ///
    /// # Errors
    ///
    /// [`KeyUsedUp`]. Then `out` no longer contains the packet.
    pub fn seal(
        &mut self,
        now: Time,
        to: ConnectionId,
        number: PacketNumber,
        out: &mut Vec<u8>,
        start: usize,
    ) -> Result<(), KeyUsedUp> {
        let has_received = self.window.highest().is_some();
        let keys = match &mut self.state {
            State::Keys(keys) => keys,
            State::Unprotected => {
                out[start..start + DATA_HEADER].copy_from_slice(&encode(false, to, number));
                return Ok(());
            }
            State::Erased(_) => {
                out.truncate(start);
                return Err(KeyUsedUp);
            }
        };
        if has_received && keys.wants_update(now) {
            keys.advance_sealing();
        }
        let sealing = &mut keys.sealing;
        let most = keys
            .cipher
            .confidentiality_limit()
            .min(keys.limits.max_packets_per_key);
        if sealing.packets >= most {
            out.truncate(start);
            return Err(KeyUsedUp);
        }
        let header = encode(sealing.phase & 1 != 0, to, number);
        let (head, payload) = out[start..].split_at_mut(DATA_HEADER);
        head.copy_from_slice(&header);
        sealing.since.get_or_insert(now);
        sealing.packets += 1;
        sealing.bytes += payload.len() as u64;
        let nonce = sealing.current.nonce(number.get());
        let tag = sealing
            .current
            .key
            .seal_in_place_separate_tag(nonce, Aad::from(header), payload)
            .expect("a packet is far below the 64 GiB that the cipher takes");
        out.extend_from_slice(tag.as_ref());
        mask(&sealing.mask, &mut out[start..]);
        Ok(())
    }

    /// Opens a Data packet in place, and returns its number and payload.
    ///
    /// `datagram` begins with a Data header, which this decodes again. The packet number counts as
    /// received from now on.
    ///
    /// # Errors
    ///
    /// [`OpenError`]; the bytes in `datagram` then have no meaning.
    pub fn open<'a>(
        &mut self,
        now: Time,
        datagram: &'a mut [u8],
    ) -> Result<(PacketNumber, &'a [u8]), OpenError> {
        let mut keys = self.state.keys()?;
        if let Some(keys) = &mut keys
            && !mask(&keys.opening.mask, datagram)
        {
            return Err(keys.forged());
        }
        let Ok(Packet::Data {
            header: Data {
                key_phase, number, ..
            },
            ..
        }) = header::decode(datagram)
        else {
            return Err(OpenError::Forged);
        };
        if datagram[0] & UNUSED_FLAGS != 0 {
            return Err(keys.map_or(OpenError::Forged, Keys::forged));
        }
        let number = number::restore(number, self.window.highest());
        self.window.check(number).map_err(OpenError::Stale)?;
        let (header, sealed) = datagram.split_at_mut(DATA_HEADER);
        let payload: &[u8] = match keys {
            None => sealed,
            Some(keys) => keys.open(now, key_phase, number.get(), header, sealed)?,
        };
        self.window.take(number).map_err(OpenError::Stale)?;
        Ok((number, payload))
    }

    /// The number of a packet that [`Self::open`] has just refused as repeated, if it is a copy of
    /// a packet of the peer.
    ///
    /// # Errors
    ///
    /// [`OpenError::Forged`] or [`OpenError::TooManyForged`] if it is no copy, and
    /// [`OpenError::Stale`] if the keys of its phase are erased.
    pub fn copied(&mut self, datagram: &mut [u8]) -> Result<PacketNumber, OpenError> {
        let keys = self.state.keys()?;
        // The header is already unmasked.
        let Ok(Packet::Data {
            header: Data {
                key_phase, number, ..
            },
            ..
        }) = header::decode(datagram)
        else {
            return Err(OpenError::Stale(Stale::TooOld));
        };
        let number = number::restore(number, self.window.highest());
        let (header, sealed) = datagram.split_at_mut(DATA_HEADER);
        let Some(keys) = keys else {
            return Ok(number);
        };
        let Some((_, phase)) = keys.opening.choose(key_phase, number.get()) else {
            return Err(OpenError::Stale(Stale::TooOld));
        };
        let nonce = phase.nonce(number.get());
        match phase.key.open_in_place(nonce, Aad::from(header), sealed) {
            Ok(_) => Ok(number),
            Err(_) => Err(keys.forged()),
        }
    }
}

fn encode(key_phase: bool, destination: ConnectionId, number: PacketNumber) -> [u8; DATA_HEADER] {
    Data {
        key_phase,
        destination,
        number: number::truncate(number),
    }
    .encode()
}

impl Opening {
    /// The keys of a packet; `None` if they are erased.
    fn choose(&self, key_phase: bool, number: u64) -> Option<(Choice, &Phase)> {
        if key_phase == (self.phase & 1 != 0) {
            Some((Choice::Current, &self.current))
        } else if number > self.lowest || self.phase == 0 {
            Some((Choice::Next, &self.next))
        } else {
            let (previous, _) = self.previous.as_ref()?;
            Some((Choice::Previous, previous))
        }
    }
}

/// The key that opens a packet.
enum Choice {
    Current,
    Next,
    Previous,
}

impl Keys {
    /// Counts a forged or changed packet.
    fn forged(&mut self) -> OpenError {
        self.opening.forged += 1;
        let most = self.cipher.integrity_limit().min(self.limits.max_forged);
        match self.opening.forged >= most {
            true => OpenError::TooManyForged,
            false => OpenError::Forged,
        }
    }

    fn wants_update(&self, now: Time) -> bool {
        let used = self.sealing.packets >= self.limits.update_after_packets
            || self.sealing.bytes >= self.limits.update_after_bytes;
        (used && self.may_update_at() <= now) || self.update_at() <= now
    }

    /// From when this end may begin the next phase; `Time::MAX` before the peer has followed to the
    /// present one.
    fn may_update_at(&self) -> Time {
        match self.sealing.phase == self.opening.phase {
            true => { self.opening.previous.as_ref() }.map_or(Time::ZERO, |&(_, until)| until),
            false => Time::MAX,
        }
    }

    /// When the sealing key has been in use for its time.
    fn update_at(&self) -> Time {
        let since = self.sealing.since;
        since.map_or(Time::MAX, |since| {
            self.may_update_at().max(since + self.limits.update_after)
        })
    }

    fn forget_previous(&mut self, now: Time) {
        drop(
            self.opening
                .previous
                .take_if(|&mut (_, until)| until <= now),
        );
    }

    fn advance_sealing(&mut self) {
        let sealing = &mut self.sealing;
        sealing.phase += 1;
        sealing.current = sealing.current.next(self.cipher);
        (sealing.since, sealing.packets, sealing.bytes) = (None, 0, 0);
    }

    fn advance_opening(&mut self, now: Time, number: u64) {
        let opening = &mut self.opening;
        let after = opening.next.next(self.cipher);
        let current = core::mem::replace(&mut opening.next, after);
        let previous = core::mem::replace(&mut opening.current, current);
        opening.previous = Some((previous, now + self.limits.old_keys_for));
        opening.phase += 1;
        opening.lowest = number;
        if self.sealing.phase < opening.phase {
            self.advance_sealing();
        }
    }

    fn open<'a>(
        &mut self,
        now: Time,
        key_phase: bool,
        number: u64,
        header: &[u8],
        sealed: &'a mut [u8],
    ) -> Result<&'a [u8], OpenError> {
        self.forget_previous(now);
        let opening = &mut self.opening;
        let Some((choice, phase)) = opening.choose(key_phase, number) else {
            return Err(OpenError::Stale(Stale::TooOld));
        };
        let nonce = phase.nonce(number);
        let Ok(payload) = phase.key.open_in_place(nonce, Aad::from(header), sealed) else {
            return Err(self.forged());
        };
        match choice {
            Choice::Current => opening.lowest = opening.lowest.min(number),
            Choice::Previous => {}
            Choice::Next => {
                // An honest peer receives a packet of this phase before it requests the next one.
                if self.sealing.phase == opening.phase && self.sealing.packets == 0 {
                    return Err(OpenError::UpdateTooEarly);
                }
                self.advance_opening(now, number);
            }
        }
        Ok(payload)
    }
}

#[cfg(test)]
mod tests;
