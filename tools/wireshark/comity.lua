-- A dissector of Comity's packets for Wireshark and tshark (4.0 and later).
--
--     tshark -X lua_script:comity.lua -r capture.pcap
--     tshark -X lua_script:comity.lua -o comity.keylog:FILE -r capture.pcap
--
-- Without keys it shows the packets of the handshake, and the identifier of Data packets. Data
-- packets of insecure connections are clear. With the file of `comity send --keylog` (or of recv or
-- relay), it removes the mask of the header, decrypts the payload and shows the frames. It does not
-- check the tag of a packet: tshark's Lua has no AEAD, so the ciphers are written out here.
--
-- It finds connections by their Initial packets. If a capture begins later, name the port with
-- `-d udp.port==9000,comity`.
--
-- Source: docs/protocol/core.md and docs/protocol/handshake.md ("Keys").

local band, bor, bxor, bnot = bit32.band, bit32.bor, bit32.bxor, bit32.bnot
local lshift, rshift, lrotate, rrotate = bit32.lshift, bit32.rshift, bit32.lrotate, bit32.rrotate
local unpack = table.unpack

-------------------------------------------------------------------------------- SHA-256, HKDF

local ROUND = {}
do
    -- The fractional parts of cube roots of the first 64 primes (FIPS 180-4, section 4.2.2).
    local n, prime = 0, 2
    while n < 64 do
        local is_prime = true
        for d = 2, math.floor(math.sqrt(prime)) do
            if prime % d == 0 then is_prime = false break end
        end
        if is_prime then
            -- The integer cube root of prime * 2^96 would not fit a double: Newton in two parts.
            local root = prime ^ (1 / 3)
            root = root - (root * root * root - prime) / (3 * root * root)
            n = n + 1
            ROUND[n] = math.floor((root % 1) * 4294967296)
        end
        prime = prime + 1
    end
end

local function word(text, at)
    local a, b, c, d = text:byte(at, at + 3)
    return ((a * 256 + b) * 256 + c) * 256 + d
end

local function word_bytes(value)
    return string.char(rshift(value, 24), band(rshift(value, 16), 255), band(rshift(value, 8), 255), band(value, 255))
end

local function sha256(text)
    local h = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
    }
    local length = #text
    text = text .. "\128" .. string.rep("\0", (55 - length) % 64) .. word_bytes(0) .. word_bytes(length * 8)
    for chunk = 1, #text, 64 do
        local w = {}
        for i = 1, 16 do w[i] = word(text, chunk + 4 * (i - 1)) end
        for i = 17, 64 do
            local x, y = w[i - 15], w[i - 2]
            local s0 = bxor(rrotate(x, 7), rrotate(x, 18), rshift(x, 3))
            local s1 = bxor(rrotate(y, 17), rrotate(y, 19), rshift(y, 10))
            w[i] = (w[i - 16] + s0 + w[i - 7] + s1) % 4294967296
        end
        local a, b, c, d, e, f, g, k = unpack(h)
        for i = 1, 64 do
            local s1 = bxor(rrotate(e, 6), rrotate(e, 11), rrotate(e, 25))
            local t1 = (k + s1 + bxor(band(e, f), band(bnot(e), g)) + ROUND[i] + w[i]) % 4294967296
            local s0 = bxor(rrotate(a, 2), rrotate(a, 13), rrotate(a, 22))
            local t2 = s0 + bxor(band(a, b), band(a, c), band(b, c))
            k, g, f, e, d, c, b, a = g, f, e, (d + t1) % 4294967296, c, b, a, (t1 + t2) % 4294967296
        end
        for i, value in ipairs({ a, b, c, d, e, f, g, k }) do h[i] = (h[i] + value) % 4294967296 end
    end
    for i = 1, 8 do h[i] = word_bytes(h[i]) end
    return table.concat(h)
end

local function xor_all(text, value)
    return (text:gsub(".", function(byte) return string.char(bxor(byte:byte(), value)) end))
end

