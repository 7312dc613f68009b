"""A peer that follows docs/protocol/handshake.md and shares no code with the project: a referee for its handshake.

    peer.py vectors KIND                 the example of the page, as the page has it
    peer.py call HOST PORT KIND SECRET   opens a connection, sends a Ping and prints what is acknowledged

KIND is `passphrase` or `key`; SECRET has 64 hexadecimal digits: the key that the passphrase is
stretched to, or the shared key.
"""

import hashlib
import os
import socket
import sys

from primitives import (
    BASE, ORDER, chacha_block, decode, derive_element, encode, expand, hmac256, multiply, open_sealed, seal, x25519,
)

VERSION = 2
CHACHA20 = 2
KEY, PASSPHRASE = 1, 3
PATH_CHALLENGE = 0x0E


def u(value, size):
    return value.to_bytes(size, "big")


def sha256(data):
    return hashlib.sha256(data).digest()


# ---- Pattern 1: Noise_NNpsk0_25519_ChaChaPoly_SHA256


class Noise:
    def __init__(self, name, prologue, psk):
        self.hash = self.chain = name.ljust(32, b"\0") if len(name) <= 32 else sha256(name)
        self.key, self.count = None, 0
        self.mix_hash(prologue)
        self.psk = psk

    def mix_hash(self, data):
        self.hash = sha256(self.hash + data)

    def hkdf(self, data, outputs):
        prk = hmac256(self.chain, data)
        return [expand(prk, b"", 32 * outputs)[32 * at : 32 * at + 32] for at in range(outputs)]

    def mix_key(self, data):
        self.chain, self.key = self.hkdf(data, 2)
        self.count = 0

    def mix_key_and_hash(self, data):
        self.chain, middle, self.key = self.hkdf(data, 3)
        self.mix_hash(middle)
        self.count = 0

    def nonce(self):
        self.count += 1
        return bytes(4) + (self.count - 1).to_bytes(8, "little")

    def encrypt(self, data):
        sealed = seal(self.key, self.nonce(), self.hash, data)
        self.mix_hash(sealed)
        return sealed

    def decrypt(self, sealed):
        data = open_sealed(self.key, self.nonce(), self.hash, sealed)
        self.mix_hash(sealed)
        return data

    def take_public(self, public):
        self.mix_hash(public)
        self.mix_key(public)


class KeyExchange:
    """NNpsk0: psk, e -> e, ee."""

    pattern = KEY

    def __init__(self, key, channel, cookie, secret):
        self.noise = Noise(b"Noise_NNpsk0_25519_ChaChaPoly_SHA256", channel + cookie, key)
        self.secret, self.public = secret, x25519(secret, BASE)

    def call(self, payload):
        self.noise.mix_key_and_hash(self.noise.psk)
        self.noise.take_public(self.public)
        return self.public + self.noise.encrypt(payload)

    def read_call(self, message):
        self.noise.mix_key_and_hash(self.noise.psk)
        self.noise.take_public(message[:32])
        self.peer = message[:32]
        return self.noise.decrypt(message[32:])

    def answer(self, payload):
        self.noise.take_public(self.public)
        self.noise.mix_key(x25519(self.secret, self.peer))
        return self.public + self.noise.encrypt(payload)

    def read_answer(self, message):
        self.noise.take_public(message[:32])
        self.noise.mix_key(x25519(self.secret, message[:32]))
        return self.noise.decrypt(message[32:])

    def shared(self):
        return self.noise.hash, *self.noise.hkdf(b"", 2)


# ---- Pattern 3: CPACE-RISTR255-SHA512


def lv(*parts):
    out = b""
    for part in parts:
        length = len(part)
        while length >= 128:
            out += bytes([length & 127 | 128])
            length >>= 7
        out += bytes([length]) + part
    return out


class PassphraseExchange:
    """CPace: Ya | payload -> Yb | payload."""

    pattern = PASSPHRASE

    def __init__(self, key, channel, cookie, secret):
        self.prologue, self.sid = channel + cookie, cookie
        padding = max(0, 127 - len(lv(b"CPaceRistretto255", key)))
        text = lv(b"CPaceRistretto255", key, bytes(padding), channel, cookie)
        generator = derive_element(hashlib.sha512(text).digest())
        self.secret = (int.from_bytes(secret, "little") & 2**252 - 1) % ORDER
        self.public = encode(multiply(self.secret, generator))

    def call(self, payload):
        self.message = self.public + payload
        return self.message

    def read_call(self, message):
        self.message, self.peer = message, message[:32]
        return message[32:]

    def answer(self, payload):
        self.finish(self.public + payload)
        return self.public + payload

    def read_answer(self, message):
        self.peer = message[:32]
        self.finish(message)
        return message[32:]

    def finish(self, answer):
        element = decode(self.peer)
        if element is None:
            raise ValueError("the share is no element of the group")
        shared = encode(multiply(self.secret, element))
        if shared == bytes(32):
            raise ValueError("the share is the neutral element")
        transcript = lv(self.message[:32], self.message[32:], answer[:32], answer[32:])
        text = lv(b"CPaceRistretto255_ISK", self.sid, shared) + transcript
        self.hash = sha256(self.prologue + transcript)
        self.key = hmac256(self.hash, hashlib.sha512(text).digest())

    def shared(self):
        return self.hash, expand(self.key, b"comity 2 to listener"), expand(self.key, b"comity 2 to caller")


