"""The handshake and protection of docs/protocol/handshake.md; Noise as in revision 34 of its framework."""

import hashlib
import hmac
import os
import struct
import time

import rbcl
from codec import VERSION, Fault, expect
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

AES, CHACHA, CRYPTO, KEPT_S = 1, 2, 0x0A, 2
PATTERNS = {
    1: (hashlib.sha256(b"Noise_NNpsk0_25519_ChaChaPoly_SHA256").digest(), ["psk e", "e ee"]),
    2: (b"Noise_IK_25519_ChaChaPoly_SHA256", ["e es s ss", "e ee se"]),
}


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def mac(key, data):
    return hmac.digest(key, data, "sha256")


def expand(secret, label, size=32):
    return mac(secret, label.encode() + b"\1")[:size]


def unseal(aead, nonce, data, associated):
    try:
        return aead.decrypt(nonce, data, associated)
    except InvalidTag as wrong:
        raise Fault("a seal that is wrong", CRYPTO) from wrong


def prs(passphrase):
    salt = sha256(b"comity 1 passphrase")[:16]
    return Argon2id(salt=salt, length=32, iterations=3, lanes=4, memory_cost=65_536).derive(passphrase.encode())


def public(secret):
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


class Noise:
    """Messages 1 and 2 of the patterns 1 and 2; a caller with pattern 2 knows the other end's public key."""

    def __init__(self, pattern, is_caller, secret, channel, cookie, other, random):
        self.hash, messages = PATTERNS[pattern]
        self.chain, self.messages, self.is_caller, self.key = self.hash, list(messages), is_caller, None
        self.psk = secret if pattern == 1 else None
        self.own, self.others = {"e": random, "s": secret}, {"s": other}
        self.mix_hash(channel + cookie)
        if pattern == 2:
            self.mix_hash(other if is_caller else public(secret))

    def mix_hash(self, data):
        self.hash = sha256(self.hash, data)

    def mix_key(self, data, is_psk=False):
        secret = mac(self.chain, data)
        self.chain, self.count = mac(secret, b"\1"), 0
        self.key = mac(secret, self.chain + b"\2")
        if is_psk:
            self.mix_hash(self.key)
            self.key = mac(secret, self.key + b"\3")

    def crypt(self, data, seals):
        """Seals or opens data, once there is a key, and mixes what is on the wire into the hash."""
        done = data
        if self.key:
            aead, nonce = ChaCha20Poly1305(self.key), struct.pack("<IQ", 0, self.count)
            done = aead.encrypt(nonce, data, self.hash) if seals else unseal(aead, nonce, data, self.hash)
            self.count += 1
        self.mix_hash(done if seals else data)
        return done

    def message(self, data, writes):
        """Writes the next message with a payload, or reads one and returns the payload."""
        out = b""
        for token in self.messages.pop(0).split():
            if token == "psk":
                self.mix_key(self.psk, True)
            elif token == "e":
                if writes:
                    out += (sent := public(self.own["e"]))
                else:
                    self.others["e"], data = (sent := data[:32]), data[32:]
                self.mix_hash(sent)
                if self.psk:
                    self.mix_key(sent)
            elif token == "s" and writes:
                out += self.crypt(public(self.own["s"]), True)
            elif token == "s":
                self.others["s"], data = self.crypt(data[:48], False), data[48:]
            else:
                own, other = token if self.is_caller else token[::-1]
                key = X25519PrivateKey.from_private_bytes(self.own[own])
                self.mix_key(key.exchange(X25519PublicKey.from_public_bytes(self.others[other])))
        return out + self.crypt(data, writes)

    def result(self):
        """The hash, and the keys to the listener and to the caller."""
        secret = mac(self.chain, b"")
        first = mac(secret, b"\1")
        return self.hash, first, mac(secret, first + b"\2")


def lv(data):
    size = len(data)
    return bytes([size] if size < 128 else [size & 0x7F | 0x80, size >> 7]) + data