local function hmac(key, text)
    key = key .. string.rep("\0", 64 - #key)
    return sha256(xor_all(key, 0x5c) .. sha256(xor_all(key, 0x36) .. text))
end

-- HKDF-Expand with SHA-256 (RFC 5869), for up to 32 bytes.
local function expand(secret, label, length)
    return hmac(secret, label .. "\1"):sub(1, length)
end

-------------------------------------------------------------------------------- AES-128 (FIPS 197)

local SBOX = {}
do
    local p, q = 1, 1
    repeat
        -- p runs through all elements as powers of 3, q through their inverses.
        p = band(bxor(p, lshift(p, 1), band(p, 0x80) ~= 0 and 0x11b or 0), 255)
        q = bxor(q, lshift(q, 1))
        q = bxor(q, lshift(q, 2))
        q = band(bxor(q, lshift(q, 4)), 255)
        if band(q, 0x80) ~= 0 then q = bxor(q, 0x09) end
        local function rotated(n) return band(bor(lshift(q, n), rshift(q, 8 - n)), 255) end
        SBOX[p] = bxor(q, rotated(1), rotated(2), rotated(3), rotated(4), 0x63)
    until p == 1
    SBOX[0] = 0x63
end

-- SubBytes and MixColumns of one byte of a column, as a word; the other rows rotate it.
local MIX = {}
for byte = 0, 255 do
    local s = SBOX[byte]
    local double = band(bxor(lshift(s, 1), band(s, 0x80) ~= 0 and 0x11b or 0), 255)
    MIX[byte] = bor(lshift(double, 24), lshift(s, 16), lshift(s, 8), bxor(double, s))
end

local function sub_word(value)
    return bor(
        lshift(SBOX[rshift(value, 24)], 24),
        lshift(SBOX[band(rshift(value, 16), 255)], 16),
        lshift(SBOX[band(rshift(value, 8), 255)], 8),
        SBOX[band(value, 255)]
    )
end

local function aes_key(key)
    local w, rcon = {}, 1
    for i = 0, 3 do w[i] = word(key, 4 * i + 1) end
    for i = 4, 43 do
        local value = w[i - 1]
        if i % 4 == 0 then
            value = bxor(sub_word(lrotate(value, 8)), lshift(rcon, 24))
            rcon = band(bxor(lshift(rcon, 1), band(rcon, 0x80) ~= 0 and 0x11b or 0), 255)
        end
        w[i] = bxor(w[i - 4], value)
    end
    return w
end

-- Encrypts a block of four words.
local function aes(w, a, b, c, d)
    a, b, c, d = bxor(a, w[0]), bxor(b, w[1]), bxor(c, w[2]), bxor(d, w[3])
    local function column(p, q, r, s, key)
        return bxor(
            MIX[rshift(p, 24)],
            rrotate(MIX[band(rshift(q, 16), 255)], 8),
            rrotate(MIX[band(rshift(r, 8), 255)], 16),
            rrotate(MIX[band(s, 255)], 24),
            key
        )
    end
    for round = 4, 36, 4 do
        a, b, c, d = column(a, b, c, d, w[round]), column(b, c, d, a, w[round + 1]),
            column(c, d, a, b, w[round + 2]), column(d, a, b, c, w[round + 3])
    end
    local function last(p, q, r, s, key)
        local value = bor(
            lshift(SBOX[rshift(p, 24)], 24),
            lshift(SBOX[band(rshift(q, 16), 255)], 16),
            lshift(SBOX[band(rshift(r, 8), 255)], 8),
            SBOX[band(s, 255)]
        )
        return bxor(value, key)
    end
    return last(a, b, c, d, w[40]), last(b, c, d, a, w[41]), last(c, d, a, b, w[42]), last(d, a, b, c, w[43])
end

-------------------------------------------------------------------------------- ChaCha20 (RFC 8439)

local function little(text, at)
    local a, b, c, d = text:byte(at, at + 3)
    return ((d * 256 + c) * 256 + b) * 256 + a
end

-- A block of the key stream, as 16 little-endian words.
local function chacha20(key, counter, nonce)
    local s = { 0x61707865, 0x3320646e, 0x79622d32, 0x6b206574 }
    for i = 0, 7 do s[5 + i] = little(key, 4 * i + 1) end
    s[13] = counter
    for i = 0, 2 do s[14 + i] = little(nonce, 4 * i + 1) end
    local x = { unpack(s) }
    local function quarter(a, b, c, d)
        x[a] = (x[a] + x[b]) % 4294967296 x[d] = lrotate(bxor(x[d], x[a]), 16)
        x[c] = (x[c] + x[d]) % 4294967296 x[b] = lrotate(bxor(x[b], x[c]), 12)
        x[a] = (x[a] + x[b]) % 4294967296 x[d] = lrotate(bxor(x[d], x[a]), 8)
        x[c] = (x[c] + x[d]) % 4294967296 x[b] = lrotate(bxor(x[b], x[c]), 7)
    end
    for _ = 1, 10 do
        quarter(1, 5, 9, 13) quarter(2, 6, 10, 14) quarter(3, 7, 11, 15) quarter(4, 8, 12, 16)
        quarter(1, 6, 11, 16) quarter(2, 7, 12, 13) quarter(3, 8, 9, 14) quarter(4, 5, 10, 15)
    end
    for i = 1, 16 do x[i] = (x[i] + s[i]) % 4294967296 end
    return x
end

-------------------------------------------------------------------------------- ciphers of packets

local AES_128_GCM, CHACHA20_POLY1305 = 1, 2

-- The five bytes of the mask for a sample.
local function mask_of(cipher, key, sample)
    if cipher == AES_128_GCM then
        local a, b = aes(key, word(sample, 1), word(sample, 5), word(sample, 9), word(sample, 13))
        return { (word_bytes(a) .. word_bytes(b)):byte(1, 5) }
    end
    local x = chacha20(key, little(sample, 1), sample:sub(5, 16))
    return { band(x[1], 255), band(rshift(x[1], 8), 255), band(rshift(x[1], 16), 255), rshift(x[1], 24), band(x[2], 255) }
end

-- Decrypts without checking the tag: both ciphers XOR a key stream.
local function decrypt(cipher, key, nonce, sealed)
    local out = {}
    local step = cipher == AES_128_GCM and 16 or 64
    -- GCM uses block 1 for the tag, and Poly1305 block 0.
    local block = cipher == AES_128_GCM and 2 or 1
    local a, b, c = word(nonce, 1), word(nonce, 5), word(nonce, 9)
    for at = 1, #sealed, step do
        local piece = sealed:sub(at, at + step - 1)
        local stream = {}
        if cipher == AES_128_GCM then
            local w = { aes(key, a, b, c, block) }
            for i = 1, 4 do stream[i] = word_bytes(w[i]) end
        else
            for i, value in ipairs(chacha20(key, block, nonce)) do stream[i] = word_bytes(value):reverse() end
        end
        stream = table.concat(stream)
        local bytes = { piece:byte(1, -1) }
        for i = 1, #bytes do bytes[i] = string.char(bxor(bytes[i], stream:byte(i))) end
        out[#out + 1] = table.concat(bytes)
        block = block + 1
    end
    return table.concat(out)
end

-------------------------------------------------------------------------------- the protocol

local comity = Proto("comity", "Comity")
comity.prefs.keylog = Pref.string("Key log", "", "The file of --keylog")

local TYPES = {
    [1] = "Initial", [2] = "Retry", [3] = "Answer", [4] = "Data", [5] = "VersionNegotiation",
    [6] = "Confirm", [7] = "Accept", [8] = "Reset",
}
local PATTERNS = { [0] = "insecure", [1] = "Noise NNpsk0", [2] = "Noise IK", [3] = "CPace" }
local REASONS = { [0] = "expired", [1] = "infeasible", [2] = "dependency", [3] = "shed", [4] = "cancelled" }
local CODES = {
    [0] = "DONE", [1] = "INTERNAL", [2] = "FRAME_ENCODING", [3] = "UNKNOWN_FRAME", [4] = "TRANSPORT_PARAMETER",
    [5] = "FLOW_CONTROL", [6] = "SECTION_LIMIT", [7] = "SECTION_STATE", [8] = "OPTIMISTIC_ACK", [9] = "PROTOCOL",
    [10] = "CRYPTO", [11] = "REFUSED", [12] = "SHUTDOWN", [256] = "APPLICATION",
}

local fields = {}
local function field(kind, name, title, ...)
    fields[name] = ProtoField[kind]("comity." .. name, title, ...)
end
field("uint8", "type", "Packet", base.DEC, TYPES, 0xf0)
field("uint8", "phase", "Key phase", base.DEC)
field("uint32", "version", "Version")
field("uint64", "source", "Source", base.HEX)
field("uint64", "destination", "Destination", base.HEX)
field("uint8", "pattern", "Pattern", base.DEC, PATTERNS)
field("uint8", "cookie_length", "Cookie length")
field("bytes", "cookie", "Cookie")
field("uint8", "ticket_length", "Ticket length")
field("bytes", "ticket", "Ticket")
field("uint16", "message_length", "Message length")
field("bytes", "message", "Handshake message")
field("bytes", "padding", "Padding")
field("bytes", "token", "Token")
field("bytes", "masked", "Masked header")
field("uint32", "number", "Packet number (low 32 bits)")
field("bytes", "sealed", "Sealed payload")
field("bytes", "tag", "Tag")
field("uint32", "departure", "Departure (µs)")
field("string", "frame", "Frame")
field("uint8", "frame.type", "Type", base.HEX)

-- The fields of frames: a name, and v (varint), z (zig-zag varint), 1, 2, 4 (bytes of an integer),
-- f (binary64), 8 (eight bytes), or n (the rest or the named length of bytes).
local FRAMES = {
    [0x00] = { "Padding" },
    [0x01] = { "Ping" },
    [0x08] = { "Floor", "stream v", "floor v" },
    [0x09] = { "Drop", "stream v", "section v", "reason 1" },
    [0x0a] = { "Credit", "bytes v", "sections v" },
    [0x0d] = {
        "ReceiverReport", "complete v", "on_time v", "late v", "with_gaps v", "bytes v", "packets v", "duplicates v",
        "delay_latest z", "delay_least z", "jitter v", "buffered v", "clock_drift z",
    },
    [0x0e] = { "PathChallenge", "data 8" },
    [0x0f] = { "PathResponse", "data 8" },
    [0x10] = { "Close", "code v" },
    [0x11] = { "End", "stream v", "sections v" },
    [0x12] = { "Blocked" },
}
local TAGS = {
    { "Tag wave", "wave 2", "segments 2", "position 2" },
    { "Tag round", "round 4", "round_trip v" },
    { "Tag numbered", "number 4", "round_trip v" },
}
local FEEDBACK = {
    { "Feedback wave", "level 2" },
    { "Feedback loss events", "loss_event_rate f", "receive_rate v" },
    { "Feedback count", "round 4", "packets 4" },
}
local ACK = { "Ack", "largest v", "delay v", "arrival 4", "range_count v", "range v" }
local SECTION = {
    "Section", "stream v", "section v", "floor v", "offset v", "total v", "source_time v", "deadline v",
}
local EXTRA = { "", "importance 1", "needs v", "length v", "gap v", "ect0 v", "ect1 v", "ce v", "kind 1", "reason_length 1" }
for _, list in pairs({ FRAMES, TAGS, FEEDBACK, { ACK, SECTION, EXTRA } }) do
    for _, frame in pairs(list) do
        for i = 2, #frame do
            local name, kind = frame[i]:match("(%S+) (%S)")
            local key = "frame." .. name
            if not fields[key] then
                local title = name:gsub("_", " ")
                if kind == "f" then field("double", key, title)
                elseif kind == "8" then field("bytes", key, title)
                elseif kind == "z" then field("int64", key, title)
                else field("uint64", key, title) end
            end
        end
    end
end
field("bytes", "frame.media", "data")
field("string", "frame.text", "reason")
comity.fields = fields

local bad_frame = ProtoExpert.new("comity.malformed", "Malformed frame", expert.group.MALFORMED, expert.severity.ERROR)
comity.experts = { bad_frame }

-------------------------------------------------------------------------------- keys and connections

-- The connections of the key log: their secrets by the identifiers of packets.
local known, directions, results = {}, {}, {}

local function unhex(text)
    return (text:gsub("..", function(two) return string.char(tonumber(two, 16)) end))
end

-- One direction of a connection: its keys, and what the packets so far have shown.
local function direction(cipher, id, secret)
    local size = cipher == AES_128_GCM and 16 or 32
    local function prepared(key) return cipher == AES_128_GCM and aes_key(key) or key end
    local one = {
        cipher = cipher, mask = prepared(expand(secret, "comity 2 mask", size)), ids = expand(secret, "comity 2 ids", 32),
        phases = {}, phase = 0, secret = secret, known_secrets = 0, expected = 0, generation = 0,
    }
    -- The keys of a phase; each secret gives the next.
    function one.keys(phase)
        while not one.phases[phase] do
            one.phases[one.known_secrets] = {
                key = prepared(expand(one.secret, "comity 2 key", size)), iv = expand(one.secret, "comity 2 iv", 12),
            }
            one.secret = expand(one.secret, "comity 2 update", 32)
            one.known_secrets = one.known_secrets + 1
        end
        return one.phases[phase]
    end
    known[id] = one
    directions[#directions + 1] = one
end

local function read_log()
    local file = comity.prefs.keylog ~= "" and io.open(comity.prefs.keylog)
    if not file then return end
    for line in file:lines() do
        local cipher, caller, listener, to_listener, to_caller = line:match("^COMITY2 ([12]) (%x+) (%x+) (%x+) (%x+)$")
        if cipher and #caller == 16 and #listener == 16 and #to_listener == 64 and #to_caller == 64 then
            if not known[listener] then
                direction(tonumber(cipher), listener, unhex(to_listener))
                direction(tonumber(cipher), caller, unhex(to_caller))
            end
        end
    end
    file:close()
end

-- The direction of packets with this destination. Later identifiers follow from the secrets.
local function direction_of(id)
    if known[id] then return known[id] end
    for _, one in ipairs(directions) do
        for generation = one.generation + 1, one.generation + 4 do
            if expand(one.ids, "comity 2 id " .. generation, 8) == unhex(id) then
                one.generation = generation
                known[id] = one
                return one
            end
        end
    end
    return nil
end

-- The full number that is closest to the expected one (RFC 9000, appendix A.3).
local function full_number(one, low)
    local window = 4294967296
    local number = math.floor(one.expected / window) * window + low
    if number <= one.expected - window / 2 then number = number + window
    elseif number > one.expected + window / 2 and number >= window then number = number - window end
    return number
end

-- Opens a Data packet: its phase, low number, and payload.
local function open(one, packet)
    local header, sealed = packet:sub(1, 13), packet:sub(14, -17)
    local mask = mask_of(one.cipher, one.mask, packet:sub(14, 29))
    local flags = bxor(header:byte(1), band(mask[1], 15))
    local low = 0
    for i = 1, 4 do low = low * 256 + bxor(header:byte(9 + i), mask[1 + i]) end
    local number = full_number(one, low)
    local phase = one.phase
    if band(flags, 1) ~= phase % 2 then
        -- The number decides between the previous phase and the next.
        phase = (phase > 0 and number < one.lowest) and phase - 1 or phase + 1
    end
    if phase > one.phase then one.phase, one.lowest = phase, number end
    one.expected = math.max(one.expected, number + 1)
    local keys = one.keys(phase)
    local tail, count = {}, number
    for i = 8, 1, -1 do
        tail[i] = string.char(bxor(keys.iv:byte(4 + i), count % 256))
        count = math.floor(count / 256)
    end
    local nonce = keys.iv:sub(1, 4) .. table.concat(tail)
    return { phase = phase, low = low, payload = decrypt(one.cipher, keys.key, nonce, sealed) }
end

-------------------------------------------------------------------------------- frames

-- A reader of a range of bytes. It raises an error at the end.
local function reader(range)
    local at = 0
    local self = {}
    function self.left() return range:len() - at end
    function self.take(length)
        if length > self.left() then error("too short") end
        local part = range(at, length)
        at = at + length
        return part
    end
    function self.peek() return range(at, 1):uint() end
    function self.at() return at end
    function self.since(start) return range(start, at - start) end
    function self.varint()
        local start = at
        local first = self.take(1):uint()
        local value = first % 64
        for _ = 2, 2 ^ math.floor(first / 64) do value = value * 256 + self.take(1):uint() end
        return self.since(start), value
    end
    return self
end

-- Adds one field of a frame, and returns its value.
local function add(tree, from, spec)
    local name, kind = spec:match("(%S+) (%S)")
    local target = fields["frame." .. name]
    local part, value
    if kind == "v" or kind == "z" then
        part, value = from.varint()
        if kind == "z" then value = value % 2 == 0 and value / 2 or -(value + 1) / 2 end
        local shown = kind == "z" and Int64.new(value) or UInt64.new(value % 4294967296, math.floor(value / 4294967296))
        tree:add(target, part, shown)
    elseif kind == "f" or kind == "8" then
        tree:add(target, from.take(8))
    else
        part = from.take(tonumber(kind))
        value = part:uint()
        local item = tree:add(target, part, UInt64.new(value))
        if name == "reason" and REASONS[value] then item:append_text(" (" .. REASONS[value] .. ")") end
    end
    return value
end

local function add_all(tree, from, spec)
    local values = {}
    for i = 2, #spec do values[spec[i]:match("%S+")] = add(tree, from, spec[i]) end
    return values
end

local function add_ack(tree, from, kind)
    local values = add_all(tree, from, ACK)
    for _ = 1, values.range_count do
        add(tree, from, "gap v")
        add(tree, from, "range v")
    end
    if kind % 2 == 1 then
        for _, spec in ipairs({ "ect0 v", "ect1 v", "ce v" }) do add(tree, from, spec) end
    end
    return "Ack to " .. values.largest
end

local function add_section(tree, from, kind)
    local values = add_all(tree, from, SECTION)
    if band(kind, 4) ~= 0 then
        add(tree, from, "importance 1")
        add(tree, from, "needs v")
    end
    local length = band(kind, 1) ~= 0 and add(tree, from, "length v") or from.left()
    tree:add(fields["frame.media"], from.take(length))
    local again = band(kind, 2) ~= 0 and " again" or ""
    return string.format("Section %d/%d%s", values.stream, values.section, again)
end

local function add_frame(tree, from)
    local start = from.at()
    local kind = from.take(1):uint()
    local item = tree:add(comity, from.since(start), "Frame")
    item:add(fields["frame.type"], from.since(start))
    local label
    if kind == 0 then
        while from.left() > 0 and from.peek() == 0 do from.take(1) end
        label = "Padding"
    elseif kind == 2 or kind == 3 or (kind >= 0x30 and kind <= 0x3f) then
        label = add_ack(item, from, kind)
    elseif kind >= 0x20 and kind <= 0x2f then
        label = add_section(item, from, kind)
    elseif kind == 0x0b or kind == 0x0c then
        local spec = (kind == 0x0b and TAGS or FEEDBACK)[add(item, from, "kind 1")] or error("unknown kind")
        add_all(item, from, spec)
        label = spec[1]
    elseif FRAMES[kind] then
        local spec = FRAMES[kind]
        local values = add_all(item, from, spec)
        label = spec[1]
        if kind == 0x10 then
            label = label .. " " .. (CODES[values.code] or values.code)
            local length = add(item, from, "reason_length 1")
            if length > 0 then item:add(fields["frame.text"], from.take(length)) end
        end
    else
        error("unknown frame")
    end
    item:set_text(label)
    item:set_len(from.at() - start)
    item:add(fields.frame, from.since(start), label:match("^%a+")):set_generated()
    return label
end

local function add_payload(tree, range)
    local from = reader(range)
    local labels = {}
    local is_whole, why = pcall(function()
        tree:add(fields.departure, from.take(4))
        while from.left() > 0 do labels[#labels + 1] = add_frame(tree, from) end
    end)
    if not is_whole then tree:add_proto_expert_info(bad_frame, tostring(why)) end
    return table.concat(labels, ", ")
end

-------------------------------------------------------------------------------- packets

local function add_bytes(tree, from, name, length)
    if length > 0 then tree:add(fields[name], from.take(length)) end
end

local function add_counted(tree, from, name, size)
    local part = from.take(size or 1)
    tree:add(fields[name .. "_length"], part)
    add_bytes(tree, from, name, part:uint())
end

local function dissect_data(tvb, pinfo, tree, from, is_clear)
    local part = from.take(8)
    tree:add(fields.destination, part)
    local id = part:bytes():tohex(true)
    local number = from.take(4)
    local result = results[pinfo.number]
    if result == nil then
        if #directions == 0 then read_log() end
        local one = direction_of(id)
        -- A whole sample and a tag.
        result = one and tvb:len() >= 29 and open(one, tvb():raw()) or false
        results[pinfo.number] = result
    end
    if result then
        tree:add(fields.phase, tvb(0, 1), result.phase % 2)
        tree:add(fields.number, number, result.low)
        local clear = ByteArray.new(result.payload, true):tvb("Decrypted payload")
        tree:add(fields.tag, tvb(tvb:len() - 16, 16))
        return add_payload(tree, clear())
    elseif is_clear then
        tree:add(fields.phase, tvb(0, 1), tvb(0, 1):uint() % 2)
        tree:add(fields.number, number)
        return add_payload(tree, from.take(from.left()))
    end
    tree:add(fields.masked, number)
    add_bytes(tree, from, "sealed", from.left())
    return "sealed"
end

-- The pattern of the last Initial packet between two addresses.
local conversations = {}
local function ends(pinfo)
    local one = tostring(pinfo.src) .. ":" .. pinfo.src_port
    local other = tostring(pinfo.dst) .. ":" .. pinfo.dst_port
    return one < other and one .. " " .. other or other .. " " .. one
end

local function dissect(tvb, pinfo, tree)
    local from = reader(tvb())
    local first = from.take(1)
    local kind = rshift(first:uint(), 4)
    local name = TYPES[kind]
    if not name then return 0 end
    pinfo.cols.protocol = "Comity"
    local item = tree:add(comity, tvb(), "Comity " .. name)
    item:add(fields.type, first)
    local info = ""
    local is_whole, why = pcall(function()
        if name == "Initial" then
            local version = from.take(4)
            item:add(fields.version, version)
            item:add(fields.source, from.take(8))
            -- Other versions have only these fields in common.
            if version:uint() ~= 2 then
                info = "version " .. version:uint()
                return
            end
            local pattern = from.take(1)
            item:add(fields.pattern, pattern)
            conversations[ends(pinfo)] = pattern:uint()
            add_counted(item, from, "cookie")
            add_counted(item, from, "message", 2)
            add_bytes(item, from, "padding", from.left())
            info = PATTERNS[pattern:uint()] or ""
        elseif name == "Retry" then
            item:add(fields.version, from.take(4))
            item:add(fields.destination, from.take(8))
            add_counted(item, from, "cookie")
        elseif name == "Answer" then
            item:add(fields.version, from.take(4))
            item:add(fields.destination, from.take(8))
            add_counted(item, from, "ticket")
            add_bytes(item, from, "message", from.left())
        elseif name == "Confirm" then
            add_counted(item, from, "ticket")
            add_bytes(item, from, "message", from.left())
        elseif name == "Accept" then
            item:add(fields.destination, from.take(8))
            add_bytes(item, from, "message", from.left())
        elseif name == "VersionNegotiation" then
            item:add(fields.destination, from.take(8))
            while from.left() >= 4 do item:add(fields.version, from.take(4)) end
        elseif name == "Reset" then
            item:add(fields.source, from.take(8))
            item:add(fields.token, from.take(16))
        else
            info = dissect_data(tvb, pinfo, item, from, conversations[ends(pinfo)] == 0)
        end
    end)
    if not is_whole then item:add_proto_expert_info(bad_frame, tostring(why)) end
    pinfo.cols.info = info == "" and name or name .. ": " .. info
    return tvb:len()
end

function comity.init()
    known, directions, results, conversations = {}, {}, {}, {}
end

function comity.dissector(tvb, pinfo, tree)
    return dissect(tvb, pinfo, tree)
end

-- An Initial of version 2 begins a conversation.
comity:register_heuristic("udp", function(tvb, pinfo, tree)
    if tvb:len() < 1200 or tvb(0, 1):uint() ~= 0x10 or tvb(1, 4):uint() ~= 2 then return false end
    pinfo.conversation = comity
    dissect(tvb, pinfo, tree)
    return true
end)
DissectorTable.get("udp.port"):add_for_decode_as(comity)