EXCHANGES = {"key": KeyExchange, "passphrase": PassphraseExchange}


def channel(pattern, caller):
    return b"comity" + u(VERSION, 4) + u(pattern, 1) + u(caller, 8)


# ---- Messages 3 and 4, and the Data packets


class Keys:
    """Of an open connection that uses ChaCha20-Poly1305."""

    def __init__(self, shared):
        self.hash, self.to_listener, self.to_caller = shared
        self.data_to_listener = self.data_keys(self.to_listener)
        self.data_to_caller = self.data_keys(self.to_caller)

    def derive(self, key, label):
        return expand(hmac256(self.hash, key), label)

    def data_keys(self, key):
        secret = self.derive(key, b"comity 2 data")
        key, iv = expand(secret, b"comity 2 key"), expand(secret, b"comity 2 iv", 12)
        return secret, key, iv, expand(secret, b"comity 2 mask")

    def identifier(self, keys, generation):
        """The connection identifier of a later generation, from the keys of the direction."""
        label = b"comity 2 id " + str(generation).encode()
        return int.from_bytes(expand(expand(keys[0], b"comity 2 ids"), label, 8), "big")

    def confirm(self, parameters):
        return seal(self.derive(self.to_listener, b"comity 2 confirm"), bytes(12), self.hash, parameters)

    def accept(self, nonce, connection, token, parameters):
        key = self.derive(self.to_caller, b"comity 2 accept")
        return nonce + seal(key, nonce, self.hash, b"\0" + u(connection, 8) + token + parameters)

    def read_accept(self, message):
        key = self.derive(self.to_caller, b"comity 2 accept")
        payload = open_sealed(key, message[:12], self.hash, message[12:])
        if payload[0] != 0:
            raise ValueError(f"refused: {payload.hex()}")
        return int.from_bytes(payload[1:9], "big"), payload[9:25], payload[25:]


def nonce(iv, number):
    return (int.from_bytes(iv, "big") ^ number).to_bytes(12, "big")


def mask(key, packet):
    """The packet with its header masked, or not masked any more."""
    sample = packet[13:29]
    block = chacha_block(key, int.from_bytes(sample[:4], "little"), sample[4:])
    number = bytes(a ^ b for a, b in zip(packet[9:13], block[1:5]))
    return bytes([packet[0] ^ block[0] & 15]) + packet[1:9] + number + packet[13:]


def data_packet(keys, destination, number, payload):
    _, key, iv, mask_key = keys
    header = b"\x40" + u(destination, 8) + u(number & 0xFFFFFFFF, 4)
    return mask(mask_key, header + seal(key, nonce(iv, number), header, payload))


# ---- The commands


def vectors(kind):
    """One handshake with fixed secrets."""
    secret = bytes([7]) * 32
    caller, listener, cookie = 0x0102030405060708, 0x1112131415161718, bytes(range(0xC0, 0xE4))
    exchange = EXCHANGES[kind]
    bound = channel(exchange.pattern, caller)
    a = exchange(secret, bound, cookie, bytes([0x11]) * 32)
    b = exchange(secret, bound, cookie, bytes([0x22]) * 32)
    first = a.call(bytes([CHACHA20, 1]) + u(VERSION, 4))
    assert b.read_call(first) == bytes([CHACHA20, 1]) + u(VERSION, 4)
    second = b.answer(bytes([CHACHA20]))
    assert a.read_answer(second) == bytes([CHACHA20])
    assert a.shared() == b.shared()
    keys = Keys(a.shared())
    third, fourth = keys.confirm(b"caller's"), keys.accept(bytes([0x33]) * 12, listener, bytes([0x44]) * 16, b"listener's")
    assert keys.read_accept(fourth) == (listener, bytes([0x44]) * 16, b"listener's")
    return {
        "secret": secret,
        "cookie": cookie,
        "random of the caller": bytes([0x11]) * 32,
        "random of the listener": bytes([0x22]) * 32,
        "connection of the caller": u(caller, 8),
        "connection of the listener": u(listener, 8),
        "channel": bound,
        "message 1": first,
        "message 2": second,
        "hash": keys.hash,
        "key to the listener": keys.to_listener,
        "key to the caller": keys.to_caller,
        "message 3": third,
        "message 4": fourth,
        "secret of data to the listener": keys.data_to_listener[0],
        "key of data to the listener": keys.data_to_listener[1],
        "iv of data to the listener": keys.data_to_listener[2],
        "mask key of data to the listener": keys.data_to_listener[3],
        "packet 0 to the listener": data_packet(keys.data_to_listener, listener, 0, b"deadline"),
        "packet 5 to the caller": data_packet(keys.data_to_caller, caller, 5, b"deadline"),
        "identifier 1 to the listener": u(keys.identifier(keys.data_to_listener, 1), 8),
        "identifier 10 to the caller": u(keys.identifier(keys.data_to_caller, 10), 8),
    }


