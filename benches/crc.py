"""The checksum of tables in transport streams."""


def crc32(section):
    """The CRC of ISO/IEC 13818-1, annex A.

    >>> hex(crc32(b"123456789"))
    '0x376e6e7'
    """
    value = 0xFFFFFFFF
    for byte in section:
        value ^= byte << 24
        for _ in range(8):
            value = (value << 1 ^ 0x04C11DB7 if value & 0x80000000 else value << 1) & 0xFFFFFFFF
    return value