class Cpace:
    """Messages 1 and 2 of pattern 3."""

    def __init__(self, secret, channel, cookie, random):
        self.channel, self.cookie, self.transcript = channel, cookie, b""
        start = lv(b"CPaceRistretto255") + lv(secret)
        block = start + lv(bytes(127 - len(start))) + lv(channel) + lv(cookie)
        self.scalar = random[:31] + bytes([random[31] & 0x0F])
        generator = rbcl.crypto_core_ristretto255_from_hash(hashlib.sha512(block).digest())
        self.share = rbcl.crypto_scalarmult_ristretto255(self.scalar, generator)

    def message(self, data, writes):
        share, payload = (self.share, data) if writes else (data[:32], data[32:])
        self.transcript += lv(share) + lv(payload)
        if writes:
            return share + payload
        expect(rbcl.crypto_core_ristretto255_is_valid_point(share), "a share that is no element", CRYPTO)
        self.point = rbcl.crypto_scalarmult_ristretto255(self.scalar, share)
        return payload

    def result(self):
        digest = sha256(self.channel, self.cookie, self.transcript)
        parts = [lv(b"CPaceRistretto255_ISK"), lv(self.cookie), lv(self.point), self.transcript]
        secret = mac(digest, hashlib.sha512(b"".join(parts)).digest())
        return digest, expand(secret, "comity 2 to listener"), expand(secret, "comity 2 to caller")


def exchange(pattern, is_caller, secret, source, cookie, other=None, random=None):
    channel, random = struct.pack(">6sIBQ", b"comity", VERSION, pattern, source), random or os.urandom(32)
    if pattern == 3:
        return Cpace(secret, channel, cookie, random)
    return Noise(pattern, is_caller, secret, channel, cookie, other, random)


def confirmation(digest, key, label):
    """The cipher of message 3 (confirm) or 4 (accept)."""
    return ChaCha20Poly1305(expand(mac(digest, key), "comity 2 " + label))


class Direction:
    """Protects the Data packets of one direction, with the keys of the last phase, of this one and of the next."""

    def __init__(self, cipher, digest, key):
        self.is_aes, self.size = cipher == AES, 16 if cipher == AES else 32
        self.secret = expand(mac(digest, key), "comity 2 data")
        self.mask_key = expand(self.secret, "comity 2 mask", self.size)
        self.phase, self.lowest, self.largest, self.since = 0, 0, -1, 0
        self.keys = [None, self.derive(), self.derive()]

    def derive(self):
        key, iv = expand(self.secret, "comity 2 key", self.size), expand(self.secret, "comity 2 iv", 12)
        self.secret = expand(self.secret, "comity 2 update")
        return (AESGCM if self.is_aes else ChaCha20Poly1305)(key), iv

    def advance(self):
        self.keys, self.phase, self.since = [*self.keys[1:], self.derive()], self.phase + 1, time.monotonic()

    def mask(self, packet):
        """Masks the header of a packet, or takes the mask off."""
        if self.is_aes:
            mask = Cipher(algorithms.AES(self.mask_key), modes.ECB()).encryptor().update(packet[13:29])
        else:
            mask = Cipher(algorithms.ChaCha20(self.mask_key, packet[13:29]), None).encryptor().update(bytes(5))
        mask = bytes([mask[0] & 0x0F, *bytes(8), *mask[1:5]])
        return bytes(byte ^ bits for byte, bits in zip(packet, mask)) + packet[13:]

    def seal(self, destination, number, payload):
        header = struct.pack(">BQI", 0x40 | self.phase & 1, destination, number & 0xFFFF_FFFF)
        return self.mask(header + self.keys[1][0].encrypt(nonce(self.keys[1][1], number), payload, header))

    def open(self, packet):
        """The number and the payload of a packet; one of the next phase advances this direction."""
        expect(len(packet) >= 29, "a short Data packet", CRYPTO)
        packet = self.mask(packet)
        expect(packet[0] & 0x0E == 0, "an unknown flag", CRYPTO)
        number = self.largest + 2 - 2**31
        number += (int.from_bytes(packet[9:13], "big") - number) % 2**32
        number += 2**32 if number < 0 else 0
        which = 1 if packet[0] & 1 == self.phase & 1 else 0 if number < self.lowest else 2
        expect(which or time.monotonic() - self.since < KEPT_S, "a phase whose keys are gone", CRYPTO)
        aead, iv = self.keys[which]
        payload = unseal(aead, nonce(iv, number), packet[13:], packet[:13])
        if which == 2:
            self.advance()
        self.lowest = [self.lowest, min(self.lowest, number), number][which]
        self.largest = max(self.largest, number)
        return number, payload


def nonce(iv, number):
    return iv[:4] + (int.from_bytes(iv[4:], "big") ^ number).to_bytes(8, "big")