def call(host, port, kind, secret):
    """Opens a connection from the outside, moves to another port, and prints each step."""
    family = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]

    def connected():
        line = socket.socket(family[0], socket.SOCK_DGRAM)
        line.connect(family[4])
        # Nothing is lost here, but a busy host answers late.
        line.settimeout(60)
        return line

    line = connected()
    exchange = EXCHANGES[kind]
    caller = int.from_bytes(os.urandom(8), "big")

    def initial(cookie, message):
        head = b"\x10" + u(VERSION, 4) + u(caller, 8) + u(exchange.pattern, 1)
        body = u(len(cookie), 1) + cookie + u(len(message), 2) + message
        line.send((head + body).ljust(1200, b"\0"))

    initial(b"", b"")
    retry = line.recv(65536)
    if retry[:1] != b"\x20":
        raise ValueError(f"expected a Retry, found {retry[:32].hex()}")
    cookie = retry[14:]
    bound = channel(exchange.pattern, caller)
    mine = exchange(secret, bound, cookie, os.urandom(32))
    initial(cookie, mine.call(bytes([CHACHA20, 1]) + u(VERSION, 4)))
    answer = line.recv(65536)
    if answer[:1] != b"\x30" or answer[13] == 0:
        raise ValueError(f"expected an Answer, found {answer[:32].hex()}")
    ticket = answer[14 : 14 + answer[13]]
    mine.read_answer(answer[14 + answer[13] :])
    keys = Keys(mine.shared())
    # An empty list of transport parameters: all have their defaults.
    line.send(b"\x60" + u(len(ticket), 1) + ticket + keys.confirm(b""))
    accept = line.recv(65536)
    if accept[:1] != b"\x70":
        raise ValueError(f"expected an Accept, found {accept[:32].hex()}")
    listener, _, parameters = keys.read_accept(accept[9:])
    print(f"accepted, with {len(parameters)} bytes of transport parameters")
    # Departure 0, and a Ping frame.
    line.send(data_packet(keys.data_to_listener, listener, 0, bytes(4) + b"\x01"))
    def read(line, identifier):
        """The payload of the next Data packet, which has to have this identifier."""
        while True:
            packet = line.recv(65536)
            if packet[0] >> 4 != 4:
                continue
            if packet[1:9] != u(identifier, 8):
                raise ValueError(f"expected the identifier {identifier:016x}, found {packet[1:9].hex()}")
            _, key, iv, mask_key = keys.data_to_caller
            packet = mask(mask_key, packet)
            number = int.from_bytes(packet[9:13], "big")
            return open_sealed(key, nonce(iv, number), packet[:13], packet[13:])

    # The first frame behind the departure: an Ack, whose largest number is that of the Ping.
    while (payload := read(line, caller))[4] not in (2, 3):
        pass
    print(f"packet {payload[5]} is acknowledged")
    moved = connected()
    fresh = keys.identifier(keys.data_to_listener, 1)
    moved.send(data_packet(keys.data_to_listener, fresh, 1, bytes(4) + b"\x01"))
    # A PathChallenge, padded with zeros: the new address has to prove itself.
    payload = read(moved, keys.identifier(keys.data_to_caller, 1))
    if payload[4] != PATH_CHALLENGE:
        raise ValueError(f"expected a PathChallenge, found {payload[:16].hex()}")
    print("the listener follows with identifier 1")


def main(arguments):
    match arguments:
        case ["vectors", kind]:
            for name, value in vectors(kind).items():
                print(f"{name} = {value.hex()}")
        case ["call", host, port, kind, secret]:
            call(host, int(port), kind, bytes.fromhex(secret))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
