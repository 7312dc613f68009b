"""The primitives of the handshake, from their specifications alone and slowly: a referee for the Rust ones.

None of this is safe against somebody who measures its time. It is for tests.

>>> run_vectors()
"""

import hashlib
import hmac
import struct

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
SQRT_M1 = pow(2, (P - 1) // 4, P)

# ---- X25519 (RFC 7748)

def x25519(scalar, point):
    """The shared secret, or the public key for the point 9."""
    k = int.from_bytes(scalar, "little") & ~7 & (2**255 - 1) | 2**254
    x1 = int.from_bytes(point, "little") % 2**255
    x2, z2, x3, z3, swap = 1, 0, x1, 1, 0
    for bit in range(254, -1, -1):
        digit = k >> bit & 1
        if swap != digit:
            x2, x3, z2, z3 = x3, x2, z3, z2
        swap = digit
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        da, cb = d * a % P, c * b % P
        x3, z3 = (da + cb) ** 2 % P, x1 * (da - cb) ** 2 % P
        aa, bb = a * a % P, b * b % P
        e = aa - bb
        x2, z2 = aa * bb % P, e * (aa + 121665 * e) % P
    if swap:
        x2, z2 = x3, z3
    return (x2 * pow(z2, P - 2, P) % P).to_bytes(32, "little")

BASE = (9).to_bytes(32, "little")

# ---- Ristretto255 (RFC 9496): points are (X, Y, Z, T) on the curve -x^2 + y^2 = 1 + d x^2 y^2

def is_negative(x):
    return x % P & 1

def magnitude(x):
    return -x % P if is_negative(x) else x % P

def sqrt_ratio(u, v):
    """Whether u / v is a square, and the non-negative root of u / v or of sqrt(-1) u / v."""
    r = u * pow(v, 3, P) * pow(u * pow(v, 7, P), (P - 5) // 8, P) % P
    check = v * r * r % P
    is_square = check == u % P
    if check in (-u % P, -u * SQRT_M1 % P):
        r = r * SQRT_M1 % P
    return is_square or check == -u % P, magnitude(r)

INVSQRT_A_MINUS_D = sqrt_ratio(1, -1 - D)[1]
SQRT_AD_MINUS_ONE = P - sqrt_ratio(-D - 1, 1)[1]
if is_negative(SQRT_AD_MINUS_ONE) == 0:
    SQRT_AD_MINUS_ONE = -SQRT_AD_MINUS_ONE % P
ONE_MINUS_D_SQ = (1 - D * D) % P
D_MINUS_ONE_SQ = (D - 1) ** 2 % P
NEUTRAL = (0, 1, 1, 0)

def add(p, q):
    a = (p[1] - p[0]) * (q[1] - q[0]) % P
    b = (p[1] + p[0]) * (q[1] + q[0]) % P
    c = 2 * D * p[3] * q[3] % P
    d = 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P

def multiply(scalar, point):
    result = NEUTRAL
    for bit in bin(scalar)[2:]:
        result = add(result, result)
        if bit == "1":
            result = add(result, point)
    return result

def decode(data):
    """The element with this encoding; None if it is none."""
    s = int.from_bytes(data, "little")
    if len(data) != 32 or s >= P or is_negative(s):
        return None
    u1, u2 = (1 - s * s) % P, (1 + s * s) % P
    v = (-D * u1 * u1 - u2 * u2) % P
    is_square, root = sqrt_ratio(1, v * u2 * u2)
    x_den = root * u2 % P
    y_den = root * x_den * v % P
    x, y = magnitude(2 * s * x_den), u1 * y_den % P
    t = x * y % P
    if not is_square or is_negative(t) or y == 0:
        return None
    return x, y, 1, t

def encode(point):
    x, y, z, t = point
    u1, u2 = (z + y) * (z - y) % P, x * y % P
    _, root = sqrt_ratio(1, u1 * u2 * u2)
    den1, den2 = root * u1 % P, root * u2 % P
    z_inverse = den1 * den2 * t % P
    den = den2
    if is_negative(t * z_inverse):
        x, y = y * SQRT_M1 % P, x * SQRT_M1 % P
        den = den1 * INVSQRT_A_MINUS_D % P
    if is_negative(x * z_inverse):
        y = -y
    return magnitude(den * (z - y)).to_bytes(32, "little")

def one_way(half):
    """MAP of RFC 9496, section 4.3.4."""
    t = int.from_bytes(half, "little") % 2**255 % P
    r = SQRT_M1 * t * t % P
    u = (r + 1) * ONE_MINUS_D_SQ % P
    v = (-1 - r * D) * (r + D) % P
    is_square, s = sqrt_ratio(u, v)
    c = P - 1
    if not is_square:
        s, c = -magnitude(s * t) % P, r
    n = (c * (r - 1) * D_MINUS_ONE_SQ - v) % P
    w0, w1 = 2 * s * v % P, n * SQRT_AD_MINUS_ONE % P
    w2, w3 = (1 - s * s) % P, (1 + s * s) % P
    return w0 * w3 % P, w2 * w1 % P, w1 * w3 % P, w0 * w2 % P

def derive_element(data):
    """The element derived from 64 bytes."""
    return add(one_way(data[:32]), one_way(data[32:]))

# ---- ChaCha20-Poly1305 (RFC 8439)

def chacha_block(key, counter, nonce):
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574, *struct.unpack("<8L", key), counter]
    start += struct.unpack("<3L", nonce)
    x = start[:]

    def quarter(a, b, c, d):
        for to, by, onto, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            x[to] = x[to] + x[by] & 0xFFFFFFFF
            mixed = x[onto] ^ x[to]
            x[onto] = (mixed << turn | mixed >> 32 - turn) & 0xFFFFFFFF

    for _ in range(10):
        for at in range(4):
            quarter(at, 4 + at, 8 + at, 12 + at)
        for at in range(4):
            quarter(at, 4 + (at + 1) % 4, 8 + (at + 2) % 4, 12 + (at + 3) % 4)
    return struct.pack("<16L", *((a + b) & 0xFFFFFFFF for a, b in zip(x, start)))

def chacha_xor(key, nonce, data):
    blocks = range(0, len(data), 64)
    stream = b"".join(chacha_block(key, 1 + at // 64, nonce) for at in blocks)
    return bytes(a ^ b for a, b in zip(data, stream))

def poly1305_tag(key, nonce, associated, sealed):
    one_time = chacha_block(key, 0, nonce)
    r = int.from_bytes(one_time[:16], "little") & 0x0FFFFFFC0FFFFFFC0FFFFFFC0FFFFFFF
    s = int.from_bytes(one_time[16:32], "little")
    text = associated + bytes(-len(associated) % 16) + sealed + bytes(-len(sealed) % 16)
    text += struct.pack("<QQ", len(associated), len(sealed))
    total = 0
    for at in range(0, len(text), 16):
        total = (total + int.from_bytes(text[at : at + 16] + b"\x01", "little")) * r % (2**130 - 5)
    return (total + s & 2**128 - 1).to_bytes(16, "little")

def seal(key, nonce, associated, data):
    sealed = chacha_xor(key, nonce, data)
    return sealed + poly1305_tag(key, nonce, associated, sealed)

def open_sealed(key, nonce, associated, data):
    """The bytes; raises ValueError if they are not genuine."""
    sealed, tag = data[:-16], data[-16:]
    if len(data) < 16 or poly1305_tag(key, nonce, associated, sealed) != tag:
        raise ValueError("the tag is wrong")
    return chacha_xor(key, nonce, sealed)

# ---- HKDF (RFC 5869) with SHA-256

def hmac256(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()

def expand(key, label, length=32):
    out, block = b"", b""
    while len(out) < length:
        block = hmac256(key, block + label + bytes([len(out) // 32 + 1]))
        out += block
    return out[:length]

def run_vectors():
    """The examples of the specifications; raises AssertionError."""
    h = bytes.fromhex
    # RFC 7748, section 5.2.
    scalar = h("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4")
    point = h("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c")
    assert x25519(scalar, point) == h("c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552")
    # RFC 8439, section 2.8.2.
    key = bytes(range(0x80, 0xA0))
    text = b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
    text += b"sunscreen would be it."
    sealed = seal(key, h("070000004041424344454647"), h("50515253c0c1c2c3c4c5c6c7"), text)
    assert sealed[-16:] == h("1ae10b594f09e26a7e902ecbd0600691")
    assert open_sealed(key, h("070000004041424344454647"), h("50515253c0c1c2c3c4c5c6c7"), sealed) == text
    # RFC 5869, test case 1, the first 32 bytes.
    prk = hmac256(bytes(range(13)), b"\x0b" * 22)
    assert expand(prk, bytes(range(0xF0, 0xFA)))[:4] == h("3cb25f25")
    # RFC 9496, appendix A.1: the neutral element and the generator, and A.3.
    generator = decode(h("e2f2ae0a6abc4e71a884a961c500515f58e30b6aa582dd8db6a65945e08d2d76"))
    assert encode(NEUTRAL) == bytes(32)
    assert encode(multiply(2, generator)) == h("6a493210f7499cd17fecb510ae0cea23a110e8d5b901f8acadd3095c73a3b919")
    derived = derive_element(hashlib.sha512(b"Ristretto is traditionally a short shot of espresso coffee").digest())
    assert encode(derived) == h("3066f82a1a747d45120d1740f14358531a8f04bbffe6a819f86dfe50f44a0a46")

    for not_an_element in (h("00" * 31 + "80"), h("01" + "00" * 31), h("ff" * 32), bytes(31)):
        assert decode(not_an_element) is None
